//! The cost of reading prompt files, inputs, templates and threads grows no faster than their size.

use crate::measure::{Row, check};
use serde_json::{Value as Json, json};
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::directive::signature;
use tympan::format::{NoReferences, directive as directives, parse_inputs, prompty};
use tympan::spec::PromptSpec;
use tympan::template::{CompileOptions, Syntax, Template};
use tympan::text::source::SourceFile;
use tympan::{Inputs, Prompt};

/// Concatenates numbered pieces.
fn pieces(size: usize, piece: impl FnMut(usize) -> String) -> String {
    (0..size).map(piece).collect()
}

/// Reads a `.prompty` file with this front matter and template.
fn prompt_file(front_matter: String, template: String) -> Box<dyn Fn()> {
    let source = SourceFile::new("a.prompty", format!("---\n{front_matter}---\n{template}"));
    Box::new(move || {
        let (document, findings) = prompty::parse_as_far_as_possible(&source, &mut NoReferences);
        // Look up the positions of all findings, as any program that displays them does.
        let lines: usize =
            findings.iter().filter_map(|found| found.span).map(|at| source.line_column(at.start).line).sum();
        assert!(document.is_some() || !findings.is_empty() || lines > 0);
    })
}

/// Reads and checks a prompt definition.
fn definition(text: String) -> Box<dyn Fn()> {
    Box::new(move || match Prompt::from_yaml(&text) {
        Ok(prompt) => drop(prompt.check()),
        Err(error) => {
            let source = error.source_file().expect("it has a source").clone();
            let spans = error.others().iter().filter_map(|other| other.span);
            let lines: usize = spans.map(|span| source.line_column(span.start).line).sum();
            assert!(lines > 0 || error.others().is_empty());
        }
    })
}

fn directive(metadata: String, steps: String) -> Box<dyn Fn()> {
    let source =
        SourceFile::new("a.md", format!("```xml\n<directive name=\"a\">{metadata}</directive>\n```\n{steps}\n"));
    Box::new(move || {
        let (found, findings) = directives::parse(&source);
        let text = found.map(|found| found.prompt_text(&source, directives::INSTRUCTION)).unwrap_or_default();
        assert!(!text.is_empty() || !findings.is_empty());
    })
}

fn yaml_directive(metadata: String) -> Box<dyn Fn()> {
    let source = SourceFile::new("a.md", format!("---\n{metadata}---\nDo it.\n"));
    Box::new(move || drop(directives::parse(&source)))
}

/// Compiles a template as in a prompt file and traces its inputs.
fn template(text: String) -> Box<dyn Fn()> {
    Box::new(move || {
        let spec = PromptSpec { instructions: text.clone(), ..PromptSpec::default() };
        let prompt = Prompt::from_spec(spec);
        assert!(prompt.check().is_ok() || prompt.template().is_err());
    })
}

fn mustache(text: String) -> Box<dyn Fn()> {
    Box::new(move || {
        let options = CompileOptions { syntax: Syntax::Mustache, ..CompileOptions::default() };
        drop(Template::compile(&text, options));
    })
}

fn inputs(text: String) -> Box<dyn Fn()> {
    let source = SourceFile::new("a.yaml", text);
    Box::new(move || drop(parse_inputs(&source)))
}

fn thread(value: Json) -> Box<dyn Fn()> {
    Box::new(move || drop(parse_thread(&value, ThreadRoles::Any).map(|messages| messages.len())))
}

/// Returns a conversation with this many rounds of a tool call and its result.
fn calls_and_results(size: usize) -> Json {
    let round = |index: usize| {
        let call = json!({"id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
        [
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "content": "ok", "tool_call_id": format!("c{index}")}),
        ]
    };
    (0..size).flat_map(round).collect()
}

const FRONT_MATTER: &[Row] = &[
    Row {
        name: "many unknown keys",
        size: 2_000,
        work: |n| prompt_file(pieces(n, |i| format!("k{i}: {i}\n")), String::new()),
    },
    Row {
        name: "many keys that are nearly known",
        size: 2_000,
        work: |n| {
            let letter = |i: usize| char::from_u32(0x4e00 + i as u32).unwrap_or('x');
            prompt_file(pieces(n, |i| format!("{}nputs: 1\n", letter(i))), String::new())
        },
    },
    Row {
        name: "a key in every case",
        size: 500,
        work: |n| {
            let twin = |i: usize| {
                let letters = "displayName".chars().enumerate();
                letters
                    .map(|(at, c)| if i >> at & 1 == 1 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                    .collect::<String>()
            };
            prompt_file(format!("displayName: a\n{}", pieces(n, |i| format!("{}: 1\n", twin(i)))), String::new())
        },
    },
    Row {
        name: "many inputs in a list",
        size: 2_000,
        work: |n| prompt_file(format!("inputs:\n{}", pieces(n, |i| format!("- name: n{i}\n"))), String::new()),
    },
    Row {
        name: "many inputs twice",
        size: 2_000,
        work: |n| prompt_file(format!("inputs:\n{}", pieces(n, |i| format!("- name: n{}\n", i / 2))), String::new()),
    },
    Row {
        name: "many samples",
        size: 2_000,
        work: |n| {
            let inputs = pieces(n, |i| format!("  n{i}: 1\n"));
            prompt_file(format!("inputs:\n{inputs}sample:\n{}", pieces(n, |i| format!("  n{i}: 1\n"))), String::new())
        },
    },
    Row {
        name: "many required names",
        size: 2_000,
        work: |n| {
            let properties = pieces(n, |i| format!("    n{i}: {{type: string}}\n"));
            let required = pieces(n, |i| format!("n{i}, "));
            prompt_file(
                format!("inputs:\n  type: object\n  properties:\n{properties}  required: [{required}]\n"),
                String::new(),
            )
        },
    },
    Row {
        name: "many tools",
        size: 1_000,
        work: |n| {
            prompt_file(
                format!("tools:\n{}", pieces(n, |i| format!("- {{name: t{i}, kind: function}}\n"))),
                String::new(),
            )
        },
    },
    Row {
        name: "references that never end",
        size: 5_000,
        work: |n| prompt_file(format!("description: \"{}\"\n", "${env:".repeat(n)), String::new()),
    },
    Row {
        name: "references that never end, with braces",
        size: 5_000,
        work: |n| prompt_file(format!("description: \"{}\"\n", "${env:{A".repeat(n)), String::new()),
    },
    Row {
        name: "references in references",
        size: 5_000,
        work: |n| prompt_file(format!("description: \"{}{}\"\n", "${env:A:".repeat(n), "}".repeat(n)), String::new()),
    },
    Row {
        name: "references that fail",
        size: 2_000,
        work: |n| prompt_file(format!("description: \"{}\"\n", "${env:A} ${file:b}".repeat(n)), String::new()),
    },
    Row {
        name: "references that fail, written otherwise",
        size: 2_000,
        work: |n| prompt_file(format!("description: \"{}\"\n", "$\\x7benv:A}".repeat(n)), String::new()),
    },
    Row {
        name: "references of no kind",
        size: 2_000,
        work: |n| prompt_file(format!("description: \"{}\"\n", "${evn:A}".repeat(n)), String::new()),
    },
    Row {
        name: "aliases",
        size: 2_000,
        work: |n| prompt_file(format!("a: &a {}\nb: [{}]\n", "x".repeat(2 * n), "*a, ".repeat(n)), String::new()),
    },
    Row {
        name: "anchors in anchors",
        size: 2_000,
        work: |n| prompt_file(format!("a: [{}]\n", pieces(n, |i| format!("&a{i} [&b{i} [&c{i} x]], "))), String::new()),
    },
    Row {
        name: "a flow sequence",
        size: 10_000,
        work: |n| prompt_file(format!("a: [{}]\n", "x, ".repeat(n)), String::new()),
    },
    Row {
        name: "a flow sequence without an end",
        size: 10_000,
        work: |n| prompt_file(format!("a: [{}\n", "x, ".repeat(n)), String::new()),
    },
    Row {
        name: "a text in quotes with escapes",
        size: 50_000,
        work: |n| prompt_file(format!("a: \"{}\"\n", "\\n".repeat(n)), String::new()),
    },
    Row {
        name: "a text in quotes over many lines",
        size: 10_000,
        work: |n| prompt_file(format!("a: \"{}\"\n", "x\n  ".repeat(n)), String::new()),
    },
    Row {
        name: "a block of text",
        size: 10_000,
        work: |n| prompt_file(format!("a: |\n{}", "  x\n".repeat(n)), String::new()),
    },
    Row {
        name: "a folded text",
        size: 10_000,
        work: |n| prompt_file(format!("a: >\n{}", "  x\n\n".repeat(n)), String::new()),
    },
    Row { name: "a long key", size: 50_000, work: |n| prompt_file(format!("{}: 1\n", "k".repeat(n)), String::new()) },
    Row {
        name: "many comments",
        size: 20_000,
        work: |n| prompt_file(format!("{}a: 1\n", "# x\n".repeat(n)), String::new()),
    },
    Row { name: "many duplicate keys", size: 2_000, work: |n| prompt_file("a: 1\n".repeat(n), String::new()) },
];

#[test]
fn front_matter() {
    check(FRONT_MATTER);
}

const DEFINITIONS: &[Row] = &[
    Row {
        name: "many variables",
        size: 1_000,
        work: |n| {
            let variables = pieces(n, |i| format!("  n{i}: {{type: string, trusted: false}}\n"));
            let body = pieces(n, |i| format!("{{{{ n{i} }}}}"));
            definition(format!("name: a\nrole: system\nbody: \"{body}\"\nvariables:\n{variables}"))
        },
    },
    Row {
        name: "many variables that nothing declares",
        size: 500,
        work: |n| {
            let variables = pieces(n, |i| format!("  name{i}: {{type: string, trusted: false}}\n"));
            let body = pieces(n, |i| format!("{{{{ nmae{i} }}}}"));
            definition(format!("name: a\nrole: system\nbody: \"{body}\"\nvariables:\n{variables}"))
        },
    },
    Row {
        name: "long names that nothing declares",
        size: 200,
        work: |n| {
            let long = "n".repeat(20 * n);
            let variables = pieces(40, |i| format!("  {long}{i}: {{type: string, trusted: false}}\n"));
            let body = pieces(40, |i| format!("{{{{ m{long}{i} }}}}"));
            definition(format!("name: a\nrole: system\nbody: \"{body}\"\nvariables:\n{variables}"))
        },
    },
    Row {
        name: "many mistakes in a block",
        size: 500,
        work: |n| definition(format!("name: a\nrole: user\nbody: |\n{}", pieces(n, |i| format!("  {{{{ u{i} }}}}\n")))),
    },
    Row {
        name: "many mistakes in a folded text",
        size: 500,
        work: |n| definition(format!("name: a\nrole: user\nbody: >\n{}", pieces(n, |i| format!("  {{{{ u{i} }}}}\n")))),
    },
    Row {
        name: "many variants",
        size: 500,
        work: |n| {
            let variants = pieces(n, |i| format!("  v{i}: {{body: 'x'}}\n"));
            let variables = pieces(20, |i| format!("  n{i}: {{type: string, trusted: false}}\n"));
            let body = pieces(20, |i| format!("{{{{ n{i} }}}}"));
            definition(format!("name: a\nrole: user\nbody: '{body}'\nvariables:\n{variables}variants:\n{variants}"))
        },
    },
    Row {
        name: "many unknown keys",
        size: 2_000,
        work: |n| definition(format!("name: a\nrole: user\nbody: x\n{}", pieces(n, |i| format!("k{i}: 1\n")))),
    },
    Row {
        name: "unknown keys below a long one",
        size: 1_000,
        work: |n| {
            let keys = pieces(n, |i| format!("    k{i}: 1\n"));
            definition(format!("name: a\nrole: user\nbody: x\nvariables:\n  {}:\n{keys}", "k".repeat(20 * n)))
        },
    },
];

#[test]
fn definitions() {
    check(DEFINITIONS);
}

const DIRECTIVES: &[Row] = &[
    Row {
        name: "many inputs, and references to none of them",
        size: 500,
        work: |n| {
            let inputs = pieces(n, |i| format!("<input name=\"n{i}\" type=\"string\">x</input>"));
            directive(format!("<inputs>{inputs}</inputs>"), pieces(n, |i| format!("{{input:m{i}}}")))
        },
    },
    Row {
        name: "many outputs",
        size: 500,
        work: |n| {
            let outputs = pieces(n, |i| format!("<output name=\"n{i}\">x</output>"));
            directive(format!("<outputs>{outputs}</outputs>"), pieces(n, |i| format!("n{i} ")))
        },
    },
    Row {
        name: "many unknown elements",
        size: 500,
        work: |n| directive(pieces(n, |i| format!("<e{i}/>")), "x".to_owned()),
    },
    Row { name: "many opaque elements", size: 500, work: |n| directive("<raw>a < b</raw>".repeat(n), "x".to_owned()) },
    Row {
        name: "many fences",
        size: 5_000,
        work: |n| directive(String::new(), "```xml\n<directive>\n```\n".repeat(n)),
    },
    Row { name: "references that never end", size: 10_000, work: |n| directive(String::new(), "{input:a:".repeat(n)) },
    Row {
        name: "deep metadata in YAML",
        size: 100_000,
        work: |n| yaml_directive(format!("name: a\nx: {}\"{}\"{}\n", "{a: ".repeat(50), "x".repeat(n), "}".repeat(50))),
    },
    Row {
        name: "many lines before the metadata",
        size: 5_000,
        work: |n| {
            let source =
                SourceFile::new("a.md", format!("{}```xml\n<directive name=\"a\"/>\n```\nx\n", "# a\nb\n".repeat(n)));
            Box::new(move || drop(tympan::directive::load(source.clone(), "x")))
        },
    },
    Row {
        name: "many signatures",
        size: 5_000,
        work: |n| {
            let text = format!("{}# a\n", "<!-- rye:signed:2026-01-01T00:00:00Z:a:b:c -->\n".repeat(n));
            Box::new(move || drop(signature::verify(&text, &[])))
        },
    },
];

#[test]
fn directives_and_signatures() {
    check(DIRECTIVES);
}

const TEMPLATES: &[Row] = &[
    Row { name: "distinct variables", size: 2_000, work: |n| template(pieces(n, |i| format!("{{{{ v{i} }}}}"))) },
    Row { name: "one variable", size: 5_000, work: |n| template("{{ v }}".repeat(n)) },
    Row {
        name: "assignments",
        size: 1_000,
        work: |n| template(pieces(n, |i| format!("{{% set v{i} = v{} %}}{{{{ v{i} }}}}", i / 2))),
    },
    Row {
        name: "assignments in branches",
        size: 500,
        work: |n| template(pieces(n, |i| format!("{{% if c %}}{{% set v = v ~ w{i} %}}{{% endif %}}"))),
    },
    Row {
        name: "macros",
        size: 500,
        work: |n| {
            template(pieces(n, |i| format!("{{% macro m{i}(a) %}}{{{{ a }}}}{{% endmacro %}}{{{{ m{i}(x{i}) }}}}")))
        },
    },
    Row {
        name: "macros that call each other",
        size: 500,
        work: |n| {
            template(pieces(n, |i| format!("{{% macro m{}() %}}{{{{ m{i}() }}}}{{{{ x{i} }}}}{{% endmacro %}}", i + 1)))
        },
    },
    Row {
        name: "macros that capture",
        size: 500,
        work: |n| {
            let outer = pieces(n, |i| format!("{{% set v{i} = {i} %}}"));
            let inner = pieces(n, |i| format!("{{{{ v{i} }}}}"));
            template(format!(
                "{{% macro a() %}}{outer}{{% macro b() %}}{inner}{{% endmacro %}}{{{{ b() }}}}{{% endmacro %}}{{{{ a() }}}}"
            ))
        },
    },
    Row {
        name: "loops",
        size: 500,
        work: |n| {
            template(pieces(n, |i| {
                format!("{{% for x in xs %}}{{% set y{i} = x %}}{{{{ loop.index }}}}{{% endfor %}}")
            }))
        },
    },
    Row {
        name: "namespaces",
        size: 500,
        work: |n| {
            template(format!(
                "{{% set ns = namespace() %}}{}",
                pieces(n, |i| format!("{{% set ns.a = ns.a ~ v{i} %}}{{{{ ns.a }}}}"))
            ))
        },
    },
    Row {
        name: "a value of many inputs that is read often",
        size: 1_000,
        work: |n| {
            let all = pieces(64, |i| format!("a{i} ~ "));
            let steps = pieces(8, |i| format!("{{% set s{} = s{i} %}}", i + 1));
            template(format!("{{% set s0 = {all}'' %}}{steps}{}", "{{ s8 }}".repeat(n)))
        },
    },
    Row { name: "comments", size: 10_000, work: |n| template("{# x #}\n".repeat(n)) },
    Row { name: "comments that never end", size: 20_000, work: |n| template("{#".repeat(n)) },
    Row { name: "blocks that never end", size: 20_000, work: |n| template("{% if x %}".repeat(n)) },
    Row { name: "raw text", size: 5_000, work: |n| template("{% raw %}{{{% endraw %}".repeat(n)) },
    Row { name: "role markers", size: 5_000, work: |n| template("user:\nx\n\n".repeat(n)) },
    Row {
        name: "role markers and white space control",
        size: 2_000,
        work: |n| template("user:\n{%- if a -%}\n\nassistant:\n{%- endif -%}\n\n".repeat(n)),
    },
    Row { name: "what is nearly a role marker", size: 5_000, work: |n| template("  user[a=1, b:\n".repeat(n)) },
    Row { name: "lists", size: 5_000, work: |n| template(format!("{{{{ [{}] }}}}", "x, ".repeat(n))) },
    Row {
        name: "maps",
        size: 2_000,
        work: |n| template(format!("{{{{ {{{}}} }}}}", pieces(n, |i| format!("'k{i}': x{i}, ")))),
    },
    Row {
        name: "arguments",
        size: 2_000,
        work: |n| template(format!("{{{{ f({}) }}}}", pieces(n, |i| format!("k{i}=x{i}, ")))),
    },
    Row { name: "line ends", size: 100_000, work: |n| template("\r\n".repeat(n)) },
    Row { name: "a long line", size: 20_000, work: |n| template("{{ a }} ".repeat(n)) },
];

#[test]
fn templates() {
    check(TEMPLATES);
}

const MUSTACHE: &[Row] = &[
    Row { name: "distinct variables", size: 5_000, work: |n| mustache(pieces(n, |i| format!("{{{{v{i}}}}}"))) },
    Row { name: "sections", size: 5_000, work: |n| mustache("{{#a}}{{b.c}}{{/a}}\n".repeat(n)) },
    Row { name: "tags that never end", size: 50_000, work: |n| mustache("{{#".repeat(n)) },
];

#[test]
fn mustache_templates() {
    check(MUSTACHE);
}

const INPUTS: &[Row] = &[
    Row { name: "JSON", size: 20_000, work: |n| inputs(format!("{{\"a\": [{}1]}}", "1, ".repeat(n))) },
    Row { name: "JSON that is none", size: 20_000, work: |n| inputs(format!("{{\"a\": [{}", "1, ".repeat(n))) },
    Row { name: "YAML", size: 10_000, work: |n| inputs(pieces(n, |i| format!("k{i}: {i}\n"))) },
    Row { name: "deep YAML", size: 10_000, work: |n| inputs("- ".repeat(n)) },
    Row { name: "flow YAML", size: 10_000, work: |n| inputs("[".repeat(n)) },
    Row { name: "a thread of calls and results", size: 2_000, work: |n| thread(calls_and_results(n)) },
    Row {
        name: "a directive's inputs",
        size: 500,
        work: |n| {
            let declared = pieces(n, |i| format!("<input name=\"n{i}\" type=\"string\">x</input>"));
            let text = format!("```xml\n<directive name=\"a\"><inputs>{declared}</inputs></directive>\n```\nx\n");
            let prompt = tympan::directive::load(SourceFile::new("a.md", text), "x").expect("it is a directive");
            let given: Inputs = (0..n).map(|index| (format!("n{index}"), json!("x"))).collect();
            Box::new(move || assert!(prompt.validate_inputs(&given).is_ok() && prompt.render(&given).is_ok()))
        },
    },
];

#[test]
fn inputs_and_threads() {
    check(INPUTS);
}
