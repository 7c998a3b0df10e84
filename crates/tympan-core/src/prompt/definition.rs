//! Building prompts from prompt definitions.
//!
//! If a prompt builds, its templates are valid: each one parses, uses no excluded feature and refers only to declared
//! variables. All errors are reported at once.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::chat::message::Role;
use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind, Result};
use crate::format::definition::{
    Arm, ListedType, Parsed, PromptDefinition, PromptRole, PromptTests, PromptVariable, PromptVariant, Syntax,
    VariableType, VariableTypes, parse, read,
};
use crate::format::outline::Outline;
use crate::format::test_file::TESTS;
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::prompt::analysis::TemplateAnalysis;
use crate::spec::schema::{Property, PropertyKind};
use crate::spec::{DEFAULT_VARIANT, ONE_MESSAGE, PromptSpec, TemplateSpec, Variant};
use crate::text::placement::Placement;
use crate::text::source::{SourceFile, Span};

impl Prompt {
    /// Builds a prompt from a definition in YAML.
    ///
    /// ```
    /// let prompt = tympan::Prompt::from_yaml("
    /// name: greeting
    /// role: system
    /// body: You greet {{ name }}.
    /// variables:
    ///   name: { type: string, trusted: false }
    /// variants:
    ///   short: { body: 'Greet {{ name }}!' }
    /// ")?;
    /// let vars = serde_json::json!({"name": "Ada"});
    /// assert_eq!(prompt.render(&vars)?.text(), "You greet Ada.");
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first error in the definition, with its position. All others are in [`Error::others`].
    pub fn from_yaml(text: &str) -> Result<Self> {
        Self::from_definition_source(SourceFile::new("<yaml>", text), Syntax::Yaml)
    }

    /// Builds a prompt from a definition in JSON.
    ///
    /// # Errors
    /// Returns the first error in the definition, with its position. All others are in [`Error::others`].
    pub fn from_json(text: &str) -> Result<Self> {
        Self::from_definition_source(SourceFile::new("<json>", text), Syntax::Json)
    }

    /// Builds a prompt from a definition in TOML.
    ///
    /// # Errors
    /// Returns the first error in the definition, with its position. All others are in [`Error::others`].
    pub fn from_toml(text: &str) -> Result<Self> {
        Self::from_definition_source(SourceFile::new("<toml>", text), Syntax::Toml)
    }

    /// Builds a prompt from a definition value. Positions in errors refer to the definition serialized as JSON.
    ///
    /// # Errors
    /// Returns the first error in the definition, with its position. All others are in [`Error::others`].
    pub fn new(definition: &PromptDefinition) -> Result<Self> {
        let text =
            serde_json::to_string_pretty(definition).map_err(|error| Error::new(Kind::InvalidDefinition, error))?;
        Self::from_definition_source(SourceFile::new("<definition>", text), Syntax::Json)
    }

    /// Builds a prompt from the text of a definition. Errors show the name of the source.
    ///
    /// # Errors
    /// Returns the first error in the definition, with its position. All others are in [`Error::others`].
    pub fn from_definition_source(source: SourceFile, syntax: Syntax) -> Result<Self> {
        let parsed = parse(read(source.text(), syntax));
        Self::from_valid_definition(source, parsed)
    }

    /// Builds a prompt from the text of a definition, and its outline, which is that of [`Prompt::outline`]. The text is
    /// parsed once.
    ///
    /// # Errors
    /// Returns the first error in the definition, with its position. All others are in [`Error::others`].
    pub fn from_definition_with_outline(source: &SourceFile, syntax: Syntax) -> Result<(Self, Outline<'_>)> {
        let (root, problems) = read(source.text(), syntax);
        let outline = Outline::of(root.clone());
        Ok((Self::from_valid_definition(source.clone(), parse((root, problems)))?, outline))
    }

    fn from_valid_definition(source: SourceFile, parsed: (Parsed, Vec<Diagnostic>)) -> Result<Self> {
        let (prompt, findings) = Self::from_parsed_definition(source, parsed);
        if findings.is_empty() {
            return Ok(prompt);
        }
        Err(Error::from_findings(findings, prompt.source()))
    }

    /// Builds a prompt from as much of a definition as possible, so that its templates can be checked although the rest
    /// has errors. Also returns all errors.
    pub fn from_definition_as_far_as_possible(source: SourceFile, syntax: Syntax) -> (Self, Vec<Diagnostic>) {
        let parsed = parse(read(source.text(), syntax));
        Self::from_parsed_definition(source, parsed)
    }

    fn from_parsed_definition(
        source: SourceFile,
        (parsed, mut findings): (Parsed, Vec<Diagnostic>),
    ) -> (Self, Vec<Diagnostic>) {
        let Parsed { definition, mut arms, declared, misses_variables } = parsed;
        if arms.first().is_none_or(|arm| arm.name != DEFAULT_VARIANT) {
            // The parser has already reported the missing body.
            arms.insert(0, Arm { name: DEFAULT_VARIANT.to_owned(), body: String::new(), span: Span::default() });
        }
        let placements = arms.iter().map(|arm| Placement::written(arm.span)).collect();
        // Check the templates even if the rest has errors, so that one run reports everything.
        let spec = match definition {
            Some(definition) => spec(definition, &declared),
            None => spec_as_far_as_possible(arms, &declared),
        };
        let prompt = Self::placed(spec, source, placements, Vec::new());
        prompt.check_arms(&mut findings);
        if misses_variables {
            findings.retain(|finding| finding.code != UNDECLARED);
        }
        (prompt, findings)
    }

    /// Builds a new prompt by applying an overlay to this one. The result is checked from scratch.
    ///
    /// ```
    /// use tympan::Prompt;
    /// use tympan::prompt::definition::Overlay;
    /// let base = Prompt::from_yaml("{name: a, role: user, body: Hi, metadata: {team: red, level: 1}}")?;
    /// let change = serde_json::json!({"body": "Hello", "metadata": {"level": 2}});
    /// let derived = base.derive(&Overlay::merge(change.as_object().expect("a map").clone()))?;
    /// assert_eq!((derived.body(), &derived.metadata()["team"]), ("Hello", &"red".into()));
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if this prompt was not built from a definition, or if the result is not a valid definition.
    pub fn derive(&self, overlay: &Overlay) -> Result<Self> {
        let definition = self.to_definition().ok_or_else(|| {
            Error::new(Kind::InvalidDefinition, "cannot derive from a prompt that was not loaded from a definition")
        })?;
        let Ok(Json::Object(mut base)) = serde_json::to_value(definition) else {
            return Err(Error::new(Kind::InvalidDefinition, "cannot serialize the definition as JSON"));
        };
        overlay.apply(&mut base);
        let text = format!("{:#}", Json::Object(base));
        let name = format!("{} (derived)", self.source().name());
        Self::from_definition_source(SourceFile::new(name, text), Syntax::Json)
    }

    /// Returns the definition that this prompt was built from, or `None` if it was not built from a definition.
    pub fn to_definition(&self) -> Option<PromptDefinition> {
        let spec = self.spec();
        let role = match spec.role? {
            Role::System => PromptRole::System,
            Role::Assistant => PromptRole::Assistant,
            _ => PromptRole::User,
        };
        let variants = spec.variants.iter().map(|variant| {
            let Variant { name, body, metadata } = variant.clone();
            (name, PromptVariant { body, metadata })
        });
        Some(PromptDefinition {
            name: spec.name.clone()?,
            role,
            body: spec.instructions.clone(),
            variables: spec.inputs.iter().map(|input| (input.name.clone(), variable(input))).collect(),
            variants: variants.collect(),
            output_model: spec.output_model.clone(),
            metadata: spec.metadata.clone(),
            tests: self.written_tests(),
        })
    }

    /// Returns the tests in the source. They are not part of the spec, so that no hash can depend on them.
    fn written_tests(&self) -> Option<PromptTests> {
        match self.outline().get(&[TESTS])?.to_json() {
            Json::Array(cases) => Some(cases.into()),
            Json::Object(suite) => Some(suite.into()),
            _ => None,
        }
    }

    /// Compiles every template and reports undeclared names.
    pub(crate) fn check_arms(&self, findings: &mut Vec<Diagnostic>) {
        for (index, arm) in self.arms().enumerate() {
            let field = field(arm);
            match self.arm_template(index) {
                Err(_) => {
                    let template = TemplateAnalysis { prompt: self, index };
                    let errors = template.mistakes(template.syntax_tree().as_ref());
                    findings.extend(errors.iter().map(|error| {
                        let message = format!("{} (in `{field}`)", error.message());
                        let finding = Diagnostic::error(error.code(), error.span(), message);
                        match error.help() {
                            Some(help) => finding.with_help(help),
                            None => finding,
                        }
                    }));
                }
                // The meaning of a name inside a section depends on the values.
                Ok(_) if self.spec().template.format == "mustache" => {}
                Ok(template) => {
                    for (name, span) in template.free_names(self.variables().len()) {
                        let message = format!("`{name}` (in `{field}`)");
                        let message = Kind::UndeclaredVariable.pattern().replacen("{}", &message, 1);
                        let span = self.locate_span(index, span);
                        findings.push(self.undeclared(name, Diagnostic::error(UNDECLARED, span, message)));
                    }
                }
            }
        }
    }

    fn undeclared(&self, name: &str, finding: Diagnostic) -> Diagnostic {
        let names = self.variables().iter().map(|variable| variable.name.as_str());
        match crate::diagnostic::guess_name(name, names) {
            Some(meant) => finding.with_help(format!("did you mean `{meant}`?")),
            None if self.is_definition() => {
                finding.with_help(format!("declare it: `variables: {{{name}: {{type: string, trusted: false}}}}`"))
            }
            None => finding.with_help(format!("declare it: `inputs: [{{name: {name}, kind: string}}]`")),
        }
    }
}

/// The fields in which a derived prompt differs from its base.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    fields: JsonMap,
    merges: bool,
}

impl Overlay {
    /// Creates an overlay whose fields replace those of the prompt as a whole: maps are not merged. A null removes a
    /// field.
    pub fn replace(fields: JsonMap) -> Self {
        Self { fields, merges: false }
    }

    /// Creates an overlay whose fields replace those of the prompt, except that maps (variables, variants, metadata)
    /// are merged: entries that the overlay does not name stay. A null removes an entry or a field.
    pub fn merge(fields: JsonMap) -> Self {
        Self { fields, merges: true }
    }

    fn apply(&self, base: &mut JsonMap) {
        for (key, value) in &self.fields {
            match (base.get_mut(key), value) {
                (Some(Json::Object(old)), Json::Object(new)) if self.merges => merge(old, new),
                (_, Json::Null) => drop(base.shift_remove(key)),
                _ => drop(base.insert(key.clone(), value.clone())),
            }
        }
    }
}

fn merge(old: &mut JsonMap, new: &JsonMap) {
    for (key, value) in new {
        match value {
            Json::Null => drop(old.shift_remove(key)),
            _ => drop(old.insert(key.clone(), value.clone())),
        }
    }
}

const UNDECLARED: &str = Kind::UndeclaredVariable.code();

/// Returns the path of the definition's field that holds a template.
pub(crate) fn field(arm: &str) -> String {
    if arm == DEFAULT_VARIANT { "body".to_owned() } else { format!("variants.{arm}.body") }
}

fn spec(definition: PromptDefinition, declared: &[(String, Span)]) -> PromptSpec {
    // The tests stay in the source.
    let PromptDefinition { body, metadata, name, output_model, role, variables, variants, tests: _ } = definition;
    let spans: BTreeMap<_, _> = declared.iter().rev().map(|(name, span)| (name.as_str(), *span)).collect();
    let span_of = |name: &str| spans.get(name).copied();
    let variants =
        variants.into_iter().map(|(name, variant)| Variant { name, body: variant.body, metadata: variant.metadata });
    PromptSpec {
        name: Some(name),
        role: Some(role_of(role)),
        instructions: body,
        inputs: variables.into_iter().map(|(name, variable)| property(span_of(&name), name, variable)).collect(),
        variants: variants.collect(),
        output_model,
        metadata,
        template: template(),
        ..PromptSpec::default()
    }
}

/// Builds a spec from a definition with the wrong shape, so that its templates can still be checked against the names
/// it declares.
fn spec_as_far_as_possible(arms: Vec<Arm>, declared: &[(String, Span)]) -> PromptSpec {
    let mut arms = arms.into_iter();
    let mut spec = PromptSpec { role: Some(Role::User), template: template(), ..PromptSpec::default() };
    spec.inputs = declared.iter().map(|(name, _)| Property::new(name, PropertyKind::String)).collect();
    if let Some(first) = arms.next() {
        spec.instructions = first.body;
        spec.variants = arms.map(|arm| Variant { name: arm.name, body: arm.body, ..Variant::default() }).collect();
    }
    spec
}

fn template() -> TemplateSpec {
    TemplateSpec { parser: ONE_MESSAGE.into(), ..TemplateSpec::default() }
}

fn role_of(role: PromptRole) -> Role {
    match role {
        PromptRole::System => Role::System,
        PromptRole::User => Role::User,
        PromptRole::Assistant => Role::Assistant,
    }
}

fn property(span: Option<Span>, name: String, variable: PromptVariable) -> Property {
    let PromptVariable { description, trusted, type_, validation_required } = variable;
    let types: Vec<_> = match type_ {
        VariableTypes::VariableType(one) => vec![listed(one)],
        VariableTypes::Array(several) => several,
    };
    let nullable = types.contains(&ListedType::Null);
    let kinds: Vec<_> = types.into_iter().filter_map(kind_of).collect();
    let kind = kinds.first().copied().unwrap_or_default();
    let kinds = if kinds.len() > 1 { kinds } else { Vec::new() };
    Property { name, kind, kinds, nullable, description, trusted, validation_required, span, ..Property::default() }
}

fn variable(input: &Property) -> PromptVariable {
    let kinds = if input.kinds.is_empty() { std::slice::from_ref(&input.kind) } else { &input.kinds };
    let types = kinds.iter().map(|kind| listed(type_of(*kind))).chain(input.nullable.then_some(ListedType::Null));
    let is_single = input.kinds.is_empty() && !input.nullable;
    PromptVariable {
        type_: if is_single { type_of(input.kind).into() } else { types.collect::<Vec<_>>().into() },
        trusted: input.trusted,
        validation_required: input.validation_required,
        description: input.description.clone(),
    }
}

fn type_of(kind: PropertyKind) -> VariableType {
    match kind {
        PropertyKind::Integer => VariableType::Integer,
        PropertyKind::Float => VariableType::Number,
        PropertyKind::Boolean => VariableType::Boolean,
        PropertyKind::Array => VariableType::Array,
        PropertyKind::Object => VariableType::Object,
        _ => VariableType::String,
    }
}

fn listed(name: VariableType) -> ListedType {
    match name {
        VariableType::String => ListedType::String,
        VariableType::Integer => ListedType::Integer,
        VariableType::Number => ListedType::Number,
        VariableType::Boolean => ListedType::Boolean,
        VariableType::Array => ListedType::Array,
        VariableType::Object => ListedType::Object,
    }
}

/// Returns the kind of a type. Null is not a kind: it makes a variable nullable.
fn kind_of(name: ListedType) -> Option<PropertyKind> {
    Some(match name {
        ListedType::String => PropertyKind::String,
        ListedType::Integer => PropertyKind::Integer,
        ListedType::Number => PropertyKind::Float,
        ListedType::Boolean => PropertyKind::Boolean,
        ListedType::Array => PropertyKind::Array,
        ListedType::Object => PropertyKind::Object,
        ListedType::Null => return None,
    })
}
