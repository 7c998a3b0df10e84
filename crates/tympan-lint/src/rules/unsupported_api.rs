//! API types that the provider does not have.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::wire::compatible::{DEFAULT_PROVIDER, PROVIDERS, provider};
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::protocol;

use crate::context::{Context, is_reference};
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY108",
    name: "unsupported_api",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports an `apiType` that the provider does not support. If the provider is unknown, it reports one that \
        no provider supports.",
    why: "The provider has no such API, so requests fail.",
    example: "model: {id: gpt-4o, provider: openai, apiType: chatt}",
    how_to_fix: "Use `chat`, `responses`, `embedding` or `image`, whichever the provider supports.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    let Some(model) = &context.prompt.spec().model else { return };
    let Some(api_type) = model.api_type.as_deref().filter(|api_type| !api_type.is_empty()) else { return };
    let key = |key| context.outline.get(&["model", key]);
    let field = ["apiType", "api", "api_type"].into_iter().find_map(key);
    if field.and_then(|field| field.text()).is_some_and(is_reference) {
        return;
    }
    let name = model.provider.as_deref().unwrap_or(DEFAULT_PROVIDER);
    let providers: Vec<_> = match provider(name) {
        Some(provider) => vec![provider],
        None if name == ECHO || context.options.providers.iter().any(|known| known == name) => return,
        // The provider is probably misspelled, so this is the best guess.
        None => PROVIDERS.iter().collect(),
    };
    if providers.iter().any(|provider| protocol(provider.name, api_type).is_ok()) {
        return;
    }
    let mut known: Vec<_> =
        providers.iter().flat_map(|provider| provider.protocols).map(|known| known.api_type()).collect();
    known.sort_unstable();
    known.dedup();
    let message = match providers.as_slice() {
        [provider] => format!("provider `{}` does not support the API type `{api_type}`", provider.name),
        _ => format!("unknown API type `{api_type}`"),
    };
    let span = field.or_else(|| context.outline.get(&["model"])).map(|field| field.span);
    let finding = Finding::new(&RULE, span, message);
    findings.push(match guess_name(api_type, known.iter().copied()) {
        Some(near) => {
            let fix = field.map(|field| Fix::needs_review(field.span, near));
            Finding { fix, ..finding.with_help(format!("did you mean `{near}`?")) }
        }
        None => finding.with_help(format!("supported: {}", known.join(", "))),
    });
}
