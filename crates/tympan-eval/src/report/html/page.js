// The page: the overview, the filters, the table and the details of cases.

const { options, cases, summary } = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const CHUNK = 100;

cases.forEach((one, index) => {
  one.index = index;
  if (one.name.trim() === "") one.name = one.id;
});
const state = { view: "cases", verdict: "", file: "", model: "", text: "", sort: "verdict", isDescending: false };
let found = [];
let shown = 0;
let isSideBySide = false;

// Columns. Those without any values are not shown.
const has = (key) => cases.some((one) => one[key] !== undefined && one[key] !== null);
const COLUMNS = [
  { key: "verdict", title: "Verdict", value: (one) => VERDICTS.indexOf(one.verdict) },
  { key: "name", title: "Case", value: (one) => `${one.file}\n${one.name}` },
  { key: "model", title: "Model", isHidden: !has("model"), value: (one) => one.model },
  { key: "rate", title: "Pass rate", isNumber: true, isHidden: !cases.some((one) => one.passed.length > 1), value: (one) => one.rate },
  { key: "score", title: "Score", isNumber: true, isHidden: !has("score"), value: (one) => one.score },
  { key: "tokens", title: "Tokens", isNumber: true, isHidden: !has("tokens"), value: (one) => one.tokens },
  { key: "cost", title: "Cost", isNumber: true, isHidden: !has("cost"), value: (one) => one.cost },
  { key: "seconds", title: "Time", isNumber: true, value: (one) => one.seconds },
].filter((column) => !column.isHidden);

/** Returns all text of a case that a search looks at. It is put together when it is first needed. */
function haystack(one) {
  if (one.haystack === undefined) {
    const parts = [one.id, one.name, one.file, one.prompt, one.variant, one.model, one.reason, ...(one.warnings ?? [])];
    for (const attempt of one.attempts) {
      parts.push(attempt.answer);
      for (const check of attempt.checks) parts.push(check.assertion, check.message);
    }
    one.haystack = parts.filter((part) => part !== undefined).join("\n").toLowerCase();
  }
  return one.haystack;
}

function compare(one, other) {
  const column = COLUMNS.find((column) => column.key === state.sort) ?? COLUMNS[0];
  const [a, b] = [column.value(one), column.value(other)];
  // Cases without a value are last in both directions.
  const isMissing = [a, b].map((value) => value === undefined || value === null);
  if (isMissing[0] || isMissing[1]) return isMissing[0] - isMissing[1] || one.index - other.index;
  const order = a < b ? -1 : a > b ? 1 : 0;
  return (state.isDescending ? -order : order) || one.index - other.index;
}

function update() {
  const words = state.text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  found = cases.filter((one) =>
    (state.verdict === "" || one.verdict === state.verdict)
    && (state.file === "" || one.file === state.file)
    && (state.model === "" || one.model === state.model)
    && words.every((word) => haystack(one).includes(word)));
  found.sort(compare);
  shown = 0;
  byId("rows").replaceChildren();
  showMore();
  showState();
}

function showMore() {
  const next = found.slice(shown, shown + CHUNK);
  shown += next.length;
  byId("rows").append(...next.map(row));
  if (found.length === 0) {
    const cell = element("td", { class: "none", colspan: COLUMNS.length, role: "cell" }, cases.length === 0 ? "There are no cases." : "No case matches the filters.");
    byId("rows").append(element("tr", { role: "row" }, cell));
  }
  byId("more").hidden = shown >= found.length;
  byId("more").textContent = `Show more (${grouped(found.length - shown)} left)`;
}

/** Updates everything that shows the filters and the order, and the address, so that it can be shared. */
function showState() {
  const isAll = found.length === cases.length;
  byId("count").textContent = isAll ? counted(cases.length, "case") : `${grouped(found.length)} of ${counted(cases.length, "case")}`;
  for (const button of byId("verdicts").children) button.setAttribute("aria-pressed", button.value === state.verdict);
  for (const head of byId("head").children) {
    if (head.dataset.key === state.sort) head.setAttribute("aria-sort", state.isDescending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  byId("sort").value = `${state.sort} ${state.isDescending}`;
  showAddress();
}

function showAddress() {
  const address = new URLSearchParams();
  if (state.view !== "cases") address.set("view", state.view);
  for (const key of ["verdict", "file", "model", "text"]) if (state[key] !== "") address.set(key, state[key]);
  if (state.sort !== "verdict" || state.isDescending) address.set("sort", `${state.sort} ${state.isDescending}`);
  try {
    history.replaceState(null, "", `#${address}`);
  } catch {
    // A page in a sandbox has no address to change.
  }
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const key of ["verdict", "file", "model", "text"]) state[key] = address.get(key) ?? "";
  setSort(address.get("sort") ?? "verdict false");
  if (views.some(({ key }) => key === address.get("view"))) state.view = address.get("view");
  if (!VERDICTS.includes(state.verdict)) state.verdict = "";
  byId("search").value = state.text;
  for (const key of ["file", "model"]) {
    byId(key).value = state[key];
    if (byId(key).value !== state[key]) state[key] = byId(key).value = "";
  }
}

function setSort(text) {
  const [key, isDescending] = text.split(" ");
  if (!COLUMNS.some((column) => column.key === key)) return;
  state.sort = key;
  state.isDescending = isDescending === "true";
}

// Rows

function cells(one) {
  return {
    verdict: () => element("td", { class: `verdict plain color-${one.verdict}`, role: "cell" }, icon(one.verdict), WORDS[one.verdict]),
    name: () => element("td", { class: "wide", role: "cell" },
      element("button", { class: "name text", type: "button", "aria-expanded": "false" }, one.name),
      element("span", { class: "where" }, quote("span", one.file), one.line > 0 && `:${one.line}`,
        one.variant !== undefined && [" ", quote("span", one.variant, "tag")]),
      problem(one) !== undefined && element("span", { class: `why text color-${one.verdict}` }, problem(one)),
      one.warnings !== undefined && element("span", { class: "warned" }, counted(one.warnings.length, "warning"))),
    model: () => element("td", { class: "plain small", role: "cell" }, one.model !== undefined && quote("span", one.model)),
    rate: () => element("td", { class: "number", role: "cell", "data-label": "Passed" },
      isNumber(one.rate) && one.passed.length > 1
        && element("span", { class: "rate" }, rateBar(one), `${one.passed.filter(Boolean).length}/${one.passed.length}`)),
    score: () => number("Score", isNumber(one.score) ? one.score.toFixed(2) : ""),
    tokens: () => number("Tokens", grouped(one.tokens)),
    cost: () => number("Cost", dollars(one.cost)),
    seconds: () => number("Time", seconds(one.seconds)),
  };
}

/** Returns why a case did not pass, or undefined if it did. */
function problem(one) {
  if (one.verdict === "passed") return undefined;
  const check = one.attempts.flatMap((attempt) => attempt.checks).find(({ status }) => status !== "passed");
  return check?.message ?? one.reason;
}

const number = (label, text) => element("td", { class: "number", role: "cell", "data-label": label }, text);

function row(one) {
  const made = cells(one);
  const node = element("tr", { class: "case", role: "row" }, COLUMNS.map((column) => made[column.key]()));
  node.dataset.index = one.index;
  return node;
}

const nameOf = (node) => node.querySelector(".name");

/** Opens or closes the details of a row. */
function toggle(node, isOpen = nameOf(node).getAttribute("aria-expanded") !== "true") {
  const id = `details-${node.dataset.index}`;
  const old = byId(id);
  nameOf(node).setAttribute("aria-expanded", isOpen);
  node.classList.toggle("open", isOpen);
  if (isOpen && old === null) {
    const one = cases[Number(node.dataset.index)];
    const cell = element("td", { colspan: COLUMNS.length, role: "cell" }, details(one));
    node.after(element("tr", { class: "details", id, role: "row" }, cell));
    nameOf(node).setAttribute("aria-controls", id);
  } else if (!isOpen) {
    old?.remove();
    nameOf(node).removeAttribute("aria-controls");
  }
}

/** Shows a case, whatever the filters are. */
function open(one) {
  showView("cases");
  const find = () => byId("rows").querySelector(`.case[data-index="${one.index}"]`);
  if (!found.includes(one)) {
    Object.assign(state, { verdict: "", file: "", model: "", text: "" });
    byId("search").value = byId("file").value = byId("model").value = "";
    update();
  }
  while (find() === null && shown < found.length) showMore();
  const node = find();
  toggle(node, true);
  nameOf(node).focus({ preventScroll: true });
  node.scrollIntoView({ block: "center" });
}

// Details

function details(one) {
  const fact = (name, value) => value !== undefined && element("div", {}, element("dt", {}, name), element("dd", { class: "text mono" }, value));
  const facts = element("dl", { class: "facts" },
    fact("Id", one.id), fact("Prompt", one.prompt || undefined), fact("Variant", one.variant), fact("Model", one.model),
    isNumber(one.latency) && fact("Model time", seconds(one.latency)));
  const note = (verdict, text) => element("p", { class: `note text color-${verdict}` }, text);
  return [
    facts,
    one.reason !== undefined && note(one.verdict === "passed" ? "skipped" : one.verdict, one.reason),
    (one.warnings ?? []).map((warning) => note("not_run", `Warning: ${warning}`)),
    one.passed.length > 1 && isNumber(one.rate) && repetitions(one),
    one.attempts.length > 0 && attempts(one),
  ];
}

/** Says how sure the pass rate is. */
function repetitions(one) {
  const { low, high } = one.interval;
  const passes = one.passed.filter(Boolean).length;
  const chances = one.all_pass.map((chance, index) => [index + 1, chance]).filter(([together]) => [2, 4, 8].includes(together) || together === one.passed.length);
  const all = chances.map(([together, chance]) => `${percent(chance)} for ${together}`).join(", ");
  return element("p", { class: "small" }, rateBar(one, 160),
    ` ${passes} of ${one.passed.length} attempts passed: ${percent(one.rate)} (95 % interval: ${percent(low)} to ${percent(high)}), ${percent(one.required)} required.`,
    one.rate > 0 && one.rate < 1 && all !== "" && ` Estimated chance that all of several attempts pass: ${all}.`);
}

/** Shows the attempts, one at a time. */
function attempts(one) {
  const body = element("div", {});
  const buttons = one.attempts.map((attempt) =>
    element("button", {
      type: "button", class: `color-${attempt.passed ? "passed" : "failed"}`, "aria-pressed": "false",
      "aria-label": `Attempt ${attempt.number}: ${attempt.passed ? "passed" : "failed"}`,
      click: () => select(attempt),
    }, `${attempt.number}`));
  const select = (attempt) => {
    one.attempts.forEach((other, index) => buttons[index].setAttribute("aria-pressed", other === attempt));
    body.replaceChildren(...attemptDetails(attempt));
  };
  select(one.attempts.find((attempt) => !attempt.passed) ?? one.attempts[0]);
  if (one.passed.length < 2) return body;
  const left = one.passed.length - one.attempts.length;
  return [
    element("div", { class: "tries", role: "group", "aria-label": "Attempts" }, element("span", { class: "muted small" }, "Attempt"), buttons,
      left > 0 && element("span", { class: "muted small" }, `and ${left} more`)),
    body,
  ];
}

function attemptDetails(attempt) {
  const failed = attempt.checks.filter((check) => check.status !== "passed");
  const passed = attempt.checks.filter((check) => check.status === "passed");
  const numbers = [
    attempt.tokens && `${grouped(attempt.tokens[0])} tokens in, ${grouped(attempt.tokens[1])} out`,
    dollars(attempt.cost), seconds(attempt.seconds),
  ].filter((text) => text);
  const list = (checks) => element("ul", { class: "checks" }, checks.map((check) => element("li", {}, checkDetails(check))));
  return [
    element("div", { class: "tools" }, element("span", { class: "muted small" }, numbers.join(" · ")),
      failed.some((check) => check.difference) && sideToggle()),
    failed.length > 0 && list(failed),
    passed.length > 0 && element("details", { class: "passing", open: failed.length === 0 },
      element("summary", {}, `${counted(passed.length, "assertion")} passed`), list(passed)),
    attempt.more_checks > 0 && element("p", { class: "muted small" }, `and ${counted(attempt.more_checks, "more assertion")}`),
    attempt.answer !== undefined && element("details", { class: "answer", open: true },
      element("summary", {}, "Answer"), block([attempt.answer], "Answer")),
  ].filter(Boolean);
}

const block = (children, label) => element("pre", { class: "block text", tabindex: 0, role: "group", "aria-label": label }, children);

function checkDetails(check) {
  const status = check.status;
  return [
    element("div", { class: "check" }, icon(status), element("span", { class: "hidden" }, WORDS[status]), quote("code", check.assertion),
      check.line > 0 && element("span", { class: "muted small" }, `line ${check.line}`),
      isNumber(check.score) && element("span", { class: "tag" }, `score ${check.score.toFixed(2)}`)),
    check.message !== undefined && quote("p", check.message, "message"),
    check.difference !== undefined && difference(check.difference),
  ];
}

const TAGS = { "=": "span", "-": "del", "+": "ins" };
const piece = ([kind, text]) =>
  kind === "…" ? element("span", { class: "gap" }, ` … ${counted(text, "byte")} … `) : element(TAGS[kind], {}, text);

/** Shows a difference, as one text or as two. */
function difference(pieces) {
  if (!isSideBySide) return block(pieces.map(piece), "Difference: expected text is struck through, actual text is underlined");
  const side = (title, other) => element("div", {}, element("p", { class: "side" }, title),
    block(pieces.filter(([kind]) => kind !== other).map(piece), title));
  return element("div", { class: "sides" }, side("Expected", "+"), side("Actual", "-"));
}

function sideToggle() {
  const flip = () => {
    isSideBySide = !isSideBySide;
    for (const name of document.querySelectorAll(".case.open")) {
      toggle(name, false);
      toggle(name, true);
    }
    document.querySelector(".details .toggle")?.focus({ preventScroll: true });
  };
  return element("button", { type: "button", class: "toggle", "aria-pressed": `${isSideBySide}`, click: flip }, "Side by side");
}

// Overview

function overview() {
  const total = cases.length;
  const bad = summary.failed + (options.allow_missing ? 0 : summary.not_run);
  const status = byId("status");
  const words = [[summary.failed, "failed"], [summary.not_run, "not run"], [summary.passed, "passed"], [summary.skipped, "skipped"]].filter(([count]) => count > 0);
  const [main, ...others] = bad === 0 ? [[summary.passed, "passed"], ...words.filter(([, word]) => word !== "passed")] : words;
  status.textContent = total === 0 ? "No cases" : main[0] === total ? `All ${counted(total, "case")} ${main[1]}` : `${grouped(main[0])} of ${counted(total, "case")} ${main[1]}`;
  status.classList.add(`color-${bad === 0 ? "passed" : summary.failed > 0 ? "failed" : "not_run"}`);
  byId("subtitle").textContent = [...others.map(([count, word]) => `${grouped(count)} ${word}`), seconds(summary.seconds)].join(" · ");
  byId("bar").setAttribute("aria-label", words.map(([count, word]) => `${count} ${word}`).join(", ") || "No cases");
  for (const verdict of ["passed", "failed", "not_run", "skipped"]) {
    if (summary[verdict] === 0) continue;
    const part = element("span", { class: `fill-${verdict}` });
    part.style.flex = `${summary[verdict]} 0 0`;
    byId("bar").append(part);
  }
  const tile = (title, value, note) => byId("tiles").append(element("div", { class: "tile" }, element("dt", {}, title), element("dd", {}, value), note && element("dd", {}, note)));
  tile("Cases passed", `${grouped(summary.passed)} of ${grouped(total)}`, total > 0 ? percent(summary.passed / total) : undefined);
  if (summary.attempts > total) tile("Attempts passed", `${grouped(summary.passed_attempts)} of ${grouped(summary.attempts)}`, percent(summary.passed_attempts / summary.attempts));
  if (summary.input_tokens + summary.output_tokens > 0) tile("Tokens", grouped(summary.input_tokens + summary.output_tokens), `${grouped(summary.input_tokens)} in, ${grouped(summary.output_tokens)} out`);
  if (isNumber(summary.cost)) tile("Cost", dollars(summary.cost), total > 0 ? `${dollars(summary.cost / total)} per case` : undefined);
  tile("Time", seconds(summary.seconds) || "0 s", undefined);
  if (summary.warnings > 0) tile("Warnings", grouped(summary.warnings), undefined);
}

function comparison() {
  const compared = summary.comparison;
  if (compared === undefined) return undefined;
  const words = { better: "Better", worse: "Worse", unchanged: "Unchanged", not_shown: "Not shown" };
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;
  const measure = (name, text, change) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, text), element("td", { class: change }, words[change]));
  const mean = (name, entry) => entry && measure(name, `${signed(entry.mean)} on average of ${counted(entry.pairs, "case")} (95 % interval: ${signed(entry.interval.low)} to ${signed(entry.interval.high)})`, entry.change);
  const { verdicts, exact, varying } = compared;
  const exactly = exact.regressed > 0 ? "worse" : exact.improved > 0 ? "better" : "unchanged";
  const table = element("table", { class: "measures" },
    element("thead", {}, element("tr", {}, ["Measure", "Change", "Shown"].map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {},
      (exact.pairs > 0 || varying === 0) && measure("Exact verdicts", `${exact.improved} improved, ${exact.regressed} regressed of ${counted(exact.pairs, "case")}`, exactly),
      varying > 0 && measure("Verdicts of models", `${verdicts.improved} improved, ${verdicts.regressed} regressed of ${counted(varying, "case")} (p = ${verdicts.p.toFixed(3)})`, verdicts.change),
      mean("Pass rate", compared.pass_rates), mean("Score", compared.scores)));
  const known = new Map(cases.map((one) => [one.id, one]));
  const entry = (id) => element("li", {}, known.has(id)
    ? element("button", { type: "button", class: "link text", click: () => open(known.get(id)) }, id) : quote("span", id));
  const list = (title, ids) => ids.length > 0 && element("details", {}, element("summary", {}, `${title}: ${grouped(ids.length)}`),
    element("ul", { class: "ids small" }, ids.slice(0, 500).map(entry), ids.length > 500 && element("li", {}, `and ${grouped(ids.length - 500)} more`)));
  const change = [compared.pass_rates, compared.scores, verdicts].filter(Boolean).map((entry) => entry.change).concat(exactly);
  const none = varying === 0 && compared.other.length === 0 ? "unchanged" : "not_shown";
  const overall = change.includes("worse") ? "worse" : change.includes("better") ? "better" : none;
  byId("comparison").append(table, ...[
    list("Regressed", compared.regressed), list("Improved", compared.improved),
    list("Other changes", compared.other.map((change) => change.id)),
    list("Only in the baseline", compared.only_before), list("Only in this run", compared.only_now),
  ].filter(Boolean));
  return { key: "comparison", title: "Baseline", note: words[overall], className: overall };
}

function charts() {
  const values = (key) => cases.map((one) => one[key]);
  const list = [
    rates(cases, open), allPass(summary.all_pass),
    histogram("Scores", values("score"), (value) => value.toFixed(2), [0, 1]),
    histogram("Model time per attempt", values("latency"), seconds),
    histogram("Cost per case", values("cost"), dollars),
  ].filter(Boolean);
  byId("charts").append(...list);
  return list.length > 0 && { key: "charts", title: "Charts" };
}

// Views

const views = [];

function tabs() {
  views.push(...[{ key: "cases", title: "Cases", note: grouped(cases.length) }, charts(), comparison()].filter(Boolean));
  for (const view of views) {
    byId("tabs").append(element("button", { type: "button", role: "tab", id: `tab-${view.key}`, "aria-controls": view.key, click: () => showView(view.key) },
      view.title, view.note && element("b", { class: view.className }, view.note)));
  }
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const index = views.findIndex((view) => view.key === state.view);
    showView(views[(index + step + views.length) % views.length].key);
    byId(`tab-${state.view}`).focus();
  });
  byId("tabs").hidden = views.length < 2;
}

function showView(key) {
  state.view = key;
  for (const view of views) {
    const isShown = view.key === key;
    byId(view.key).hidden = !isShown;
    byId(`tab-${view.key}`).setAttribute("aria-selected", isShown);
    byId(`tab-${view.key}`).tabIndex = isShown ? 0 : -1;
  }
  showAddress();
}

// Filters

function filters() {
  const choose = (verdict, title, count) => element("button", { type: "button", value: verdict, "aria-pressed": "false", click: () => { state.verdict = verdict; update(); } }, title, element("b", {}, grouped(count)));
  byId("verdicts").append(choose("", "All", cases.length), ...VERDICTS.filter((verdict) => summary[verdict] > 0).map((verdict) => choose(verdict, WORDS[verdict], summary[verdict])));
  for (const [key, title] of [["file", "All files"], ["model", "All models"]]) {
    const values = [...new Set(cases.map((one) => one[key]).filter((value) => value !== undefined))].sort();
    byId(key).append(element("option", { value: "" }, title), ...values.map((value) => element("option", { value }, plain(value))));
    byId(key).parentElement.hidden = values.length < 2;
    byId(key).addEventListener("change", () => { state[key] = byId(key).value; update(); });
  }
  for (const column of COLUMNS) {
    const sort = () => { setSort(`${column.key} ${state.sort === column.key ? !state.isDescending : column.isNumber === true}`); update(); };
    const head = element("th", { role: "columnheader", scope: "col", class: column.isNumber && "number" }, element("button", { type: "button", click: sort }, column.title));
    head.dataset.key = column.key;
    byId("head").append(head);
    for (const isDescending of [false, true]) {
      byId("sort").append(element("option", { value: `${column.key} ${isDescending}` }, `${column.title} ${isDescending ? "↓" : "↑"}`));
    }
  }
  byId("sort").addEventListener("change", () => { setSort(byId("sort").value); update(); });
  byId("search").addEventListener("input", () => { state.text = byId("search").value; update(); });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
}

function keys(event) {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    byId("search").focus();
  }
  if (event.target.classList?.contains("name") && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    const names = [...byId("rows").querySelectorAll(".name")];
    names[names.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }
}

function theme() {
  const button = byId("theme");
  const isDark = () => (document.documentElement.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const show = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colors`); };
  button.addEventListener("click", () => { document.documentElement.style.colorScheme = isDark() ? "light" : "dark"; show(); });
  show();
}

byId("rows").addEventListener("click", (event) => {
  const node = event.target.closest(".case");
  // A click that selects text is not a click on the row.
  if (node !== null && (getSelection().isCollapsed || event.target.closest("button"))) toggle(node);
});
byId("more").addEventListener("click", () => {
  const first = shown;
  showMore();
  nameOf(byId("rows").querySelectorAll(".case")[first])?.focus();
});
new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting) && shown < found.length) showMore();
}, { rootMargin: "600px" }).observe(byId("more").parentElement);
document.addEventListener("keydown", keys);
theme();
overview();
tabs();
filters();
readAddress();
showView(state.view);
update();
