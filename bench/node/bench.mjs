// `make bench`: measures Tympan for Node and its peers in one run, and reports which bars are met.
//
// The results are added to `target/bench.json` under `node`.

import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { imports, times } from "./measure.mjs";
import { checks, operation, readWorkload, rows } from "./peers.mjs";

const root = resolve(process.env.TYMPAN_ROOT);
const folder = resolve(root, process.env.TYMPAN_WORKLOADS ?? "bench/data");
const isQuick = process.argv.includes("--quick");
const rounds = isQuick ? 10 : 80;
const modules = ["tympan", "dotprompt", "@langchain/core/prompts"];

/** The minimum speedup of Tympan's messages over each peer, on w1, w2 and w3. */
const faster = { "dotprompt render": [2, 1, 1], "langchain formatMessages": [2, 1, 1] };

const names = Object.keys(rows);
const measured = {};
for (const name of ["w1", "w2", "w3"]) {
  const workload = readWorkload(folder, name);
  const operations = [];
  for (const row of names) operations.push(await operation(row, workload));
  const timings = await times(operations, rounds);
  measured[name] = Object.fromEntries(names.map((row, at) => [row, timings[at]]));
}

const operations = checks(folder, readWorkload(folder, "w1"));
const checkTimes = await times(Object.values(operations).map((run) => ({ run })), rounds);
const checked = Object.fromEntries(Object.keys(operations).map((row, at) => [row, checkTimes[at]]));
const starts = imports(modules, isQuick ? 5 : 40, import.meta.dirname);

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Formats a table with aligned columns: the first to the left, the others to the right. */
function table(head, lines) {
  const widths = head.map((cell, at) => Math.max(...[head, ...lines].map((line) => line[at].length)));
  const line = (cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join("  ");
  return [line(head), "─".repeat(line(head).length), ...lines.map(line), ""].join("\n");
}

function workloadTable(name) {
  const ours = measured[name]["tympan prepare"].ns;
  const lines = Object.entries(measured[name]).map(([row, { ns, spread }]) => [
    row,
    number.format(ns),
    `${number.format(100 * spread)}%`,
    (ns / ours).toFixed(2),
  ]);
  return table([`Node, ${name}`, "ns", "±", "× tympan"], lines);
}

function checkTable() {
  const lines = Object.entries(checked).map(([row, { ns, spread }]) => [
    `${row} of w1`,
    (ns / 1000).toFixed(1),
    `${number.format(100 * spread)}%`,
    number.format(1e9 / ns),
  ]);
  return table(["Node, checks", "µs", "±", "per second"], lines);
}

function importTable() {
  const { bare, over } = starts;
  const ms = (ns) => (ns / 1e6).toFixed(1);
  const lines = over.map(({ ns, spread }, at) => [
    modules[at],
    ms(bare.ns + ns),
    ms(ns),
    `${number.format(100 * spread)}%`,
    ((bare.ns + ns) / bare.ns).toFixed(2),
  ]);
  const first = ["bare Node", ms(bare.ns), "-", `${number.format(100 * bare.spread)}%`, "1.00"];
  return table(["Node, import", "ms", "ms over bare Node", "±", "× bare Node"], [first, ...lines]);
}

/** The size of the tarball, and of the package that is installed from it. */
function sizeTable() {
  const wheels = resolve(root, "target/wheels");
  const tarballs = readdirSync(wheels).filter((name) => /^tympan-.*\.tgz$/.test(name));
  const installed = join(import.meta.dirname, "node_modules/tympan");
  const files = readdirSync(installed, { recursive: true }).map((name) => join(installed, name));
  const size = (paths) => (paths.reduce((sum, path) => sum + statSync(path).size, 0) / 1e6).toFixed(1);
  const lines = tarballs.map((name) => [name, size([join(wheels, name)])]);
  return table(["Node, size", "MB"], [...lines, ["installed", size(files.filter((path) => statSync(path).isFile()))]]);
}

function barsTable() {
  const lines = Object.keys(measured).flatMap((name, at) =>
    Object.entries(faster).map(([theirs, least]) => {
      const ratio = measured[name][theirs].ns / measured[name]["tympan prepare"].ns;
      const mark = ratio >= least[at] ? "✓ pass" : "✗ FAIL";
      return [`${name}: tympan prepare, against ${theirs}`, `${ratio.toFixed(2)} ×`, `at least ${least[at]} ×`, mark];
    }),
  );
  return table(["Node, bars", "measured", "required", ""], lines);
}

/** Adds the results to those of the other benchmarks: `{"node": {"<workload>": {"<row>": {"ns": …}}}}`. */
function write(path) {
  const known = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  const shown = ([row, { ns }]) => [row, { ns: Math.round(ns * 10) / 10 }];
  const all = Object.entries(measured).map(([name, timings]) => [name, Object.fromEntries(Object.entries(timings).map(shown))]);
  all.push(["check", Object.fromEntries(Object.entries(checked).map(shown))]);
  all.push(["import", Object.fromEntries(modules.map((module, at) => [module, { ns: Math.round(starts.over[at].ns) }]))]);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ ...known, node: Object.fromEntries(all) }, null, 2)}\n`);
  console.log(`written: ${path}`);
}

console.log(`Node ${process.versions.node}, workloads: ${folder}\n`);
for (const name of Object.keys(measured)) console.log(workloadTable(name));
console.log(checkTable());
console.log(importTable());
console.log(sizeTable());
console.log(barsTable());
write(resolve(root, "target/bench.json"));
