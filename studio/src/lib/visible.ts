// Makes characters visible that have no shape of their own, or that change the order of others.

/** A piece of text, or a character that must be shown by its name. */
export type Visible = { kind: "text"; text: string } | { kind: "special"; text: string; code: string; name: string };

// Control characters except tab and line feed, soft hyphen, marks of direction, zero-width characters, line and
// paragraph separators, bidirectional controls, invisible operators, the byte order mark, variation selectors beyond
// those of emoji, and tag characters.
const SPECIAL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

const NAMES: Record<number, string> = {
  0x00: "null", 0x07: "bell", 0x08: "backspace", 0x0b: "vertical tab", 0x0c: "form feed", 0x0d: "carriage return",
  0x1b: "escape", 0x7f: "delete", 0xad: "soft hyphen", 0x61c: "Arabic letter mark", 0x200b: "zero width space",
  0x200c: "zero width non-joiner", 0x200d: "zero width joiner", 0x200e: "left-to-right mark",
  0x200f: "right-to-left mark", 0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
  0x202d: "left-to-right override", 0x202e: "right-to-left override", 0x2060: "word joiner",
  0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate",
  0x2069: "pop directional isolate", 0xfeff: "byte order mark",
};

export function nameOf(point: number): string {
  const known = NAMES[point];
  if (known !== undefined) return known;
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return "control character";
  if (point >= 0xe0000) return "tag character";
  if (point >= 0xd800 && point <= 0xdfff) return "half of a character";
  return "invisible character";
}

export const codeOf = (point: number) => `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;

/** Splits text into plain pieces and special characters. */
export function visible(text: string): Visible[] {
  const pieces: Visible[] = [];
  let from = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (isJoiner(text, match.index, match[0])) continue;
    if (match.index > from) pieces.push({ kind: "text", text: text.slice(from, match.index) });
    const point = match[0].codePointAt(0) ?? 0;
    pieces.push({ kind: "special", text: match[0], code: codeOf(point), name: nameOf(point) });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ kind: "text", text: text.slice(from) });
  return pieces;
}

/** Whether this is a joiner inside an emoji, where it is part of one visible sign. */
function isJoiner(text: string, index: number, found: string): boolean {
  if (found !== "\u200d") return false;
  const before = /\p{Extended_Pictographic}\ufe0f?$|\p{Emoji_Modifier}$/u.test(text.slice(Math.max(0, index - 3), index));
  return before && /^\p{Extended_Pictographic}/u.test(text.slice(index + 1, index + 3));
}

/** Replaces special characters by their codes, for texts that cannot have elements, such as titles and attributes. */
export function plain(text: string): string {
  return visible(text).map((piece) => (piece.kind === "text" ? piece.text : `<${piece.code}>`)).join("");
}

/** The same, for texts in one line. */
export const inline = (text: string): string => plain(text).replaceAll("\n", "↵");

/** Counts special characters: for a note below a field, which cannot show them. */
export function specialCounts(text: string): { code: string; name: string; count: number }[] {
  const counts = new Map<string, { code: string; name: string; count: number }>();
  for (const piece of visible(text)) {
    if (piece.kind !== "special") continue;
    const known = counts.get(piece.code);
    if (known) known.count += 1;
    else counts.set(piece.code, { code: piece.code, name: piece.name, count: 1 });
  }
  return [...counts.values()];
}

/** Cuts text at a limit, never inside a character. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}
