//! A parsed directive.

use serde_json::Number;

use super::capability::Capability;
use crate::json::JsonMap;
use crate::spec::schema::Property;
use crate::text::source::Span;

/// The declarations of a directive, with positions for messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directive {
    /// The name.
    pub name: Option<String>,
    /// The version, as written.
    pub version: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The category, as a path.
    pub category: Option<String>,
    /// The author.
    pub author: Option<String>,
    /// The model that should follow the directive.
    pub model: Option<DirectiveModel>,
    /// The limits, such as `turns` and `tokens`.
    pub limits: Vec<(String, Number)>,
    /// The permissions, including those that Tympan does not understand.
    pub permissions: Vec<Capability>,
    /// The expected cost.
    pub cost: Option<Cost>,
    /// Files, dependencies and relations to other directives.
    pub context: Option<Context>,
    /// The hooks.
    pub hooks: Vec<Hook>,
    /// The declared inputs, in order.
    pub inputs: Vec<Property>,
    /// The declared outputs, in order.
    pub outputs: Vec<Property>,
    /// Unknown metadata, unchanged.
    pub extra: JsonMap,
    /// The span of the metadata, without its fence.
    pub metadata: Span,
    /// The span of the text before the metadata.
    pub preamble: Span,
    /// The span of the steps.
    pub body: Span,
}

/// The model that should follow a directive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectiveModel {
    /// The required capability tier.
    pub tier: Option<String>,
    /// The model's name at its provider.
    pub id: Option<String>,
    /// The fallback tier.
    pub fallback: Option<String>,
    /// The fallback model.
    pub fallback_id: Option<String>,
    /// A description of how the model should think.
    pub description: Option<String>,
}

/// The expected cost of a directive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// The maximum number of context tokens.
    pub tokens: Option<Number>,
    /// The estimated use of the context: `low`, `medium` or `high`.
    pub estimated_usage: Option<String>,
    /// The number of turns.
    pub turns: Option<Number>,
    /// The threshold above which work is delegated.
    pub spawn_threshold: Option<Number>,
    /// The maximum duration in seconds.
    pub duration: Option<Number>,
    /// The maximum spend.
    pub spend: Option<Number>,
    /// The currency of the spend.
    pub currency: Option<String>,
}

/// The relations of a directive to files and to other directives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// The files that the directive is about.
    pub related_files: Vec<String>,
    /// The required dependencies.
    pub dependencies: Vec<String>,
    /// Relations to other directives and to capabilities, in order: `requires`, `depends_on`, `suggests`, …
    pub relations: Vec<(String, String)>,
}

/// An action that runs when a condition holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hook {
    /// The condition. A hook without one never runs.
    pub when: Option<String>,
    /// The type of the item to run (`tool`, `directive` or `knowledge`), and the item.
    pub execute: Option<(String, String)>,
    /// The inputs of the item.
    pub inputs: JsonMap,
}
