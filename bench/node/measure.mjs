// Time, as the median of many short batches, with the same method as `bench/src/measure.rs`.
//
// The clock measures the CPU time of the process, because other programs run on the machine too. The rows take turns,
// one batch each, so that a slow minute affects all of them and the ratios stay the same.

import { execFileSync } from "node:child_process";

/** The target duration of a batch, in microseconds. */
const BATCH = 10_000;
/** Before each timed batch, this fraction of it runs untimed. */
const WARM_UP = 8;

/** Times operations against each other. Returns the median in nanoseconds and half the interquartile range. */
export async function times(operations, rounds) {
  const repetitions = [];
  for (const operation of operations) repetitions.push(await repetitionsOf(operation));
  const samples = operations.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let step = 0; step < operations.length; step++) {
      // Start each round with a different row, so that no row always follows the same one.
      const i = (round + step) % operations.length;
      await batch(operations[i], Math.ceil(repetitions[i] / WARM_UP));
      samples[i].push(((await batch(operations[i], repetitions[i])) * 1000) / repetitions[i]);
    }
  }
  return samples.map(summary);
}

/** Returns the time of a batch in microseconds. Synchronous operations are not awaited, as in a real program. */
async function batch({ run, isAsync }, repetitions) {
  const before = process.cpuUsage();
  if (isAsync) for (let i = 0; i < repetitions; i++) await run();
  else for (let i = 0; i < repetitions; i++) run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Returns the number of repetitions that fill a batch, after the compiler has optimized the operation. */
async function repetitionsOf(operation) {
  for (let i = 0; i < 20; i++) await batch(operation, 100);
  for (let repetitions = 1; ; repetitions *= 2) {
    const spent = await batch(operation, repetitions);
    if (spent * 2 >= BATCH) return Math.max(1, Math.floor((repetitions * BATCH) / spent));
  }
}

/**
 * Returns how long bare Node takes to start, and how much longer it takes with each module, by the CPU time of its
 * process until the module is there.
 */
export function imports(modules, rounds, cwd) {
  const [starts, samples] = [[], modules.map(() => [])];
  for (let round = 0; round < rounds; round++) {
    const bare = processTime("", cwd);
    starts.push(bare);
    modules.forEach((module, at) => samples[at].push(processTime(`await import(${JSON.stringify(module)});`, cwd) - bare));
  }
  return { bare: summary(starts), over: samples.map(summary) };
}

function processTime(program, cwd) {
  const code = `${program} const { user, system } = process.cpuUsage(); console.log(user + system);`;
  const options = ["--input-type=module", "--eval", code];
  return Number(execFileSync(process.execPath, options, { cwd, encoding: "utf8" })) * 1000;
}

function summary(samples) {
  const ordered = samples.toSorted((one, other) => one - other);
  const [first, ns, third] = [0.25, 0.5, 0.75].map((part) => ordered[Math.round((ordered.length - 1) * part)]);
  return { ns, spread: (third - first) / 2 / ns };
}
