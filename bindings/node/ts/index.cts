export { Composition } from "./composition.cjs";
export { TympanError, type ErrorClass, type ErrorDetails, type Finding } from "./error.cjs";
export {
  check,
  invoke,
  invokeAgent,
  load,
  loadAsync,
  loadStr,
  parse,
  parseAsync,
  prepare,
  prepareAsync,
  process,
  processAsync,
  render,
  renderAsync,
  resume,
  run,
  stream,
  turn,
  validateInputs,
} from "./functions.cjs";
export { Prompt, Rendered } from "./prompt.cjs";
export { Runtime, defaultRuntime, type PromptSource } from "./runtime.cjs";
export { Steering } from "./steering.cjs";
export { ResponseStream } from "./stream.cjs";
export {
  bindTools,
  tool,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolFunction,
  type ToolOptions,
} from "./tool.cjs";
export type * from "./types.cjs";
