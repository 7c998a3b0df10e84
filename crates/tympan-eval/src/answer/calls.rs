//! Assertions about tool calls.

use serde_json::Value as Json;
use tympan_core::spec::test_suite::{CallConditions, ExpectedCall, ExpectedCalls};
use tympan_core::turn::schema::same;

use super::AnsweredCall;
use crate::matching::Mismatch;
use crate::quote::visible;

/// The maximum number of calls to list in a message.
const MAX_LISTED: usize = 20;

/// Checks tool calls. Calls that did not run count too: the model wanted them.
pub(super) fn check(calls: &[AnsweredCall], wanted: &ExpectedCalls) -> Result<(), Mismatch> {
    let found = || if calls.is_empty() { "none".to_owned() } else { listed(calls.iter().map(shown)) };
    let problem = match wanted {
        ExpectedCalls::Exactly(wanted) => exactly(calls, wanted),
        ExpectedCalls::Conditions(wanted) => conditions(calls, wanted),
        _ => None,
    };
    problem.map_or(Ok(()), |problem| Err(Mismatch::new(format!("{problem}; found {}", found()))))
}

fn exactly(calls: &[AnsweredCall], wanted: &[ExpectedCall]) -> Option<String> {
    let is_same = calls.len() == wanted.len() && calls.iter().zip(wanted).all(|(call, wanted)| is_call(call, wanted));
    (!is_same).then(|| match wanted {
        [] => "expected no calls".to_owned(),
        wanted => format!("expected exactly {}", listed(wanted.iter().map(expected))),
    })
}

fn conditions(calls: &[AnsweredCall], wanted: &CallConditions) -> Option<String> {
    let mut rest = calls.iter();
    let missing = wanted.in_order.iter().find(|wanted| !rest.any(|call| is_call(call, wanted)));
    if let Some(missing) = missing {
        let order = listed(wanted.in_order.iter().map(expected));
        return Some(format!("expected {order} in this order, {} is missing", expected(missing)));
    }
    if let Some(missing) = wanted.include.iter().find(|wanted| !calls.iter().any(|call| is_call(call, wanted))) {
        return Some(format!("expected a call of {}", expected(missing)));
    }
    if let Some(excluded) = wanted.exclude.iter().find(|wanted| calls.iter().any(|call| is_call(call, wanted))) {
        return Some(format!("expected no call of {}", expected(excluded)));
    }
    wanted.max.filter(|max| calls.len() > *max).map(|max| format!("expected at most {max} calls"))
}

/// Returns whether a call has the name, and at least the arguments, that are expected.
fn is_call(call: &AnsweredCall, wanted: &ExpectedCall) -> bool {
    match wanted {
        ExpectedCall::Name(name) => call.name == *name,
        ExpectedCall::Call { name, arguments } => {
            let own = |key: &str| call.arguments.as_ref().and_then(|own| own.get(key));
            let has = |(key, value): (&String, &Json)| own(key).is_some_and(|own| same(own, value));
            call.name == *name && arguments.iter().all(has)
        }
        _ => false,
    }
}

fn expected(call: &ExpectedCall) -> String {
    match call {
        ExpectedCall::Call { name, arguments } if !arguments.is_empty() => {
            format!("`{name}` with {}", visible(&Json::Object(arguments.clone()).to_string()))
        }
        ExpectedCall::Name(name) | ExpectedCall::Call { name, .. } => format!("`{name}`"),
        _ => "another call".to_owned(),
    }
}

fn shown(call: &AnsweredCall) -> String {
    let refused = call.refused.as_deref().map_or_else(String::new, |reason| format!(" (not run: {})", visible(reason)));
    format!("`{}` with {}{refused}", visible(&call.name), visible(&call.raw))
}

fn listed(calls: impl ExactSizeIterator<Item = String>) -> String {
    let more = calls.len().saturating_sub(MAX_LISTED);
    let mut listed = calls.take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    listed
}
