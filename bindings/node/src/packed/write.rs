//! Packing of messages for JavaScript.

use encoding_rs::mem::convert_str_to_utf16;
use memchr::memchr_iter;
use napi::{Env, JsString};
use tympan::{ContentPart, Message, Role};

/// The number of digits of a number. Each digit has seven bits, so that it is an ASCII character.
const DIGITS: usize = 4;
/// The maximum length of a piece. One bit of the digits is reserved for the kind of piece.
const MAX_LENGTH: usize = 1 << (7 * DIGITS - 1);
/// The last character of a packed string. JSON never ends with it.
const PACKED: u8 = 1;
/// The minimum length of an input text that is searched for inside a message.
const EMBEDDED: usize = 512;
/// The length of the prefix to search for.
const PREFIX: usize = 32;
/// The number of texts to search for at a time: the next one, and the one after it in case a prompt does not use the
/// first.
const WINDOW: usize = 2;
/// The maximum number of failed searches, each of which scans a whole message.
const MAX_MISSES: usize = 4;

/// The packed data.
pub(super) enum Packed {
    Ascii(Vec<u8>),
    Units(Vec<u16>),
    Json(String),
}

impl Packed {
    pub(super) fn into_js(self, env: &Env) -> napi::Result<JsString<'_>> {
        match self {
            Self::Ascii(bytes) => env.create_string_latin1(bytes),
            Self::Units(units) => env.create_string_utf16(units),
            Self::Json(text) => env.create_string(text),
        }
    }
}

/// A piece of a message's text.
#[derive(Clone, Copy)]
enum TextRun<'a> {
    New(&'a str),
    /// A long input text, by its number. JavaScript already has it.
    Known(usize),
}

/// Packs messages that contain only text. The new text of all messages comes first. Then follow, for each message, its
/// role, the number of pieces of its text, and for each piece its length or the number of the input. The end contains
/// the length of this part, the number of messages, and the marker for packed strings.
pub(super) fn packed(messages: &[Message], long: &[&str]) -> Option<Packed> {
    let mut finder = Finder { long, next: 0, misses: 0 };
    let (mut heads, mut pieces) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
    for message in messages {
        let (role, text) = simple(message)?;
        let before = pieces.len();
        finder.split(text, &mut pieces);
        heads.push((role, pieces.len() - before));
    }
    let new = || pieces.iter().filter_map(TextRun::if_new);
    let size = new().map(str::len).sum::<usize>();
    let room = size + DIGITS * (heads.len() + pieces.len() + 2) + heads.len() + 1;
    if room.max(long.len()) >= MAX_LENGTH {
        return None;
    }
    if new().all(str::is_ascii) {
        let mut bytes = Vec::with_capacity(room);
        new().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
        bytes.extend(trailer(&heads, &pieces, str::len));
        return Some(Packed::Ascii(bytes));
    }
    let (mut units, mut end) = (vec![0; room], 0);
    let trailer = trailer(&heads, &pieces, |text| {
        let length = convert_str_to_utf16(text, &mut units[end..]);
        end += length;
        length
    });
    units.truncate(end);
    units.extend(trailer.into_iter().map(u16::from));
    Some(Packed::Units(units))
}

/// Returns the role and the text of a message that contains nothing else.
fn simple(message: &Message) -> Option<(Role, &str)> {
    match (&message.content[..], &message.metadata) {
        ([ContentPart::Text(text)], None) if text.anchors.is_empty() => Some((message.role, &text.value)),
        _ => None,
    }
}

impl<'a> TextRun<'a> {
    fn if_new(&self) -> Option<&'a str> {
        match self {
            Self::New(text) => Some(text),
            Self::Known(_) => None,
        }
    }
}

/// Finds long input texts in messages, so that they do not need to cross twice. Prompts mostly use the inputs in order.
/// A text that is not found counts as new, which only costs time.
struct Finder<'a> {
    long: &'a [&'a str],
    /// The text to search for first.
    next: usize,
    misses: usize,
}

impl Finder<'_> {
    fn split<'t>(&mut self, text: &'t str, pieces: &mut Vec<TextRun<'t>>) {
        let mut rest = text;
        while let Some((before, number, after)) = self.find(rest) {
            pieces.extend((!before.is_empty()).then_some(TextRun::New(before)));
            pieces.push(TextRun::Known(number));
            self.next = number + 1;
            rest = after;
        }
        pieces.extend((!rest.is_empty()).then_some(TextRun::New(rest)));
    }

    /// Finds a known text in a text. Returns it with the text before and after it.
    fn find<'t>(&mut self, text: &'t str) -> Option<(&'t str, usize, &'t str)> {
        for (number, known) in self.long.iter().enumerate().skip(self.next).take(WINDOW) {
            if text == *known {
                return Some(("", number, ""));
            }
            if known.len() < EMBEDDED || text.len() < known.len() || self.misses == MAX_MISSES {
                continue;
            }
            match split_by(text, known) {
                Some((before, after)) => return Some((before, number, after)),
                None => self.misses += 1,
            }
        }
        None
    }
}

/// Returns the text before and after a known text.
fn split_by<'t>(text: &'t str, known: &str) -> Option<(&'t str, &'t str)> {
    // The known text is usually near, so a searcher would take longer to build than to use.
    let (text_bytes, prefix) = (text.as_bytes(), &known.as_bytes()[..PREFIX]);
    let mut starts = memchr_iter(prefix[0], text_bytes);
    let at = starts.find(|at| text_bytes[*at..].starts_with(prefix))?;
    let (before, from) = text.split_at_checked(at)?;
    Some((before, from.strip_prefix(known)?))
}

fn trailer(heads: &[(Role, usize)], pieces: &[TextRun<'_>], mut length: impl FnMut(&str) -> usize) -> Vec<u8> {
    let room = DIGITS * (heads.len() + pieces.len() + 2) + heads.len() + 1;
    let (mut trailer, mut pieces) = (Vec::with_capacity(room), pieces.iter());
    for (role, count) in heads {
        trailer.push(role_code(*role));
        trailer.extend_from_slice(&digits(*count));
        for piece in pieces.by_ref().take(*count) {
            trailer.extend_from_slice(&digits(match piece {
                TextRun::New(text) => 2 * length(text),
                TextRun::Known(number) => 2 * number + 1,
            }));
        }
    }
    let size = trailer.len();
    trailer.extend_from_slice(&digits(size));
    trailer.extend_from_slice(&digits(heads.len()));
    trailer.push(PACKED);
    trailer
}

fn digits(number: usize) -> [u8; DIGITS] {
    [21, 14, 7, 0].map(|shift| (number >> shift) as u8 & 0x7F)
}

/// Returns the index of a role in the list of `../../ts/packed.cts`.
const fn role_code(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::Developer => 1,
        Role::User => 2,
        Role::Assistant => 3,
        Role::Tool => 4,
    }
}
