// The editor. It lives in a shadow root, because its style sheets can be adopted there: then the page needs no styles
// in elements, and its policy can forbid them.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Annotation, Compartment, EditorSelection, EditorState, StateEffect, StateField, type Extension } from "@codemirror/state";
import { Decoration, EditorView, drawSelection, dropCursor, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";

import type { Highlight } from "../state/studio.svelte";
import type { Finding, Span } from "../lib/types";
import { spanOf } from "../lib/positions";
import { codeOf, nameOf } from "../lib/visible";
import { languageOf } from "./language";
import { theme } from "./theme";

const setHighlights = StateEffect.define<Highlight[]>();
/** Marks changes that come from the page and not from the user. */
const fromPage = Annotation.define<boolean>();

const highlights = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let updated = marks.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setHighlights)) updated = marksFor(effect.value, transaction.newDoc.length);
    return updated;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function marksFor(spans: Highlight[], length: number): DecorationSet {
  const marks = spans
    .filter(({ span: [start, end] }) => start < end && end <= length)
    .map(({ span: [start, end], look, kind }) => Decoration.mark({ class: `${kind} look-${look}` }).range(start, end));
  return Decoration.set(marks, true);
}

export interface EditorHost {
  changed(text: string): void;
  /** The list of commands that the page adds to the editor's keys. */
  commands: { key: string; run: () => boolean }[];
}

export class PromptEditor {
  readonly view: EditorView;
  readonly #extras = new Compartment();
  readonly #host: EditorHost;
  readonly #states = new Map<string, EditorState>();
  #path = "";

  constructor(root: ShadowRoot, host: EditorHost) {
    this.#host = host;
    this.view = new EditorView({ parent: root, root, state: EditorState.create({}) });
  }

  #base(path: string, isReadOnly: boolean): Extension[] {
    return [
      // Carriage returns are part of the text: a file keeps its line ends.
      EditorState.lineSeparator.of("\n"),
      lineNumbers(),
      highlightActiveLineGutter(),
      highlightActiveLine(),
      highlightSpecialChars({
        addSpecialChars: /[\r\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u206f\u3164\ufe00-\ufe0e\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu,
        render: (point) => {
          const element = document.createElement("span");
          element.textContent = point === 0x0d ? "␍" : codeOf(point);
          element.title = nameOf(point);
          element.setAttribute("aria-label", nameOf(point));
          element.className = "cm-specialChar";
          return element;
        },
      }),
      history(),
      drawSelection(),
      dropCursor(),
      EditorState.allowMultipleSelections.of(true),
      EditorState.readOnly.of(isReadOnly),
      indentUnit.of("  "),
      bracketMatching(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": `Editor: ${path}`, tabindex: "0", spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
      keymap.of(this.#host.commands.map(({ key, run }) => ({ key, run, preventDefault: true }))),
      this.#extras.of([]),
      keymap.of([
        ...defaultKeymap,
        ...historyKeymap,
        ...lintKeymap,
        indentWithTab,
      ]),
      languageOf(path),
      theme,
      highlights,
      EditorView.updateListener.of((update) => {
        const isOwn = update.transactions.some((transaction) => transaction.annotation(fromPage));
        if (update.docChanged && !isOwn) this.#host.changed(update.state.doc.toString());
      }),
    ];
  }

  /** Shows a file. Each file keeps its own history and selection. */
  show(path: string, text: string, isReadOnly: boolean, extras: Extension) {
    if (this.#path === path && this.view.state.doc.length === text.length) {
      this.extend(extras);
      return;
    }
    if (this.#path !== "") this.#states.set(this.#path, this.view.state);
    this.#path = path;
    const known = this.#states.get(path);
    const state = known !== undefined && known.doc.toString() === text ? known : EditorState.create({ doc: text, extensions: this.#base(path, isReadOnly) });
    this.view.setState(state);
    this.view.dispatch({ effects: this.#extras.reconfigure(extras) });
  }

  extend(extras: Extension) {
    this.view.dispatch({ effects: this.#extras.reconfigure(extras) });
  }

  /** Replaces the text, and only the part that differs, so that the selection and the history stay useful. */
  replace(text: string) {
    const before = this.view.state.doc.toString();
    if (before === text) return;
    let start = 0;
    while (start < before.length && start < text.length && before[start] === text[start]) start += 1;
    let end = 0;
    while (end < before.length - start && end < text.length - start && before[before.length - 1 - end] === text[text.length - 1 - end]) end += 1;
    this.view.dispatch({
      changes: { from: start, to: before.length - end, insert: text.slice(start, text.length - end) },
      annotations: fromPage.of(true),
    });
  }

  highlight(spans: Highlight[]) {
    this.view.dispatch({ effects: setHighlights.of(spans) });
  }

  reveal([start, end]: Span, focus: boolean) {
    const length = this.view.state.doc.length;
    const [from, to] = [Math.min(start, length), Math.min(end, length)];
    this.view.dispatch({
      ...(focus && { selection: EditorSelection.single(from, to) }),
      effects: EditorView.scrollIntoView(EditorSelection.range(from, to), { y: "center" }),
    });
    if (focus) this.view.focus();
  }

  /** Shows the findings of the engine. */
  diagnose(findings: Finding[]) {
    const text = this.view.state.doc.toString();
    const diagnostics = findings.map((finding): Diagnostic => {
      const [from, to] = spanOf(text, finding) ?? [0, 0];
      const edits = finding.fix?.edits.map((edit) => ({ span: spanOf(text, edit), insert: edit.text }));
      const isFixable = edits !== undefined && edits.every((edit) => edit.span !== null);
      return {
        from,
        to,
        severity: finding.severity === "warning" ? "warning" : "error",
        source: `${finding.rule ?? ""} ${finding.code}`.trim(),
        message: finding.help ? `${finding.message}\n${finding.help}` : finding.message,
        actions: isFixable ? [{ name: "Fix", apply: (view) => view.dispatch({ changes: edits.map(({ span, insert }) => ({ from: span![0], to: span![1], insert })) }) }] : [],
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  destroy() {
    this.view.destroy();
  }
}
