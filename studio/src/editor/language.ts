// Colors prompt files, definitions and tests: YAML or JSON, role markers, and templates inside them.

import { HighlightStyle, StreamLanguage, syntaxHighlighting, type StreamParser } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { tags } from "@lezer/highlight";

interface State {
  section: "start" | "front" | "body" | "data";
  delimiter: string;
  tag: "" | "expression" | "statement" | "comment" | "raw";
}

const KEYWORDS =
  /^(?:if|elif|else|endif|for|endfor|in|not|and|or|is|recursive|set|endset|with|endwith|macro|endmacro|call|endcall|filter|endfilter|break|continue|do)\b/;

function insideTag(stream: Parameters<StreamParser<State>["token"]>[0], state: State): string | null {
  if (state.tag === "comment") {
    if (stream.match(/^.*?#\}/)) state.tag = "";
    else stream.skipToEnd();
    return "comment";
  }
  if (stream.match(state.tag === "statement" ? /^[-+]?%\}/ : /^[-+]?\}\}\}?/)) {
    state.tag = "";
    return "brace";
  }
  if (stream.eatSpace()) return null;
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
  if (stream.match(/^\d[\d_.]*/)) return "number";
  if (stream.match(/^\|\s*[A-Za-z_]\w*/)) return "labelName";
  if (state.tag === "statement" && stream.match(KEYWORDS)) return "keyword";
  if (stream.match(/^(?:in|not|and|or|is|if|else)\b/)) return "keyword";
  if (stream.match(/^(?:true|false|none|True|False|None)\b/)) return "atom";
  if (stream.match(/^[#^/&>!]?\s*[A-Za-z_][\w.]*/)) return "variableName";
  stream.next();
  return "operator";
}

function opensTag(stream: Parameters<StreamParser<State>["token"]>[0], state: State): boolean {
  if (stream.match("{#")) state.tag = "comment";
  else if (stream.match(/^\{%[-+]?/)) state.tag = "statement";
  else if (stream.match(/^\{\{\{?[-+]?/)) state.tag = "expression";
  else return false;
  return true;
}

function data(stream: Parameters<StreamParser<State>["token"]>[0], state: State): string | null {
  if (opensTag(stream, state)) return state.tag === "comment" ? "comment" : "brace";
  if (stream.eatSpace()) return null;
  if (stream.match(/^#.*/)) return "comment";
  if (stream.match(/^\$\{(?:env|file):[^}]*\}/i)) return "string.special";
  if (stream.match(/^-(?=\s|$)/)) return "punctuation";
  if (stream.match(/^(?:"[^"]*"|'[^']*'|[\w.$-]+)(?=\s*:(?:\s|$))/)) return "propertyName";
  if (stream.match(/^"(?:[^"\\]|\\.)*"/) || stream.match(/^'[^']*'/)) return "string";
  if (stream.match(/^(?:true|false|null)(?=[\s,}\]]|$)/)) return "atom";
  if (stream.match(/^-?\d+(?:\.\d+)?(?=[\s,}\]]|$)/)) return "number";
  if (stream.match(/^[{}[\],:|>]/)) return "punctuation";
  stream.match(/^[^\s{}[\],:#"'$|>]+/) || stream.next();
  return null;
}

function body(stream: Parameters<StreamParser<State>["token"]>[0], state: State): string | null {
  if (opensTag(stream, state)) return state.tag === "comment" ? "comment" : "brace";
  if (stream.sol()) {
    if (stream.match(/^\s*#?\s*(?:system|user|assistant|developer)(?=\s*(?:\[[^\]]*\])?\s*:\s*$)/i)) return "heading";
  }
  if (stream.match(/^(?:[^{\s]|\s)[^{]*/)) return null;
  stream.next();
  return null;
}

const parser = (isData: boolean): StreamParser<State> => ({
  name: "prompt",
  startState: () => ({ section: isData ? "data" : "start", delimiter: "", tag: "" }),
  token(stream, state) {
    if (state.tag !== "") return insideTag(stream, state);
    if (stream.sol() && (state.section === "start" || state.section === "front")) {
      const delimiter = /^(---|\+\+\+)\s*$/.exec(stream.string)?.[1];
      if (state.section === "start" && stream.string.trim() !== "") {
        state.section = delimiter === undefined ? "body" : "front";
        state.delimiter = delimiter ?? "";
        if (delimiter !== undefined) { stream.skipToEnd(); return "meta"; }
      } else if (state.section === "front" && delimiter === state.delimiter) {
        state.section = "body";
        stream.skipToEnd();
        return "meta";
      }
    }
    return state.section === "body" ? body(stream, state) : data(stream, state);
  },
  languageData: { commentTokens: isData ? { line: "#" } : { block: { open: "{#", close: "#}" } } },
});

const style = HighlightStyle.define([
  { tag: tags.heading, color: "var(--code-role)", fontWeight: "650" },
  { tag: tags.meta, color: "var(--muted)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.propertyName, color: "var(--code-key)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: [tags.number, tags.atom], color: "var(--code-number)" },
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.variableName, color: "var(--code-name)" },
  { tag: tags.labelName, color: "var(--code-keyword)" },
  { tag: [tags.brace, tags.operator, tags.punctuation], color: "var(--muted)" },
  { tag: tags.special(tags.string), color: "var(--code-number)" },
]);

/** The language of a file. */
export function languageOf(path: string): Extension {
  const isData = /\.(ya?ml|json|toml|jsonl)$/.test(path);
  return [StreamLanguage.define(parser(isData)), syntaxHighlighting(style)];
}
