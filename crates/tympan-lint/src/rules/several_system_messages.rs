//! Several system messages for a provider that takes one.

use tympan_core::diagnostic::Severity;
use tympan_core::wire::{EncodeOptions, ModelSelection, Protocol, protocol};

use crate::context::{Context, is_instruction};
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY206",
    name: "several_system_messages",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a second system or developer message in a prompt for a provider that accepts only one.",
    why: "All of them are joined and sent before the conversation, wherever they are in the prompt.",
    example: "model: {id: claude-sonnet-4-5, provider: anthropic}\n---\nsystem:\nBe brief.\n\nuser:\n\
        {{ question }}\n\nsystem:\nAnswer in English.",
    how_to_fix: "Write all instructions into the first message.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let selection = ModelSelection::new(context.prompt, &EncodeOptions::default());
    let protocol = protocol(selection.provider, selection.api_type.unwrap_or_default());
    if protocol.ok() != Some(Protocol::AnthropicMessages) {
        return;
    }
    for template in &context.templates {
        let mut first = None;
        let messages = template.messages.iter().filter(|message| is_instruction(message.role));
        for message in messages.filter(|message| message.marker.is_some() || template.has_content(message)) {
            let at = message.marker.map(|marker| template.locate(marker));
            if let (Some(first), Some(at)) = (first, at) {
                let role = message.role.as_str();
                let message = format!(
                    "another {role} message: provider `{}` takes one, before the conversation",
                    selection.provider
                );
                let finding =
                    Finding::new(&RULE, at, message).with_help("write all instructions into the first message");
                findings.push(finding.with_related(vec![(first, "the first one".to_owned())]));
            }
            first = first.or(at).or(Some(template.locate(message.content)));
        }
    }
}
