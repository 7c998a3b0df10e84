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
    summary: "Reports invisible characters in a template (zero-width and filler characters, bidirectional and other \
        controls, tag characters, variation selectors), and words that mix Latin letters with look-alikes from other scripts.",
    why: "The model reads these characters, but a reviewer does not see them. They can hide instructions.",
    example: concat!("system:\nAnswer br", "\\u{200b}", "iefly."),
    how_to_fix: "Remove the characters, or replace the look-alikes with Latin letters.",
    check: Some(check),
};

fn check(context: &Context<'_>, findings: &mut Findings) {
    for template in &context.templates {
        let source = template.analysis.source();
        // Most templates have none of these characters.
        if source.bytes().all(|byte| byte.is_ascii() && !is_control(byte.into())) {
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
    let mut flag_end = 0;
    let mut chars = source.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let after = chars.peek().map(|(_, char)| *char);
        if char == BLACK_FLAG {
            flag_end = at + flag_length(&source[at..]);
        }
        if let Some(name) = name_of(char).filter(|_| at >= flag_end && !belongs(before, char, after)) {
            let end = at + char.len_utf8();
            match found.last_mut() {
                Some((span, ..)) if span.end == at => span.end = end,
                _ => found.push((Span::new(at, end), name, char)),
            }
        }
        before = Some(char);
    }
    found
}

const BLACK_FLAG: char = '\u{1f3f4}';

/// Returns the length of the flag of a region at the start of a text: a black flag, the code of the region in tag
/// characters, and the end tag. The length is 0 if this is another flag.
fn flag_length(text: &str) -> usize {
    const LONGEST: usize = 6;
    let tags = text.strip_prefix(BLACK_FLAG).unwrap_or_default();
    let is_code = |char: &char| matches!(char, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let code = tags.chars().take_while(is_code).count();
    match tags.chars().nth(code) {
        Some(end @ '\u{e007f}') if (3..=LONGEST).contains(&code) => {
            text.len() - tags.len() + (code + 1) * end.len_utf8()
        }
        _ => 0,
    }
}

/// Returns whether a character controls a terminal. White space does not.
fn is_control(char: char) -> bool {
    char.is_control() && !matches!(char, '\t'..='\r')
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
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "variation selector",
        '\u{2028}' | '\u{2029}' => "line or paragraph separator",
        '\u{2800}' => "Braille blank",
        '\u{17b4}' | '\u{17b5}' => "Khmer inherent vowel",
        '\u{fff9}'..='\u{fffb}' => "interlinear annotation",
        '\u{1d173}'..='\u{1d17a}' => "musical control",
        _ if is_control(char) => "control character",
        _ => return None,
    })
}

/// Returns whether writing needs an invisible character between its neighbours. Several in a row are never needed, apart
/// from a selector before a joiner.
fn belongs(before: Option<char>, char: char, after: Option<char>) -> bool {
    let is_wide =
        |char: char| char >= '\u{590}' && !matches!(char, '\u{2000}'..='\u{206f}' | '\u{e0000}'..='\u{e0fff}');
    let is_any = |matches: fn(char) -> bool| [before, after].into_iter().flatten().any(matches);
    match char {
        // Joins emoji, and letters of scripts that have joined forms.
        '\u{200c}' | '\u{200d}' => before.is_some_and(is_wide) && after.is_some_and(is_wide),
        // Selects a form of an ideograph.
        '\u{e0100}'..='\u{e01ef}' => before.is_some_and(is_ideograph),
        // Selects a form of a symbol, such as the emoji. Digits have such forms as well.
        '\u{fe00}'..='\u{fe0f}' => before.is_some_and(|before| {
            let is_text = before.is_ascii() && !matches!(before, '#' | '*' | '0'..='9');
            !is_text && name_of(before).is_none()
        }),
        // Marks the direction of text that is written from right to left.
        '\u{61c}' | '\u{200e}' | '\u{200f}' => is_any(is_right_to_left),
        '\u{2800}' => is_any(|char| matches!(char, '\u{2801}'..='\u{28ff}')),
        _ => false,
    }
}

fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
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
    const ARMENIAN: &str = "հոսցօք";
    // Nearly all letters of a template are ASCII.
    let is_other = || [CYRILLIC, GREEK, ARMENIAN].iter().any(|letters| letters.contains(char));
    !char.is_ascii() && (is_other() || matches!(char, '\u{ff21}'..='\u{ff5a}'))
}
