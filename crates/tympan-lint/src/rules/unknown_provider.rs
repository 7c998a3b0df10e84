//! Providers that Tympan does not know.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::wire::compatible::{PROVIDERS, provider};
use tympan_core::wire::echo::ECHO;

use crate::context::{Context, is_reference};
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};
use crate::typo;

pub(crate) static RULE: Rule = Rule {
    code: "TY107",
    name: "unknown_provider",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports an unknown provider: as an error if the name is one edit away from a known one, and as a warning \
        otherwise.",
    why: "Unless the application registers the provider, requests fail.",
    example: "model: {id: gpt-4o, provider: opanai}",
    how_to_fix: "Correct the name, or register the provider in the application.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some(name) = context.prompt.spec().model.as_ref().and_then(|model| model.provider.as_deref()) else { return };
    let field = context.outline.get(&["model", "provider"]);
    if is_known(context, name) || field.and_then(|field| field.text()).is_some_and(is_reference) {
        return;
    }
    let span = field.or_else(|| context.outline.get(&["model"])).map(|field| field.span);
    let finding = Finding::new(&RULE, span, format!("unknown provider `{name}`"));
    let aliases = PROVIDERS.iter().flat_map(|provider| provider.aliases.iter().copied());
    let names = PROVIDERS.iter().map(|provider| provider.name).chain([ECHO]).chain(aliases);
    findings.push(match guess_name(name, names) {
        Some(near) => {
            let fix = field.map(|field| Fix::needs_review(field.span, near));
            let severity = typo::severity(name, near);
            Finding { fix, severity, ..finding.with_help(format!("did you mean `{near}`?")) }
        }
        None => finding
            .with_severity(Severity::Warning)
            .with_help("requests fail unless the application registers this provider"),
    });
}

fn is_known(context: &Context<'_>, name: &str) -> bool {
    name == ECHO || provider(name).is_some() || context.options.providers.iter().any(|known| known == name)
}
