// `make bench`: measures Tympan for Node and its peers in one run, and reports which bars are met.
//
// The results are added to `target/bench.json` under `node`.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

import { times } from "./measure.mjs";
import { operation, readWorkload, rows } from "./peers.mjs";

const root = resolve(process.env.TYMPAN_ROOT);
const folder = resolve(root, process.env.TYMPAN_WORKLOADS ?? "bench/data");
const rounds = process.argv.includes("--quick") ? 10 : 80;

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
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ ...known, node: Object.fromEntries(all) }, null, 2)}\n`);
  console.log(`written: ${path}`);
}

console.log(`Node ${process.versions.node}, workloads: ${folder}\n`);
for (const name of Object.keys(measured)) console.log(workloadTable(name));
console.log(barsTable());
write(resolve(root, "target/bench.json"));
