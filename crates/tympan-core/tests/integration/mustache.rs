//! The Mustache syntax: the cases in `fixtures/mustache`, and the origins of the rendered text.

use serde::Deserialize;
use serde_json::{Value, json};
use tympan::template::{CompileOptions, Syntax, Template};
use tympan::text::source::SourceFile;
use tympan::{Error, JsonMap, Result};

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    template: String,
    inputs: JsonMap,
    expected: Option<String>,
    error: Option<Failure>,
    #[serde(default)]
    lenient: bool,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Failure {
    code: String,
    line: usize,
    column: usize,
}

impl Failure {
    fn new(error: &Error, template: &str) -> Option<Self> {
        let place = SourceFile::new("template", template).line_column(error.span()?.start);
        Some(Self { code: error.code().to_owned(), line: place.line, column: place.column })
    }
}

fn compile(source: &str, options: CompileOptions<'_>) -> Result<Template> {
    Template::compile(source, CompileOptions { syntax: Syntax::Mustache, ..options })
}

impl cases::Case for Case {
    fn title(&self) -> (&str, &str) {
        (&self.name, &self.template)
    }

    fn complaint(&self) -> Option<String> {
        let template = compile(&self.template, CompileOptions::default());
        let outcome = template.and_then(|template| template.render_json(&self.inputs, self.lenient));
        match (&self.expected, &self.error, outcome) {
            (Some(expected), None, Ok(text)) if expected == text.as_str() => None,
            (None, Some(failure), Err(error)) if Failure::new(&error, &self.template).as_ref() == Some(failure) => {
                error.help().is_none().then(|| format!("no help: {error}"))
            }
            (_, _, Ok(text)) => Some(format!("rendered {:?}", text.as_str())),
            (_, _, Err(error)) => Some(format!("failed: {error:?}, at {:?}", Failure::new(&error, &self.template))),
        }
    }
}

#[test]
fn fixtures() {
    cases::run::<Case>("mustache", 200);
}

/// Renders a template into pieces, each with the names of the inputs that wrote it.
fn pieces(source: &str, inputs: &Value) -> Vec<(String, Vec<String>)> {
    let template = compile(source, CompileOptions::default()).expect("it compiles");
    let text = template.render_json(inputs.as_object().expect("inputs are an object"), true).expect("it renders");
    let names: Vec<_> = template.inputs().map(|(name, _)| name.to_owned()).collect();
    let writers = |origin: tympan::text::origin::Origin| {
        let writers = names.iter().enumerate().filter(|(index, _)| origin.contains(*index));
        writers.map(|(_, name)| name.clone()).collect()
    };
    text.pieces().map(|(piece, origin)| (piece.to_owned(), writers(origin))).collect()
}

#[track_caller]
fn assert_pieces(source: &str, inputs: &Value, expected: &[(&str, &[&str])]) {
    let pieces = pieces(source, inputs);
    let pieces: Vec<(&str, Vec<&str>)> =
        pieces.iter().map(|(text, names)| (&**text, names.iter().map(|name| &**name).collect())).collect();
    let expected: Vec<(&str, Vec<&str>)> = expected.iter().map(|(text, names)| (*text, names.to_vec())).collect();
    assert_eq!(pieces, expected, "{source}");
}

#[test]
fn text_of_an_input_names_that_input() {
    let inputs = json!({"q": "why", "user": {"name": "Ada", "tags": ["x", "y"]}, "docs": [{"id": 7, "q": "inner"}]});
    assert_pieces("Q: {{q}}!", &inputs, &[("Q: ", &[]), ("why", &["q"]), ("!", &[])]);
    assert_pieces("{{{q}}}{{&q}}", &inputs, &[("why", &["q"]), ("why", &["q"])]);
    assert_pieces("{{user.name}}", &inputs, &[("Ada", &["user"])]);
    assert_pieces("{{#user}}<{{name}}>{{/user}}", &inputs, &[("<", &[]), ("Ada", &["user"]), (">", &[])]);
    assert_pieces(
        "{{#user.tags}}{{.}},{{/user.tags}}",
        &inputs,
        &[("x", &["user"]), (",", &[]), ("y", &["user"]), (",", &[])],
    );
    assert_pieces(
        "{{#docs}}{{id}} {{q}} {{user.name}}{{/docs}}",
        &inputs,
        &[("7", &["docs"]), (" ", &[]), ("inner", &["docs"]), (" ", &[]), ("Ada", &["user"])],
    );
    assert_pieces(
        "{{#docs}}{{#user}}{{#tags}}{{.}}{{id}}{{/tags}}{{/user}}{{/docs}}",
        &inputs,
        &[("x", &["user"]), ("7", &["docs"]), ("y", &["user"]), ("7", &["docs"])],
    );
    assert_pieces("{{docs}}", &inputs, &[("[{\"id\": 7, \"q\": \"inner\"}]", &["docs"])]);
}

#[test]
fn sections_do_not_taint_what_is_in_them() {
    let inputs = json!({"q": "why", "none": null});
    assert_pieces("{{#q}}author{{/q}}{{^none}} again{{/none}}", &inputs, &[("author again", &[])]);
}

#[test]
fn an_input_that_writes_nothing_leaves_a_mark() {
    let inputs = json!({"empty": "", "none": null, "map": {}});
    assert_pieces(
        "a{{empty}}b{{none}}c{{map.x}}d{{missing}}",
        &inputs,
        &[
            ("a", &[]),
            ("", &["empty"]),
            ("b", &[]),
            ("", &["none"]),
            ("c", &[]),
            ("", &["map"]),
            ("d", &[]),
            ("", &["missing"]),
        ],
    );
}

#[test]
fn protected_lines_are_never_joined_with_others() {
    let source = "{{#a}}\nsystem:\n{{/a}}\n{{! x }}\nuser:\n  {{#q}}\n{{q}}\n  {{/q}}\nassistant:\n{{! y }}";
    let lines = ["system:", "user:", "assistant:"];
    let protected = lines.map(|line| source.find(line).map_or(0..0, |at| at..at + line.len()));
    let options = CompileOptions { protected: &protected, drop_last_newline: true, ..CompileOptions::default() };
    let inputs = json!({"a": true, "q": "hi"});
    let template = compile(source, options).expect("it compiles");
    let text = template.render_json(inputs.as_object().expect("an object"), false).expect("it renders");
    assert_eq!(text.as_str(), "system:\nuser:\nhi\nassistant:\n");
}

#[test]
fn a_long_render_ends_in_an_error() {
    let template = compile("{{#a}}{{#a}}{{#a}}{{#a}}x{{/a}}{{/a}}{{/a}}{{/a}}", CompileOptions::default());
    let inputs = json!({"a": vec![1; 1000]});
    let outcome = template.and_then(|template| template.render_json(inputs.as_object().expect("an object"), false));
    assert_eq!(outcome.expect_err("it is too long").code(), "limit_exceeded");
}

#[test]
fn errors_say_what_to_do() {
    let message = |source: &str| {
        let outcome = compile(source, CompileOptions::default()).and_then(|template| {
            template.render_json(&json!({"question": 1}).as_object().cloned().unwrap_or_default(), false)
        });
        let error = outcome.expect_err("it is wrong");
        format!("{}; {}", error.message(), error.help().unwrap_or_default())
    };
    let sources = [
        "{{x",
        "{{{x}}",
        "{{#a}}",
        "{{#a}}{{/b}}",
        "{{/a}}",
        "{{}}",
        "{{a | upper}}",
        "{{a..b}}",
        "{{.}}",
        "{{=<%=}}",
        "{{> header}}",
        "{{question}}{{questoin}}",
        "{{question.text}}",
    ];
    let messages: Vec<_> = sources.iter().map(|source| format!("{source}\n    {}", message(source))).collect();
    insta::assert_snapshot!(messages.join("\n"));
}
