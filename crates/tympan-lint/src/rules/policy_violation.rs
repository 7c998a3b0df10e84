//! Untrusted inputs in messages where the policy of the project does not allow them.

use tympan_core::diagnostic::{Severity, listed};
use tympan_core::spec::role::Role;
use tympan_core::template::flow::How;

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::policy::PolicyCheck;
use crate::reach::{InputReach, Target, reach};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY320",
    name: "policy_violation",
    group: Group::Trust,
    severity: Severity::Error,
    fix: FixAvailability::Never,
    summary: "Reports an untrusted input that can reach a message whose role the policy in `tympan.toml` does not \
        allow. With `decides = true`, inputs that decide what such a message contains are reported as well. The roles \
        in a thread are known only when the prompt is rendered, so threads are not reported.",
    why: "The policy says where untrusted text may go. If the application enforces it when prompts are rendered, this \
        prompt fails.",
    example: "# tympan.toml: [policy.messages] with untrusted = [\"user\"]\nsystem:\nAnswer as {{ persona }}.",
    how_to_fix: "Move the input to a message of an allowed role. If only your application writes it, declare it with \
        `trusted: true`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some(check) = context.options.policy else { return };
    let Ok(map) = reach(context.prompt) else { return };
    for message in &map.messages {
        let role = match &message.target {
            Target::Role(role) if !check.policy.allows(*role) => role.as_str(),
            // One role that is not allowed is enough.
            Target::AnyRole if Role::IN_MARKERS.into_iter().any(|role| !check.policy.allows(role)) => "any",
            _ => continue,
        };
        for input in message.inputs.iter().filter(|input| is_violation(context, check, input)) {
            findings.extend(finding(context, check, role, input));
        }
    }
}

fn is_violation(context: &Context<'_>, check: PolicyCheck, input: &InputReach) -> bool {
    // In a Mustache section, a name that is not declared is probably a key of the section's value.
    let is_known = || context.compiled().any(|(_, compiled)| compiled.is_undeclared(&input.input));
    !input.trusted && (check.decides || input.how != How::Decides) && (input.is_declared || is_known())
}

fn finding(context: &Context<'_>, check: PolicyCheck, role: &str, input: &InputReach) -> Option<Finding> {
    let place = input.places.first()?;
    let noun = context.noun();
    let message = match (role, place.how) {
        ("any", _) => format!(
            "untrusted {noun} `{}` can reach a message of any role, as the template assembles role markers",
            input.input
        ),
        (role, How::Decides) => format!("untrusted {noun} `{}` decides about the {role} message", input.input),
        (role, _) => format!("untrusted {noun} `{}` reaches the {role} message", input.input),
    };
    let roles: Vec<_> = check.policy.roles().map(Role::as_str).collect();
    let help = match &roles[..] {
        [] => "the policy allows untrusted inputs in no message".to_owned(),
        roles => format!(
            "the policy allows untrusted inputs in messages of these roles only: {}",
            listed(roles.iter().copied())
        ),
    };
    let path = place.path.iter().map(|(span, step)| (*span, format!("goes through `{step}`")));
    let verb = if place.how == How::Decides { "decides about" } else { "is written to" };
    let last = (place.span, format!("{verb} the message"));
    let finding = Finding::new(&RULE, place.span, message).with_help(help);
    Some(finding.with_related(path.chain([last]).collect()))
}
