//! Parses references to inputs in the steps of a directive: `{input:name}` and its variants, and `${inputs.name}`, which
//! later Rye versions write.
//!
//! The text is scanned once, from left to right. Anything that is not a valid reference is plain text.

use std::ops::Range;

/// The start of a reference.
const OPENING: &str = "{input:";
/// The start of a reference as later Rye versions write it, after its `$`.
const LATER_OPENING: &str = "{inputs.";
/// The text that both have in common.
const COMMON: &str = "{input";

/// A reference to an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'t> {
    /// The range of the whole reference, including the braces.
    pub(crate) range: Range<usize>,
    pub(crate) name: &'t str,
    /// The text to use if the input has no value; `None` if the reference then stays in the text.
    pub(crate) fallback: Option<&'t str>,
    /// Whether it is written as `${inputs.name}`. Such text is also part of graphs, so it need not be a reference.
    pub(crate) is_dollar: bool,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    Text(&'t str),
    Reference(Reference<'t>),
}

/// Splits a text into plain text and references.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    let mut next: Option<Reference<'_>> = None;
    std::iter::from_fn(move || {
        if let Some(reference) = next.take() {
            return Some(Part::Reference(reference));
        }
        if at == text.len() {
            return None;
        }
        let start = at;
        let found = find(text, at);
        let end = found.as_ref().map_or(text.len(), |reference| reference.range.start);
        at = found.as_ref().map_or(text.len(), |reference| reference.range.end);
        match found {
            Some(reference) if start == end => Some(Part::Reference(reference)),
            found => {
                next = found;
                Some(Part::Text(&text[start..end]))
            }
        }
    })
}

/// Iterates over the references in a text, in order.
pub(crate) fn references(text: &str) -> impl Iterator<Item = Reference<'_>> {
    parts(text).filter_map(|part| match part {
        Part::Reference(reference) => Some(reference),
        Part::Text(_) => None,
    })
}

/// Returns the ranges of text that starts like a reference but is not a valid one.
pub(crate) fn malformed(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for part in parts(text) {
        match part {
            Part::Reference(reference) => at = reference.range.end,
            Part::Text(inside) => {
                found.extend(inside.match_indices(OPENING).map(|(start, _)| at + start..at + start + OPENING.len()));
                at += inside.len();
            }
        }
    }
    found
}

/// Finds the first reference at or after an offset.
fn find(text: &str, from: usize) -> Option<Reference<'_>> {
    let mut found = memchr::memmem::find_iter(&text.as_bytes()[from..], COMMON.as_bytes()).map(|at| from + at);
    found.find_map(|at| match at.checked_sub(1).filter(|dollar| *dollar >= from && text.as_bytes()[*dollar] == b'$') {
        Some(dollar) if text[at..].starts_with(LATER_OPENING) => dollar_reference(text, dollar),
        _ if text[at..].starts_with(OPENING) => reference(text, at),
        _ => None,
    })
}

/// Parses the reference at an offset: `${inputs.name}`.
fn dollar_reference(text: &str, start: usize) -> Option<Reference<'_>> {
    let inside = &text[start + 1 + LATER_OPENING.len()..];
    let length = inside.find(|char: char| !is_name_char(char)).filter(|length| *length > 0)?;
    let (name, rest) = inside.split_at(length);
    let rest = rest.strip_prefix('}')?;
    Some(Reference { range: start..text.len() - rest.len(), name, fallback: None, is_dollar: true })
}

/// Parses the reference at an offset: `{input:name}`, `{input:name?}`, `{input:name:default}` or
/// `{input:name|default}`.
fn reference(text: &str, start: usize) -> Option<Reference<'_>> {
    let inside = &text[start + OPENING.len()..];
    let length = inside.find(|char: char| !is_name_char(char)).filter(|length| *length > 0)?;
    let (name, rest) = inside.split_at(length);
    let (fallback, rest) = match *rest.as_bytes().first()? {
        b'}' => (None, rest),
        b'?' => (Some(""), &rest[1..]),
        b':' | b'|' => {
            // A default cannot contain an opening brace, because another reference may start there.
            let end = rest.find(['}', '{']).filter(|end| rest.as_bytes()[*end] == b'}')?;
            (Some(&rest[1..end]), &rest[end..])
        }
        _ => return None,
    };
    let rest = rest.strip_prefix('}')?;
    Some(Reference { range: start..text.len() - rest.len(), name, fallback, is_dollar: false })
}

/// Returns whether a reference can use this name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_char)
}

fn is_name_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<(&str, Option<&str>)> {
        references(text).map(|reference| (reference.name, reference.fallback)).collect()
    }

    #[test]
    fn references_are_found() {
        assert_eq!(
            found("a {input:b}{input:c?} {input:d:e f} {input:g|h:i} {input:j:}"),
            [("b", None), ("c", Some("")), ("d", Some("e f")), ("g", Some("h:i")), ("j", Some(""))]
        );
        for text in
            ["{input:}", "{input: a}", "{input:a b}", "{input:a?b}", "{input:a", "{Input:a}", "{input:a.b}", "{a}"]
        {
            assert_eq!(found(text), [], "{text}");
        }
        // An invalid reference may contain a valid one.
        assert_eq!(found("{input:a:{input:b}}"), [("b", None)]);
        assert_eq!(found("{{input:a}}"), [("a", None)]);
        assert_eq!(found("${inputs.a}$${inputs.b_c}${input:d}"), [("a", None), ("b_c", None), ("d", None)]);
        for text in ["{inputs.a}", "${inputs.}", "${inputs.a.b}", "${inputs.a?}", "${inputs.a", "${input.a}", "$"] {
            assert_eq!(found(text), [], "{text}");
        }
        assert_eq!(malformed("é{input:a}{input: b} {input:"), [11..18, 22..29]);
    }

    #[test]
    fn long_texts_take_linear_time() {
        assert_eq!(found(&"{input:a:".repeat(200_000)), []);
        assert_eq!(found(&"{input:a}".repeat(200_000)).len(), 200_000);
        assert_eq!(found(&"${inputs.a".repeat(200_000)), []);
        assert_eq!(found(&format!("{{input:{}", "a".repeat(2_000_000))), []);
    }

    proptest! {
        #[test]
        fn parts_join_to_the_text(text in r"(\{input:|\$\{inputs\.|[a-c?:|}{$ é])*") {
            let joined: String = parts(&text).map(|part| match part {
                Part::Text(text) => text,
                Part::Reference(reference) => &text[reference.range],
            }).collect();
            prop_assert_eq!(&joined, &text);
            for reference in references(&text) {
                prop_assert!(is_name(reference.name));
            }
        }
    }
}
