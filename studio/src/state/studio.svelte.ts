// Everything that the page shows, and what users can do with it.

import { SvelteMap } from "svelte/reactivity";

import * as api from "../lib/api";
import { candidates, messagesOf } from "../lib/align";
import type { Config } from "../lib/config";
import type { Engine, OpenPrompt } from "../lib/engine_types";
import { lookOf, LOOKS } from "../lib/origins";
import { spanOf } from "../lib/positions";
import { share } from "../lib/share";
import type { FileEntry, FileKind, Finding, Forgery, Info, InputInfo, JsonMap, ModelRow, Reach, Rendered, RenderOptions, RenderResult, Sample, Span } from "../lib/types";
import { fieldsFor, fieldsFrom, harmless, inputsOf, isMap, placeholderOf, unset, withText } from "../lib/values";
import { Buffer } from "./buffer.svelte";

export type Pane = "result" | "reach" | "request" | "tokens" | "diff" | "run";
export type Region = "files" | "editor" | "inputs" | "result";

export type Selection =
  | { kind: "run"; message: number; part: number; run: number; inputs: string[]; guard: boolean; column: number }
  | { kind: "input"; name: string }
  | { kind: "cell"; message: number; name: string };

export interface Highlight {
  span: Span;
  look: number;
  kind: "place" | "step" | "marker";
}

export interface Notice {
  kind: "info" | "error";
  text: string;
  help: string | null;
}

export interface ForgeOutcome {
  before: string[];
  after: string[] | null;
  refused: Finding | null;
  isSame: boolean;
}

const EMPTY_INFO: Info = { ok: true, kind: "prompty", inputs: [], variants: [], sample: {}, tools: [] };
/** Rendering that takes longer than this waits until the user pauses. */
const FAST_MS = 12;

export class Studio {
  readonly config: Config;
  engine = $state.raw<Engine | null>(null);
  /** What keeps the page from working at all. */
  failure = $state.raw<{ title: string; text: string; help: string } | null>(null);
  title = $state("");
  version = $state("");
  isReadOnly = $state(true);
  files = $state.raw<FileEntry[]>([]);
  hasMoreFiles = $state(false);
  models = $state.raw<ModelRow[]>([]);
  providers = $state.raw<{ name: string; has_key: boolean }[]>([]);
  isWatching = $state(true);
  /** Whether a language server reports the findings. */
  hasServer = $state(false);
  /** Formats a file that the engine does not format, such as a test. */
  formatWithServer: (() => void) | null = null;
  readonly buffers = new SvelteMap<string, Buffer>();
  path = $state<string | null>(null);
  buffer = $derived(this.path === null ? null : (this.buffers.get(this.path) ?? null));

  info = $state.raw<Info>(EMPTY_INFO);
  findings = $state.raw<Finding[]>([]);
  reach = $state.raw<Reach | null>(null);
  result = $state.raw<RenderResult | null>(null);
  /** The last result without an error, so that a mistake while typing does not empty the page. */
  shown = $state.raw<Rendered | null>(null);
  /** The other column, if variants are shown side by side. */
  beside = $state.raw<RenderResult | null>(null);
  forgeOutcome = $state.raw<ForgeOutcome | null>(null);
  renderMs = $state(0);

  isGuarded = $state(false);
  besideVariant = $state<string | null>(null);
  hasLabels = $state(false);
  forgery = $state<{ input: string; id: string } | null>(null);
  forgeries = $state.raw<Forgery[]>([]);

  selection = $state.raw<Selection | null>(null);
  pane = $state<Pane>("result");
  region = $state<Region>("result");
  lower = $state<"inputs" | "findings">("inputs");
  notice = $state.raw<Notice | null>(null);
  conflict = $state.raw<{ path: string; text: string | null; hash: string | null } | null>(null);
  isHelpOpen = $state(false);
  /** Counts the runs that were started with the keyboard. */
  runRequests = $state(0);
  /** A position that the editor should show. */
  revealed = $state.raw<{ span: Span; focus: boolean; serial: number } | null>(null);

  #open: { path: string; text: string; prompt: OpenPrompt } | null = null;
  #analyzed: OpenPrompt | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #analysisTimer: ReturnType<typeof setTimeout> | undefined;
  #serial = 0;
  /** Counts the files that were asked for: only the last one is shown. */
  #opening = 0;

  constructor(config: Config) {
    this.config = config;
    this.title = config.title ?? (config.mode === "playground" ? "Playground" : "");
  }

  get isStudio() { return this.config.mode === "studio"; }
  get canSave() { return this.isStudio && !this.isReadOnly; }

  /** The names of the inputs in the order of their looks. */
  names = $derived.by(() => {
    const declared = this.info.inputs.map((input) => input.name);
    return [...new Set([...declared, ...(this.info.undeclared ?? []).map((it) => it.name)])];
  });

  /** The inputs of the form: those that are declared, and those that the template uses without. */
  formInputs = $derived.by((): InputInfo[] => {
    const declared = this.info.inputs;
    const others = this.names.filter((name) => !declared.some((input) => input.name === name));
    return [...declared, ...others.map((name) => ({ name, kind: "string", description: "The prompt does not declare this input." }))];
  });

  inputs = $derived(this.buffer === null ? {} : inputsOf(this.buffer.fields));
  options = $derived.by((): RenderOptions => ({
    ...(this.isGuarded && { guard: true }),
    ...(this.buffer?.variant && { variant: this.buffer.variant }),
  }));

  errors = $derived(this.findings.filter((finding) => finding.severity !== "warning").length);

  /** The parts of the source that the selection stands for. */
  highlights = $derived.by((): Highlight[] => {
    const { selection, reach, buffer } = this;
    if (selection === null || reach === null || buffer === null) return [];
    const messages = messagesOf(reach, buffer.variant ?? undefined);
    const found: Highlight[] = [];
    const add = (at: Parameters<typeof spanOf>[1], look: number, kind: Highlight["kind"]) => {
      const span = spanOf(buffer.text, at);
      if (span !== null && span[1] > span[0]) found.push({ span, look, kind });
    };
    for (const path of this.paths(selection, messages)) {
      const look = lookOf(path.reach.input, this.names);
      for (const place of path.reach.places) {
        if (selection.kind === "run" && place.how === "decides") continue;
        add(place, look, "place");
        place.path.forEach((step) => add(step, look, "step"));
      }
    }
    // The author's text has no path: its message is shown.
    if (selection.kind === "run" && selection.inputs.length === 0 && !selection.guard) {
      const written = this.#candidates(selection);
      if (written.length === 1) add(written[0]!, LOOKS - 1, "marker");
    }
    const names = selection.kind === "run" ? selection.inputs : [selection.name];
    for (const name of names) {
      const declared = this.info.inputs.find((input) => input.name === name);
      if (declared?.span) add({ span: declared.span }, lookOf(name, this.names), "marker");
    }
    return found;
  });

  /** The ways of the selected inputs through the template. */
  paths(selection: Selection, messages = messagesOf(this.reach ?? { messages: [], bindings: [] }, this.buffer?.variant ?? undefined)) {
    const names = selection.kind === "run" ? selection.inputs : [selection.name];
    let within = messages;
    if (selection.kind === "cell") within = messages.slice(selection.message, selection.message + 1);
    if (selection.kind === "run") within = this.#candidates(selection);
    return within.flatMap((message) => message.inputs.filter((it) => names.includes(it.input)).map((reach) => ({ message, reach })));
  }

  #candidates(selection: Extract<Selection, { kind: "run" }>) {
    const rendered = selection.column === 0 ? this.shown : this.beside?.messages ? this.beside : null;
    const variant = selection.column === 0 ? this.buffer?.variant : this.besideVariant;
    if (this.reach === null || rendered === null || !rendered.messages) return [];
    return candidates(this.reach, variant ?? undefined, rendered.messages, selection.message);
  }

  // Starting

  async start(loadEngine: () => Promise<Engine>) {
    const engine = loadEngine();
    const content = this.isStudio ? this.#openProject() : this.#openExport();
    try {
      this.engine = await engine;
      this.forgeries = this.engine.forgeries();
      if (this.version === "") this.version = this.engine.version;
    } catch (error) {
      this.failure = { title: "The engine cannot be loaded", text: (error as Error).message, help: "The page needs WebAssembly. Reload it, or use a newer browser." };
    }
    try {
      await content;
    } catch (error) {
      const help = error instanceof api.ApiError ? error.help : "Serve the folder with a file server, for example: python3 -m http.server";
      this.failure = { title: this.isStudio ? "The project cannot be opened" : "The prompts cannot be loaded", text: (error as Error).message, help: help ?? "Reload the page." };
    }
  }

  async #openProject() {
    const info = await api.project();
    this.title = info.root_name;
    this.isReadOnly = info.read_only;
    this.version = info.version ?? "";
    this.files = info.files;
    this.hasMoreFiles = info.has_more_files ?? false;
    this.models = info.models ?? [];
    this.providers = (info.providers ?? []).map((it) => (typeof it === "string" ? { name: it, has_key: true } : it));
    api.watch((file) => void this.#changedOutside(file.path, file.hash), () => void this.#lookAgain(), (isOpen) => (this.isWatching = isOpen));
    const wanted = decodeURIComponent(location.hash.slice(1));
    const first = info.files.find((file) => file.path === wanted) ?? info.files.find((file) => file.kind === "prompt");
    if (first) await this.openFile(first.path);
  }

  async #openExport() {
    const response = await fetch("./project.json", { cache: "no-cache" });
    if (!response.ok) throw new Error(`project.json: the server answered with status ${response.status}.`);
    const project = (await response.json()) as {
      name?: string;
      version?: string;
      files: { path: string; kind?: FileKind; text: string; samples?: Sample[] | JsonMap; files?: Record<string, string> }[];
    };
    if (project.name) this.title = project.name;
    for (const file of project.files) {
      const buffer = new Buffer(file.path, file.kind ?? "prompt", file.text, null);
      buffer.files = file.files ?? {};
      if (Array.isArray(file.samples)) buffer.samples = file.samples;
      this.buffers.set(file.path, buffer);
    }
    this.files = project.files.map((file) => ({ path: file.path, kind: file.kind ?? "prompt", size: file.text.length }));
    const wanted = decodeURIComponent(location.hash.slice(1));
    const first = this.files.find((file) => file.path === wanted) ?? this.files.find((file) => file.kind === "prompt");
    if (first) await this.openFile(first.path);
  }

  // Files

  /** Takes the findings of the language server for a file. */
  receiveFindings(path: string, findings: Finding[]) {
    if (path === this.path) this.findings = findings;
  }

  /** Loads a file without showing it. */
  async load(path: string): Promise<Buffer | null> {
    const known = this.buffers.get(path);
    const entry = this.files.find((file) => file.path === path);
    if (known !== undefined || entry === undefined || !this.isStudio || entry.kind === "trace" || entry.kind === "journal") return known ?? null;
    try {
      const file = await api.file(path);
      const buffer = new Buffer(path, entry.kind, file.text, file.hash);
      buffer.files = file.files ?? {};
      this.buffers.set(path, buffer);
      if (entry.kind === "prompt") void api.samples(path).then((samples) => (buffer.samples = samples));
      return buffer;
    } catch (error) {
      this.report(error);
      return null;
    }
  }

  async openFile(path: string, region: Region | null = null) {
    if (path === this.path) {
      if (region) this.region = region;
      return;
    }
    const kind = this.kindOf(path);
    const serial = (this.#opening += 1);
    const buffer = await this.load(path);
    const isLate = serial !== this.#opening;
    if (isLate || (buffer === null && kind !== "trace" && kind !== "journal")) return;
    this.#close();
    this.findings = [];
    this.reach = null;
    this.path = path;
    this.selection = null;
    this.forgery = null;
    this.besideVariant = null;
    this.shown = null;
    if (region) this.region = region;
    history.replaceState(null, "", `#${encodeURIComponent(path)}`);
  }

  kindOf(path: string | null): FileKind | null {
    return this.files.find((file) => file.path === path)?.kind ?? null;
  }

  /** Adds a file that exists only on this page until it is saved. */
  addFile(path: string, text: string) {
    const kind: FileKind = /\.test\.(ya?ml|json|toml)$/.test(path) ? "test" : "prompt";
    this.buffers.set(path, new Buffer(path, kind, text, null));
    if (this.isStudio) this.buffers.get(path)!.saved = "";
    if (!this.files.some((file) => file.path === path)) this.files = [...this.files, { path, kind, size: text.length }];
    void this.openFile(path, "editor");
  }

  async save(base?: { hash: string | null }) {
    const buffer = this.buffer;
    if (buffer === null || !this.isStudio) return;
    if (this.isReadOnly) {
      this.notice = { kind: "error", text: "The studio was started with --read-only.", help: "Start it without this option to save files." };
      return;
    }
    const text = buffer.text;
    try {
      const saved = await api.save(buffer.path, text, base === undefined ? buffer.hash : base.hash);
      if (saved.kind === "conflict") {
        this.conflict = { path: buffer.path, text: saved.text, hash: saved.hash };
        return;
      }
      buffer.hash = saved.hash;
      buffer.saved = text;
      buffer.outside = null;
      this.notice = { kind: "info", text: `Saved ${buffer.path}`, help: null };
    } catch (error) {
      this.report(error);
    }
  }

  async #changedOutside(path: string, hash: string | null) {
    const isKnown = this.files.some((file) => file.path === path);
    if (!isKnown || hash === null) void this.#refreshFiles();
    const buffer = this.buffers.get(path);
    if (buffer === undefined || buffer.hash === hash) return;
    if (hash === null) {
      buffer.outside = { text: null, hash: null };
      return;
    }
    const file = await api.file(path).catch(() => null);
    // The event of our own save arrives before its answer.
    if (file === null || file.hash === buffer.hash) return;
    if (file.text === buffer.text) {
      buffer.hash = file.hash;
      buffer.saved = file.text;
      buffer.outside = null;
    } else if (buffer.isDirty) {
      buffer.outside = { text: file.text, hash: file.hash };
    } else {
      buffer.reload(file.text, file.hash);
      this.notice = { kind: "info", text: `${path} changed on disk and was reloaded.`, help: null };
    }
  }

  /** Looks at all files again, because changes were missed. */
  async #lookAgain() {
    await this.#refreshFiles();
    for (const buffer of this.buffers.values()) {
      const entry = this.files.find((file) => file.path === buffer.path);
      if (buffer.hash !== null && entry?.hash !== buffer.hash) await this.#changedOutside(buffer.path, entry?.hash ?? null);
    }
  }

  async #refreshFiles() {
    const info = await api.project().catch(() => null);
    if (info === null) return;
    this.hasMoreFiles = info.has_more_files ?? false;
    const unsaved = this.files.filter((file) => this.buffers.get(file.path)?.hash === null && !info.files.some((it) => it.path === file.path));
    this.files = [...info.files, ...unsaved];
  }

  report(error: unknown) {
    const help = error instanceof api.ApiError ? error.help : null;
    this.notice = { kind: "error", text: (error as Error).message, help };
  }

  // Inputs

  useInputs(values: JsonMap) {
    if (this.buffer === null) return;
    this.buffer.fields = fieldsFrom(this.formInputs, values);
  }

  useSample() {
    if (this.buffer === null) return;
    this.buffer.fields = fieldsFor(this.formInputs, this.info.sample ?? {}, {});
  }

  /** The inputs without a value that the prompt may need. */
  missing = $derived(this.formInputs.filter((input) => !this.buffer?.fields[input.name]?.isSet && (input.default === null || input.default === undefined)));

  /** Gives every input without a value one that is recognizable. */
  fillMissing() {
    const { buffer } = this;
    if (buffer === null) return;
    const filled = this.missing.flatMap((input) => {
      const value = placeholderOf(input);
      return value === undefined ? [] : [[input.name, { ...unset(), isSet: true, value, isTouched: true }] as const];
    });
    buffer.fields = { ...buffer.fields, ...Object.fromEntries(filled) };
  }

  // Rendering

  /** Renders soon: at once if that is fast, or else when the user pauses. */
  schedule() {
    clearTimeout(this.#timer);
    if (this.renderMs <= FAST_MS) this.render();
    else this.#timer = setTimeout(() => this.render(), Math.min(this.renderMs, 300));
  }

  render() {
    const { engine, buffer } = this;
    if (engine === null || buffer === null) return;
    if (buffer.kind === "test") return this.#checkTests(engine, buffer);
    if (buffer.kind !== "prompt") return;
    try {
      const started = performance.now();
      const prompt = this.#prompt(engine, buffer);
      const inputs = this.#forged(this.inputs);
      const result = prompt.render(inputs, this.options);
      this.result = result;
      if (result.error === undefined) this.shown = share(this.shown, result);
      this.beside = this.besideVariant === null ? null : prompt.render(inputs, { ...this.options, variant: this.besideVariant });
      this.renderMs = performance.now() - started;
      this.forgeOutcome = this.forgery === null ? null : this.#judgeForgery(prompt, result);
    } catch (error) {
      this.#stopped(error);
    }
  }

  /** Reads a test file, together with the prompts that are known. */
  #checkTests(engine: Engine, buffer: Buffer) {
    if (this.isStudio) return;
    const folder = buffer.path.slice(0, buffer.path.lastIndexOf("/") + 1);
    const others = [...this.buffers.values()].filter((it) => it.path.startsWith(folder) && it !== buffer);
    buffer.files = Object.fromEntries(others.map((it) => [it.path.slice(folder.length), it.text]));
    try {
      this.#prompt(engine, buffer);
    } catch (error) {
      this.#stopped(error);
    }
  }

  #stopped(error: unknown) {
    this.failure = { title: "The engine stopped", text: (error as Error).message, help: "Reload the page. Copy unsaved text first." };
  }

  /** Opens the text of a file, if it is not open yet. */
  #prompt(engine: Engine, buffer: Buffer): OpenPrompt {
    const { path, text } = buffer;
    if (this.#open?.path === path && this.#open.text === text) return this.#open.prompt;
    const isOther = this.#open?.path !== path;
    this.#open?.prompt.free();
    this.#open = null;
    const prompt = engine.open(path, text, buffer.files);
    this.#open = { path, text, prompt };
    const info = prompt.info();
    // A file that does not load may have lost its declarations: keep the form until it loads again.
    this.info = info.ok || isOther ? { ...EMPTY_INFO, ...info } : { ...this.info, ...info, inputs: info.inputs.length > 0 ? info.inputs : this.info.inputs };
    buffer.fields = fieldsFor(this.formInputs, this.info.sample ?? {}, buffer.fields);
    if (buffer.variant !== null && !(info.variants ?? []).includes(buffer.variant) && info.ok) buffer.variant = null;
    this.#scheduleAnalysis(isOther);
    return prompt;
  }

  #scheduleAnalysis(isNow: boolean) {
    clearTimeout(this.#analysisTimer);
    this.#analysisTimer = setTimeout(() => this.analyze(), isNow ? 0 : 120);
  }

  #close() {
    this.#open?.prompt.free();
    this.#open = null;
    this.#analyzed = null;
  }

  /** Checks the prompt, and computes what its inputs reach. */
  analyze(isForced = false) {
    const open = this.#open;
    if (open === null || (this.#analyzed === open.prompt && !isForced)) return;
    this.#analyzed = open.prompt;
    try {
      // A language server also knows the settings of the project and its other files.
      if (!this.hasServer) this.findings = open.prompt.check();
      const reach = open.prompt.reach() as Reach & { error?: unknown };
      // While the template has a mistake, the last map is better than none.
      if (Array.isArray(reach.messages) && (reach.messages.length > 0 || this.info.ok)) this.reach = reach;
      if (this.buffer !== null) this.buffer.fields = fieldsFor(this.formInputs, this.info.sample ?? {}, this.buffer.fields);
    } catch (error) {
      this.failure = { title: "The engine stopped", text: (error as Error).message, help: "Reload the page. Copy unsaved text first." };
    }
  }

  /** Formats the file. */
  format() {
    const { engine, buffer } = this;
    if (buffer?.kind === "test") this.formatWithServer?.();
    if (engine === null || buffer === null || buffer.kind !== "prompt") return;
    const formatted = this.#prompt(engine, buffer).format();
    if (formatted.text === undefined) {
      const error = formatted.error;
      this.notice = { kind: "error", text: "The file cannot be formatted.", help: typeof error === "string" ? error : (error?.message ?? null) };
    } else if (formatted.text === buffer.text) this.notice = { kind: "info", text: "The file is already formatted.", help: null };
    else buffer.replace(formatted.text);
  }

  request(options: { provider?: string; model?: string; api?: string }) {
    const open = this.#open;
    if (open === null || open.path !== this.path || open.text !== this.buffer?.text) return null;
    return open.prompt.request(this.#forged(this.inputs), { ...this.options, ...options });
  }

  // Forgeries

  toggleForgery() {
    const forgeable = this.formInputs.filter((input) => !["image", "audio", "file"].includes(input.kind));
    const input = forgeable.find((it) => !it.trusted) ?? forgeable[0];
    const forgery = this.forgeries[0];
    this.forgery = this.forgery === null && input && forgery ? { input: input.name, id: forgery.id } : null;
  }

  #forged(inputs: JsonMap): JsonMap {
    const { forgery } = this;
    const chosen = this.forgeries.find((it) => it.id === forgery?.id);
    if (forgery === null || chosen === undefined) return inputs;
    return { ...inputs, [forgery.input]: this.#inserted(forgery.input, inputs, chosen.text) };
  }

  #inserted(name: string, inputs: JsonMap, text: string) {
    const input = this.formInputs.find((it) => it.name === name);
    const value = inputs[name] ?? input?.default ?? input?.example ?? null;
    if (value === null && input?.kind === "array") return [text];
    if (value === null && input?.kind === "thread") return [{ role: "user", content: text }];
    return withText(isMap(value) && Object.keys(value).length === 0 ? null : value, text, input?.kind === "thread");
  }

  /** Compares the roles with those for a harmless text of the same form. */
  #judgeForgery(prompt: OpenPrompt, forged: RenderResult): ForgeOutcome | null {
    const { forgery } = this;
    const chosen = this.forgeries.find((it) => it.id === forgery?.id);
    if (forgery === null || chosen === undefined) return null;
    const inputs = this.inputs;
    const plain = prompt.render({ ...inputs, [forgery.input]: this.#inserted(forgery.input, inputs, harmless(chosen.text)) }, this.options);
    if (plain.error !== undefined) return { before: [], after: null, refused: plain.error, isSame: false };
    const roles = (rendered: Rendered) => rendered.messages.map((message) => message.role);
    const before = roles(plain);
    if (forged.error !== undefined) return { before, after: null, refused: forged.error, isSame: false };
    const after = roles(forged);
    return { before, after, refused: null, isSame: before.join() === after.join() };
  }

  // Selection

  select(selection: Selection | null) {
    this.selection = selection;
    const first = this.highlights.find((highlight) => highlight.kind === "place") ?? this.highlights[0];
    if (first) this.reveal(first.span, false);
  }

  reveal(span: Span, focus = true) {
    this.#serial += 1;
    this.revealed = { span, focus, serial: this.#serial };
    if (focus) this.region = "editor";
  }
}
