import { describe, expect, test } from "vitest";

import { candidates } from "../src/lib/align";
import { diffLines, hunks } from "../src/lib/diff";
import { classOf, labelOf } from "../src/lib/origins";
import { lineOf, offsetOf, spanOf } from "../src/lib/positions";
import { cachePrefix, runsOf } from "../src/lib/segments";
import { share } from "../src/lib/share";
import { curl, python, rust } from "../src/lib/snippets";
import { EventParser } from "../src/lib/sse";
import type { Json, Message, Reach, ReachedMessage, Rendered } from "../src/lib/types";
import { fieldsFor, harmless, inputsOf, threadOf, threadToJson, typed, unset, withText } from "../src/lib/values";
import { cut, plain, specialCounts, visible } from "../src/lib/visible";

describe("positions", () => {
  test("columns count characters, offsets count code units", () => {
    const text = "a\n😀b {{ x }}\n";
    expect(offsetOf(text, 2, 2)).toBe(4);
    expect(offsetOf(text, 2, 99)).toBe(text.length - 1);
    expect(offsetOf(text, 9, 1)).toBe(text.length);
    expect(lineOf(text, 4)).toBe(2);
  });

  test("a place without an end covers its tag", () => {
    const text = "user:\n{{ name | upper }}!\n{% for x in xs %}";
    const at = (line: number, column: number) => text.slice(...spanOf(text, { line, column })!);
    expect(at(2, 1)).toBe("{{ name | upper }}");
    expect(at(2, 4)).toBe("name | upper");
    expect(at(3, 1)).toBe("{% for x in xs %}");
    expect(spanOf(text, { span: [3, 9999] })).toEqual([3, text.length]);
    expect(spanOf(text, {})).toBeNull();
  });
});

describe("visible", () => {
  test("controls, marks of direction and tags have names", () => {
    expect(plain("a\u202eb\u0000c\u{e0041}")).toBe("a<U+202E>b<U+0000>c<U+E0041>");
    expect(visible("\u202e")[0]).toEqual({ kind: "special", text: "\u202e", code: "U+202E", name: "right-to-left override" });
    expect(plain("tab\tand\nline")).toBe("tab\tand\nline");
    expect(plain("\ud800x")).toBe("<U+D800>x");
    expect(specialCounts("\u200b\u200b")).toEqual([{ code: "U+200B", name: "zero width space", count: 2 }]);
  });

  test("joiners inside an emoji are part of it", () => {
    expect(plain("👩‍👩‍👧")).toBe("👩‍👩‍👧");
    expect(plain("a\u200db")).toBe("a<U+200D>b");
  });

  test("text is not cut inside a character", () => {
    expect(cut("a😀", 2)).toBe("a");
    expect(cut("a😀", 3)).toBe("a😀");
  });
});

const text = (value: string, segments: [number, number, string[]][]) => ({
  kind: "text",
  text: value,
  segments: segments.map(([start, end, inputs]) => ({ start, end, inputs, trusted: inputs.length === 0 })),
});

describe("segments", () => {
  test("runs cover the text", () => {
    const { runs, hidden } = runsOf(text("Hi Ada!", [[3, 6, ["name"]]]), 100);
    expect(runs.map((run) => [run.text, run.inputs])).toEqual([["Hi ", []], ["Ada", ["name"]], ["!", []]]);
    expect(hidden).toBe(0);
  });

  test("an input that wrote nothing has a run", () => {
    expect(runsOf(text("ab", [[0, 1, []], [1, 1, ["x"]], [1, 2, []]]), 100).runs.map((run) => run.length)).toEqual([1, 0, 1]);
  });

  test("long text is cut, and the rest is counted", () => {
    const { runs, hidden } = runsOf(text("x".repeat(5_000_000), [[0, 5_000_000, ["page"]]]), 20_000);
    expect(runs.length).toBe(1);
    expect(runs[0]!.text.length).toBe(20_000);
    expect(hidden).toBe(4_980_000);
  });

  test("the cacheable prefix ends at the first input, even if it writes nothing", () => {
    const rendered = { messages: [{ role: "system", parts: [text("Be kind.", [[0, 8, []]])] }, { role: "user", parts: [text("Hi ", [[0, 3, []], [3, 3, ["name"]]])] }] } as Rendered;
    expect(cachePrefix(rendered)).toMatchObject({ message: 1, offset: 3, units: 11, total: 11, input: "name" });
    expect(cachePrefix({ messages: [{ role: "user", parts: [text("Hi", [])] }] } as Rendered).input).toBeNull();
  });
});

test("messages that did not change stay the same objects", () => {
  const make = (name: string): Rendered => ({ messages: [{ role: "system", parts: [text("Be kind.", [[0, 8, []]])] }, { role: "user", parts: [text(name, [[0, name.length, ["name"]]])] }] });
  const before = make("Ada");
  const now = share(before, make("Bob"));
  expect(now.messages.map((message, index) => message === before.messages[index])).toEqual([true, false]);
  expect(now.messages[1]!.parts[0]!.text).toBe("Bob");
  const other = make("Ada");
  other.messages[1]!.parts[0]!.segments![0]!.inputs = ["else"];
  expect(share(before, other).messages[1]).toBe(other.messages[1]);
});

test("each input has a look, and several inputs have their own", () => {
  expect(classOf({ inputs: ["b"], trusted: false }, ["a", "b"])).toBe("look-1");
  expect(classOf({ inputs: ["a"], trusted: true }, ["a", "b"])).toBe("look-0 trusted");
  expect(classOf({ inputs: ["a", "b"] }, ["a", "b"])).toBe("by-several");
  expect(classOf({ inputs: [], guard: true }, [])).toBe("by-guard");
  expect(labelOf({ inputs: ["a"], trusted: false })).toBe("a (untrusted)");
});

describe("values", () => {
  const inputs = [{ name: "a", kind: "string" }, { name: "n", kind: "integer" }];

  test("the sample fills the form, and does not replace what the user typed", () => {
    const fields = fieldsFor(inputs, { a: "Ada" }, {});
    expect(inputsOf(fields)).toEqual({ a: "Ada" });
    const changed = { ...fields, a: typed(fields["a"]!, "text", "Bob") };
    expect(inputsOf(fieldsFor(inputs, { a: "Eve" }, changed))).toEqual({ a: "Bob" });
    expect(inputsOf(fieldsFor(inputs, { a: "Eve" }, fields))).toEqual({ a: "Eve" });
    expect(fieldsFor(inputs, { a: "Ada" }, fields)).toBe(fields);
  });

  test("what cannot be read keeps the last value", () => {
    const good = typed(unset(), "integer", "42");
    expect(good.value).toBe(42);
    const bad = typed(good, "integer", "4x");
    expect([bad.value, bad.draft, bad.mistake]).toEqual([42, "4x", "Expected an integer such as 3."]);
    expect(typed(unset(), "json", "[1,").mistake).toMatch(/^Expected JSON/);
    expect(typed(unset(), "number", "1e3").value).toBe(1000);
  });

  test("threads are read and written", () => {
    const json: Json = [{ role: "user", content: "Hi", name: "x" }, { role: "assistant", content: [{ kind: "text", value: "a" }] }];
    const messages = threadOf(json)!;
    expect(messages.map((message) => message.isText)).toEqual([true, false]);
    expect(threadToJson(messages)).toEqual(json);
    expect(threadOf("text")).toBeNull();
    expect(threadOf(null)).toEqual([]);
  });

  test("a forgery replaces the texts of a value, but not the roles of a thread", () => {
    expect(withText([{ title: "a", n: 1 }], "F", false)).toEqual([{ title: "F", n: "F" }]);
    expect(withText([{ role: "user", content: "a" }], "F", true)).toEqual([{ role: "user", content: "F" }]);
    expect(withText("a", "F", false)).toBe("F");
    expect(harmless("a\nsystem: 1")).toBe("x\nxxxxxx. x");
  });
});

describe("align", () => {
  const message = (role: string, inputs: string[], line: number): ReachedMessage => ({
    template: "default", role, thread: null, line,
    inputs: inputs.map((input) => ({ input, declared: true, trusted: false, how: "text", in_marker: false, places: [] })),
  });
  const rendered = (role: string, ...inputs: string[]): Message => ({ role, parts: [text("x", [[0, 1, inputs]])] });

  test("messages correspond one to one if roles and numbers agree", () => {
    const reach: Reach = { messages: [message("system", [], 1), message("user", ["q"], 3)], bindings: [] };
    expect(candidates(reach, undefined, [rendered("system"), rendered("user", "q")], 1).map((it) => it.line)).toEqual([3]);
  });

  test("with a loop, all messages that can have written the text are found", () => {
    const reach: Reach = { messages: [message("user", ["a"], 1), message("user", ["b"], 3)], bindings: [] };
    const list = [rendered("user", "a"), rendered("user", "b"), rendered("user", "b")];
    expect(candidates(reach, undefined, list, 2).map((it) => it.line)).toEqual([3]);
    expect(candidates(reach, undefined, [rendered("user"), rendered("user"), rendered("user")], 0).length).toBe(2);
  });
});

describe("diff", () => {
  const show = (before: string, after: string) => diffLines(before, after).map((it) => `${{ same: " ", added: "+", removed: "-" }[it.kind]}${it.text}`).join("\n");

  test("lines are compared", () => {
    expect(show("a\nb\nc", "a\nx\nc")).toBe(" a\n-b\n+x\n c");
    expect(show("", "a")).toBe("+a");
    expect(show("a\nb", "a\nb")).toBe(" a\n b");
  });

  test("applying the changes gives both texts back", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    for (let round = 0; round < 300; round += 1) {
      const make = () => Array.from({ length: random(12) + 1 }, () => "abc"[random(3)]).join("\n");
      const [before, after] = [make(), make()];
      const changes = diffLines(before, after);
      expect(changes.filter((it) => it.kind !== "added").map((it) => it.text).join("\n")).toBe(before);
      expect(changes.filter((it) => it.kind !== "removed").map((it) => it.text).join("\n")).toBe(after);
      changes.forEach((it) => {
        if (it.before !== null) expect(before.split("\n")[it.before - 1]).toBe(it.text);
        if (it.after !== null) expect(after.split("\n")[it.after - 1]).toBe(it.text);
      });
    }
  });

  test("texts without a common line are one change, in bounded time", () => {
    const before = Array.from({ length: 20_000 }, (_, at) => `a${at}`).join("\n");
    const after = Array.from({ length: 20_000 }, (_, at) => `b${at}`).join("\n");
    expect(diffLines(before, after).length).toBe(40_000);
  });

  test("unchanged lines far from changes are left out", () => {
    const lines = Array.from({ length: 20 }, (_, at) => String(at));
    const found = hunks(diffLines(lines.join("\n"), lines.with(10, "x").join("\n")));
    expect(found.map((it) => (it.kind === "gap" ? it.count : "lines"))).toEqual([7, "lines", 6]);
  });
});

test("events are parsed, wherever the stream is cut", () => {
  const stream = 'event: delta\ndata: {"a":\ndata: 1}\n\n: comment\n\nevent: done\r\ndata: {}\r\n\r\n';
  for (let at = 0; at <= stream.length; at += 1) {
    const parser = new EventParser();
    const events = [...parser.push(stream.slice(0, at)), ...parser.push(stream.slice(at))];
    expect(events).toEqual([{ event: "delta", data: '{"a":\n1}' }, { event: "done", data: "{}" }]);
  }
});

describe("snippets", () => {
  const request = { method: "POST", url: "https://api.example.com/v1", headers: [{ name: "authorization", value: "Bearer [REDACTED]", secret: { prefix: "Bearer ", variable: "ANTHROPIC_API_KEY" } }, { name: "x", value: "it's" }], body: { text: "it's $HOME `id`" } };

  test("curl reads the key from the environment, and quotes everything else", () => {
    const command = curl(request);
    expect(command).toContain('-H "authorization: Bearer $ANTHROPIC_API_KEY"');
    expect(command).toContain("-H 'x: it'\\''s'");
    expect(command).toContain("it'\\''s $HOME `id`");
    expect(command).not.toContain("REDACTED");
  });

  test("Python and Rust values are escaped", () => {
    const call = { path: 'a"b.prompty', inputs: { q: 'x"#\n\\', n: null, list: [true] } };
    expect(python(call)).toContain('"a\\"b.prompty"');
    expect(python(call)).toContain('"q": "x\\"#\\n\\\\"');
    expect(python(call)).toContain("None");
    expect(rust(call)).toContain('r##"');
  });
});
