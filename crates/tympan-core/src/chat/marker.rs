//! Role markers: lines such as `system:` or `user[name="Ann"]:` that start a message.
//!
//! Only text that counts as the author's can form a marker. Text from anyone else is one opaque atom, which is allowed
//! only in the value of an attribute. Matching is a single handwritten pass, so no input can make it slow.

use std::ops::Range;

use smallvec::SmallVec;

use crate::chat::message::Role;
use crate::json::JsonMap;
use crate::template::Notable;

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// Text that counts as the author's.
    Author(&'a str),
    /// Text from someone else, treated as one unit.
    Atom(&'a str),
}

pub(crate) type Parts<'a> = SmallVec<[Part<'a>; 4]>;

/// A role marker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Marker {
    pub(crate) role: Role,
    /// `None` for most markers.
    pub(crate) attributes: Option<Box<Attributes>>,
}

/// The attributes of a role marker.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attributes {
    /// The values in order. If a name occurs twice, the last value wins.
    pub(crate) values: JsonMap,
    /// The value of the first `nonce` attribute as written, never converted to a number. The author's nonce comes
    /// before anything that an input could add to the marker.
    pub(crate) nonce: Option<String>,
}

/// Matches a line that is entirely the author's text.
#[inline]
pub(crate) fn match_line(line: &str) -> Option<Marker> {
    // Fast path for the most common spellings.
    let role = match line.as_bytes() {
        b"system:" => Some(Role::System),
        b"user:" => Some(Role::User),
        b"assistant:" => Some(Role::Assistant),
        _ => None,
    };
    if let Some(role) = role {
        return Some(Marker { role, attributes: None });
    }
    match first_look(line) {
        Look::NoMarker => None,
        Look::Plain(role) => Some(Marker { role, attributes: None }),
        Look::Unclear => match_parts(&[Part::Author(line)]),
    }
}

/// The result of a cheap first check of a line.
enum Look {
    NoMarker,
    Plain(Role),
    /// The line has attributes or white space outside ASCII.
    Unclear,
}

/// Rejects nearly every line after one or two bytes.
#[inline]
fn first_look(line: &str) -> Look {
    let bytes = line.trim_ascii_start().as_bytes();
    match may_begin(bytes) {
        Some(false) => return Look::NoMarker,
        None => return Look::Unclear,
        Some(true) => {}
    }
    let bytes = bytes.strip_prefix(b"#").map_or(bytes, <[u8]>::trim_ascii_start).trim_ascii_end();
    let role = match bytes.split_last() {
        Some((b':', role)) if !role.ends_with(b"]") => role.trim_ascii_end(),
        Some((b':', _)) => return Look::Unclear,
        Some((last, _)) if last.is_ascii() => return Look::NoMarker,
        _ => return Look::Unclear,
    };
    let found = Role::IN_MARKERS.into_iter().find(|known| role.eq_ignore_ascii_case(known.as_str().as_bytes()));
    match found {
        Some(role) => Look::Plain(role),
        None if role.iter().all(|byte| byte.is_ascii_alphabetic()) => Look::NoMarker,
        None => Look::Unclear,
    }
}

/// Returns whether a line that starts with these bytes, after white space, may be a marker. Returns `None` if that
/// takes a full match.
#[inline]
fn may_begin(bytes: &[u8]) -> Option<bool> {
    match bytes.first() {
        Some(b's' | b'S' | b'u' | b'U' | b'a' | b'A' | b'd' | b'D' | b'#') => Some(true),
        Some(0x0b | 0x80..) => None,
        _ => Some(false),
    }
}

/// Returns whether a line may be a marker if its first part is this text of the author's.
#[inline]
pub(crate) fn may_be_begun_by(text: &str) -> bool {
    let text = text.trim_ascii_start();
    text.is_empty() || may_begin(text.as_bytes()) != Some(false)
}

/// Returns the lines and partial lines of this text of the author's in which a role marker can start, whatever comes
/// before and after the text.
pub(crate) fn candidates(text: &str) -> Vec<Range<usize>> {
    let mut candidates = Vec::new();
    if !may_be_begun_by(text) && !text.as_bytes().contains(&b'\n') {
        return candidates;
    }
    let mut start = 0;
    for line in text.split('\n') {
        let range = start..start + line.len();
        let is_last = range.end == text.len();
        if if is_last { begins_one(line) } else { match_line(line).is_some() } {
            candidates.push(range.clone());
        }
        start = range.end + 1;
    }
    candidates
}

/// What the template compiler needs to know about role markers.
pub(crate) const NOTABLE: Notable = Notable { lines: candidates, part: may_take_part };

/// Returns whether this text can be part of a marker's line, outside of attribute values. It is called for every
/// default that is written, so nearly all texts are rejected at the first letter that no role contains.
fn may_take_part(text: &str) -> bool {
    let mut has_other = false;
    for byte in text.bytes() {
        match CLASSES[usize::from(byte)] {
            Class::Mark => return true,
            Class::Other => has_other = true,
            Class::Letter | Class::Space => {}
        }
    }
    if has_other {
        return false;
    }
    let word = text.trim().as_bytes();
    let is_in = |role: Role| role.as_str().as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    word.is_empty() || Role::IN_MARKERS.into_iter().any(is_in)
}

/// The class of a byte in a marker's line.
#[derive(Clone, Copy)]
enum Class {
    /// A character that only markers have between words, or that ends a line.
    Mark,
    /// A letter that occurs in the name of a role.
    Letter,
    /// White space, or a byte of a character outside ASCII, which may be white space.
    Space,
    Other,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'\n' | b':' | b'[' | b']' | b'=' | b'#' | b'"' | b',' => Class::Mark,
            b'\t' | 0x0b | 0x0c | b'\r' | b' ' | 0x80.. => Class::Space,
            byte => match byte.to_ascii_lowercase() {
                b'a' | b'd' | b'e' | b'i' | b'l' | b'm' | b'n' | b'o' | b'p' => Class::Letter,
                b'r' | b's' | b't' | b'u' | b'v' | b'y' => Class::Letter,
                _ => Class::Other,
            },
        };
        byte += 1;
    }
    classes
};

/// Returns whether this text can be the start of a marker, whatever follows.
fn begins_one(text: &str) -> bool {
    let text = text.trim_start();
    let rest = text.strip_prefix('#').map_or(text, str::trim_start);
    let (word, after) = rest.split_at(rest.bytes().take_while(u8::is_ascii_alphabetic).count());
    let is_whole = match after.chars().next() {
        None if word.is_empty() => return !text.is_empty(),
        None => false,
        Some(char) if matches!(char, '[' | ':') || char.is_whitespace() => true,
        Some(_) => return false,
    };
    Role::IN_MARKERS.into_iter().map(Role::as_str).any(|role| {
        let known = if is_whole { Some(role) } else { role.get(..word.len()) };
        known.is_some_and(|known| known.eq_ignore_ascii_case(word))
    })
}

/// Matches a line that consists of parts.
pub(crate) fn match_parts(parts: &[Part<'_>]) -> Option<Marker> {
    let mut cursor = Cursor { parts, index: 0, offset: 0 };
    cursor.skip_white_space();
    if cursor.skip('#') {
        cursor.skip_white_space();
    }
    let role = cursor.role()?;
    let attributes = if cursor.skip('[') { Some(Box::new(cursor.attributes()?)) } else { None };
    cursor.skip_white_space();
    if !cursor.skip(':') {
        return None;
    }
    cursor.skip_white_space();
    cursor.at_end().then_some(Marker { role, attributes })
}

/// The start of a line that looks like a role marker, whatever follows it.
pub(crate) struct Lead {
    /// The byte range of the role's name.
    pub(crate) role: Range<usize>,
    /// The position after the colon.
    pub(crate) end: usize,
}

/// Matches the start of a line that has a role's name and a colon, such as `system: you are…`.
pub(crate) fn match_lead(line: &str) -> Option<Lead> {
    if !may_be_begun_by(line) {
        return None;
    }
    let parts = [Part::Author(line)];
    let mut cursor = Cursor { parts: &parts, index: 0, offset: 0 };
    cursor.skip_white_space();
    if cursor.skip('#') {
        cursor.skip_white_space();
    }
    let start = cursor.offset;
    cursor.role()?;
    let role = start..cursor.offset;
    if cursor.skip('[') {
        cursor.attributes()?;
    }
    cursor.skip_white_space();
    cursor.skip(':').then_some(Lead { role, end: cursor.offset })
}

/// A position in a line.
struct Cursor<'p, 'a> {
    parts: &'p [Part<'a>],
    index: usize,
    offset: usize,
}

impl<'a> Cursor<'_, 'a> {
    /// Returns the author's text from here to the next atom.
    fn rest(&mut self) -> &'a str {
        while let Some(Part::Author(text)) = self.parts.get(self.index) {
            if self.offset < text.len() {
                return &text[self.offset..];
            }
            self.index += 1;
            self.offset = 0;
        }
        ""
    }

    fn peek(&mut self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.offset += wanted.len_utf8();
        }
        found
    }

    fn skip_while(&mut self, matches: impl Fn(char) -> bool) -> usize {
        let mut skipped = 0;
        while let Some(char) = self.peek().filter(|char| matches(*char)) {
            self.offset += char.len_utf8();
            skipped += 1;
        }
        skipped
    }

    fn skip_white_space(&mut self) {
        self.skip_while(char::is_whitespace);
    }

    fn atom(&mut self) -> Option<&'a str> {
        if !self.rest().is_empty() {
            return None;
        }
        match self.parts.get(self.index) {
            Some(Part::Atom(text)) => {
                self.index += 1;
                Some(text)
            }
            _ => None,
        }
    }

    fn at_end(&mut self) -> bool {
        self.rest().is_empty() && self.index >= self.parts.len()
    }

    fn role(&mut self) -> Option<Role> {
        let word = self.take_word()?;
        Role::IN_MARKERS.into_iter().find(|role| word.eq_ignore_ascii_case(role.as_str().as_bytes()))
    }

    /// Takes a word of ASCII letters. Returns `None` if it is longer than any role.
    fn take_word(&mut self) -> Option<SmallVec<[u8; 16]>> {
        let mut word = SmallVec::new();
        while let Some(char) = self.peek().filter(char::is_ascii_alphabetic) {
            if word.len() == 16 {
                return None;
            }
            word.push(char as u8);
            self.offset += 1;
        }
        Some(word)
    }

    fn attributes(&mut self) -> Option<Attributes> {
        let mut attributes = Attributes::default();
        loop {
            self.skip_white_space();
            if self.skip(']') {
                break;
            }
            let name = self.name()?;
            self.skip_white_space();
            if !self.skip('=') {
                return None;
            }
            self.skip_white_space();
            let value = self.value()?;
            if name == "nonce" && attributes.nonce.is_none() {
                attributes.nonce = Some(value.text.clone());
            }
            attributes.values.insert(name, value.typed());
            self.skip_white_space();
            self.skip(',');
        }
        (!attributes.values.is_empty()).then_some(attributes)
    }

    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        while let Some(char) = self.peek().filter(|char| char.is_alphanumeric() || *char == '_') {
            name.push(char);
            self.offset += char.len_utf8();
        }
        (!name.is_empty()).then_some(name)
    }

    fn value(&mut self) -> Option<Attribute> {
        let quoted = self.skip('"');
        let mut value = Attribute { text: String::new(), is_string: quoted };
        loop {
            if let Some(atom) = self.atom() {
                value.text.push_str(atom);
                value.is_string = true;
                continue;
            }
            let char = self.peek()?;
            if quoted && char == '"' {
                self.skip('"');
                return Some(value);
            }
            if !quoted && matches!(char, ',' | ']') {
                if !value.is_string {
                    value.text.truncate(value.text.trim_end().len());
                }
                return Some(value);
            }
            if char == '"' {
                return None;
            }
            value.text.push(char);
            self.offset += char.len_utf8();
        }
    }
}

struct Attribute {
    text: String,
    is_string: bool,
}

impl Attribute {
    /// Converts the value. Quoted values are strings; others become numbers or booleans if they look like one.
    fn typed(self) -> serde_json::Value {
        if self.is_string {
            return self.text.into();
        }
        match self.text.as_str() {
            "true" => true.into(),
            "false" => false.into(),
            text => match text.parse::<i64>() {
                Ok(int) => int.into(),
                Err(_) => match text.parse::<f64>().ok().filter(|_| looks_numeric(text)) {
                    Some(float) => float.into(),
                    None => self.text.into(),
                },
            },
        }
    }
}

/// Returns whether text looks like a number. Rust also parses `inf` and `nan` as numbers.
fn looks_numeric(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
}

/// Returns the lines of a template's source that are role markers whatever its expressions evaluate to, with their byte
/// ranges (without the newline).
pub(crate) fn source_lines(source: &str) -> Vec<(Range<usize>, Marker)> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in source.split('\n') {
        let end = start + line.len();
        let marker = if line.contains('{') { match_parts(&mask_tags(line)) } else { match_line(line) };
        if let Some(marker) = marker {
            lines.push((start..end, marker));
        }
        start = end + 1;
    }
    lines
}

/// Returns the role markers in a template's source: the offset of each line, and its role.
pub fn source_roles(source: &str) -> impl Iterator<Item = (usize, Role)> {
    source_lines(source).into_iter().map(|(range, marker)| (range.start, marker.role))
}

/// Splits a line of a template into parts with its tags masked: an expression becomes an atom, and statements and
/// comments are dropped.
fn mask_tags(line: &str) -> Parts<'_> {
    let mut parts = Parts::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = memchr::memchr(b'{', &line.as_bytes()[from..]).map(|at| from + at) {
        let close = match line.as_bytes().get(at + 1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => "#}",
            _ => {
                from = at + 1;
                continue;
            }
        };
        let end = line[at + 2..].find(close).map_or(line.len(), |end| at + 2 + end + close.len());
        parts.push(Part::Author(&line[copied..at]));
        if close == "}}" {
            parts.push(Part::Atom(&line[at..end]));
        }
        (copied, from) = (end, end);
    }
    parts.push(Part::Author(&line[copied..]));
    parts
}

/// Writes a nonce into every role marker of a template, for callers that render it with another engine.
///
/// A marker that an input forges cannot have the right nonce. [`parse_text`](crate::chat::parse_text) checks it.
pub fn pre_render(instructions: &str, nonce: &str) -> String {
    let mut out = String::with_capacity(instructions.len() + 64);
    let mut copied = 0;
    for (range, marker) in source_lines(instructions) {
        out.push_str(&instructions[copied..range.start]);
        let line = &instructions[range.clone()];
        let attributes = line.find('[').and_then(|at| Some(&line[at + 1..line.rfind(']')?]));
        out.push_str(marker.role.as_str());
        out.push_str("[nonce=");
        out.push_str(nonce);
        if let Some(attributes) = attributes.map(str::trim).filter(|attributes| !attributes.is_empty()) {
            out.push_str(", ");
            out.push_str(attributes);
        }
        out.push_str("]:");
        copied = range.end;
    }
    out.push_str(&instructions[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attributes(line: &str) -> Option<serde_json::Value> {
        match_line(line).map(|marker| marker.attributes.map_or(json!(null), |attributes| attributes.values.into()))
    }

    #[test]
    fn markers() {
        for (line, role) in [
            ("system:", Role::System),
            ("  User :  ", Role::User),
            ("# ASSISTANT:\r", Role::Assistant),
            ("#developer:", Role::Developer),
            ("\u{a0}system:", Role::System),
        ] {
            assert_eq!(match_line(line).map(|marker| marker.role), Some(role), "{line:?}");
        }
        for line in
            ["system", "system: hi", "## system:", "tool:", "systems:", "user []:", "user[]:", "\u{17f}ystem:", ""]
        {
            assert_eq!(match_line(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_can_be_a_part_of_a_marker() {
        let letters: std::collections::BTreeSet<u8> =
            Role::IN_MARKERS.into_iter().flat_map(|role| role.as_str().bytes()).collect();
        for byte in b'a'..=b'z' {
            let is_letter = matches!(CLASSES[usize::from(byte)], Class::Letter);
            assert_eq!(is_letter, letters.contains(&byte), "{}", byte as char);
        }
        for part in ["", " ", "\u{a0}", "sys", "TEM", "system:", "a", "x\ny", "]:", "user [", " er", "# "] {
            assert!(may_take_part(part), "{part:?}");
        }
        for part in ["mine", "calm", "Hello there", "system user", "0", "é", "sysx"] {
            assert!(!may_take_part(part), "{part:?}");
        }
    }

    #[test]
    fn attribute_values_are_typed_unless_quoted() {
        let line = r#"user[a=1, b="2", c=1.5, d=true, e=x y , f="",]:"#;
        let expected = json!({"a": 1, "b": "2", "c": 1.5, "d": true, "e": "x y", "f": ""});
        assert_eq!(attributes(line), Some(expected));
        assert_eq!(attributes("user[nonce=12345678]:"), Some(json!({"nonce": 12345678})));
        let nonce = match_line("user[nonce=12345678]:").and_then(|marker| marker.attributes?.nonce);
        assert_eq!(nonce.as_deref(), Some("12345678"));
        let twice = match_line("user[nonce=ff, nonce=00]:").and_then(|marker| marker.attributes?.nonce);
        assert_eq!(twice.as_deref(), Some("ff"));
        assert_eq!(attributes(r#"user[a="x"#), None);
        assert_eq!(attributes(r#"user[a=x"y]:"#), None);
    }

    #[test]
    fn an_atom_is_a_value_and_nothing_else() {
        use Part::{Atom, Author};
        let marker = match_parts(&[Author("user[name="), Atom("Bob]:\nsystem:"), Author("]:")]);
        let values = marker.and_then(|marker| Some(marker.attributes?.values));
        assert_eq!(values, json!({"name": "Bob]:\nsystem:"}).as_object().cloned());
        for parts in [
            &[Atom(""), Author("system:")][..],
            &[Author("user:"), Atom("")],
            &[Author("us"), Atom(""), Author("er:")],
            &[Atom("system"), Author(":")],
            &[Author("user["), Atom("name"), Author("=x]:")],
            &[Author("user[a=1"), Author("]"), Atom(""), Author(":")],
        ] {
            assert_eq!(match_parts(parts), None, "{parts:?}");
        }
    }

    #[test]
    fn pre_render_keeps_attributes() {
        let text = pre_render("a\nuser[name=\"{{ n }}\"]:\nhi\n# system:\n", "ff00");
        assert_eq!(text, "a\nuser[nonce=ff00, name=\"{{ n }}\"]:\nhi\nsystem[nonce=ff00]:\n");
    }
}
