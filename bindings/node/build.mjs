// Builds the addon and copies it into the package. Arguments are passed to cargo, for example `--release`.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const options = process.argv.slice(2);
// The tests use a build of the whole workspace, which shares its dependencies.
const selection = options.includes("--workspace") ? [] : ["--package", "tympan-node"];
const build = spawnSync(
  process.env.CARGO ?? "cargo",
  ["build", ...selection, "--message-format", "json-render-diagnostics", ...options],
  { cwd: here, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8", maxBuffer: Infinity },
);
if (build.status !== 0) process.exit(build.status ?? 1);

const built = build.stdout
  .split("\n")
  .filter((line) => line.startsWith("{"))
  .map((line) => JSON.parse(line))
  .find((message) => message.reason === "compiler-artifact" && message.target.kind.includes("cdylib") && message.target.name === "tympan_node");
const addon = join(here, "native", "tympan.node");
mkdirSync(dirname(addon), { recursive: true });
// Remove the old file first: a process that has loaded it keeps its copy.
rmSync(addon, { force: true });
copyFileSync(built.filenames.find((file) => !file.endsWith(".lib")), addon);

// The generated types of prompt definitions.
copyFileSync(join(here, "../../schemas/generated/definition.d.ts"), join(here, "ts", "definition.cts"));
