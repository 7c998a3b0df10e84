//! Decides how sure a suggestion is.

use tympan_core::diagnostic::Severity;

/// Returns the severity of an unknown name with this suggestion. Names with one wrong, missing, extra or swapped
/// character are mistakes. Others may be names that an application registers.
pub(crate) fn severity(name: &str, suggestion: &str) -> Severity {
    if is_one_edit(name, suggestion) { Severity::Error } else { Severity::Warning }
}

fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([x, y, a @ ..], [v, w, b @ ..]) if (x, y) == (w, v) && a == b => true,
        _ => a.split_first().is_some_and(|(_, a)| a == b) || b.split_first().is_some_and(|(_, b)| a == b),
    }
}

#[cfg(test)]
mod tests {
    use super::is_one_edit;

    #[test]
    fn one_edit_is_enough() {
        for (a, b) in [
            ("uper", "upper"),
            ("rnage", "range"),
            ("uppper", "upper"),
            ("upfer", "upper"),
            ("opanai", "openai"),
            ("asistant", "assistant"),
        ] {
            assert!(is_one_edit(a, b) && is_one_edit(b, a), "{a} {b}");
        }
        for (a, b) in [("shout", "sort"), ("upper", "upper"), ("", ""), ("ab", "ba c"), ("sahred", "shaerd")] {
            assert!(!is_one_edit(a, b) && !is_one_edit(b, a), "{a} {b}");
        }
    }
}
