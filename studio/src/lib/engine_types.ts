// The interface of the engine, whether it is WebAssembly or the stand-in of the tests.

import type { Finding, Forgery, Info, ProviderRequest, Reach, RenderOptions, RenderResult, RequestOptions, JsonMap } from "./types";

export interface OpenPrompt {
  info(): Info;
  check(): Finding[];
  format(): { text?: string; error?: Finding | string };
  reach(): Reach;
  render(inputs: JsonMap, options: RenderOptions): RenderResult;
  request(inputs: JsonMap, options: RequestOptions): ProviderRequest | { error: Finding };
  free(): void;
}

export interface Engine {
  version: string;
  open(path: string, text: string, files?: Record<string, string>): OpenPrompt;
  forgeries(): Forgery[];
}
