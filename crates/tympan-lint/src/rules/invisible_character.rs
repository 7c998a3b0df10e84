//! Characters that people cannot see or tell apart.

use tympan_core::diagnostic::Severity;
use tympan_core::text::source::Span;

use crate::context::Context;
use crate::finding::{Finding, Findings, Fix};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY205",
    name: "invisible_character",
    group: Group::Suspicious,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports invisible characters in a template (zero-width and filler characters, bidirectional controls, \
        tag characters), and words that mix Latin letters with look-alikes from other scripts.",
    why: "The model reads these characters, but a reviewer does not see them. They can hide instructions.",
    example: concat!("system:\nAnswer br", "\\u{200b}", "iefly."),
    how_to_fix: "Remove the characters, or replace the look-alikes with Latin letters.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for template in &context.templates {
        let source = template.analysis.source();
        // Most templates have none of these characters.
        if source.is_ascii() {
            continue;
        }
        for (span, name, first) in hidden(source) {
            let span = template.locate(span);
            let message = format!("invisible character U+{:04X} ({name})", u32::from(first));
            let finding = Finding::new(&RULE, span, message).with_help("remove it");
            findings.push(finding.with_fix(Fix::needs_review(span, "")));
        }
        for (span, char) in look_alikes(source) {
            let message = format!("the word contains U+{:04X}, which looks like a Latin letter", u32::from(char));
            let finding = Finding::new(&RULE, template.locate(span), message);
            findings.push(finding.with_help("write it with Latin letters, or all of the word in the other script"));
        }
    }
}

/// Returns the runs of invisible characters: their position, the name of the first one, and the character.
fn hidden(source: &str) -> Vec<(Span, &'static str, char)> {
    let mut found: Vec<(Span, &'static str, char)> = Vec::new();
    let mut before = None;
    let mut chars = source.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let after = chars.peek().map(|(_, char)| *char);
        if let Some(name) = name_of(char).filter(|_| !belongs(before, char, after)) {
            let end = at + char.len_utf8();
            match found.last_mut() {
                Some((span, ..)) if span.end == at => span.end = end,
                _ => found.push((Span::new(at, end), name, char)),
            }
        } else {
            before = Some(char);
        }
    }
    found
}

/// Returns the name of a character that is not shown.
fn name_of(char: char) -> Option<&'static str> {
    Some(match char {
        '\u{200b}' => "zero width space",
        '\u{200c}' => "zero width non-joiner",
        '\u{200d}' => "zero width joiner",
        '\u{2060}' => "word joiner",
        '\u{2061}'..='\u{2064}' => "invisible operator",
        '\u{feff}' => "zero width no-break space",
        '\u{ad}' => "soft hyphen",
        '\u{34f}' => "combining grapheme joiner",
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => "Hangul filler",
        '\u{180e}' => "Mongolian vowel separator",
        '\u{61c}' | '\u{200e}' | '\u{200f}' => "direction mark",
        '\u{202a}'..='\u{202e}' => "direction override or embedding",
        '\u{2066}'..='\u{2069}' => "direction isolate",
        '\u{206a}'..='\u{206f}' => "deprecated format character",
        '\u{e0000}'..='\u{e007f}' => "tag character",
        '\u{e0100}'..='\u{e01ef}' => "variation selector",
        _ => return None,
    })
}

/// Returns whether writing needs an invisible character between its neighbours.
fn belongs(before: Option<char>, char: char, after: Option<char>) -> bool {
    let is_wide = |char: Option<char>| char.is_some_and(|char| char >= '\u{590}');
    match char {
        // Joins emoji, and letters of scripts that have joined forms.
        '\u{200c}' | '\u{200d}' => is_wide(before) && is_wide(after),
        // Flags of regions are a black flag with tags, the first of which belongs to the flag.
        '\u{e0020}'..='\u{e007f}' => matches!(before, Some('\u{1f3f4}' | '\u{e0020}'..='\u{e007f}')),
        // Selects a form of an ideograph.
        '\u{e0100}'..='\u{e01ef}' => before.is_some_and(|before| ('\u{3400}'..='\u{3ffff}').contains(&before)),
        // Marks the direction of text that is written from right to left.
        '\u{61c}' | '\u{200e}' | '\u{200f}' => [before, after].into_iter().flatten().any(is_right_to_left),
        _ => false,
    }
}

fn is_right_to_left(char: char) -> bool {
    matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Returns the words that mix Latin letters with look-alikes, and the first look-alike of each.
fn look_alikes(source: &str) -> Vec<(Span, char)> {
    let mut found = Vec::new();
    let mut start = 0;
    for word in source.split_inclusive(|char: char| !char.is_alphabetic()) {
        let letters = word.trim_end_matches(|char: char| !char.is_alphabetic());
        let first = letters.chars().find(|char| is_look_alike(*char));
        if let Some(first) = first.filter(|_| letters.bytes().any(|byte| byte.is_ascii_alphabetic())) {
            found.push((Span::new(start, start + letters.len()), first));
        }
        start += word.len();
    }
    found
}

/// Returns whether a letter of another script has the form of a Latin letter.
fn is_look_alike(char: char) -> bool {
    const CYRILLIC: &str = "АВЕЅІЈКМНОРСТХаеѕіјорсухԁһԛԝ";
    const GREEK: &str = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρ";
    // Nearly all letters of a template are ASCII.
    !char.is_ascii() && (CYRILLIC.contains(char) || GREEK.contains(char) || matches!(char, '\u{ff21}'..='\u{ff5a}'))
}
