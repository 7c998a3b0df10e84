// Calls of the local server.

import { readEvents } from "./sse";
import type { FileEntry, JsonMap, ProjectInfo, Sample } from "./types";

/** A refusal of the server, with its advice. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly help: string | null,
    /** The answer, for statuses that carry data, such as 409. */
    readonly body: unknown,
  ) {
    super(message);
  }
}

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The server does not answer.", "It may have been stopped. Start `tympan studio` again and open the address that it prints; unsaved text stays on this page.", null);
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const error = (body as { error?: { code?: string; message?: string; help?: string } } | null)?.error;
  if (response.status === 401) {
    throw new ApiError(401, "unauthorized", "This page is no longer signed in.", "Start `tympan studio` again, and open the address that it prints.", body);
  }
  throw new ApiError(response.status, error?.code ?? "error", error?.message ?? `The server answered with status ${response.status}.`, error?.help ?? null, body);
}

const send = (path: string, method: string, body: unknown, signal?: AbortSignal) =>
  call(path, { method, body: JSON.stringify(body), headers: { "content-type": "application/json" }, ...(signal && { signal }) });

const get = async <T>(path: string): Promise<T> => (await (await call(path)).json()) as T;
const query = (path: string, parameters: Record<string, string>) => `${path}?${new URLSearchParams(parameters)}`;

export interface FileText {
  path: string;
  text: string;
  hash: string;
  files?: Record<string, string>;
}

export interface Span {
  name: string;
  kind?: string | null;
  start_ms?: number | null;
  duration_ms?: number | null;
  error?: string | null;
  tokens?: { input?: number | null; output?: number | null } | null;
  cost?: number | null;
  attributes?: JsonMap | null;
  inputs?: JsonMap | null;
  children?: Span[];
}

export interface JournalEvent {
  type: string;
  /** Milliseconds since the turn began. */
  time?: number | null;
  summary?: string | null;
  data?: unknown;
}

export const project = () => get<ProjectInfo>("/api/project");
export const file = (path: string) => get<FileText>(query("/api/file", { path }));
export const diff = (path: string, rev: string) => get<{ text: string }>(query("/api/diff", { path, rev }));
export const trace = (path: string) => get<{ spans: Span[] }>(query("/api/trace", { path }));
export const journal = (path: string) => get<{ events: JournalEvent[] }>(query("/api/journal", { path }));

export async function samples(path: string): Promise<Sample[]> {
  try {
    return (await get<{ samples: Sample[] }>(query("/api/samples", { path }))).samples;
  } catch {
    return [];
  }
}

export type Saved = { kind: "saved"; hash: string } | { kind: "conflict"; text: string | null; hash: string | null };

export async function save(path: string, text: string, base: string | null): Promise<Saved> {
  try {
    const response = await send("/api/file", "PUT", { path, text, base_hash: base });
    return { kind: "saved", hash: ((await response.json()) as { hash: string }).hash };
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) {
      const body = error.body as { text?: string | null; hash?: string | null } | null;
      return { kind: "conflict", text: body?.text ?? null, hash: body?.hash ?? null };
    }
    throw error;
  }
}

export interface CallOptions {
  variant?: string | null;
  guard?: boolean;
  provider?: string | null;
  model?: string | null;
  record?: string | null;
}

export interface RunRequest {
  path: string;
  text: string;
  inputs: JsonMap;
  options: CallOptions;
}

export interface CountWriter {
  inputs: string[];
  trusted: boolean;
  tokens: number;
  share: number;
}

export interface CountModel {
  model: string;
  provider?: string | null;
  exact?: boolean;
  tokens: number;
  messages?: { role: string; tokens: number; share: number; writers?: CountWriter[] }[];
  writers?: CountWriter[];
  overhead?: number;
  tools?: number;
  outputs?: number;
  media?: number;
  cacheable?: { tokens: number; share: number } | null;
  context?: number | null;
  context_share?: number | null;
  cost?: number | null;
  cost_of_1000_calls?: number | null;
}

export const countTokens = async (request: RunRequest, signal: AbortSignal) =>
  (await (await send("/api/count", "POST", request, signal)).json()) as { models: CountModel[]; prices_date?: string };

export async function run(request: RunRequest, signal: AbortSignal, receive: (event: string, data: unknown) => void) {
  await readEvents(await send("/api/run", "POST", request, signal), receive);
}

export async function test(path: string, signal: AbortSignal, receive: (event: string, data: unknown) => void) {
  await readEvents(await send("/api/test", "POST", { path }, signal), receive);
}

export const approve = (run: number | string, id: number | string, isApproved: boolean) => send("/api/approve", "POST", { run, id, approve: isApproved });
export const stop = (run: number | string) => send("/api/stop", "POST", { run });

/** Reports changes of files. The browser connects again if the connection breaks. */
export function watch(receive: (file: Pick<FileEntry, "path"> & { hash: string | null }) => void, missed: () => void, state: (isOpen: boolean) => void): () => void {
  let wasOpen = false;
  const source = new EventSource("/api/watch");
  source.addEventListener("changed", (event) => receive(JSON.parse((event as MessageEvent<string>).data)));
  source.addEventListener("missed", missed);
  source.addEventListener("open", () => {
    state(true);
    // Changes between two connections are not reported.
    if (wasOpen) missed();
    wasOpen = true;
  });
  source.addEventListener("error", () => state(false));
  return () => source.close();
}
