// Each input has a color and a pattern, so that nobody needs to see colors to tell inputs apart.

import { plain } from "./visible";

/** How many different looks there are. More inputs than this share looks, and are told apart by their labels. */
export const LOOKS = 10;

export type Origin = { kind: "author" } | { kind: "guard" } | { kind: "input"; look: number } | { kind: "several" };

export interface OriginSource {
  inputs: string[];
  guard?: boolean;
}

export function originOf(source: OriginSource, names: string[]): Origin {
  if (source.guard) return { kind: "guard" };
  const [first, ...others] = source.inputs;
  if (first === undefined) return { kind: "author" };
  if (others.length > 0) return { kind: "several" };
  return { kind: "input", look: lookOf(first, names) };
}

export function lookOf(name: string, names: string[]): number {
  const index = names.indexOf(name);
  return (index < 0 ? names.length : index) % LOOKS;
}

export function classOf(source: OriginSource & { trusted?: boolean }, names: string[]): string {
  const origin = originOf(source, names);
  switch (origin.kind) {
    case "author": return "by-author";
    case "guard": return "by-guard";
    case "several": return source.trusted ? "by-several trusted" : "by-several";
    default: return `look-${origin.look}${source.trusted ? " trusted" : ""}`;
  }
}

/** The words for an origin, as in a label. */
export function labelOf(source: OriginSource & { trusted?: boolean }): string {
  if (source.guard) return "guard";
  if (source.inputs.length === 0) return "author";
  return `${source.inputs.map(plain).join(" + ")} (${source.trusted ? "trusted" : "untrusted"})`;
}
