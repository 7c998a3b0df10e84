//! What it takes to read something grows no faster than what is read: prompt files, inputs, templates, threads, answers
//! of providers, and what is said about them.

mod cost;

use std::fmt::Write as _;

use cost::{Row, check};
use serde_json::{Value as Json, json};
use tympan::format::{NoReferences, directive as directives, parse_inputs, prompty};
use tympan::message::Role;
use tympan::response::{Answer, Output};
use tympan::schema::{Property, PropertyKind};
use tympan::source::{SourceFile, Span};
use tympan::spec::{PromptSpec, Secret};
use tympan::template::{CompileOptions, Syntax, Template};
use tympan::thread::{ThreadRoles, parse_thread};
use tympan::turn::{Next, Turn, TurnOptions, TurnTool};
use tympan::wire::{EncodeOptions, Function, Protocol, SseDecoder, StreamDecoder, decode, encode};
use tympan::{Inputs, Message, Prompt, Redactor, RenderOptions, Response, arguments, diagnostic, outcome, signature};

/// A text that is made of numbered pieces.
fn pieces(size: usize, mut piece: impl FnMut(usize) -> String) -> String {
    (0..size).map(|index| piece(index)).collect()
}

/// Reads a `.prompty` file with this front matter and template.
fn prompt_file(front_matter: String, template: String) -> Box<dyn Fn()> {
    let source = SourceFile::new("a.prompty", format!("---\n{front_matter}---\n{template}"));
    Box::new(move || {
        let (document, findings) = prompty::parse_as_far_as_possible(&source, &mut NoReferences);
        // Whoever shows findings looks up all their places.
        let lines: usize =
            findings.iter().filter_map(|found| found.span).map(|at| source.line_column(at.start).line).sum();
        assert!(document.is_some() || !findings.is_empty() || lines > 0);
    })
}

/// Reads a prompt definition, and looks for what is worth knowing about it.
fn definition(text: String) -> Box<dyn Fn()> {
    Box::new(move || match Prompt::from_yaml(&text) {
        Ok(prompt) => drop(prompt.check()),
        Err(error) => {
            let source = error.source_file().expect("it has a source").clone();
            let spans = error.others().iter().filter_map(|other| other.span);
            assert!(spans.map(|span| source.line_column(span.start).line).count() <= error.others().len());
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

/// Compiles a template as a prompt file has it, and follows its inputs.
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

/// Makes requests of messages, for every protocol of conversations.
fn request(messages: Vec<Message>, tools: String) -> Box<dyn Fn()> {
    let file = |provider: &str, api: &str| {
        let model = format!("model: {{id: m, provider: {provider}, apiType: {api}, options: {{cache: auto}}}}\n");
        let source = SourceFile::new("a.prompty", format!("---\n{model}{tools}---\n"));
        let (document, findings) = prompty::parse(&source, &mut NoReferences);
        let document = document.unwrap_or_else(|| panic!("{findings:?}"));
        Prompt::from_document(document.spec, source, document.body.start, Vec::new())
    };
    let prompts = [file("openai", "chat"), file("openai", "responses"), file("anthropic", "chat")];
    Box::new(move || {
        for prompt in &prompts {
            let request = encode(prompt, &messages, &EncodeOptions::default()).expect("it can be encoded");
            assert!(request.body.len() > messages.len());
        }
    })
}

/// A conversation of so many rounds of a call and its result.
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

fn messages(value: &Json) -> Vec<Message> {
    parse_thread(value, ThreadRoles::Any).expect("it is a thread")
}

fn answer(protocol: Protocol, body: String) -> Box<dyn Fn()> {
    Box::new(move || drop(decode(protocol, body.as_bytes())))
}

/// Reads a stream, cut into pieces of so many bytes.
fn stream(protocol: Protocol, body: String, cut: usize) -> Box<dyn Fn()> {
    Box::new(move || {
        let mut decoder = StreamDecoder::new(protocol);
        let mut deltas = Vec::new();
        for chunk in body.as_bytes().chunks(cut) {
            if decoder.push(chunk, &mut deltas).is_err() {
                break;
            }
        }
        drop(decoder.finish());
    })
}

/// Checks the arguments of a call against a schema of JSON.
fn arguments_of(schema: Json, arguments: Json) -> Box<dyn Fn()> {
    let function = Function { name: "f".into(), description: None, parameters: schema, strict: false };
    let options = TurnOptions { tools: vec![TurnTool { function, bindings: Vec::new() }], ..TurnOptions::default() };
    let call = json!({"id": "a", "name": "f", "arguments": arguments.to_string()});
    Box::new(move || {
        let prompt = Prompt::from_spec(PromptSpec::default());
        let begun = vec![Message::text(Role::User, "x")];
        let mut turn = Turn::new(&prompt, &Inputs::new(), begun, options.clone()).expect("it begins");
        assert!(matches!(turn.next(), Next::Call));
        let call = tympan::response::ToolCall {
            id: "a".into(),
            name: "f".into(),
            arguments: call["arguments"].as_str().unwrap_or_default().to_owned(),
        };
        let answer = Answer { tool_calls: vec![call], ..Answer::default() };
        turn.responded(Response { output: Output::Answer(answer), ..Response::default() }).expect("it was asked for");
    })
}

fn finished(outputs: Vec<Property>, value: Json) -> Box<dyn Fn()> {
    let text = value.to_string();
    Box::new(move || {
        let answer = Answer { text: text.clone(), ..Answer::default() };
        let response = Response { output: Output::Answer(answer), ..Response::default() };
        assert!(outcome::finish_as(&outputs, response).is_ok());
    })
}

fn named(size: usize) -> Vec<Property> {
    (0..size).map(|index| Property::new(format!("n{index}"), PropertyKind::String)).collect()
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

const REQUESTS: &[Row] = &[
    Row { name: "calls and results", size: 1_000, work: |n| request(messages(&calls_and_results(n)), String::new()) },
    Row {
        name: "instructions",
        size: 5_000,
        work: |n| request((0..n).map(|_| Message::text(Role::System, "be kind")).collect(), String::new()),
    },
    Row {
        name: "messages of a prompt that is cached",
        size: 500,
        work: |n| {
            let model = "model: {id: m, provider: anthropic, options: {cache: auto}}";
            let body = "user:\nx\n\nassistant:\ny {{ a }}\n\n".repeat(n);
            let source = SourceFile::new("a.prompty", format!("---\n{model}\ninputs: {{a: b}}\n---\n{body}"));
            let (document, _) = prompty::parse(&source, &mut NoReferences);
            let document = document.expect("it is a prompt");
            let prompt = Prompt::from_document(document.spec, source, document.body.start, Vec::new());
            Box::new(move || {
                let rendered = prompt.render_with(&Inputs::new(), &RenderOptions::default()).expect("it renders");
                let messages = prompt.messages(rendered).expect("it has messages");
                assert!(encode(&prompt, &messages, &EncodeOptions::default()).is_ok());
            })
        },
    },
    Row {
        name: "tools and bindings",
        size: 500,
        work: |n| {
            let parameters = pieces(n, |i| format!("    p{i}: {{kind: string}}\n"));
            let bindings = pieces(n, |i| format!("    q{i}: {{input: x}}\n"));
            let tools =
                format!("tools:\n- name: t\n  kind: function\n  parameters:\n{parameters}  bindings:\n{bindings}");
            request(vec![Message::text(Role::User, "x")], tools)
        },
    },
];

#[test]
fn requests() {
    check(REQUESTS);
}

fn chat_call(index: usize, number: u64) -> String {
    let call = json!({"index": number, "id": format!("c{index}"), "function": {"name": "f", "arguments": "{}"}});
    format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
}

const ANSWERS: &[Row] = &[
    Row {
        name: "a stream of words",
        size: 5_000,
        work: |n| {
            stream(
                Protocol::OpenAiChat,
                "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n".repeat(n),
                1 << 20,
            )
        },
    },
    Row {
        name: "a stream byte by byte",
        size: 500,
        work: |n| {
            stream(Protocol::OpenAiChat, "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\n".repeat(n), 1)
        },
    },
    Row {
        name: "a long event byte by byte",
        size: 100_000,
        work: |n| {
            stream(
                Protocol::AnthropicMessages,
                format!("data: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n", "a".repeat(n)),
                1,
            )
        },
    },
    Row {
        name: "an event of many lines",
        size: 20_000,
        work: |n| {
            let text = format!("{}\n", "data: x\n".repeat(n));
            Box::new(move || {
                let mut decoder = SseDecoder::new(1 << 30);
                for chunk in text.as_bytes().chunks(7) {
                    decoder.push(chunk, |_| Ok(())).expect("it is an event");
                }
            })
        },
    },
    Row { name: "comments", size: 50_000, work: |n| stream(Protocol::OpenAiChat, ":\n".repeat(n), 3) },
    Row {
        name: "calls with the same number",
        size: 60,
        work: |n| stream(Protocol::OpenAiChat, pieces(n, |i| chat_call(i, 0)), 1 << 20),
    },
    Row {
        name: "calls with great numbers",
        size: 2_000,
        work: |n| stream(Protocol::OpenAiChat, pieces(n, |i| chat_call(i, u64::MAX - i as u64)), 1 << 20),
    },
    Row {
        name: "one call in many pieces",
        size: 5_000,
        work: |n| {
            let piece = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"x\"}}]}}]}\n\n";
            stream(Protocol::OpenAiChat, piece.repeat(n), 1 << 20)
        },
    },
    Row {
        name: "a whole answer with many calls",
        size: 5_000,
        work: |n| {
            let calls: Json =
                (0..n).map(|i| json!({"id": i.to_string(), "function": {"name": "f", "arguments": "{}"}})).collect();
            answer(Protocol::OpenAiChat, json!({"choices": [{"message": {"tool_calls": calls}}]}).to_string())
        },
    },
    Row {
        name: "a whole answer with many blocks",
        size: 5_000,
        work: |n| {
            let blocks: Json = (0..n).map(|_| json!({"type": "text", "text": "a"})).collect();
            answer(Protocol::AnthropicMessages, json!({"content": blocks}).to_string())
        },
    },
    Row {
        name: "a whole answer with many items",
        size: 5_000,
        work: |n| {
            let item = json!({"type": "message", "content": [{"type": "output_text", "text": "a"}]});
            let output: Json = (0..n).map(|_| item.clone()).collect();
            answer(Protocol::OpenAiResponses, json!({"output": output}).to_string())
        },
    },
    Row {
        name: "halves of characters",
        size: 5_000,
        work: |n| {
            let text = "\\ud83d".repeat(n);
            stream(
                Protocol::OpenAiChat,
                format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"),
                1 << 20,
            )
        },
    },
];

#[test]
fn answers() {
    check(ANSWERS);
}

fn read_arguments(text: String) -> Box<dyn Fn()> {
    Box::new(move || drop(arguments::parse(&text)))
}

const ARGUMENTS: &[Row] = &[
    Row { name: "commas", size: 20_000, work: |n| read_arguments(format!("{{\"a\": [{}]}}", ", ".repeat(n))) },
    Row {
        name: "commas and spaces",
        size: 20_000,
        work: |n| read_arguments(format!("{{\"a\": [1,{}]}}", " ".repeat(n))),
    },
    Row { name: "braces", size: 50_000, work: |n| read_arguments("{".repeat(n)) },
    Row { name: "quotes", size: 50_000, work: |n| read_arguments("{\"\\\"".repeat(n)) },
    Row { name: "fences", size: 50_000, work: |n| read_arguments("```json\n".repeat(n)) },
    Row {
        name: "a list and a long enumeration",
        size: 500,
        work: |n| {
            let allowed: Json = (0..n).map(|i| json!(format!("a{i}"))).collect();
            let given: Json = (0..n).map(|_| json!("b")).collect();
            let schema = json!({"type": "object", "properties": {"a": {"items": {"enum": allowed}}}});
            arguments_of(schema, json!({"a": given}))
        },
    },
    Row {
        name: "objects and many required members",
        size: 500,
        work: |n| {
            let required: Json = (0..n).map(|i| json!(format!("a{i}"))).collect();
            let given: Json = (0..n).map(|_| json!({})).collect();
            let schema = json!({"properties": {"a": {"items": {"anyOf": [{"required": required}, {}]}}}});
            arguments_of(schema, json!({"a": given}))
        },
    },
    Row {
        name: "a result with members that nothing declares",
        size: 2_000,
        work: |n| finished(named(n), (0..n).map(|i| (format!("m{i}"), json!(1))).collect()),
    },
    Row {
        name: "a result and a long enumeration",
        size: 500,
        work: |n| {
            let allowed = (0..n).map(|i| json!(format!("a{i}"))).collect();
            let items = Property { enum_values: Some(allowed), ..Property::new("", PropertyKind::String) };
            let list = Property { items: Some(Box::new(items)), ..Property::new("a", PropertyKind::Array) };
            finished(vec![list], json!({"a": (0..n).map(|_| "b").collect::<Vec<_>>()}))
        },
    },
];

#[test]
fn arguments_and_results() {
    check(ARGUMENTS);
}

const OTHERS: &[Row] = &[
    Row {
        name: "guesses among many names",
        size: 500,
        work: |n| {
            let names: Vec<_> = (0..n).map(|index| format!("name_{index}")).collect();
            Box::new(move || {
                for name in &names {
                    diagnostic::guess_name(&name.replace('n', "m"), names.iter().map(String::as_str));
                }
            })
        },
    },
    Row {
        name: "guesses among long names",
        size: 2_000,
        work: |n| {
            let (one, other) = ("a".repeat(n), "b".repeat(n));
            Box::new(move || assert_eq!(diagnostic::guess(&one, [other.as_str(); 20]), None))
        },
    },
    Row {
        name: "places on one line",
        size: 10_000,
        work: |n| {
            let source = SourceFile::new("x", "é".repeat(n));
            Box::new(move || {
                let columns: usize = (0..source.text().len()).map(|at| source.line_column(at).column).sum();
                assert!(columns > 0);
            })
        },
    },
    Row {
        name: "places on many lines",
        size: 10_000,
        work: |n| {
            let source = SourceFile::new("x", "\n".repeat(n));
            Box::new(move || {
                let lines: usize = (0..source.text().len()).map(|at| source.line_column(at).line).sum();
                assert!(lines > 0);
            })
        },
    },
    Row {
        name: "a definition's hash",
        size: 2_000,
        work: |n| {
            let metadata = (0..n).map(|index| (format!("k{index}"), json!([index]))).collect();
            let spec = PromptSpec { metadata, ..PromptSpec::default() };
            Box::new(move || assert_eq!(Prompt::from_spec(spec.clone()).definition_hash().len(), 64))
        },
    },
    Row {
        name: "redaction of a long text",
        size: 20_000,
        work: |n| {
            let mut redactor = Redactor::new(true);
            redactor.register("a-long-secret");
            let text = "sk-aaaa eyJhb.x Bearer key=a-long-secre ".repeat(n / 10);
            Box::new(move || assert!(!redactor.text(&text).is_empty()))
        },
    },
    Row {
        name: "redaction of text without spaces",
        size: 20_000,
        work: |n| {
            let redactor = Redactor::new(true);
            let texts = ["a", "sk-", "eyJ", "-----BEGIN ", "://", "@", "=", "AKIA"].map(|piece| piece.repeat(n / 10));
            Box::new(move || assert!(texts.iter().all(|text| !redactor.text(text).is_empty())))
        },
    },
    Row {
        name: "redaction of many secrets",
        size: 200,
        work: |n| {
            let mut redactor = Redactor::new(false);
            let secrets: Vec<_> = (0..n).map(|index| Secret::new(format!("secret-number-{index}"))).collect();
            redactor.register_all(&secrets);
            let text = pieces(n, |index| format!("secret-number-{index} "));
            Box::new(move || assert!(!redactor.text(&text).contains("number")))
        },
    },
    Row {
        name: "redaction of JSON in JSON",
        size: 5_000,
        work: |n| {
            let redactor = Redactor::new(true);
            let value = json!({"a": json!({"b": "{[\"\\".repeat(n)}).to_string(), "c": vec![json!({"token": "x"}); n]});
            Box::new(move || assert!(redactor.json(&value).is_object()))
        },
    },
    Row {
        name: "many findings with places",
        size: 2_000,
        work: |n| {
            let source = SourceFile::new("x", "a".repeat(n * 10));
            Box::new(move || {
                let spans = (0..source.text().len() / 10).map(|index| Span::new(index * 10, index * 10 + 1));
                let mut text = String::new();
                for span in spans {
                    let place = source.line_column(span.start);
                    let _ = write!(text, "{}:{} ", place.line, place.column);
                }
                assert!(!text.is_empty());
            })
        },
    },
];

#[test]
fn what_is_said_about_it() {
    check(OTHERS);
}
