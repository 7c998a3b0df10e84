import { AssertionError } from "node:assert";
import { isAbsolute, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { TympanError, guarded, invalid, type Finding } from "./error.cjs";
import { native, type NativeTestFile } from "./native.cjs";
import { camel, encodeOptions, snakeCase } from "./options.cjs";
import { defaultRuntime, nativeRuntime, type Runtime } from "./runtime.cjs";
import type { Usage } from "./types.cjs";
import { decode, encode } from "./values.cjs";
import { perform } from "./work.cjs";

/** The result of an assertion. */
export interface Check {
  /** The key of the assertion, such as `message`. */
  assertion: string;
  /** The line of the assertion in the test file, counted from 1. */
  line: number;
  status: "passed" | "failed" | "not_run";
  message?: string;
  expected?: string;
  actual?: string;
  score?: number;
}

/** One attempt at a case. A case with `repeat` has several. */
export interface Attempt {
  passed: boolean;
  checks: Check[];
  answer?: string;
  usage?: Usage;
  /** The estimated cost in US dollars. */
  cost?: number;
  seconds?: number;
}

/** The result of a case. */
export interface CaseResult {
  /** The path of the file and the name. */
  id: string;
  file: string;
  line: number;
  name: string;
  /** The path of the prompt file. */
  prompt: string;
  variant?: string;
  model?: string;
  hash: string;
  /** A case has not run if its cassette or a permission is missing. */
  verdict: "passed" | "failed" | "not_run" | "skipped";
  /** Why the case did not run or was skipped, or the error that ended it. */
  reason?: string;
  attempts: Attempt[];
  /** The share of attempts that must pass. */
  required: number;
  warnings?: string[];
  seconds: number;
}

/** How cases run. Without options, no model is called, no program runs and no file is written. */
export interface CaseOptions {
  /** Call models. */
  live?: boolean;
  /** Call models, and record their answers as cassettes. */
  record?: boolean;
  /** Write snapshots instead of comparing with them. */
  accept?: boolean;
  /** Run the programs of test files. */
  allowPrograms?: boolean;
  /** The runtime with the filters, functions and providers that prompts use. The default runtime by default. */
  runtime?: Runtime;
}

/** Defines a group of tests, like `describe` of `node:test`, Vitest and Jest. */
export type DescribeFunction = (name: string, body: () => void) => unknown;

/** Defines a test, like `test` of `node:test`, Vitest and Jest. */
export interface TestFunction {
  (name: string, body: (...context: any[]) => Promise<void>): unknown;
  skip(name: string, body: (...context: any[]) => Promise<void>): unknown;
}

/** How prompts are tested. */
export interface TestPromptsOptions extends CaseOptions {
  /** Skip cases that cannot run, because their cassette or a permission is missing, instead of failing them. */
  allowMissing?: boolean;
  /** The cases to test: those whose id (the path of the file and the name) contains a text or matches. */
  only?: string | RegExp | ((one: PromptCase) => boolean);
  /** The functions of another test runner. The default are those of `node:test`. */
  describe?: DescribeFunction;
  test?: TestFunction;
}

type Paths = string | URL | readonly (string | URL)[];

/** A case that has not run yet. Rows of tables and combinations of a matrix are cases of their own. */
export class PromptCase {
  /** The path of the file and the name. */
  readonly id: string;
  readonly name: string;
  /** The line in the file, counted from 1. */
  readonly line: number;
  /** The reason why the case is skipped. */
  readonly skip: string | undefined;
  readonly #file: NativeTestFile;
  readonly #index: number;

  /** @internal */
  constructor(about: { id: string; name: string; line: number; skip: string | null }, file: NativeTestFile, index: number) {
    this.id = about.id;
    this.name = about.name;
    this.line = about.line;
    this.skip = about.skip ?? undefined;
    this.#file = file;
    this.#index = index;
  }

  /** Runs the case. */
  async run(options: { signal?: AbortSignal | undefined } = {}): Promise<CaseResult> {
    const [text] = await perform((listener) => this.#file.run(this.#index, listener), { signal: options.signal });
    const result = decode<CaseResult>(text);
    for (const attempt of result.attempts) {
      if (attempt.usage) attempt.usage = camel<Usage>(attempt.usage as unknown as Record<string, unknown>);
    }
    return result;
  }
}

/** Returns a path as it is shown: relative to the working directory if it is inside of it. */
function pathOf(given: string | URL): string {
  const path = given instanceof URL ? fileURLToPath(given) : given;
  if (typeof path !== "string") throw invalid("expected the path of a test file or of a directory");
  if (!isAbsolute(path)) return path;
  const inside = relative(process.cwd(), path);
  if (inside === "") return ".";
  return inside.startsWith("..") || isAbsolute(inside) ? path : inside;
}

/** Returns the files with tests that `tympan test` finds in these paths. A file that is named is one of them. */
export function findTestFiles(paths: Paths): string[] {
  const all = (Array.isArray(paths) ? paths : [paths]).map(pathOf);
  return guarded(() => decode(native.testFiles(all)));
}

/** Returns the cases of a test file, or of a prompt file that contains tests. A prompt file without tests has none. */
export function loadCases(file: string | URL, options: CaseOptions = {}): PromptCase[] {
  const { runtime = defaultRuntime(), ...settings } = options;
  const [path, known] = [pathOf(file), nativeRuntime(runtime)];
  return guarded(() => {
    const loaded = native.loadTestFile(known, path, encodeOptions(settings));
    if (loaded === null) return [];
    const cases = decode<ConstructorParameters<typeof PromptCase>[0][]>(loaded.cases());
    return cases.map((one, index) => new PromptCase(one, loaded, index));
  });
}

/** Runs the cases of a file, one after the other, and returns their results. */
export async function runCases(file: string | URL, options: CaseOptions = {}): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const one of loadCases(file, options)) results.push(await one.run());
  return results;
}

/** Why a case did not pass, from the engine. */
interface Description {
  text: string;
  line: number;
  expected?: string;
  actual?: string;
}

function described(result: CaseResult): Description {
  return guarded(() => decode(native.describeCase(encode(snakeCase(result, Infinity), "result"))));
}

/**
 * Describes why a case did not pass: messages, positions in the test file, and differences. Control characters are
 * escaped, so the text is safe for terminals.
 */
export function describeResult(result: CaseResult): string {
  return described(result).text;
}

const TEST_OPTIONS = ["live", "record", "accept", "allowPrograms", "runtime", "allowMissing", "only", "describe", "test"];

/**
 * Defines a test for each case in these files and directories, in a group for each file. It takes the functions of
 * `node:test`, or those in the options.
 */
export function testPrompts(paths: Paths, options: TestPromptsOptions = {}): void {
  const unknown = Object.keys(options).find((name) => !TEST_OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw invalid(`options: unknown option \`${unknown}\``, `the options are ${TEST_OPTIONS.join(", ")}`);
  }
  const { describe, test, only, allowMissing = false, ...settings } = options;
  const [runner, isSelected] = [runnerOf(describe, test), selection(only)];
  let count = 0;
  for (const file of findTestFiles(paths)) {
    try {
      const cases = loadCases(file, settings).filter(isSelected);
      if (cases.length > 0) runner.describe(visibleLine(file), () => cases.forEach((one) => define(one, file)));
      count += cases.length;
    } catch (error) {
      if (!(error instanceof TympanError)) throw error;
      runner.test(visibleLine(file), () => Promise.reject(fileFailure(error, file)));
      count += 1;
    }
  }
  if (count === 0) runner.test("tests of prompts", () => Promise.reject(nothingFound(paths, only)));

  function define(one: PromptCase, file: string): void {
    const name = visibleLine(one.name);
    if (one.skip !== undefined) return runner.skip(name, visibleLine(one.skip));
    runner.test(name, async (context) => {
      const result = await one.run({ signal: signalOf(context) });
      for (const warning of result.warnings ?? []) warn(context, visibleLine(warning));
      if (result.verdict === "passed") return;
      const reason = visibleLine(result.reason ?? "it could not run");
      if (result.verdict === "skipped" || (result.verdict === "not_run" && allowMissing)) {
        return skipNow(context, name, reason);
      }
      throw caseFailure(result, file);
    });
  }
}

/** What test runners pass to a test. Jest passes nothing. */
interface Context {
  signal?: AbortSignal;
  skip?(reason: string): void;
  diagnostic?(text: string): void;
}

interface TestRunner {
  describe: DescribeFunction;
  test(name: string, body: (context: Context | undefined) => Promise<void>): void;
  skip(name: string, reason: string): void;
}

function runnerOf(describe: DescribeFunction | undefined, test: TestFunction | undefined): TestRunner {
  if (describe === undefined && test === undefined) return nodeRunner();
  if (typeof describe !== "function" || typeof test !== "function" || typeof test.skip !== "function") {
    throw invalid("options: describe, test: expected both functions of a test runner");
  }
  return {
    describe,
    // Jest passes a callback to functions that declare a parameter.
    test: (name, body) => void test(name, async (...context) => body(context[0])),
    skip: (name) => void test.skip(name, async () => {}),
  };
}

function nodeRunner(): TestRunner {
  // Other test runners may not have this module.
  const { describe, test } = require("node:test") as typeof import("node:test");
  return {
    describe: (name, body) => void describe(name, body),
    test: (name, body) => void test(name, (context) => body(context as Context)),
    skip: (name, reason) => void test(name, { skip: reason }),
  };
}

function selection(only: TestPromptsOptions["only"]): (one: PromptCase) => boolean {
  if (only === undefined) return () => true;
  if (typeof only === "string") return ({ id }) => id.toLowerCase().includes(only.toLowerCase());
  if (only instanceof RegExp) return ({ id }) => id.search(only) >= 0;
  if (typeof only === "function") return only;
  throw invalid("options: only: expected a string, a regular expression or a function");
}

function signalOf(context: Context | undefined): AbortSignal | undefined {
  const signal = context?.signal;
  return typeof signal?.addEventListener === "function" ? signal : undefined;
}

function warn(context: Context | undefined, text: string): void {
  if (typeof context?.diagnostic === "function") context.diagnostic(`warning: ${text}`);
  else process.emitWarning(text, { code: "tympan_test" });
}

function skipNow(context: Context | undefined, name: string, reason: string): void {
  if (typeof context?.skip === "function") context.skip(reason);
  else process.emitWarning(`${name}: not run: ${reason}`, { code: "tympan_test" });
}

function caseFailure(result: CaseResult, file: string): Error {
  const { text, line, expected, actual } = described(result);
  // Node adds a difference of its own to the messages of other operators.
  const error = new AssertionError({ message: text, expected, actual, operator: "equal" });
  if (expected === undefined) for (const key of ["expected", "actual", "operator"]) Reflect.deleteProperty(error, key);
  return at(error, file, line);
}

function fileFailure(error: TympanError, file: string): Error {
  const help = error.help === undefined ? [] : [`help: ${error.help}`];
  const place = ({ line, column }: Finding) => (line === null ? "" : ` (${error.file ?? file}:${line}:${column})`);
  const others = error.others.map((other) => `${other.message}${place(other)}`);
  return at(new Error(visible([error.message, ...help, ...others].join("\n"))), error.file ?? file, error.line ?? 1);
}

function nothingFound(paths: Paths, only: TestPromptsOptions["only"]): Error {
  const where = (Array.isArray(paths) ? paths : [paths]).map(pathOf).join(", ");
  const help = only === undefined ? "add `NAME.test.yaml` beside a prompt file" : "no case is selected by `only`";
  return new Error(visible(`no tests of prompts found in ${where}: ${help}`));
}

/** Replaces the stack of an error, which says nothing about a test file, with a position in that file. */
function at(error: Error, file: string, line: number): Error {
  const code = error instanceof AssertionError ? ` [${error.code}]` : "";
  error.stack = `${error.name}${code}: ${error.message}\n    at ${visibleLine(resolve(file))}:${line}:1`;
  return error;
}

/** Escapes characters that could control a terminal, change the order of text, or hide text. Joiners are safe. */
function visible(text: string): string {
  const escaped = (char: string) => `\\u{${char.codePointAt(0)!.toString(16)}}`;
  return text.replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped);
}

function visibleLine(text: string): string {
  return visible(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}
