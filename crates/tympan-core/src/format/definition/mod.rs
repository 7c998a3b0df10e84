//! Parses prompt definitions: YAML, JSON or TOML documents with a common shape.
//!
//! The shape is defined once, in `schemas/prompt-definition.schema.json`. The types are generated from it
//! (`generated.rs`, which a test keeps up to date), and the validation of a document follows it (`format::shape`).

#[allow(missing_docs, unreachable_pub, clippy::all, reason = "typify wrote it; the schema holds the documentation")]
mod generated {
    // Included instead of declared as a module file, so that rustfmt does not format it.
    include!("generated.rs");
}
mod json;
#[cfg(feature = "toml")]
mod toml;

use std::sync::LazyLock;

pub use generated::{
    ListedType, PromptDefinition, PromptRole, PromptTests, PromptVariable, PromptVariant, VariableType, VariableTypes,
};
use serde::Deserialize;

use super::de::Document;
use super::report::{Report, error};
use super::shape::DocumentShape;
use super::yaml::{self, Entry, Node, Problem, Value};
use crate::diagnostic::{Diagnostic, guess};
use crate::error::Kind;
use crate::spec::DEFAULT_VARIANT;
use crate::text::source::Span;

/// The JSON Schema of prompt definitions.
pub const SCHEMA: &str = include_str!("../../../schemas/prompt-definition.schema.json");

static SHAPE: LazyLock<DocumentShape> = LazyLock::new(|| DocumentShape::new(SCHEMA, Kind::InvalidDefinition));

/// The syntax of a definition.
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
    /// Returns the syntax for a file extension: `yaml`, `yml`, `json` or `toml`, in any case.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Self::Yaml,
            "json" => Self::Json,
            "toml" => Self::Toml,
            _ => return None,
        })
    }
}

/// A template of a definition, and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) body: String,
    pub(crate) span: Span,
}

/// The parts of a definition that could be parsed.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The definition, if it has the right shape.
    pub(crate) definition: Option<PromptDefinition>,
    /// The templates that were found, even if the rest is invalid. The default one comes first.
    pub(crate) arms: Vec<Arm>,
    /// The names of the declared variables, and their positions.
    pub(crate) declared: Vec<(String, Span)>,
    /// Whether there may be more variables, because the declarations have the wrong shape or a misspelt key.
    pub(crate) misses_variables: bool,
}

/// Returns whether a text is meant as a definition, even if it is invalid: it has a `role` and a `body` at the top
/// level.
pub fn is_definition(text: &str, syntax: Syntax) -> bool {
    let (root, _) = read(text, syntax);
    root.is_some_and(|root| entry(&root, "role").is_some() && entry(&root, "body").is_some())
}

/// Parses the text of a definition into a tree.
pub(crate) fn read(text: &str, syntax: Syntax) -> (Option<Node<'_>>, Vec<Problem>) {
    match syntax {
        Syntax::Yaml => yaml::parse(text, 0),
        Syntax::Json => json::parse(text),
        #[cfg(feature = "toml")]
        Syntax::Toml => toml::parse(text),
        #[cfg(not(feature = "toml"))]
        Syntax::Toml => {
            let message = "this build does not support TOML".to_owned();
            let help = Some("write the definition in YAML or JSON, or build Tympan with the `toml` feature");
            (None, vec![Problem { span: Span::default(), message, help }])
        }
    }
}

/// Parses a definition, and reports everything that is wrong with its shape. The templates are not checked.
/// Takes what [`read`] returns.
pub(crate) fn parse((root, problems): (Option<Node<'_>>, Vec<Problem>)) -> (Parsed, Vec<Diagnostic>) {
    let mut report = Report::default();
    problems.into_iter().for_each(|problem| report.push(unreadable(Kind::InvalidDefinition, problem)));
    let Some(root) = root else { return (Parsed::default(), report.into_diagnostics()) };
    SHAPE.check(&root, &mut report);
    let (arms, declared) = (arms(&root), declared(&root));
    let mut parsed = Parsed { definition: None, arms, declared, misses_variables: misses_variables(&root) };
    let diagnostics = report.into_diagnostics();
    if diagnostics.is_empty() {
        match PromptDefinition::deserialize(Document(root)) {
            Ok(definition) => parsed.definition = Some(definition),
            // This cannot happen, because the types are generated from the same schema.
            Err(failure) => return (parsed, vec![error(Kind::InvalidDefinition, Span::default(), failure)]),
        }
    }
    (parsed, diagnostics)
}

/// Converts a problem with the syntax of a document to a diagnostic.
pub(super) fn unreadable(kind: Kind, problem: Problem) -> Diagnostic {
    let diagnostic = error(kind, problem.span, problem.message);
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

fn misses_variables(root: &Node<'_>) -> bool {
    match entry(root, "variables") {
        Some(entry) => !matches!(entry.value.value, Value::Map(_)),
        None => entries(root).iter().any(|entry| guess(&entry.key, ["variables"]).is_some()),
    }
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
