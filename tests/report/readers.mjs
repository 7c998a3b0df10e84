// Reads TAP and Markdown reports with libraries that this project did not write.
//
// Usage: readers.mjs PROGRAM FIXTURES

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { Parser } from "tap-parser";

const [program, fixtures] = process.argv.slice(2);
const report = (format, run) => execFileSync(program, [format, join(fixtures, run)], { encoding: "utf8" });
const results = (run) =>
  readFileSync(join(fixtures, run), "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));

for (const run of ["run.jsonl", "hostile.jsonl"]) {
  const expected = results(run);

  const points = [];
  const parser = new Parser();
  parser.on("assert", (point) => points.push(point));
  let bailout = false;
  parser.on("bailout", () => (bailout = true));
  const extra = [];
  parser.on("extra", (text) => extra.push(text));
  const end = new Promise((done) => parser.on("complete", done));
  parser.end(report("tap", run));
  const summary = await end;
  assert.equal(bailout, false);
  assert.deepEqual(extra, [], "nothing but test points");
  assert.deepEqual([summary.count, summary.plan.end], [expected.length, expected.length]);
  const failed = expected.filter(({ verdict }) => verdict === "failed" || verdict === "not_run");
  assert.equal(summary.fail, failed.length);
  for (const [index, point] of points.entries()) {
    const { verdict, file, reason } = expected[index];
    assert.equal(point.skip !== false, verdict === "skipped", point.name);
    assert.equal(point.todo, false, point.name);
    if (verdict === "failed") {
      assert.equal(point.diag.at.file, file);
      assert.equal(typeof point.diag.message, "string");
    }
    if (reason === undefined) assert.equal(point.diag?.reason, undefined);
  }
  console.log(`ok: TAP of ${run}, ${points.length} test points`);

  // Raw HTML is passed through here, as on GitHub before it removes what it does not allow.
  const html = micromark(report("markdown", run), { allowDangerousHtml: true, extensions: [gfm()], htmlExtensions: [gfmHtml()] });
  const tags = [...html.matchAll(/<\/?([a-z0-9]+)([^>]*)>/gi)];
  const allowed = /^(h[23]|p|table|thead|tbody|tr|th|td|details|summary|pre|code|del|ins|ul|li)$/;
  for (const [tag, name, attributes] of tags) {
    assert.match(name, allowed, tag);
    assert.match(attributes, /^( align="right")?$/, tag);
  }
  const count = (name) => tags.filter(([tag]) => tag === `<${name}>`).length;
  const warnings = expected.some((result) => result.warnings?.length > 0);
  assert.equal(count("details"), failed.length + Number(warnings));
  assert.equal(count("details"), tags.filter(([tag]) => tag === "</details>").length);
  const files = new Set(expected.map(({ file }) => file));
  assert.equal(count("tr"), files.size + 1, "one row per file");
  assert.doesNotMatch(html.replaceAll(/<[^>]*>/g, ""), /[<>]/);
  console.log(`ok: Markdown of ${run}, ${count("details")} folded parts`);
}
