//! Names of filters, tests and functions, for the rules about unknown ones.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::template::name_use::NameKind;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::names::{BindingKind, Callee};
use crate::rule::Rule;
use crate::typo;

/// Reports names of a kind that are neither built in nor registered.
pub(super) fn unknown_names(context: &Context<'_>, rule: &'static Rule, kind: NameKind, findings: &mut Findings) {
    let (noun, registered) = match kind {
        NameKind::Filter => ("filter", &context.options.filters),
        NameKind::Test => ("test", &context.options.tests),
        NameKind::Function => ("function", &context.options.functions),
    };
    let known = || kind.builtin().iter().copied().chain(registered.iter().map(String::as_str));
    for (template, names) in context.names() {
        let used = names.calls.iter().filter(|used| used.callee == Callee::Name(kind));
        for used in used.filter(|used| !known().any(|known| known == used.name)) {
            let span = template.locate(used.span);
            let finding = Finding::new(rule, span, format!("unknown {noun} `{}`", used.name));
            // A macro is called like a function.
            let macros = names.bindings.iter().filter(|binding| {
                kind == NameKind::Function && binding.kind == BindingKind::Macro && binding.name != used.name
            });
            findings.push(match guess_name(used.name, known().chain(macros.map(|binding| binding.name))) {
                Some(near) => finding
                    .with_severity(typo::severity(used.name, near))
                    .with_help(format!("did you mean `{near}`?"))
                    .with_fix(Fix::needs_review(span, near)),
                None => finding
                    .with_severity(Severity::Warning)
                    .with_help(format!("the prompt fails unless the application registers this {noun}")),
            });
        }
    }
}
