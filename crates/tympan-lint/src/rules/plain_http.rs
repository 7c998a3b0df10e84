//! Addresses without encryption.

use tympan_core::diagnostic::Severity;
use tympan_core::format::outline::Field;
use tympan_core::text::source::Span;
use tympan_core::wire::{is_loopback, parse_endpoint};

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY306",
    name: "plain_http",
    group: Group::Trust,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports an `http:` address in a connection or in the specification of a tool, unless the address is on \
        the same machine.",
    why: "Keys and messages are sent unencrypted.",
    example: "connection: {kind: key, endpoint: http://api.example.com/v1, apiKey: \"${env:KEY}\"}",
    how_to_fix: "Use `https:`.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let specifications = context.written_tools().filter_map(|tool| tool.get("specification"));
    for field in context.connections().chain(specifications) {
        plain_addresses(field, context, findings);
    }
}

fn plain_addresses(field: Field<'_>, context: &Context<'_>, findings: &mut Findings) {
    if field.text().is_some_and(is_plain) {
        let key = field.key.unwrap_or("address");
        let finding = Finding::new(&RULE, field.span, format!("`{key}`: messages and keys are sent unencrypted"));
        // The value may be in quotes.
        let written = context.prompt.source().slice(field.span);
        let at = written.find(SCHEME).map(|at| field.span.start + at);
        let fix = at.map(|at| Fix::needs_review(Span::new(at, at + SCHEME.len()), "https://"));
        findings.push(Finding { fix, ..finding.with_help("use `https:`") });
    }
    field.entries().chain(field.items()).for_each(|inner| plain_addresses(inner, context, findings));
}

const SCHEME: &str = "http://";

fn is_plain(text: &str) -> bool {
    let is_http = text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    is_http && parse_endpoint(text).is_ok_and(|url| !is_loopback(&url))
}
