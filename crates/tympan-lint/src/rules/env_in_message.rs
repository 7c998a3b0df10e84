//! Values from the environment in messages.

use tympan_core::diagnostic::Severity;
use tympan_core::template::flow::How;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY305",
    name: "env_in_message",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports an input whose default comes from the environment and whose text reaches a message.",
    why: "Environment variables often hold secrets, and the provider and its logs see all messages.",
    example: "inputs:\n  - {name: region, kind: string, default: \"${env:REGION}\"}\n---\nuser:\nWhat is the weather \
        in {{ region }}?",
    how_to_fix: "Let the application pass the value as an input, after it has decided that the value may be sent.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some(section) = context.sections().into_iter().next() else { return };
    let written = context.written(section);
    for (index, input) in section.properties.iter().enumerate() {
        let Some(field) = written.get(input.name.as_str()).copied() else { continue };
        let default = field.get("default").unwrap_or(field);
        if !default.text().is_some_and(|text| text.trim_start().to_ascii_lowercase().starts_with("${env:")) {
            continue;
        }
        let mut sinks = context
            .compiled()
            .flat_map(|(template, compiled)| compiled.flow.sinks.iter().map(move |sink| (template, sink)));
        let sink = sinks.find(|(_, sink)| sink.input == index && sink.how != How::Decides);
        let Some((template, sink)) = sink else { continue };
        let message = format!(
            "the default of {} `{}` comes from the environment and reaches a message",
            section.noun, input.name
        );
        let finding = Finding::new(&RULE, default.span, message);
        findings.push(finding.with_help("let the application pass the value").with_related(template.path(sink)));
    }
}
