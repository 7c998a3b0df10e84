// Time, as the median of many short batches: the method of `bench/src/measure.rs`.
//
// A clock of the process's own CPU time, because other programs run on the machine too; and the rows take turns, one batch
// each, so that a slow minute is shared by all of them and the ratios stay.

/** How long a batch should take, in microseconds. */
const BATCH = 10_000;
/** Before a batch is timed, one of so many parts of it is run untimed. */
const WARM_UP = 8;

/** Times operations against each other: the median in nanoseconds, and half the distance between the quartiles. */
export async function times(operations, rounds) {
  const repetitions = [];
  for (const operation of operations) repetitions.push(await repetitionsOf(operation));
  const samples = operations.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let step = 0; step < operations.length; step++) {
      // Each round begins with another row, so that none always follows the same one.
      const i = (round + step) % operations.length;
      await batch(operations[i], Math.ceil(repetitions[i] / WARM_UP));
      samples[i].push(((await batch(operations[i], repetitions[i])) * 1000) / repetitions[i]);
    }
  }
  return samples.map(summary);
}

/** So many repetitions, in microseconds. What computes at once is not awaited: nobody would. */
async function batch({ run, isAsync }, repetitions) {
  const before = process.cpuUsage();
  if (isAsync) for (let i = 0; i < repetitions; i++) await run();
  else for (let i = 0; i < repetitions; i++) run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** How many repetitions fill a batch, once the compiler has seen enough of them. */
async function repetitionsOf(operation) {
  for (let i = 0; i < 20; i++) await batch(operation, 100);
  for (let repetitions = 1; ; repetitions *= 2) {
    const spent = await batch(operation, repetitions);
    if (spent * 2 >= BATCH) return Math.max(1, Math.floor((repetitions * BATCH) / spent));
  }
}

function summary(samples) {
  const ordered = samples.toSorted((one, other) => one - other);
  const [first, ns, third] = [0.25, 0.5, 0.75].map((part) => ordered[Math.round((ordered.length - 1) * part)]);
  return { ns, spread: (third - first) / 2 / ns };
}
