// A request, and calls of the packages, as code that can be copied.

import type { JsonMap, ProviderRequest } from "./types";

export interface Call {
  path: string;
  inputs: JsonMap;
  provider?: string;
  model?: string;
  variant?: string;
}

const quoteShell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** The request for curl. The key is read from its environment variable. */
export function curl(request: ProviderRequest): string {
  const headers = request.headers.map(({ name, value, secret }) => {
    if (!secret) return `  -H ${quoteShell(`${name}: ${value}`)}`;
    // Within double quotes, the shell replaces the variable.
    return `  -H "${name}: ${secret.prefix.replace(/["\\$`]/g, "\\$&")}$${secret.variable ?? "API_KEY"}"`;
  });
  const body = JSON.stringify(request.body, null, 2);
  return [`curl ${quoteShell(request.url)}`, ...headers, `  --data-raw ${quoteShell(body)}`].join(" \\\n") + "\n";
}

/** The request as it is sent. */
export function http(request: ProviderRequest): string {
  const headers = request.headers.map(({ name, value }) => `${name}: ${value}`);
  return [`${request.method} ${request.url}`, ...headers, "", JSON.stringify(request.body, null, 2)].join("\n");
}

export function python(call: Call): string {
  const options = [call.provider && `provider=${pythonText(call.provider)}`, call.model && `model=${pythonText(call.model)}`, call.variant && `variant=${pythonText(call.variant)}`];
  const args = [pythonText(call.path), pythonValue(call.inputs, 0), ...options.filter((option) => option)];
  return `import tympan\n\nrun = tympan.invoke(\n${args.map((arg) => `    ${indent(String(arg), 4)},\n`).join("")})\nprint(run.result)\n`;
}

export function typescript(call: Call): string {
  const options = { ...(call.provider && { provider: call.provider }), ...(call.model && { model: call.model }), ...(call.variant && { variant: call.variant }) };
  const args = [JSON.stringify(call.path), JSON.stringify(call.inputs, null, 2)];
  if (Object.keys(options).length > 0) args.push(JSON.stringify(options, null, 2));
  return `import { invoke } from "tympan";\n\nconst { result } = await invoke(\n${args.map((arg) => `  ${indent(arg, 2)},\n`).join("")});\nconsole.log(result);\n`;
}

export function rust(call: Call): string {
  const pairs = JSON.stringify(call.inputs, null, 4);
  const hashes = "#".repeat(longestHashes(pairs) + 1);
  return [
    "use tympan::{Result, invoke};",
    "",
    "fn main() -> Result<()> {",
    `    let inputs: serde_json::Value = serde_json::from_str(r${hashes}"${pairs}"${hashes}).expect("valid JSON");`,
    `    let run = invoke(${JSON.stringify(call.path)}, inputs.as_object().expect("a map"))?;`,
    '    println!("{}", run.outcome.to_json());',
    "    Ok(())",
    "}",
    "",
  ].join("\n");
}

/** The longest run of `#` after a quote, so that a raw string can be delimited by more of them. */
function longestHashes(text: string): number {
  return Math.max(0, ...[...text.matchAll(/"(#*)/g)].map((match) => match[1]!.length));
}

const indent = (text: string, by: number) => text.replaceAll("\n", `\n${" ".repeat(by)}`);

/** A Python string. The escapes of JSON mean the same in Python, except for surrogates of characters, which are joined. */
function pythonText(text: string): string {
  return JSON.stringify(text).replace(/\u007f|[\u0080-\u009f\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function pythonValue(value: unknown, depth: number): string {
  const pad = "    ".repeat(depth + 1);
  const close = "    ".repeat(depth);
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return pythonText(value);
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((item) => `${pad}${pythonValue(item, depth + 1)},\n`).join("")}${close}]`;
  }
  if (typeof value === "object") {
    const entries = Object.entries(value as object);
    if (entries.length === 0) return "{}";
    return `{\n${entries.map(([key, item]) => `${pad}${pythonText(key)}: ${pythonValue(item, depth + 1)},\n`).join("")}${close}}`;
  }
  return String(value);
}
