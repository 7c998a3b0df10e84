//! Messages that are packed for JavaScript.

use encoding_rs::mem::convert_str_to_utf16;
use memchr::memmem;
use napi::{Env, JsString};
use tympan::{ContentPart, Message, Role};

/// How long a number is: four digits of seven bits, so that any of them is a character of ASCII.
const DIGITS: usize = 4;
/// What these digits can say of a piece, besides of which sort it is.
const MAX_LENGTH: usize = 1 << (7 * DIGITS - 1);
/// What a string ends with that is no JSON.
const PACKED: u8 = 1;
/// From this length on, a text is worth looking for in the middle of a message.
const EMBEDDED: usize = 512;
/// By how much of its beginning it is looked for.
const PREFIX: usize = 32;
/// How many texts are looked for at a time: the next one, and what follows if a prompt has no use for that.
const WINDOW: usize = 2;
/// How often one may be looked for in vain: each time, a message is searched to its end.
const MAX_MISSES: usize = 4;

/// What goes to JavaScript.
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
enum Piece<'a> {
    New(&'a str),
    /// A long text of the inputs, by its number: the other side has it.
    Known(usize),
}

/// Messages that have nothing but text. First comes all that is new in them; then of each message its role, how many pieces
/// its text has, and of each piece its length, or which of the inputs it is; then how long that was, how many messages there
/// are, and that they are packed.
pub(super) fn packed(messages: &[Message], long: &[&str]) -> Option<Packed> {
    let mut finder = Finder { long, next: 0, misses: 0 };
    let (mut heads, mut pieces) = (Vec::with_capacity(messages.len()), Vec::with_capacity(messages.len()));
    for message in messages {
        let (role, text) = simple(message)?;
        let before = pieces.len();
        finder.split(text, &mut pieces);
        heads.push((role, pieces.len() - before));
    }
    let new = || pieces.iter().filter_map(Piece::if_new);
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

/// The role and the text of a message that has nothing else.
fn simple(message: &Message) -> Option<(Role, &str)> {
    match (&message.content[..], &message.metadata) {
        ([ContentPart::Text(text)], None) if text.anchors.is_empty() => Some((message.role, &text.value)),
        _ => None,
    }
}

impl<'a> Piece<'a> {
    fn if_new(&self) -> Option<&'a str> {
        match self {
            Self::New(text) => Some(text),
            Self::Known(_) => None,
        }
    }
}

/// Finds long texts of the inputs in messages, so that they need not cross a second time. Prompts use them in the order in
/// which they are given, or nearly so; what is not found where it is looked for counts as new, which costs time and no more.
struct Finder<'a> {
    long: &'a [&'a str],
    /// The text that is looked for first.
    next: usize,
    misses: usize,
}

impl Finder<'_> {
    fn split<'t>(&mut self, text: &'t str, pieces: &mut Vec<Piece<'t>>) {
        let mut rest = text;
        while let Some((before, number, after)) = self.find(rest) {
            pieces.extend((!before.is_empty()).then_some(Piece::New(before)));
            pieces.push(Piece::Known(number));
            self.next = number + 1;
            rest = after;
        }
        pieces.extend((!rest.is_empty()).then_some(Piece::New(rest)));
    }

    /// A known text that a text begins with or holds, with what is before and after it.
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

/// What is before and after a known text.
fn split_by<'t>(text: &'t str, known: &str) -> Option<(&'t str, &'t str)> {
    let at = memmem::find(text.as_bytes(), &known.as_bytes()[..PREFIX])?;
    let (before, from) = text.split_at_checked(at)?;
    Some((before, from.strip_prefix(known)?))
}

fn trailer(heads: &[(Role, usize)], pieces: &[Piece<'_>], mut length: impl FnMut(&str) -> usize) -> Vec<u8> {
    let (mut trailer, mut pieces) = (Vec::new(), pieces.iter());
    for (role, count) in heads {
        trailer.push(role_code(*role));
        trailer.extend_from_slice(&digits(*count));
        for piece in pieces.by_ref().take(*count) {
            trailer.extend_from_slice(&digits(match piece {
                Piece::New(text) => 2 * length(text),
                Piece::Known(number) => 2 * number + 1,
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

/// The place of a role in the list of `../../ts/packed.cts`.
const fn role_code(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::Developer => 1,
        Role::User => 2,
        Role::Assistant => 3,
        Role::Tool => 4,
    }
}
