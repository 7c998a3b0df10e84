//! Cases without a value for an input that the prompt needs.

use std::collections::HashSet;

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::spec::PromptKind;
use tympan_core::text::source::Span;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::{CaseContext, SuiteContext, TestedPrompt};

pub(crate) static RULE: Rule = Rule {
    code: "TY505",
    name: "missing_test_input",
    group: Group::Tests,
    severity: Severity::Error,
    fix: FixAvailability::Never,
    summary: "Reports a case without a value for an input that is required and has no default, or that a template uses \
        without a declaration. The latter is a warning.",
    why: "The prompt cannot be rendered, so the case fails.",
    example: "# The prompt declares: inputs: [{name: name, kind: string, required: true}]\ncases:\n  - name: greeting\n    \
        expect: [{messages: 1}]",
    how_to_fix: "Add the value to `inputs` of the case or of `defaults`. If the error is what the case is about, \
        expect it: `expect: [{error: missing_input}]`.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let Some(prompt) = &context.prompt else { return };
    for case in &context.cases {
        let has_unknown_rows = case.case.rows.is_some() && case.columns.is_none();
        if has_unknown_rows || context.expects_error(case.case) {
            continue;
        }
        let given = given(context, case);
        for (name, severity) in needed(context, prompt, case).into_iter().filter(|(name, _)| !given.contains(name)) {
            let what = if prompt.prompt.kind() == PromptKind::Definition { "variable" } else { "input" };
            let message = format!("the case has no value for the {what} `{name}`");
            let finding = Finding::new(&RULE, position(case.field), message).with_severity(severity);
            findings.push(finding.with_help(format!("add it: `inputs: {{{name}: …}}`")));
        }
    }
}

/// Returns the position that stands for a case: its name, or its first key.
fn position(case: Field<'_>) -> Span {
    let first = || case.entries().next().map(|entry| entry.key_span);
    case.get("name").map(|name| name.span).or_else(first).unwrap_or(case.span)
}

/// Returns the names that a case has values for.
fn given<'c>(context: &'c SuiteContext<'_>, case: &'c CaseContext<'_>) -> HashSet<&'c str> {
    let settings = context.suite.defaults.inputs.keys().chain(case.case.settings.inputs.keys());
    let matrix = case.case.matrix.iter().flat_map(|matrix| matrix.inputs.keys());
    settings.chain(matrix).chain(case.columns.iter().flatten()).map(String::as_str).collect()
}

/// Returns the inputs that a case must have values for, and how sure that is.
fn needed<'t>(
    context: &SuiteContext<'t>,
    prompt: &TestedPrompt<'t>,
    case: &'t CaseContext<'t>,
) -> Vec<(&'t str, Severity)> {
    let declared = prompt.prompt.variables().iter();
    let is_required = |input: &&tympan_core::spec::schema::Property| {
        input.required == Some(true) && input.default.as_ref().is_none_or(serde_json::Value::is_null)
    };
    let mut needed: Vec<_> = declared.filter(is_required).map(|input| (input.name.as_str(), Severity::Error)).collect();
    let lenient = case.case.settings.lenient.or(context.suite.defaults.lenient);
    let is_lenient = lenient.unwrap_or(prompt.prompt.spec().template.lenient);
    if !is_lenient && prompt.prompt.kind() != PromptKind::Directive {
        let read = read_names(context, prompt, case).into_iter().map(|name| (name, Severity::Warning));
        needed.extend(read.filter(|(name, _)| !needed.iter().any(|(known, _)| known == name)).collect::<Vec<_>>());
    }
    needed
}

/// Returns the names that the templates of a case read and that have no value without the case. A template that asks whether a name is
/// defined may work without it.
fn read_names<'t>(context: &SuiteContext<'t>, prompt: &TestedPrompt<'t>, case: &'t CaseContext<'t>) -> Vec<&'t str> {
    let variants = context.variants(Some(case));
    let declared = prompt.prompt.variables();
    let is_definition = prompt.prompt.kind() == PromptKind::Definition;
    let is_absent_allowed = |source: &str| source.contains("defined") || source.contains("default");
    let mut names = Vec::new();
    for template in prompt.prompt.templates().filter(|template| variants.contains(&template.name())) {
        let Ok(flow) = template.flow() else { continue };
        if is_absent_allowed(template.source()) {
            continue;
        }
        names.extend(template.undeclared_names(&flow).unwrap_or_default().into_iter().map(|(name, _)| name));
        let used = declared.iter().enumerate().filter(|(index, _)| is_definition && flow.uses.contains_key(index));
        names.extend(used.map(|(_, input)| input.name.as_str()));
    }
    names
}
