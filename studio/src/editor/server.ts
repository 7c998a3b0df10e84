// The language server of the project, over a WebSocket. Everything that it says is shown as text, never as HTML.

import { snippet, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { findReferencesKeymap, formatDocument, jumpToDefinitionKeymap, LSPClient, LSPPlugin, Workspace, type Transport } from "@codemirror/lsp-client";
import { EditorState, type ChangeSet, type Extension, type Text, type TransactionSpec } from "@codemirror/state";
import { EditorView, hoverTooltip, keymap, showDialog } from "@codemirror/view";

import type { Finding, FixEdit } from "../lib/types";
import { visible } from "../lib/visible";
import type { Studio } from "../state/studio.svelte";

interface Position { line: number; character: number }
interface Range { start: Position; end: Position }
interface TextEdit { range: Range; newText: string }
interface Diagnostic { range: Range; severity?: number; code?: string | number; message: string }
interface WorkspaceEdit { changes?: Record<string, TextEdit[]>; documentChanges?: { textDocument: { uri: string }; edits: TextEdit[] }[] }
interface CodeAction { title: string; kind?: string; diagnostics?: Diagnostic[]; edit?: WorkspaceEdit; isPreferred?: boolean }
interface Markup { kind?: string; value: string }
interface CompletionItem { label: string; kind?: number; detail?: string; documentation?: string | Markup; insertText?: string; insertTextFormat?: number; textEdit?: { newText: string; range?: Range; insert?: Range }; textEditText?: string; filterText?: string; sortText?: string }

const uriOf = (path: string) => `file:///${path.split("/").map(encodeURIComponent).join("/")}`;
const pathOf = (uri: string) => decodeURIComponent(uri.replace(/^file:\/\/\//, ""));
const KINDS: Record<number, string> = { 3: "function", 5: "property", 6: "variable", 10: "property", 12: "enum", 14: "keyword", 17: "text", 20: "enum" };

class OpenFile {
  constructor(readonly uri: string, readonly languageId: string, public version: number, public doc: Text, readonly view: EditorView) {}
  getView() { return this.view; }
}

/** The files of the server: the one that is in the editor. */
class StudioWorkspace extends Workspace {
  files: OpenFile[] = [];
  readonly #versions = new Map<string, number>();
  constructor(client: LSPClient, readonly studio: Studio) { super(client); }

  #nextVersion(uri: string) {
    const version = (this.#versions.get(uri) ?? -1) + 1;
    this.#versions.set(uri, version);
    return version;
  }

  /** The server may escape other characters of an address than the page. */
  override getFile(uri: string) {
    const path = pathOf(uri);
    return this.files.find((file) => pathOf(file.uri) === path) ?? null;
  }

  syncFiles() {
    const updates: { file: OpenFile; prevDoc: Text; changes: ChangeSet }[] = [];
    for (const file of this.files) {
      const plugin = LSPPlugin.get(file.view);
      if (plugin === null || pathOf(plugin.uri) !== pathOf(file.uri) || plugin.unsyncedChanges.empty) continue;
      updates.push({ changes: plugin.unsyncedChanges, file, prevDoc: file.doc });
      file.doc = file.view.state.doc;
      file.version = this.#nextVersion(file.uri);
      plugin.clear();
    }
    return updates;
  }

  openFile(uri: string, languageId: string, view: EditorView) {
    this.closeFile(uri);
    const file = new OpenFile(uri, languageId, this.#nextVersion(uri), view.state.doc, view);
    this.files.push(file);
    this.client.didOpen(file);
  }

  closeFile(uri: string) {
    if (this.getFile(uri) === null) return;
    this.files = this.files.filter((file) => file.uri !== uri);
    this.client.didClose(uri);
  }

  override async displayFile(uri: string) {
    const view = this.files[0]?.view ?? null;
    if (this.getFile(uri) !== null) return view;
    await this.studio.openFile(pathOf(uri), "editor");
    // The editor shows the file when the page has been updated.
    await new Promise((resolve) => requestAnimationFrame(() => resolve(null)));
    return this.getFile(uri)?.getView() ?? null;
  }

  override updateFile(uri: string, update: TransactionSpec) {
    const view = this.getFile(uri)?.getView();
    if (view) view.dispatch(update);
  }
}

/** A connection that is opened again when it breaks. */
class Connection {
  #handlers = new Set<(message: string) => void>();
  #socket: WebSocket | null = null;
  #attempts = 0;
  constructor(readonly opened: (transport: Transport) => void, readonly closed: () => void) { this.#open(); }

  #open() {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/lsp`);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#attempts = 0;
      this.opened({
        send: (message) => socket.readyState === WebSocket.OPEN && socket.send(message),
        subscribe: (handler) => void this.#handlers.add(handler),
        unsubscribe: (handler) => void this.#handlers.delete(handler),
      });
    });
    socket.addEventListener("message", (event) => this.#handlers.forEach((handler) => handler(String(event.data))));
    socket.addEventListener("close", () => {
      if (this.#socket !== socket) return;
      this.closed();
      this.#attempts += 1;
      if (this.#attempts <= 20) setTimeout(() => this.#open(), Math.min(500 * 2 ** this.#attempts, 15_000));
    });
  }
}

/** Connects to the server. Returns the extensions for a file. */
export function connect(studio: Studio): (path: string) => Extension {
  const client: LSPClient = new LSPClient({
    rootUri: "file:///",
    timeout: 10_000,
    workspace: (client) => new StudioWorkspace(client, studio),
    notificationHandlers: {
      "textDocument/publishDiagnostics": (_, params: { uri: string; version?: number; diagnostics: Diagnostic[] }) => receive(client, studio, params),
      "window/logMessage": () => true,
    },
  });
  new Connection(
    (transport) => { client.connect(transport); },
    () => { client.disconnect(); studio.hasServer = false; studio.analyze(true); },
  );
  studio.formatWithServer = () => {
    const view = (client.workspace as StudioWorkspace).files[0]?.view;
    if (view) formatDocument(view);
  };
  const language = (path: string) => (path.endsWith(".prompty") ? "prompty" : /\.ya?ml$/.test(path) ? "yaml" : (path.split(".").pop() ?? "plaintext"));
  return (path) => [
    client.plugin(uriOf(path), language(path)),
    EditorState.languageData.of(() => [{ autocomplete: complete }]),
    hoverTooltip(hover, { hideOn: (transaction) => transaction.docChanged }),
    EditorView.updateListener.of((update) => { if (update.docChanged) syncSoon(client); }),
    keymap.of([
      ...jumpToDefinitionKeymap,
      ...findReferencesKeymap,
      { key: "F2", run: (view) => (void rename(view, studio), true), preventDefault: true },
      { key: "Mod-.", run: (view) => (void fixAtCursor(view, studio), true), preventDefault: true },
    ]),
  ];
}

let timer: ReturnType<typeof setTimeout> | undefined;
function syncSoon(client: LSPClient) {
  clearTimeout(timer);
  timer = setTimeout(() => client.connected && client.sync(), 150);
}

// Findings

function receive(client: LSPClient, studio: Studio, params: { uri: string; version?: number; diagnostics: Diagnostic[] }): boolean {
  const file = client.workspace.getFile(params.uri) as OpenFile | null;
  if (file === null || (params.version != null && params.version !== file.version)) return true;
  const plugin = LSPPlugin.get(file.view);
  if (plugin === null) return true;
  const at = (position: Position) => plugin.unsyncedChanges.mapPos(plugin.fromPosition(position, plugin.syncedDoc));
  const findings = params.diagnostics.map((diagnostic): Finding => {
    const [message, help] = diagnostic.message.split("\nhelp: ");
    return {
      code: "",
      rule: diagnostic.code == null ? null : String(diagnostic.code),
      message: message ?? diagnostic.message,
      help: help ?? null,
      severity: (diagnostic.severity ?? 1) === 1 ? "error" : "warning",
      line: diagnostic.range.start.line + 1,
      span: [at(diagnostic.range.start), at(diagnostic.range.end)],
    };
  });
  studio.hasServer = true;
  const path = pathOf(params.uri);
  studio.receiveFindings(path, findings);
  if (findings.length > 0 && findings.length < 200) void addFixes(client, studio, path, file, params.diagnostics, findings);
  return true;
}

/** Asks for the quick fixes of all findings at once. */
async function addFixes(client: LSPClient, studio: Studio, path: string, file: OpenFile, diagnostics: Diagnostic[], findings: Finding[]) {
  const end = { line: file.doc.lines - 1, character: file.doc.line(file.doc.lines).length };
  const version = file.version;
  const actions = await client.request<object, CodeAction[] | null>("textDocument/codeAction", {
    textDocument: { uri: file.uri },
    range: { start: { line: 0, character: 0 }, end },
    context: { diagnostics, only: ["quickfix"] },
  }).catch(() => null);
  const plugin = LSPPlugin.get(file.view);
  if (!Array.isArray(actions) || file.version !== version || plugin === null || plugin.uri !== file.uri || !plugin.unsyncedChanges.empty) return;
  const fixed = findings.map((finding, index) => {
    const key = JSON.stringify(diagnostics[index]!.range) + diagnostics[index]!.message;
    const action = actions.find((it) => it.edit && !/ignore/i.test(it.title) && it.diagnostics?.some((one) => JSON.stringify(one.range) + one.message === key));
    const edits = action?.edit ? ([...editsOf(action.edit)].find(([uri]) => pathOf(uri) === path)?.[1] ?? []) : [];
    if (edits.length === 0) return finding;
    return { ...finding, fix: { safe: true, edits: edits.map((edit): FixEdit => ({ span: [plugin.fromPosition(edit.range.start), plugin.fromPosition(edit.range.end)], text: edit.newText })) } };
  });
  studio.receiveFindings(path, fixed);
}

function editsOf(edit: WorkspaceEdit): Map<string, TextEdit[]> {
  const found = new Map<string, TextEdit[]>(Object.entries(edit.changes ?? {}));
  for (const change of edit.documentChanges ?? []) if (change.edits) found.set(change.textDocument.uri, change.edits);
  return found;
}

async function fixAtCursor(view: EditorView, studio: Studio) {
  const head = view.state.selection.main.head;
  const finding = studio.findings.find((it) => it.fix && it.span && it.span[0] <= head && head <= it.span[1]);
  const changes = finding?.fix?.edits.flatMap((edit) => (edit.span ? [{ from: edit.span[0], to: edit.span[1], insert: edit.text }] : []));
  if (changes?.length) view.dispatch({ changes });
  else studio.notice = { kind: "info", text: "There is no quick fix here.", help: null };
}

// Completion and hover

const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
  const plugin = context.view && LSPPlugin.get(context.view);
  if (!plugin) return null;
  const before = context.state.sliceDoc(context.pos - 1, context.pos);
  const isTrigger = /[{.|:[\s"']/.test(before);
  if (!context.explicit && !/\w/.test(before) && !isTrigger) return null;
  plugin.client.sync();
  const answer = await plugin.client.request<object, CompletionItem[] | { items: CompletionItem[]; isIncomplete?: boolean } | null>("textDocument/completion", {
    textDocument: { uri: plugin.uri },
    position: plugin.toPosition(context.pos),
    context: { triggerKind: 1 },
  }).catch(() => null);
  const items = Array.isArray(answer) ? answer : (answer?.items ?? []);
  if (items.length === 0) return null;
  const range = items[0]?.textEdit?.range ?? items[0]?.textEdit?.insert;
  const word = context.matchBefore(/[\w$-]*/);
  const from = range ? plugin.fromPosition(range.start) : (word?.from ?? context.pos);
  return {
    from,
    options: items.map((item) => {
      const text = item.textEdit?.newText ?? item.textEditText ?? item.insertText ?? item.label;
      const documentation = item.documentation;
      return {
        label: item.filterText ?? item.label,
        displayLabel: item.label,
        ...(item.kind && { type: KINDS[item.kind] ?? "text" }),
        ...(item.detail && { detail: item.detail }),
        ...(item.sortText && { sortText: item.sortText }),
        ...(documentation && { info: () => textElement(typeof documentation === "string" ? documentation : documentation.value) }),
        apply: item.insertTextFormat === 2 ? snippet(text.replace(/\$(\d+)/g, "${$1}").replace(/\$\{0(?=[:}])/g, "${99")) : text,
      };
    }),
    validFor: /^[\w$-]*$/,
  };
};

async function hover(view: EditorView, position: number) {
  const plugin = LSPPlugin.get(view);
  if (!plugin) return null;
  plugin.client.sync();
  const answer = await plugin.client.request<object, { contents: string | Markup | (string | Markup)[]; range?: Range } | null>("textDocument/hover", {
    textDocument: { uri: plugin.uri },
    position: plugin.toPosition(position),
  }).catch(() => null);
  if (!answer) return null;
  const contents = [answer.contents].flat().map((it) => (typeof it === "string" ? it : it.value)).join("\n\n");
  if (contents === "") return null;
  const pos = answer.range ? plugin.fromPosition(answer.range.start) : position;
  return { pos, ...(answer.range && { end: plugin.fromPosition(answer.range.end) }), above: true, create: () => ({ dom: textElement(contents) }) };
}

/** Shows Markdown as text with code in it. Other markup stays as it is written. */
function textElement(markdown: string): HTMLElement {
  const element = document.createElement("div");
  element.className = "hover-text";
  const text = markdown.replace(/^```\w*\n?/gm, "").replace(/\*\*([^*]+)\*\*/g, "$1").replace(/\\([\\`*_{}[\]()#+.!|<>-])/g, "$1").trim();
  for (const [index, piece] of text.split(/`([^`\n]+)`/).entries()) {
    const parent = index % 2 === 1 ? element.appendChild(document.createElement("code")) : element;
    for (const part of visible(piece)) parent.append(part.kind === "text" ? part.text : `<${part.code}>`);
  }
  return element;
}

// Rename

async function rename(view: EditorView, studio: Studio) {
  const plugin = LSPPlugin.get(view);
  const word = view.state.wordAt(view.state.selection.main.head);
  if (!plugin || !word) return;
  const { result } = showDialog(view, { label: "New name", input: { name: "name", value: view.state.sliceDoc(word.from, word.to) }, focus: true, submitLabel: "Rename" });
  const form = await result;
  const name = form ? String(new FormData(form).get("name") ?? "").trim() : "";
  if (name === "") return;
  plugin.client.sync();
  try {
    const edit = await plugin.client.request<object, WorkspaceEdit | null>("textDocument/rename", { textDocument: { uri: plugin.uri }, position: plugin.toPosition(word.from), newName: name });
    if (edit === null) throw new Error("The server does not rename this.");
    const others = await applyEdit(edit, view, plugin, studio);
    if (others.length > 0) studio.notice = { kind: "info", text: `Also changed ${others.join(", ")}.`, help: "Save these files as well." };
  } catch (error) {
    studio.notice = { kind: "error", text: "Cannot rename.", help: (error as { message?: string }).message ?? null };
  }
}

/** Applies changes to the file in the editor and to other files. Returns the others. */
async function applyEdit(edit: WorkspaceEdit, view: EditorView, plugin: LSPPlugin, studio: Studio): Promise<string[]> {
  const others: string[] = [];
  for (const [uri, edits] of editsOf(edit)) {
    const changesFor = (doc: Text) => edits.map(({ range, newText }) => ({ from: offset(doc, range.start), to: offset(doc, range.end), insert: newText }));
    if (pathOf(uri) === pathOf(plugin.uri)) {
      view.dispatch({ changes: changesFor(view.state.doc), userEvent: "rename" });
      continue;
    }
    const buffer = await studio.load(pathOf(uri));
    if (buffer === null) continue;
    const state = EditorState.create({ doc: buffer.text });
    buffer.replace(state.update({ changes: changesFor(state.doc) }).state.doc.toString());
    others.push(buffer.path);
  }
  return others;
}

const offset = (doc: Text, position: Position) => {
  const line = doc.line(Math.min(position.line + 1, doc.lines));
  return Math.min(line.from + position.character, line.to);
};
