//! Tools through which untrusted text can send confidential data out, without anybody being asked.

use tympan_core::diagnostic::Severity;
use tympan_core::spec::Tool;
use tympan_core::spec::flow::Effect;
use tympan_core::spec::schema::Property;
use tympan_core::text::source::Span;
use tympan_core::turn::flow::policy::CallFacts;
use tympan_core::turn::{Decision, Label, PolicyMode, Source};

use crate::context::Context;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY312",
    name: "unguarded_flow",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a tool that may send data out, in a prompt whose model can also read untrusted content and \
        confidential data, if the policy for tools does not ask before the tool runs: its effect is not declared, or the \
        policy allows external effects.",
    why: "Untrusted text can tell the model to send the confidential data to somebody else. With these three together, \
        no wording of a prompt prevents that.",
    example: "tools:\n  - {name: read_tickets, kind: function, effect: read}\n  - {name: read_mail, kind: function, effect: \
        read, confidential: true}\n  - {name: send_email, kind: function}",
    how_to_fix: "Declare `effect: external` on the tool that sends, or `effect: read` if it sends nothing. `policy: strict` \
        in the prompt treats all tools without an effect as external.",
    check: Some(check),
};

/// A place in the path.
type Step = (Option<Span>, String);

fn check(context: &Context<'_>, findings: &mut Findings) {
    let spec = context.prompt.spec();
    for sender in spec.tools.iter().filter(|tool| sends_unasked(context, tool)) {
        let Some(confidential) = confidential(&spec.inputs, &spec.tools, sender) else { continue };
        let untrusted = untrusted(&spec.inputs, &spec.tools, sender);
        let is_declared = sender.flow.effect.is_some();
        let why = if is_declared { "the policy allows it" } else { "its effect is not declared" };
        let message = format!(
            "untrusted content can make the model send confidential data out with tool `{}` without approval: {why}",
            sender.name
        );
        let help = match is_declared {
            true => "remove what allows external effects from the policy",
            false => "add `effect: external`, or `effect: read` if the tool sends nothing to others",
        };
        let last = (sender.span, format!("may go out through tool `{}`", sender.name));
        let path = [untrusted, confidential, last].into_iter().filter_map(|(span, note)| Some((span?, note)));
        findings.push(Finding::new(&RULE, sender.span, message).with_help(help).with_related(path.collect()));
    }
}

/// Returns whether a tool may have an external effect, and the policy does not ask about it, whatever the model has read.
fn sends_unasked(context: &Context<'_>, tool: &Tool) -> bool {
    let effect = tool.flow.effect;
    let mut policy = context.options.tool_policy.clone();
    if context.prompt.spec().strict_policy && policy.mode == PolicyMode::Default {
        policy.mode = PolicyMode::Strict;
    }
    let read = Label::new(Source::Unknown, false, true);
    let ruling = policy.decide(&CallFacts {
        tool: &tool.name,
        effect,
        context: &read,
        arguments: &Label::default(),
        untrusted_values: &[],
        is_made_of_trusted_values: false,
        goes_to_listed_destinations: false,
    });
    matches!(effect, None | Some(Effect::External)) && ruling.decision == Decision::Allow
}

/// Returns a source of confidential data: an input, or a tool.
fn confidential(inputs: &[Property], tools: &[Tool], sender: &Tool) -> Option<Step> {
    let input = inputs.iter().find(|input| input.confidential);
    let input = input.map(|input| (input.span, format!("confidential data from input `{}`", input.name)));
    input.or_else(|| {
        let mut found = tools.iter().filter(|tool| tool.flow.confidential == Some(true));
        let tool = found.clone().find(|tool| tool.name != sender.name).or_else(|| found.next())?;
        Some((tool.span, format!("confidential data from tool `{}`", tool.name)))
    })
}

/// Returns a source of untrusted content: a tool, because only a host can trust results, or an input. If there is no
/// other tool, it is the sender itself.
fn untrusted(inputs: &[Property], tools: &[Tool], sender: &Tool) -> Step {
    let of_tool = |tool: &Tool| (tool.span, format!("untrusted content from tool `{}`", tool.name));
    let others = tools.iter().filter(|tool| tool.name != sender.name);
    let other = others.clone().find(|tool| tool.flow.confidential != Some(true)).or_else(|| others.clone().next());
    let input = inputs.iter().find(|input| !input.trusted && input.speaker.is_none() && !input.confidential);
    match (other, input) {
        (Some(other), _) => of_tool(other),
        (None, Some(input)) => (input.span, format!("untrusted content from input `{}`", input.name)),
        (None, None) => of_tool(sender),
    }
}
