// ES modules and CommonJS share one implementation, so that classes are identical in both.
export { PromptCase, describeResult, findTestFiles, loadCases, runCases, testPrompts } from "./testing.cjs";
export type * from "./testing.cjs";
