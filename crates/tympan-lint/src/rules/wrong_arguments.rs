//! Arguments that filters, tests, functions and macros do not accept.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::template::name_use::NameKind;
use tympan_core::template::signature::{ArgumentMistake, Signature};

use crate::context::{Context, TemplateContext};
use crate::finding::{Finding, Findings, Fix};
use crate::names::{Callee, NamedCall};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY118",
    name: "wrong_arguments",
    group: Group::Correctness,
    severity: Severity::Error,
    fix: FixAvailability::Sometimes,
    summary: "Reports calls of built-in filters, tests and functions, and of macros, that have a missing argument, too \
        many arguments, or an argument with an unknown name. Arguments that a test ignores are warnings.",
    why: "The prompt fails when it is rendered.",
    example: "user:\n{{ name | replace(\"_\") }}",
    how_to_fix: "Pass the arguments that the message names.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for (template, names) in context.names() {
        for call in names.calls.iter().filter(|call| !call.has_spread) {
            findings.extend(mistake(template, call));
        }
    }
}

fn mistake(template: &TemplateContext<'_>, call: &NamedCall<'_>) -> Option<Finding> {
    let named: Vec<_> = call.named.iter().map(|(name, _)| *name).collect();
    let (noun, signature) = match &call.callee {
        Callee::Name(NameKind::Filter) => ("filter", Signature::of_filter(call.name, &named)?),
        Callee::Name(NameKind::Test) => ("test", Signature::of_test(call.name)?),
        Callee::Name(NameKind::Function) => ("function", Signature::of_function(call.name)?),
        Callee::Macro(params) => return macro_mistake(template, call, params),
        Callee::Loop => return loop_mistake(template, call),
    };
    let what = format!("{noun} `{}`", call.name);
    let by_name = if signature.by_position { &[] } else { signature.params };
    let params = || by_name.iter().chain(signature.named).copied();
    let report = |message: String| Finding::new(&RULE, template.locate(call.span), message);
    let Some(mistake) = signature.mistake(call.positional, &named) else {
        let is_test = call.callee == Callee::Name(NameKind::Test);
        return ignored(call, signature.params.len()).filter(|_| is_test).map(|message| {
            report(format!("{what}: {message}")).with_severity(Severity::Warning).with_help("remove what is ignored")
        });
    };
    Some(match mistake {
        ArgumentMistake::Missing(param) => report(format!("{what}: missing argument `{param}`")),
        ArgumentMistake::TooMany(most) => too_many(template, call, &what, most),
        ArgumentMistake::Twice(index) => report(format!("{what}: argument `{}` is passed twice", named[index])),
        ArgumentMistake::UnknownName(index) => unknown_name(template, call, &what, index, params()),
        _ => return None,
    })
}

/// Describes the arguments that a test does not need. It ignores them, but Jinja2 rejects them.
fn ignored(call: &NamedCall<'_>, most: usize) -> Option<String> {
    let found = call.positional + call.named.len();
    (found > most).then(|| match most {
        0 => format!("expected no arguments, found {found}"),
        _ => format!("expected 1 argument, found {found}"),
    })
}

fn macro_mistake(template: &TemplateContext<'_>, call: &NamedCall<'_>, params: &[&str]) -> Option<Finding> {
    let what = format!("macro `{}`", call.name);
    if call.positional > params.len() {
        return Some(too_many(template, call, &what, params.len()));
    }
    let passed = &params[..call.positional];
    call.named.iter().enumerate().find_map(|(index, (name, span))| {
        if passed.contains(name) {
            let message = format!("{what}: argument `{name}` is passed twice");
            return Some(Finding::new(&RULE, template.locate(*span), message));
        }
        let is_known = params.contains(name) || *name == "caller";
        (!is_known).then(|| unknown_name(template, call, &what, index, params.iter().copied()))
    })
}

fn loop_mistake(template: &TemplateContext<'_>, call: &NamedCall<'_>) -> Option<Finding> {
    (call.positional != 1).then(|| {
        let message = format!("`loop` expects one argument, the value to loop over, found {}", call.positional);
        Finding::new(&RULE, template.locate(call.span), message)
    })
}

fn too_many(template: &TemplateContext<'_>, call: &NamedCall<'_>, what: &str, most: usize) -> Finding {
    let expected = match most {
        0 => "no positional arguments".to_owned(),
        1 => "at most 1 positional argument".to_owned(),
        _ => format!("at most {most} positional arguments"),
    };
    let message = format!("{what}: expected {expected}, found {}", call.positional);
    Finding::new(&RULE, template.locate(call.span), message)
}

fn unknown_name<'n>(
    template: &TemplateContext<'_>,
    call: &NamedCall<'_>,
    what: &str,
    index: usize,
    params: impl Iterator<Item = &'n str> + Clone,
) -> Finding {
    let (name, span) = call.named[index];
    let span = template.locate(span);
    let finding = Finding::new(&RULE, span, format!("{what}: unknown argument `{name}`"));
    match guess_name(name, params.clone()) {
        Some(near) => finding.with_help(format!("did you mean `{near}`?")).with_fix(Fix::needs_review(span, near)),
        None => match params.collect::<Vec<_>>().join(", ") {
            known if known.is_empty() => finding.with_help("its arguments have no names"),
            known => finding.with_help(format!("its arguments: {known}")),
        },
    }
}
