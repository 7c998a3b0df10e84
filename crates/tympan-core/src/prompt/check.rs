//! Warnings about a prompt that renders, but may not do what its author wants.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::chat::message::Role;
use crate::diagnostic::{Diagnostic, listed};
use crate::error::Result;
use crate::prompt::Prompt;
use crate::prompt::definition::field;
#[cfg(feature = "wire")]
use crate::spec::json_schema::patterns;
use crate::spec::json_schema::{unchecked, without_bound};
use crate::spec::schema::{Property, PropertyKind, written_schema};
use crate::spec::strict_schema::{Dialect, StrictSchema};
use crate::spec::{DEFAULT_VARIANT, ToolKind};
use crate::template::flow::{Flow, How, Sink};
#[cfg(feature = "wire")]
use crate::text::pattern::compile;
use crate::text::source::Span;

/// The metadata key that declares that the author has considered the guard.
const GUARD: &str = "guard";

/// The maximum number of variants reported for each variable that they do not use.
const MAX_VARIANTS: usize = 10;

/// How inputs flow through a template, and which of them reach the output.
struct Reached {
    flow: Flow,
    inputs: BTreeSet<usize>,
}

impl Reached {
    /// Keeps the first place where each input becomes text.
    fn new(mut flow: Flow) -> Self {
        let mut seen = BTreeSet::new();
        flow.sinks.retain(|sink| sink.how != How::Decides && seen.insert(sink.input));
        let inputs = flow.sinks.iter().map(|sink| sink.input).collect();
        Self { flow, inputs }
    }
}

impl Prompt {
    /// Checks the prompt and returns warnings: untrusted variables without a declared guard, unused variables,
    /// untrusted text in a system message, and JSON Schemas that cannot be checked or enforced. The warnings are sorted
    /// by position.
    ///
    /// # Errors
    /// Returns an error if a template does not compile.
    pub fn check(&self) -> Result<Vec<Diagnostic>> {
        let arms = (0..self.arms().count()).map(|index| self.arm_template(index).map(|template| template.flow()));
        let arms = arms.collect::<Result<Vec<_>>>()?;
        let mut findings = Vec::new();
        let arms: Vec<_> = arms.into_iter().map(Reached::new).collect();
        for (index, variable) in self.variables().iter().enumerate() {
            self.check_use(index, variable, &arms, &mut findings);
            self.check_guard(index, variable, &arms, &mut findings);
        }
        if self.role() == Some(Role::System) {
            self.check_system(&arms, &mut findings);
        }
        findings.extend(self.check_schemas());
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        Ok(findings)
    }

    /// Checks the JSON Schemas of tools and outputs. Returns a warning for each schema with keywords that Tympan does not
    /// check, and for each that the provider cannot enforce although the prompt asks for it. Declarations without a JSON
    /// Schema have the second kind of warning as well.
    ///
    /// ```
    /// let text = "---\noutputs: {type: object, properties: {on: {type: string, format: date}}}\n---\nuser:\nWhen?\n";
    /// let prompt = tympan::load_str(text, "when.prompty", ".")?;
    /// let findings = prompt.check_schemas();
    /// assert_eq!(findings[0].code, "schema_not_checked");
    /// assert_eq!(findings[0].message, "`outputs`: not checked: `format`");
    /// # Ok::<(), tympan::Error>(())
    /// ```
    pub fn check_schemas(&self) -> Vec<Diagnostic> {
        let spec = self.spec();
        let provider = spec.model.as_ref().and_then(|model| model.provider.as_deref());
        let dialect = Dialect::of(provider);
        let mut findings = Vec::new();
        for tool in &spec.tools {
            let ToolKind::Function { parameters, strict } = &tool.kind else { continue };
            let Some(schema) = written_schema(parameters) else {
                if *strict == Some(true) {
                    let is_bound = |name: &str| tool.bindings.iter().any(|binding| binding.parameter == name);
                    let visible = parameters.iter().filter(|parameter| !is_bound(&parameter.name));
                    findings.extend(visible.flat_map(|parameter| incomplete("parameter", &parameter.name, parameter)));
                }
                continue;
            };
            let schema = without_bound(schema, &tool.bindings);
            let name = format!("tool `{}`", tool.name);
            findings.extend(not_checked(&name, &schema, tool.span));
            let strict = (*strict == Some(true)).then(|| StrictSchema::new(&schema, dialect));
            findings.extend(strict.and_then(|strict| {
                let help = "the request does not set `strict`; the arguments are checked when the model calls the tool";
                not_strict(&name, &strict, tool.span, help)
            }));
        }
        if let Some(schema) = written_schema(&spec.outputs) {
            let span = spec.outputs.first().and_then(|output| output.span);
            findings.extend(not_checked("`outputs`", schema, span));
            let strict = StrictSchema::new(schema, dialect);
            let help = match (dialect, strict.inexpressible.is_empty()) {
                (Dialect::OpenAi | Dialect::Azure, _) => "the request does not set `strict`; the result is checked",
                (Dialect::Anthropic, true) => "the request leaves these out; the result is checked",
                (Dialect::Anthropic, false) => {
                    "the request leaves the schema out: describe the format in the prompt; the result is checked"
                }
            };
            findings.extend(not_strict("`outputs`", &strict, span, help));
        } else {
            findings.extend(spec.outputs.iter().flat_map(|output| incomplete("output", &output.name, output)));
        }
        findings
    }

    /// Reports a variable that no template uses, or that only some variants use.
    fn check_use(&self, index: usize, variable: &Property, arms: &[Reached], findings: &mut Vec<Diagnostic>) {
        let name = &variable.name;
        let without: Vec<_> = (0..arms.len()).filter(|arm| !arms[*arm].flow.uses.contains_key(&index)).collect();
        if without.len() == arms.len() {
            let message = format!("unused variable `{name}`");
            let finding = Diagnostic::warning("unused_variable", variable.span, message);
            findings.push(finding.with_help("use it in a template, or remove it"));
            return;
        }
        for arm in without.into_iter().take(MAX_VARIANTS) {
            let arm_name = self.arm_name(arm);
            let span = self.locate_span(arm, Span::default());
            let message = format!("variant `{arm_name}` does not use `{name}`, but other variants do");
            let finding = Diagnostic::warning("variable_unused_in_variant", span, message);
            findings.push(finding.with_help(format!("if it is needed, use it in `{}`", field(arm_name))));
        }
    }

    /// Reports an untrusted variable in a template whose metadata does not mention a guard.
    fn check_guard(&self, index: usize, variable: &Property, arms: &[Reached], findings: &mut Vec<Diagnostic>) {
        if variable.trusted || !self.is_definition() || self.metadata().contains_key(GUARD) {
            return;
        }
        let bare = arms.iter().enumerate().filter(|(arm, reached)| {
            let is_declared = *arm > 0 && self.spec().variants[arm - 1].metadata.contains_key(GUARD);
            reached.inputs.contains(&index) && !is_declared
        });
        let bare: Vec<_> = bare.map(|(arm, _)| self.arm_name(arm)).collect();
        if bare.is_empty() {
            return;
        }
        let bare = listed(bare.into_iter());
        let message =
            format!("untrusted variable `{}` is rendered without a declared guard (in {bare})", variable.name);
        let help = "add a `guard` key to the metadata and render with the guard; if the values are trusted, set \
            `trusted: true`";
        findings.push(Diagnostic::warning("untrusted_without_guard", variable.span, message).with_help(help));
    }

    /// Reports untrusted text in a system message, which the model takes for the application's own instructions.
    fn check_system(&self, arms: &[Reached], findings: &mut Vec<Diagnostic>) {
        for (arm, Reached { flow, .. }) in arms.iter().enumerate() {
            let untrusted = |sink: &&Sink| self.variables().get(sink.input).is_some_and(|variable| !variable.trusted);
            for sink in flow.sinks.iter().filter(untrusted) {
                let name = &self.variables()[sink.input].name;
                let at = self.locate_span(arm, sink.span);
                let line = self.source().line_column(at.start).line;
                let path: Vec<_> = sink.path.iter().map(|step| format!("`{}`", step.name)).collect();
                let path = if path.is_empty() { String::new() } else { format!(" through {}", path.join(", ")) };
                let arm = self.arm_name(arm);
                let of = if arm == DEFAULT_VARIANT { String::new() } else { format!(" of variant `{arm}`") };
                let message = format!(
                    "untrusted variable `{name}` reaches the system message{of} at line \
                    {line}{path}"
                );
                let finding = Diagnostic::warning("untrusted_in_system", at, message);
                findings.push(finding.with_help("move it to a prompt with the user role, or render with the guard"));
            }
        }
        let mut seen = BTreeSet::new();
        findings.retain(|finding| {
            seen.insert((finding.code, finding.span.map(|span| span.start), finding.message.clone()))
        });
    }
}

/// Reports the keywords of a schema that are not checked.
fn not_checked(name: &str, schema: &Json, span: Option<Span>) -> Option<Diagnostic> {
    let mut words = unchecked(schema);
    words.extend(unsupported_pattern(schema).map(str::to_owned));
    if words.is_empty() {
        return None;
    }
    let message = format!("{name}: not checked: {}", listed(words.iter().map(String::as_str)));
    let finding = Diagnostic::warning("schema_not_checked", span, message);
    Some(finding.with_help("the provider receives them; check the values in your own code if they matter"))
}

/// Returns `pattern` if a schema has a pattern that is not supported.
#[cfg(feature = "wire")]
fn unsupported_pattern(schema: &Json) -> Option<&'static str> {
    patterns(schema).into_iter().any(|pattern| compile(pattern).is_none()).then_some("pattern")
}

/// Returns nothing: without requests, there are no values to check.
#[cfg(not(feature = "wire"))]
fn unsupported_pattern(_: &Json) -> Option<&'static str> {
    None
}

/// Reports the lists without items and the maps without properties in a declaration. Providers that enforce a schema
/// reject such lists, and allow only empty maps.
fn incomplete(noun: &str, path: &str, declaration: &Property) -> Vec<Diagnostic> {
    let Property { kind, items, properties, span, .. } = declaration;
    let report = |message: String, help: &str| Diagnostic::warning("schema_not_strict", *span, message).with_help(help);
    match (kind, items.as_deref()) {
        (PropertyKind::Array, None) => vec![report(
            format!("{noun} `{path}`: the provider cannot enforce a list without `items`, and may reject the request"),
            "declare what the list contains, as in `items: {kind: string}`",
        )],
        (PropertyKind::Array, Some(items)) => {
            incomplete(noun, &format!("{path}[]"), &Property { span: items.span.or(*span), ..items.clone() })
        }
        (PropertyKind::Object, _) if properties.is_empty() => vec![report(
            format!("{noun} `{path}`: the provider allows only an empty map, because no `properties` are declared"),
            "declare the `properties` of the map",
        )],
        (PropertyKind::Object, _) => {
            let nested = properties.iter().map(|nested| (format!("{path}.{}", nested.name), nested));
            nested.flat_map(|(path, nested)| incomplete(noun, &path, nested)).collect()
        }
        _ => Vec::new(),
    }
}

/// Reports what the provider cannot enforce.
fn not_strict(name: &str, strict: &StrictSchema, span: Option<Span>, help: &str) -> Option<Diagnostic> {
    if strict.is_exact() {
        return None;
    }
    let losses: Vec<_> = strict.losses().collect();
    let message = format!("{name}: the provider cannot enforce {}", losses.join(", "));
    Some(Diagnostic::warning("schema_not_strict", span, message).with_help(help))
}
