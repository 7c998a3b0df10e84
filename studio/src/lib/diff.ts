// Compares two texts line by line, in bounded time.

export type Change = { kind: "same" | "removed" | "added"; text: string; before: number | null; after: number | null };

/** More differences than this are shown as one large change. */
const MAX_DIFFERENCES = 1500;

export function diffLines(before: string, after: string): Change[] {
  const [one, other] = [lines(before), lines(after)];
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const changes: Change[] = [];
  for (let at = 0; at < start; at += 1) changes.push(same(one[at]!, at, at));
  changes.push(...middle(one.slice(start, one.length - end), other.slice(start, other.length - end), start));
  for (let at = end; at > 0; at -= 1) changes.push(same(one[one.length - at]!, one.length - at, other.length - at));
  return changes;
}

const same = (text: string, before: number, after: number): Change => ({ kind: "same", text, before: before + 1, after: after + 1 });
const removed = (text: string, before: number): Change => ({ kind: "removed", text, before: before + 1, after: null });
const added = (text: string, after: number): Change => ({ kind: "added", text, before: null, after: after + 1 });

function lines(text: string): string[] {
  if (text === "") return [];
  const found = text.split("\n");
  return found;
}

/** The algorithm of Myers, with a bound on the number of differences. */
function middle(one: string[], other: string[], offset: number): Change[] {
  const max = Math.min(one.length + other.length, MAX_DIFFERENCES);
  const trace: Int32Array[] = [];
  const width = 2 * max + 1;
  let furthest = new Int32Array(width + 2);
  for (let d = 0; d <= max; d += 1) {
    trace.push(furthest.slice());
    for (let k = -d; k <= d; k += 2) {
      const at = k + max;
      let x = k === -d || (k !== d && (furthest[at - 1] ?? 0) < (furthest[at + 1] ?? 0)) ? (furthest[at + 1] ?? 0) : (furthest[at - 1] ?? 0) + 1;
      let y = x - k;
      while (x < one.length && y < other.length && one[x] === other[y]) { x += 1; y += 1; }
      furthest[at] = x;
      if (x >= one.length && y >= other.length) return walkBack(trace, one, other, d, max, offset);
    }
  }
  return [...one.map((text, at) => removed(text, offset + at)), ...other.map((text, at) => added(text, offset + at))];
}

function walkBack(trace: Int32Array[], one: string[], other: string[], last: number, max: number, offset: number): Change[] {
  const changes: Change[] = [];
  let [x, y] = [one.length, other.length];
  for (let d = last; d >= 0; d -= 1) {
    const furthest = trace[d]!;
    const k = x - y;
    const at = k + max;
    const isDown = k === -d || (k !== d && (furthest[at - 1] ?? 0) < (furthest[at + 1] ?? 0));
    const from = d === 0 ? 0 : furthest[isDown ? at + 1 : at - 1] ?? 0;
    const fromY = d === 0 ? 0 : from - (isDown ? k + 1 : k - 1);
    while (x > from && y > fromY && (d === 0 || x > (isDown ? from : from + 1) || y > (isDown ? fromY + 1 : fromY))) {
      x -= 1; y -= 1;
      changes.push(same(one[x]!, offset + x, offset + y));
    }
    if (d === 0) break;
    if (isDown) { y -= 1; changes.push(added(other[y]!, offset + y)); }
    else { x -= 1; changes.push(removed(one[x]!, offset + x)); }
  }
  return changes.reverse();
}

export type Hunk = { kind: "lines"; changes: Change[] } | { kind: "gap"; count: number };

/** Leaves out unchanged lines that are far from every change. */
export function hunks(changes: Change[], context = 3): Hunk[] {
  const isNear = new Array<boolean>(changes.length).fill(false);
  changes.forEach((change, index) => {
    if (change.kind === "same") return;
    for (let at = Math.max(0, index - context); at <= Math.min(changes.length - 1, index + context); at += 1) isNear[at] = true;
  });
  const found: Hunk[] = [];
  let index = 0;
  while (index < changes.length) {
    const start = index;
    const near = isNear[index];
    while (index < changes.length && isNear[index] === near) index += 1;
    if (near) found.push({ kind: "lines", changes: changes.slice(start, index) });
    else found.push({ kind: "gap", count: index - start });
  }
  return found;
}
