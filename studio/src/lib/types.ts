// The data that the engine and the server exchange with the page.

/** Start and end in UTF-16 code units. */
export type Span = [number, number];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };

export interface InputInfo {
  name: string;
  kind: string;
  required?: boolean;
  trusted?: boolean;
  confidential?: boolean;
  default?: Json;
  example?: Json;
  description?: string | null;
  enum?: Json[] | null;
  span?: Span | null;
}

export interface ToolInfo {
  name: string;
  description?: string | null;
  effect?: string | null;
}

export interface Finding {
  code: string;
  message: string;
  help?: string | null;
  severity?: "error" | "warning";
  rule?: string | null;
  line?: number | null;
  column?: number | null;
  end?: { line: number; column: number } | null;
  span?: Span | null;
  fix?: { safe: boolean; edits: FixEdit[] } | null;
  related?: { line: number; column: number; message: string; span?: Span | null }[];
  input?: string | null;
}

export interface FixEdit {
  line?: number;
  column?: number;
  end?: { line: number; column: number };
  text: string;
  span?: Span | null;
}

export interface TestCase {
  name: string | null;
  inputs: JsonMap;
  span?: Span | null;
}

export interface Info {
  ok: boolean;
  kind: string;
  name?: string | null;
  description?: string | null;
  definition_hash?: string | null;
  model?: { id?: string | null; provider?: string | null; api_type?: string | null } | null;
  inputs: InputInfo[];
  /** The names that the templates use without a declaration. */
  undeclared?: { name: string; span?: Span | null }[];
  tools?: ToolInfo[];
  variants?: string[];
  sample?: JsonMap;
  /** The cases of a test file. */
  cases?: TestCase[];
  error?: { findings: Finding[] } | null;
}

export interface Segment {
  start: number;
  end: number;
  inputs: string[];
  trusted: boolean;
  guard?: boolean;
}

export interface Part {
  kind: string;
  text?: string;
  segments?: Segment[];
  media_type?: string | null;
  url?: string | null;
  data?: string | null;
  inputs?: string[];
  trusted?: boolean;
}

export interface Message {
  role: string;
  attributes?: JsonMap | null;
  parts: Part[];
  source?: number | null;
}

export interface Rendered {
  messages: Message[];
  text_hash?: string;
  template_hash?: string;
  render_hash?: string;
  warnings?: (string | Finding)[];
  /** The message that explains the guard to the model, and where it is inserted. Without an index, it is part of another. */
  advisory?: { role: string; text: string; index: number | null } | null;
  inputs?: { name: string; trusted: boolean }[];
  error?: undefined;
}

export interface RenderFailure {
  error: Finding;
  messages?: undefined;
}

export type RenderResult = Rendered | RenderFailure;

export interface RenderOptions {
  variant?: string;
  guard?: boolean;
  lenient?: boolean;
}

export interface RequestOptions extends RenderOptions {
  provider?: string;
  model?: string;
  api?: string;
}

/** A header. The value of a secret one is redacted: the key comes from a variable, after a prefix such as `Bearer `. */
export interface RequestHeader {
  name: string;
  value: string;
  secret?: { prefix: string; variable: string | null } | null;
}

export interface ProviderRequest {
  method: string;
  url: string;
  headers: RequestHeader[];
  body: Json;
  error?: undefined;
}

export type Position = { line: number; column: number; span?: Span | null };
export type How = "text" | "filtered" | "decides";

export interface ReachPlace extends Position {
  how: How;
  path: (Position & { step: string })[];
}

export interface InputReach {
  input: string;
  declared: boolean;
  trusted: boolean;
  how: How;
  in_marker: boolean;
  env?: string | null;
  places: ReachPlace[];
}

export interface ReachedMessage {
  template: string;
  role: string | null;
  thread: string | null;
  line: number | null;
  marker?: Span | null;
  span?: Span | null;
  inputs: InputReach[];
}

export interface Reach {
  messages: ReachedMessage[];
  bindings: { tool: string; parameter: string; input: string; trusted: boolean; line: number | null }[];
}

export interface Forgery {
  id: string;
  title: string;
  text: string;
}

export interface Sample {
  name: string;
  source?: string;
  inputs: JsonMap;
}

export type FileKind = "prompt" | "test" | "cassette" | "trace" | "journal";

export interface FileEntry {
  path: string;
  kind: FileKind;
  size?: number;
  hash?: string;
}

export interface ModelRow {
  id: string;
  provider?: string;
  context_window?: number | null;
  input_price?: number | null;
  output_price?: number | null;
}

export interface ProjectInfo {
  root_name: string;
  read_only: boolean;
  version?: string;
  providers: (string | { name: string; has_key: boolean })[];
  files: FileEntry[];
  has_more_files?: boolean;
  models: ModelRow[];
}
