//! A directive as it is declared: its own typed document.

use serde_json::Number;

use super::capability::Capability;
use crate::json::JsonMap;
use crate::spec::schema::Property;
use crate::text::source::Span;

/// What a directive declares, with the places of what can be at fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directive {
    /// Its name.
    pub name: Option<String>,
    /// Its version, as it is written.
    pub version: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Where it belongs: a path.
    pub category: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Which model should follow it.
    pub model: Option<DirectiveModel>,
    /// What it may use up, such as `turns` and `tokens`.
    pub limits: Vec<(String, Number)>,
    /// What it may do.
    pub permissions: Vec<Capability>,
    /// What it is expected to cost.
    pub cost: Option<Cost>,
    /// Files, dependencies and relations to other directives.
    pub context: Option<Context>,
    /// What happens when.
    pub hooks: Vec<Hook>,
    /// Declared inputs, in order.
    pub inputs: Vec<Property>,
    /// Declared outputs, in order.
    pub outputs: Vec<Property>,
    /// Metadata that Tympan does not know, kept as it was written.
    pub extra: JsonMap,
    /// Where the metadata stands, without its fence.
    pub metadata: Span,
    /// Where the text before the metadata stands.
    pub preamble: Span,
    /// Where the steps stand.
    pub body: Span,
}

/// Which model should follow a directive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectiveModel {
    /// How capable it has to be.
    pub tier: Option<String>,
    /// Its name at its provider.
    pub id: Option<String>,
    /// The tier to fall back on.
    pub fallback: Option<String>,
    /// The model to fall back on.
    pub fallback_id: Option<String>,
    /// How it should think.
    pub description: Option<String>,
}

/// What a directive is expected to cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// The most tokens of context.
    pub tokens: Option<Number>,
    /// How much of the context it uses: `low`, `medium`, `high`.
    pub estimated_usage: Option<String>,
    /// How many turns it takes.
    pub turns: Option<Number>,
    /// From how many on it hands work to others.
    pub spawn_threshold: Option<Number>,
    /// The most seconds.
    pub duration: Option<Number>,
    /// The most money.
    pub spend: Option<Number>,
    /// In which currency.
    pub currency: Option<String>,
}

/// What a directive has to do with other things.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Files that it is about.
    pub related_files: Vec<String>,
    /// What has to be there.
    pub dependencies: Vec<String>,
    /// Relations to other directives and to capabilities, in order: `requires`, `depends_on`, `suggests`, …
    pub relations: Vec<(String, String)>,
}

/// Something that is done when a condition holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hook {
    /// The condition; a hook without one never runs.
    pub when: Option<String>,
    /// What is run, and its type: `tool`, `directive` or `knowledge`.
    pub execute: Option<(String, String)>,
    /// What it is given.
    pub inputs: JsonMap,
}
