// How the editor looks. Colors come from the page, so both color schemes work.

import { EditorView } from "@codemirror/view";

import { LOOKS } from "../lib/origins";

const looks = Object.fromEntries(
  Array.from({ length: LOOKS }, (_, look) => [
    `.look-${look}`,
    { backgroundColor: `color-mix(in srgb, var(--look-${look}) 22%, transparent)`, boxShadow: `inset 0 -2px 0 var(--look-${look})` },
  ]),
);

const steps = Object.fromEntries(
  Array.from({ length: LOOKS }, (_, look) => [
    `.step.look-${look}`,
    { backgroundColor: `color-mix(in srgb, var(--look-${look}) 10%, transparent)`, boxShadow: "none", outline: `1px dashed var(--look-${look})`, outlineOffset: "-1px" },
  ]),
);

export const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px", overflow: "auto" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 12px 0 8px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none", paddingLeft: "4px" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "28px", padding: "0 8px 0 4px" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--raised) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "1.5px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selected)" },
  ".cm-selectionMatch": { backgroundColor: "var(--selected)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selected)", outline: "none" },
  ".cm-specialChar": { color: "var(--failed)", border: "1px solid currentColor", borderRadius: "3px", fontSize: "10px", padding: "0 2px", margin: "0 1px" },
  ".cm-panels": { backgroundColor: "var(--page)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel": { fontFamily: "var(--sans)", padding: "8px" },
  ".cm-panel label": { color: "var(--text)", fontSize: "12px" },
  ".cm-textfield": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "6px", padding: "3px 8px", fontSize: "12.5px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "6px", padding: "3px 10px", fontSize: "12.5px" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "8px", boxShadow: "var(--shadow)", fontFamily: "var(--sans)", fontSize: "12.5px", overflow: "hidden" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "240px" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px", lineHeight: "20px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75", fontStyle: "normal", marginLeft: "12px" },
  ".cm-completionInfo": { padding: "8px 12px", maxWidth: "360px", whiteSpace: "pre-wrap" },
  ".cm-tooltip-hover": { maxWidth: "520px" },
  ".hover-text": { padding: "8px 12px", whiteSpace: "pre-wrap", lineHeight: "18px" },
  ".hover-text code": { fontFamily: "var(--mono)", fontSize: "12px", backgroundColor: "var(--raised)", borderRadius: "4px", padding: "0 3px" },
  ".cm-diagnostic": { padding: "8px 12px", borderLeft: "3px solid var(--line-strong)", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warned)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)", borderRadius: "6px", padding: "2px 8px", font: "12px var(--sans)" },
  ".cm-diagnosticSource": { opacity: "1", color: "var(--muted)", fontSize: "11.5px" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--failed) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warned) 1px", textUnderlineOffset: "3px" },
  ".cm-lintPoint:after": { borderBottomColor: "var(--failed)" },
  ...looks,
  ...steps,
});
