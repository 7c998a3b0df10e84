//! Parses `.prompty` files: YAML front matter followed by a template.
//!
//! Older versions of the format are supported too. Keys that have moved are converted, with a warning that shows the
//! new spelling.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::fields::{Fields, text};
use super::frontmatter::split;
use super::model::read_model;
use super::outline::Outline;
use super::property::{infer, read_properties, warn_misspelt};
use super::reference::resolve_tree;
use super::report::{Report, error, invalid};
use super::template::read_template;
use super::test_file::TESTS;
use super::tool::read_tools;
use super::yaml::{Entry, Node, Value, into_json_map, parse as parse_yaml};
use super::{Document, Resolve};
use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::json::JsonMap;
use crate::secret::env_value::EnvValues;
use crate::spec::PromptSpec;
use crate::spec::schema::Property;
use crate::text::source::{SourceFile, Span};

/// The keys of a front matter.
const KEYS: [&str; 11] = [
    "name",
    "displayName",
    "description",
    "metadata",
    "model",
    "inputs",
    "outputs",
    "tools",
    "policy",
    "template",
    TESTS,
];

/// The keys that older files have at the top level and that now belong to the metadata.
const OLD_METADATA: [&str; 3] = ["authors", "tags", "version"];

/// Parses a `.prompty` file, and reports everything that is wrong with it, in the order of the file.
///
/// Returns a document if and only if no finding is an error.
pub fn parse(source: &SourceFile, resolve: &mut dyn Resolve) -> (Option<Document>, Vec<Diagnostic>) {
    let (document, diagnostics) = parse_as_far_as_possible(source, resolve);
    let has_errors = diagnostics.iter().any(Diagnostic::is_error);
    (document.filter(|_| !has_errors), diagnostics)
}

/// Parses as much of a `.prompty` file as possible, so that the rest can be checked as well.
///
/// Unlike [`parse`], this returns a document even if there are errors in the front matter. There is no document if the
/// front matter is never closed.
pub fn parse_as_far_as_possible(source: &SourceFile, resolve: &mut dyn Resolve) -> (Option<Document>, Vec<Diagnostic>) {
    parse_outlined(source, resolve, None)
}

/// Parses as much of a `.prompty` file as possible, as [`parse_as_far_as_possible`] does, and fills an outline without
/// parsing the front matter again.
pub(crate) fn parse_outlined<'s>(
    source: &'s SourceFile,
    resolve: &mut dyn Resolve,
    outline: Option<&mut Outline<'s>>,
) -> (Option<Document>, Vec<Diagnostic>) {
    let split = match split(source.text()) {
        Ok(split) => split,
        Err(diagnostic) => return (None, vec![diagnostic]),
    };
    let mut report = Report::default();
    let (mut spec, env) = match split.front_matter {
        Some(span) => read_front_matter(source, span, resolve, outline, &mut report),
        None => Default::default(),
    };
    spec.instructions = source.slice(split.body).to_owned();
    let document = Document {
        spec,
        body: split.body,
        front_matter: split.front_matter,
        env_values: env.values,
        unresolved_env: env.unresolved,
    };
    (Some(document), report.into_diagnostics())
}

/// Parses the front matter. Returns its contents and the values from the environment.
fn read_front_matter<'s>(
    source: &'s SourceFile,
    span: Span,
    resolve: &mut dyn Resolve,
    outline: Option<&mut Outline<'s>>,
    report: &mut Report,
) -> (PromptSpec, EnvValues) {
    let (root, problems) = parse_yaml(source.slice(span), span.start);
    for problem in problems {
        let diagnostic = error(Kind::InvalidFrontmatter, problem.span, problem.message);
        report.push(match problem.help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        });
    }
    let Some(mut root) = root else { return Default::default() };
    if let Some(outline) = outline {
        *outline = Outline::of(Some(root.clone()));
    }
    // The tests are not part of the prompt, and their texts are not references.
    if let Value::Map(entries) = &mut root.value {
        entries.retain(|entry| entry.key != TESTS);
    }
    let env = resolve_tree(&mut root, source, resolve, report);
    let spec = match root.value {
        Value::Map(entries) => read_spec(Fields::new(entries, root.span), report),
        Value::Null => PromptSpec::default(),
        _ => {
            let details = format!("expected a map, found {}", root.describe());
            report.push(
                error(Kind::InvalidFrontmatter, root.span, details)
                    .with_help("write `key: value` lines, as in `name: greeting`"),
            );
            PromptSpec::default()
        }
    };
    (spec, env)
}

fn read_spec(mut fields: Fields<'_>, report: &mut Report) -> PromptSpec {
    let mut spec = PromptSpec::default();
    report_case_twins(&fields, report);
    spec.name = fields.string("name", report);
    spec.display_name = fields.string("displayName", report);
    spec.description = fields.string("description", report);
    spec.metadata = read_metadata(&mut fields, report);
    let mut old_tools = None;
    if let Some(reading) = fields.value("model").and_then(|node| read_model(node, report)) {
        spec.model = Some(reading.model);
        old_tools = reading.tools;
    }
    spec.inputs = fields.value("inputs").map_or_else(Vec::new, |node| read_properties(node, "input", report));
    spec.outputs = fields.value("outputs").map_or_else(Vec::new, |node| read_properties(node, "output", report));
    spec.tools = fields.value("tools").or(old_tools).map_or_else(Vec::new, |node| {
        // Bindings may refer to inputs by name.
        read_tools(node, &spec.inputs, report)
    });
    spec.strict_policy = read_policy(&mut fields, report);
    spec.template = fields.value("template").map(|node| read_template(node, report)).unwrap_or_default();
    if let Some(entry) = fields.take("sample") {
        spec.extra.extend(read_sample(entry, &mut spec.inputs, report));
    }
    drop_what_the_file_decides(&mut fields, report);
    warn_misspelt(&fields, &KEYS, report);
    spec.extra.extend(fields.rest());
    spec
}

/// Reads `policy`. A prompt can only tighten the policy for tools, so `strict` is the only value.
fn read_policy(fields: &mut Fields<'_>, report: &mut Report) -> bool {
    let Some(node) = fields.value("policy") else { return false };
    if text(&node) != Some("strict") {
        report.push(
            invalid(node.span, format_args!("unknown policy `{}`", node.quote()))
                .with_help("write `strict`, or remove the key: a prompt can only tighten the policy for tools"),
        );
        return false;
    }
    true
}

fn read_metadata(fields: &mut Fields<'_>, report: &mut Report) -> JsonMap {
    let node = fields.value("metadata");
    let mut metadata = node.and_then(|node| Fields::of(node, "metadata", report)).map(Fields::rest).unwrap_or_default();
    for key in OLD_METADATA {
        if let Some(entry) = fields.take(key) {
            report.moved(
                entry.key_span,
                &format!("`{key}` at the top level"),
                &format!("write `{key}` under `metadata`"),
            );
            metadata.entry(key).or_insert(entry.value.into_json());
        }
    }
    metadata
}

/// Reads `sample`. Older files list sample values separately from the inputs. They become examples, never defaults.
///
/// Returns a sample that cannot be interpreted, so that it can be preserved.
fn read_sample(entry: Entry<'_>, inputs: &mut Vec<Property>, report: &mut Report) -> Option<(String, Json)> {
    let Entry { key_span, value: node, .. } = entry;
    match node.value {
        Value::Null => None,
        Value::Map(samples) => {
            report.moved(key_span, "`sample`", "write an `example` for each input: `inputs: {question: {example: …}}`");
            add_examples(into_json_map(samples), key_span, inputs);
            None
        }
        _ => {
            let help = match &node.value {
                Value::String(text) if !text.contains('\n') => {
                    format!("if this is a file name, write `sample: ${{file:{}}}`", node.quote())
                }
                _ => "write an `example` for each input".to_owned(),
            };
            let message = "`sample`: expected a map of examples; the value is stored but not used";
            report.push(Diagnostic::warning("unusable_sample", node.span, message).with_help(help));
            Some(("sample".to_owned(), node.into_json()))
        }
    }
}

fn add_examples(samples: JsonMap, span: Span, inputs: &mut Vec<Property>) {
    let mut indexes = HashMap::new();
    for (index, input) in inputs.iter().enumerate() {
        indexes.entry(input.name.clone()).or_insert(index);
    }
    for (name, example) in samples {
        match indexes.get(&name) {
            Some(index) => drop(inputs[*index].example.get_or_insert(example)),
            None => {
                let kind = infer(&example);
                inputs.push(Property { example: Some(example), span: Some(span), ..Property::new(name, kind) });
            }
        }
    }
}

/// Drops `kind` and `instructions`, because the file itself determines them. Only `kind: prompt` is dropped without a
/// warning.
fn drop_what_the_file_decides(fields: &mut Fields<'_>, report: &mut Report) {
    if let Some(entry) = fields.take("kind")
        && !matches!(&entry.value, Node { value: Value::String(kind), .. } if kind == "prompt")
    {
        let message = "`kind` has no effect: a .prompty file is always of kind `prompt`";
        report.push(Diagnostic::warning("ignored_key", entry.key_span, message).with_help("remove it"));
    }
    if let Some(entry) = fields.take("instructions") {
        let message = "`instructions` has no effect: the template follows the front matter";
        report.push(Diagnostic::warning("ignored_key", entry.key_span, message).with_help(
            "move it below the front \
            matter",
        ));
    }
}

/// Reports keys that differ only in case, because it is unclear which one counts.
fn report_case_twins(fields: &Fields<'_>, report: &mut Report) {
    for known in KEYS.into_iter().filter(|known| fields.has(known)) {
        let is_twin = |entry: &&Entry<'_>| entry.key != known && entry.key.eq_ignore_ascii_case(known);
        for entry in fields.entries().iter().filter(is_twin) {
            report.push(
                invalid(entry.key_span, format_args!("`{}` and `{known}` differ only in case", entry.key))
                    .with_help(format!("keep `{known}`")),
            );
        }
    }
}
