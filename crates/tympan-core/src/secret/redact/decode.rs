//! Resolves the escapes in a text, and maps every decoded byte back to its position.
//!
//! All kinds of escapes are resolved in one pass, because a text may mix them: `%41`, `%u0041`, `\u0041`, `\u{41}`,
//! `\x41`, `\"`, `&#65;`, `&#x41;` and `&quot;`. Text that is escaped several times takes several passes.

/// The maximum number of decoding passes. Each level of JSON inside JSON strings takes a pass, and so does each escape
/// of an escape.
const MAX_PASSES: usize = 5;

/// A text with its escapes resolved.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// For each byte, the start of the character or escape that it comes from. The last entry is the end of the text.
    places: Vec<usize>,
}

impl Decoded {
    /// Resolves the escapes in a text; returns `None` if it has none.
    fn of(text: &[u8]) -> Option<Self> {
        text.iter().position(|byte| matches!(byte, b'%' | b'\\' | b'&'))?;
        let mut decoded = Self { bytes: Vec::with_capacity(text.len()), places: Vec::with_capacity(text.len() + 1) };
        let (mut at, mut has_escapes) = (0, false);
        while at < text.len() {
            let before = decoded.bytes.len();
            let length = match unit(&text[at..]) {
                Some((Unit::Byte(byte), length)) => {
                    decoded.bytes.push(byte);
                    length
                }
                Some((Unit::Char(char), length)) => {
                    decoded.bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                    length
                }
                None => {
                    decoded.bytes.push(text[at]);
                    1
                }
            };
            has_escapes |= length > 1;
            decoded.places.resize(decoded.bytes.len(), at);
            debug_assert!(decoded.bytes.len() > before);
            at += length;
        }
        decoded.places.push(text.len());
        has_escapes.then_some(decoded)
    }

    /// Maps a range of decoded bytes to a range of the original text.
    pub(super) fn place(&self, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.places[range.start]..self.places[range.end]
    }

    /// Resolves escapes once more. Positions still refer to the original text.
    fn again(&self) -> Option<Self> {
        let mut next = Self::of(&self.bytes)?;
        next.places.iter_mut().for_each(|place| *place = self.places[*place]);
        Some(next)
    }
}

/// Iterates over the text after each pass that changes it.
pub(super) fn passes(text: &[u8]) -> impl Iterator<Item = Decoded> {
    let mut last = Decoded::of(text);
    let mut left = MAX_PASSES;
    std::iter::from_fn(move || {
        let current = last.take()?;
        left -= 1;
        last = if left == 0 { None } else { current.again() };
        Some(current)
    })
}

/// Returns the text after all passes.
pub(super) fn fully_decoded(text: &str) -> String {
    let last = passes(text.as_bytes()).last();
    last.map_or_else(|| text.to_owned(), |decoded| String::from_utf8_lossy(&decoded.bytes).into_owned())
}

/// The value of an escape.
enum Unit {
    Byte(u8),
    Char(char),
}

/// Decodes the escape at the start of a text, and returns its value and its length.
fn unit(text: &[u8]) -> Option<(Unit, usize)> {
    match *text {
        [b'%', b'u' | b'U', ..] => digits(&text[2..], 4).and_then(char::from_u32).map(|char| (Unit::Char(char), 6)),
        [b'%', ..] => digits(&text[1..], 2).and_then(byte).map(|byte| (byte, 3)),
        [b'\\', b'u', b'{', ..] => braced(&text[3..]).map(|(char, length)| (Unit::Char(char), length + 3)),
        [b'\\', b'u', ..] => utf16(text),
        [b'\\', b'U', ..] => digits(&text[2..], 8).and_then(char::from_u32).map(|char| (Unit::Char(char), 10)),
        [b'\\', b'x' | b'X', ..] => digits(&text[2..], 2).and_then(byte).map(|byte| (byte, 4)),
        [b'\\', escaped, ..] => simple(escaped).map(|byte| (Unit::Byte(byte), 2)),
        [b'&', ..] => entity(text),
        _ => None,
    }
}

/// Parses exactly `count` hexadecimal digits.
fn digits(text: &[u8], count: usize) -> Option<u32> {
    text.get(..count)?.iter().try_fold(0_u32, |number, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(number << 4 | digit)
    })
}

fn byte(number: u32) -> Option<Unit> {
    u8::try_from(number).ok().map(Unit::Byte)
}

/// Decodes the rest of `\u{41}`, after `\u{`.
fn braced(text: &[u8]) -> Option<(char, usize)> {
    let count = text.iter().take(9).position(|byte| *byte == b'}')?;
    let char = digits(text, count).filter(|_| (1..=8).contains(&count)).and_then(char::from_u32)?;
    Some((char, count + 1))
}

/// Decodes `\u0041`, or two such escapes that form a surrogate pair.
fn utf16(text: &[u8]) -> Option<(Unit, usize)> {
    let first = digits(&text[2..], 4)?;
    if let Some(char) = char::from_u32(first) {
        return Some((Unit::Char(char), 6));
    }
    let rest = text.get(6..)?.strip_prefix(b"\\u")?;
    let pair = [first, digits(rest, 4)?].map(|unit| u16::try_from(unit).unwrap_or_default());
    let char = char::decode_utf16(pair).next()?.ok()?;
    Some((Unit::Char(char), 12))
}

/// Returns the meaning of a character after a backslash.
fn simple(escaped: u8) -> Option<u8> {
    match escaped {
        b'n' => Some(b'\n'),
        b't' => Some(b'\t'),
        b'r' => Some(b'\r'),
        b'b' => Some(8),
        b'f' => Some(12),
        b' ' => Some(b' '),
        other => other.is_ascii_punctuation().then_some(other),
    }
}

/// The length of the longest supported entity: `&#x0010ffff;`.
const LONGEST_ENTITY: usize = 12;

fn entity(text: &[u8]) -> Option<(Unit, usize)> {
    let end = text.iter().take(LONGEST_ENTITY).position(|byte| *byte == b';')?;
    let char = match &text[1..end] {
        [b'#', b'x' | b'X', hex @ ..] if !hex.is_empty() => char::from_u32(digits(hex, hex.len())?)?,
        [b'#', decimal @ ..] => char::from_u32(str::from_utf8(decimal).ok()?.parse().ok()?)?,
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        b"plus" => '+',
        b"sol" => '/',
        b"equals" => '=',
        b"nbsp" => ' ',
        _ => return None,
    };
    Some((Unit::Char(char), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved() {
        for (text, expected) in [
            ("plain", "plain"),
            ("%41%62%C3%a9", "Abé"),
            (r"\u0041\u00E9\ud83d\ude00\u{1F600}", "Aé😀😀"),
            (r"\x41\n\/\\\U0001F600", "A\n/\\😀"),
            ("&#65;&#x42;&quot;&amp;", "AB\"&"),
            // Several passes.
            (r"\\u0041 %2541 %255cu0041 &amp;#65;", "A A A A"),
            // Text that only looks like an escape.
            (r"100% \q \u12 \ud83d &nope; & %zz %", r"100% \q \u12 \ud83d &nope; & %zz %"),
            (r"\u{} \u{110000} &#1114112; &#x;", r"\u{} \u{110000} &#1114112; &#x;"),
        ] {
            assert_eq!(fully_decoded(text), expected, "{text}");
        }
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = r"a%2541\u0062c";
        let last = passes(text.as_bytes()).last().expect("it has escapes");
        assert_eq!(last.bytes, b"aAbc");
        assert_eq!(&text[last.place(&(1..2))], "%2541");
        assert_eq!(&text[last.place(&(1..4))], r"%2541\u0062c");
    }
}
