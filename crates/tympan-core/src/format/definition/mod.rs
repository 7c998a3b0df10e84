//! Prompt definitions: YAML, JSON or TOML documents of one shape.
//!
//! The shape is said once, in `schemas/prompt-definition.schema.json`. The types are generated from it
//! (`generated.rs`, kept fresh by a test), and the check of a document walks it (`shape.rs`).

mod de;
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "typify wrote it; the schema holds the documentation")]
mod generated {
    // Not a module file of its own, so that nobody formats it.
    include!("generated.rs");
}
mod json;
mod shape;
#[cfg(feature = "toml")]
mod toml;

use std::sync::LazyLock;

pub use generated::{PromptDefinition, PromptRole, PromptVariable, PromptVariant, VariableType, VariableTypes};
use serde::Deserialize;
use serde_json::Value as Json;

use self::de::Document;
use self::shape::Shape;
use super::report::{Report, error};
use super::yaml::{self, Entry, Node, Problem, Value};
use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::spec::DEFAULT_VARIANT;
use crate::text::source::{SourceFile, Span};

/// The JSON Schema of prompt definitions.
pub const SCHEMA: &str = include_str!("../../../schemas/prompt-definition.schema.json");

static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    let schema: Json = serde_json::from_str(SCHEMA).expect("the schema in the source is JSON");
    Shape::new(&schema)
});

/// How a definition is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// YAML 1.2, as in prompt files.
    Yaml,
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

impl Syntax {
    /// The syntax of files whose names end like this: `yaml`, `yml`, `json` or `toml`.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Self::Yaml,
            "json" => Self::Json,
            "toml" => Self::Toml,
            _ => return None,
        })
    }
}

/// A template of a definition, and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) body: String,
    pub(crate) span: Span,
}

/// As much of a definition as could be understood.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// What it says, if it has the right shape.
    pub(crate) definition: Option<PromptDefinition>,
    /// The templates that are there, whether the rest is right or not; the default one comes first.
    pub(crate) arms: Vec<Arm>,
    /// The names of the variables, and where they are declared.
    pub(crate) declared: Vec<(String, Span)>,
}

/// Whether a text is meant as a definition, whatever is wrong with it: it has a `role` and a `body` at the top.
pub fn is_definition(text: &str, syntax: Syntax) -> bool {
    let (root, _) = read(text, syntax);
    root.is_some_and(|root| entry(&root, "role").is_some() && entry(&root, "body").is_some())
}

fn read(text: &str, syntax: Syntax) -> (Option<Node<'_>>, Vec<Problem>) {
    match syntax {
        Syntax::Yaml => yaml::parse(text, 0),
        Syntax::Json => json::parse(text),
        #[cfg(feature = "toml")]
        Syntax::Toml => toml::parse(text),
        #[cfg(not(feature = "toml"))]
        Syntax::Toml => {
            let message = "this build cannot read TOML".to_owned();
            let help = Some("write the definition as YAML or JSON, or build Tympan with the feature `toml`");
            (None, vec![Problem { span: Span::default(), message, help }])
        }
    }
}

/// Reads a definition, and says everything that is wrong with its shape. Its templates are not looked at.
pub(crate) fn parse(source: &SourceFile, syntax: Syntax) -> (Parsed, Vec<Diagnostic>) {
    let (root, problems) = read(source.text(), syntax);
    let mut report = Report::default();
    problems.into_iter().for_each(|problem| report.push(unreadable(problem)));
    let Some(root) = root else { return (Parsed::default(), report.into_diagnostics()) };
    SHAPE.check(&root, &mut report);
    let mut parsed = Parsed { definition: None, arms: arms(&root), declared: declared(&root) };
    let diagnostics = report.into_diagnostics();
    if diagnostics.is_empty() {
        match PromptDefinition::deserialize(Document(root)) {
            Ok(definition) => parsed.definition = Some(definition),
            // The types come from the same schema, so that this cannot happen.
            Err(failure) => return (parsed, vec![error(Kind::InvalidDefinition, Span::default(), failure)]),
        }
    }
    (parsed, diagnostics)
}

fn unreadable(problem: Problem) -> Diagnostic {
    let diagnostic = error(Kind::InvalidDefinition, problem.span, problem.message);
    match problem.help {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
}

fn arms(root: &Node<'_>) -> Vec<Arm> {
    let default = text_of(root, "body").map(|(body, span)| Arm { name: DEFAULT_VARIANT.to_owned(), body, span });
    let variants = entry(root, "variants").map_or(&[][..], |entry| entries(&entry.value));
    let variants = variants.iter().filter_map(|variant| {
        let (body, span) = text_of(&variant.value, "body")?;
        Some(Arm { name: variant.key.to_string(), body, span })
    });
    default.into_iter().chain(variants).collect()
}

fn declared(root: &Node<'_>) -> Vec<(String, Span)> {
    let variables = entry(root, "variables").map_or(&[][..], |entry| entries(&entry.value));
    variables.iter().map(|variable| (variable.key.to_string(), variable.key_span)).collect()
}

fn text_of(node: &Node<'_>, key: &str) -> Option<(String, Span)> {
    let value = &entry(node, key)?.value;
    match &value.value {
        Value::String(text) => Some((text.to_string(), value.span)),
        _ => None,
    }
}

fn entry<'n, 's>(node: &'n Node<'s>, key: &str) -> Option<&'n Entry<'s>> {
    entries(node).iter().find(|entry| entry.key == key)
}

fn entries<'n, 's>(node: &'n Node<'s>) -> &'n [Entry<'s>] {
    match &node.value {
        Value::Map(entries) => entries,
        _ => &[],
    }
}
