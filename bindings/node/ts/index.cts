export { Composition } from "./composition.cjs";
export { TympanError, type ErrorClass, type ErrorDetails, type FileFinding, type FilePosition, type Finding } from "./error.cjs";
export {
  check,
  checkFile,
  checkStr,
  invoke,
  invokeAgent,
  listModels,
  load,
  loadAsync,
  loadStr,
  mapArrow,
  parse,
  parseAsync,
  parseText,
  preRender,
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
export type * from "./definition.cjs";
export { PromptLoader } from "./loader.cjs";
export { Prompt, Rendered, type Validation } from "./prompt.cjs";
export type {
  AccessToken,
  CredentialProvider,
  ModelCall,
  ModelReply,
  Parser,
  Provider,
  Renderer,
  TemplateFunction,
  TemplateTest,
  Step,
  TokenRequest,
  ToolHandler,
  TraceBackend,
  TraceFunction,
} from "./registry.cjs";
export { Run, TurnRun } from "./results.cjs";
export { Runtime, defaultRuntime, type LoadOptions, type PromptSource } from "./runtime.cjs";
export type { Accepted, StandardSchema, Validated } from "./schema.cjs";
export { Steering } from "./steering.cjs";
export { Stream } from "./stream.cjs";
export { Confidential, Tool, bindTools, tool, type ToolContext, type ToolFunction, type ToolOptions } from "./tool.cjs";
export type * from "./types.cjs";
