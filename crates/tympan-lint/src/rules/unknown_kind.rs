//! Misspelt kinds of connections and tools.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::format::outline::Field;
use tympan_core::spec::PromptKind;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY124",
    name: "unknown_kind",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Always,
    summary: "Reports a kind of a connection or of a tool that is close to a known one. Other kinds may be registered by \
        the application, and are not reported.",
    why: "Requests or tool calls fail, because nothing is registered for the kind.",
    example: "tools:\n  - {name: get_weather, kind: functon}",
    how_to_fix: "Write the kind that the help shows.",
    check: Some(check),
};

/// The kinds of connections.
const CONNECTIONS: [&str; 6] = ["key", "reference", "remote", "anonymous", "foundry", "oauth"];

/// The kinds of tools.
const TOOLS: [&str; 4] = ["function", "mcp", "openapi", "prompty"];

fn check(context: &Context<'_>, findings: &mut Findings) {
    if context.prompt.kind() != PromptKind::Prompty {
        return;
    }
    let connections = context.connections().filter_map(|connection| near(connection, "connection", &CONNECTIONS));
    findings.extend(connections);
    findings.extend(context.written_tools().filter_map(|tool| near(tool, "tool", &TOOLS)));
}

/// Returns the finding about a kind that is close to a known one.
fn near(owner: Field<'_>, what: &str, known: &[&'static str]) -> Option<Finding> {
    let field = owner.get("kind")?;
    let kind = field.text()?;
    let near = guess_name(kind, known.iter().copied()).filter(|_| !known.contains(&kind))?;
    let finding = Finding::new(&RULE, field.span, format!("unknown kind of a {what}: `{kind}`"));
    Some(finding.with_help(format!("did you mean `{near}`?")).with_fix(Fix::needs_review(field.span, near)))
}
