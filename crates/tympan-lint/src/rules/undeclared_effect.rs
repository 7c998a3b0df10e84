//! Tools that do not say what they do.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::{Tool, ToolKind};

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY309",
    name: "undeclared_effect",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a tool without `effect`. Tools of custom kinds are left out, and so are prompts with `policy: \
        strict`, where such a tool counts as external.",
    why: "The policy for tools does not protect it: after the model has read untrusted text, it may still call the tool \
        without asking anybody.",
    example: "tools:\n  - name: send_email\n    kind: function\n    parameters: [{name: to, kind: string}]",
    how_to_fix: "Add `effect: read` if the tool only returns something, `effect: write` if it changes data, and \
        `effect: external` if it sends data to others. If the tools file or the application declares it, ignore this \
        rule.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let spec = context.prompt.spec();
    if spec.strict_policy {
        return;
    }
    for tool in spec.tools.iter().filter(|tool| is_known(tool) && tool.flow.effect.is_none()) {
        let message =
            format!("tool `{}` has no declared effect, so the policy for tools does not protect it", tool.name);
        let help = "add `effect: read`, `effect: write` or `effect: external`";
        findings.push(Finding::new(&RULE, tool.span, message).with_help(help));
    }
}

fn is_known(tool: &Tool) -> bool {
    !matches!(tool.kind, ToolKind::Custom { .. })
}
