// Elements, text and charts. Everything that comes from the data is set as text, never as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const VERDICTS = ["failed", "not_run", "skipped", "passed"];
const WORDS = { passed: "Passed", failed: "Failed", not_run: "Not run", skipped: "Skipped" };

// Characters that could hide something, or change the order of the text around them.
const CONTROL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff\u{e0000}-\u{e007f}]/gu;

const codePoint = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** Returns a text in which control characters are written out, for attributes. */
const plain = (text) => String(text).replace(CONTROL, (char) => `[${codePoint(char)}]`);

/** Appends a text, with control characters as small labels. */
function appendText(parent, text) {
  let end = 0;
  for (const match of text.matchAll(CONTROL)) {
    parent.append(text.slice(end, match.index));
    const label = document.createElement("span");
    label.className = "control";
    label.textContent = codePoint(match[0]);
    parent.append(label);
    end = match.index + match[0].length;
  }
  parent.append(text.slice(end));
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "click") node.addEventListener("click", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    if (child instanceof Node) node.append(child);
    else appendText(node, String(child));
  }
  return node;
}

/** Creates an element. Strings among the children become text. */
const element = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
const shape = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

/** Creates an element for a text that somebody else wrote. */
const quote = (tag, text, className = "") => element(tag, { class: `text ${className}`.trim() }, text);

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const percent = (share) => {
  const rounded = Math.round(share * 100);
  return `${share < 1 && rounded === 100 ? 99 : share > 0 && rounded === 0 ? 1 : rounded}\u00a0%`;
};
const seconds = (value) =>
  !isNumber(value) ? ""
  : value > 0 && value < 0.001 ? `${Math.round(value * 1e6)} µs`
  : value < 1 ? `${Math.round(value * 1e3)} ms`
  : value < 60 ? `${value.toFixed(1)} s`
  : value < 3600 ? `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`
  : `${grouped(Math.floor(value / 3600))} h ${Math.floor((value % 3600) / 60)} min`;
const dollars = (value) =>
  !isNumber(value) ? "" : value > 0 && value < 0.01 ? `$${value.toPrecision(2)}` : `$${value.toFixed(value < 0.1 && value > 0 ? 3 : 2)}`;
const grouped = (value) => (isNumber(value) ? value.toLocaleString("en") : "");
const counted = (count, what) => `${grouped(count)} ${what}${count === 1 ? "" : "s"}`;

const PATHS = {
  passed: "M3.5 8.5l3 3 6-7",
  failed: "M4 4l8 8M12 4l-8 8",
  not_run: "M8 3.5v5.5M8 12.2v.3",
  skipped: "M3.5 8h9",
};

/** Returns the symbol of a verdict. The word next to it says the same. */
function icon(verdict) {
  const path = shape("path", { d: PATHS[verdict], fill: "none", stroke: "currentColor", "stroke-width": 2.2, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return shape("svg", { width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": "true", class: `color-${verdict}` }, path);
}

/** Returns a small picture of a pass rate: its interval, the rate, and what is required. */
function rateBar(one, width = 92) {
  const at = (share) => Math.min(1, Math.max(0, share)) * (width - 6) + 3;
  const { low, high } = one.interval;
  const label = `${percent(one.rate)}, 95 % interval ${percent(low)} to ${percent(high)}, required ${percent(one.required)}`;
  return shape("svg", { width, height: 14, viewBox: `0 0 ${width} 14`, role: "img", "aria-label": label },
    shape("title", {}, label),
    shape("rect", { class: "track", x: 0, y: 5, width, height: 4, rx: 2 }),
    shape("line", { class: `whisker stroke-${one.verdict}`, x1: at(low), x2: at(high), y1: 7, y2: 7, "stroke-width": 4 }),
    shape("line", { class: "threshold", x1: at(one.required), x2: at(one.required), y1: 1, y2: 13 }),
    shape("circle", { class: `fill-${one.verdict}`, cx: at(one.rate), cy: 7, r: 3.5 }));
}

function figure(title, note, picture, isWide) {
  const caption = element("figcaption", {}, element("h2", {}, title), element("span", { class: "muted small" }, note));
  return element("figure", { class: isWide ? "chart wide" : "chart" }, caption, picture);
}

// The units are pixels at the usual sizes, so that labels have the size of other text.
const isNarrow = matchMedia("(max-width: 720px)").matches;
const WIDTH = isNarrow ? 320 : 530;
const WIDE = isNarrow ? 320 : 1140;
const HEIGHT = 150;

/** Draws a frame with labels below and, if there are any, on the left. */
function frame(label, width, left, bottomLabels, leftLabels, ...contents) {
  const y = (share) => HEIGHT - share * HEIGHT;
  const rows = leftLabels.map(([share, text]) => [
    shape("line", { class: "axis", x1: left, x2: width, y1: y(share), y2: y(share) }),
    shape("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, text),
  ]);
  const columns = bottomLabels.map(([x, text, anchor]) => shape("text", { x, y: HEIGHT + 15, "text-anchor": anchor }, text));
  return shape("svg", { viewBox: `0 -6 ${width} ${HEIGHT + 24}`, role: "img", "aria-label": label },
    rows.flat(), shape("line", { class: "axis", x1: left, x2: width, y1: HEIGHT, y2: HEIGHT }), contents, columns);
}

/** Returns the value below which a share of the sorted values are. */
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

/** Draws how many values there are of each size. */
function histogram(title, values, format, bounds) {
  const sorted = values.filter(isNumber).sort((one, other) => one - other);
  if (sorted.length === 0) return undefined;
  const [low, high] = bounds ?? [0, sorted[sorted.length - 1] || 1];
  const bins = new Array(20).fill(0);
  const size = (high - low) / bins.length || 1;
  for (const value of sorted) bins[Math.max(0, Math.min(bins.length - 1, Math.floor((value - low) / size)))] += 1;
  const most = Math.max(...bins);
  const left = 42;
  const width = (WIDTH - left) / bins.length;
  const columns = bins.map((count, index) => {
    const height = count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
    const range = `${format(low + index * size)} to ${format(low + (index + 1) * size)}: ${counted(count, "case")}`;
    return shape("rect", { class: "column", x: left + index * width + 1, y: HEIGHT - height, width: width - 2, height, rx: 2 }, shape("title", {}, range));
  });
  const [half, most95] = [quantile(sorted, 0.5), quantile(sorted, 0.95)];
  const note = `median ${format(half)}, 95 % of cases up to ${format(most95)}`;
  const labels = [[left, format(low), "start"], [(left + WIDTH) / 2, format((low + high) / 2), "middle"], [WIDTH, format(high), "end"]];
  return figure(title, note, frame(`${title}: ${note}`, WIDTH, left, labels, [[1, grouped(most)]], columns));
}

/** Draws the pass rates of cases with their intervals, from the lowest to the highest. */
function rates(cases, open) {
  const MOST = 60;
  const repeated = cases.filter((one) => one.passed.length > 1 && isNumber(one.rate)).sort((one, other) => one.rate - other.rate || one.interval.low - other.interval.low);
  if (repeated.length === 0) return undefined;
  const shown = repeated.slice(0, MOST);
  const [width, left] = [WIDE, 42];
  const step = (width - left) / shown.length;
  const y = (share) => HEIGHT - share * HEIGHT;
  const marks = shown.map((one, index) => {
    const x = left + (index + 0.5) * step;
    const label = `${plain(one.name)}: ${percent(one.rate)} (${percent(one.interval.low)} to ${percent(one.interval.high)})`;
    const radius = Math.min(4, Math.max(2, step / 4));
    return [
      shape("rect", { class: "hit", x: x - step / 2, y: 0, width: step, height: HEIGHT, click: () => open(one) }, shape("title", {}, label)),
      isNumber(one.required) && shape("line", { class: "guide", x1: x - step / 3, x2: x + step / 3, y1: y(one.required), y2: y(one.required), "pointer-events": "none" }),
      shape("line", { class: `whisker stroke-${one.verdict}`, x1: x, x2: x, y1: y(one.interval.high), y2: y(one.interval.low), "pointer-events": "none" }),
      shape("circle", { class: `fill-${one.verdict}`, cx: x, cy: y(one.rate), r: radius, "pointer-events": "none" }),
    ];
  });
  const all = `${counted(repeated.length, "case")} with several attempts`;
  const note = `${shown.length < repeated.length ? `the lowest ${MOST} of ${all}` : all}; a dashed line is the rate that is required`;
  const labels = [[left, "lowest", "start"], [width, "highest", "end"]];
  const picture = frame(`Pass rates with 95 % intervals, ${note}`, width, left, labels, [[1, "100 %"], [0.5, "50 %"], [0, "0 %"]], marks.flat());
  return figure("Pass rate of each case, with its 95 % interval", note, picture, true);
}

/** Draws the chance that several attempts at a case all pass. */
function allPass(entries) {
  if (!Array.isArray(entries) || entries.length < 2) return undefined;
  const left = 42;
  const x = (index) => left + 6 + (index / (entries.length - 1)) * (WIDTH - left - 12);
  const y = (share) => HEIGHT - share * HEIGHT;
  const points = entries.map((entry, index) => `${x(index)},${y(entry.mean)}`).join(" ");
  const dots = entries.map((entry, index) =>
    shape("circle", { class: "dot", cx: x(index), cy: y(entry.mean), r: 3.5 },
      shape("title", {}, `${counted(entry.together, "attempt")}: ${percent(entry.mean)}, mean of ${counted(entry.cases, "case")}`)));
  const last = entries[entries.length - 1];
  const labels = [[x(0), "1", "middle"], [x(entries.length - 1), `${last.together} attempts`, "end"]];
  const note = `from ${percent(entries[0].mean)} for one to ${percent(last.mean)} for ${last.together}`;
  const picture = frame(`Chance that several attempts all pass: ${note}`, WIDTH, left, labels, [[1, "100 %"], [0.5, "50 %"], [0, "0 %"]], shape("polyline", { class: "curve", points }), dots);
  return figure("Chance that all of k attempts pass (pass^k)", note, picture);
}
