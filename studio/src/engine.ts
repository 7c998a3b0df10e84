// Loads the engine, and converts the JSON that it exchanges with the page.

import init, { forgeries, open, version } from "./wasm/tympan_wasm.js";
import wasmUrl from "./wasm/tympan_wasm_bg.wasm?url";

import type { Engine, OpenPrompt } from "./lib/engine_types";

export async function loadEngine(): Promise<Engine> {
  await init({ module_or_path: wasmUrl });
  return {
    version: version(),
    forgeries: () => JSON.parse(forgeries()),
    open: (path, text, files) => wrap(open(path, text, files === undefined ? undefined : JSON.stringify(files))),
  };
}

function wrap(prompt: ReturnType<typeof open>): OpenPrompt {
  return {
    info: () => JSON.parse(prompt.info()),
    check: () => JSON.parse(prompt.check()),
    format: () => JSON.parse(prompt.format()),
    reach: () => JSON.parse(prompt.reach()),
    render: (inputs, options) => JSON.parse(prompt.render(JSON.stringify(inputs), JSON.stringify(options))),
    request: (inputs, options) => JSON.parse(prompt.request(JSON.stringify(inputs), JSON.stringify(options))),
    free: () => prompt.free(),
  };
}
