//! The quick way across the border, for what most prompts are given and give: plain data in, messages of text out.
//!
//! JSON has to be escaped, converted to UTF-8 and read again, each of which takes longer than to render. Here all strings
//! cross as one, in UTF-16 as JavaScript has it, and beside it goes what they are strings of: see `../ts/packed.cts`.

use napi::bindgen_prelude::{Float64ArraySlice, Utf16String};
use napi::{Env, JsString};
use napi_derive::napi;
use serde_json::{Number, Value as Json};
use tympan::{ContentPart, JsonMap, Message, Role};

use crate::border::guarded;
use crate::host::here;
use crate::prompt::NativePrompt;
use crate::runtime::NativeRuntime;
use crate::show;

// What a number of the tape says; one that is not negative is the length of a string.
const NULL: i32 = -1;
const TRUE: i32 = -2;
const FALSE: i32 = -3;
const NUMBER: i32 = -4;
const LIST: i32 = -5;
const MAP: i32 = -6;

/// How many units or bytes are looked at together.
const RUN: usize = 8;
/// The digits of a number in a string: four of seven bits, so that any of them is a character of ASCII.
const DIGITS: [u32; 4] = [21, 14, 7, 0];
/// What these digits can say.
const MAX_LENGTH: usize = 1 << 28;
/// What a string ends with that is no JSON.
const PACKED: u8 = 1;

#[napi]
impl NativeRuntime {
    /// As `prepare`; nothing if the inputs have to come as JSON, because a string is no text.
    #[napi]
    pub fn prepare_packed<'env>(
        &self,
        env: &'env Env,
        prompt: &NativePrompt,
        texts: Utf16String,
        tape: Float64ArraySlice<'_>,
        length: u32,
    ) -> napi::Result<Option<JsString<'env>>> {
        let tape = tape.get(..length as usize).unwrap_or_default();
        let Some(Json::Object(inputs)) = (Reader { texts: &texts, tape, keys: Vec::new() }).value() else {
            return Ok(None);
        };
        let messages = here(*env, || guarded(|| self.runtime.prepare(&prompt.prompt, &inputs)))?;
        let simple = messages.iter().map(simple).collect::<Option<Vec<_>>>();
        if let Some(simple) = simple.filter(|all| all.iter().map(|(_, text)| text.len()).sum::<usize>() < MAX_LENGTH) {
            return write(env, &simple).map(Some);
        }
        env.create_string(guarded(|| show::messages(messages))?).map(Some)
    }
}

/// Reads what JavaScript has packed.
struct Reader<'a> {
    texts: &'a [u16],
    tape: &'a [f64],
    keys: Vec<String>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<f64> {
        let (first, rest) = self.tape.split_first()?;
        self.tape = rest;
        Some(*first)
    }

    fn value(&mut self) -> Option<Json> {
        let code = self.next()?;
        if code >= 0.0 {
            return self.text(code).map(Json::String);
        }
        Some(match code as i32 {
            NULL => Json::Null,
            TRUE => Json::Bool(true),
            FALSE => Json::Bool(false),
            NUMBER => number(self.next()?)?,
            LIST => {
                let count = self.next()? as usize;
                (0..count).map(|_| self.value()).collect::<Option<Vec<_>>>()?.into()
            }
            MAP => self.map()?.into(),
            _ => return None,
        })
    }

    fn map(&mut self) -> Option<JsonMap> {
        let count = self.next()? as usize;
        let mut map = JsonMap::with_capacity(count);
        for _ in 0..count {
            let key = self.key()?;
            let value = self.value()?;
            // What `insert` gives back is large, and takes longer to move than a key takes to find.
            *map.entry(key).or_insert(Json::Null) = value;
        }
        Some(map)
    }

    /// A key is a string the first time, and from then on its number, which is negative.
    fn key(&mut self) -> Option<String> {
        let code = self.next()?;
        if code < 0.0 {
            return self.keys.get(-code as usize - 1).cloned();
        }
        let key = self.text(code)?;
        self.keys.push(key.clone());
        Some(key)
    }

    fn text(&mut self, length: f64) -> Option<String> {
        let (text, rest) = self.texts.split_at_checked(length as usize)?;
        self.texts = rest;
        to_utf8(text)
    }
}

/// An integer that is safe in JavaScript, or a number that is not whole.
fn number(number: f64) -> Option<Json> {
    if number.fract() == 0.0 { Some((number as i64).into()) } else { Number::from_f64(number).map(Json::Number) }
}

/// Nothing if half of a surrogate pair is in it. Most text is ASCII, and goes a run at a time.
fn to_utf8(units: &[u16]) -> Option<String> {
    // Runs are written as a whole, whatever is in them.
    let mut bytes = vec![0; 3 * units.len() + RUN];
    let (mut from, mut to) = (0, 0);
    while let Some(rest) = units.get(from..).filter(|rest| !rest.is_empty()) {
        if let Some([a, b, c, d, e, f, g, h]) = rest.first_chunk::<RUN>() {
            let (low, high) = (word([a, b, c, d]), word([e, f, g, h]));
            let run = u64::from(narrow(low)) | u64::from(narrow(high)) << 32;
            bytes.get_mut(to..to + RUN)?.copy_from_slice(&run.to_le_bytes());
            let others = u128::from(low & NOT_ASCII) | u128::from(high & NOT_ASCII) << 64;
            let ascii = others.trailing_zeros() as usize / 16;
            (from, to) = (from + ascii, to + ascii);
            if ascii == RUN {
                continue;
            }
        }
        to += one_char(&units[from..], &mut from)?.encode_utf8(bytes.get_mut(to..)?).len();
    }
    bytes.truncate(to);
    String::from_utf8(bytes).ok()
}

/// What is set in a word of units if one of them is not ASCII.
const NOT_ASCII: u64 = 0xFF80_FF80_FF80_FF80;

/// Four units together.
fn word([a, b, c, d]: [&u16; 4]) -> u64 {
    u64::from(*a) | u64::from(*b) << 16 | u64::from(*c) << 32 | u64::from(*d) << 48
}

/// Four units of ASCII as bytes.
const fn narrow(word: u64) -> u32 {
    let pairs = (word | word >> 8) & 0x0000_FFFF_0000_FFFF;
    (pairs | pairs >> 16) as u32
}

/// Four bytes of ASCII as units.
const fn widen(bytes: u32) -> [u16; 4] {
    let pairs = (bytes as u64 | (bytes as u64) << 16) & 0x0000_FFFF_0000_FFFF;
    let word = (pairs | pairs << 8) & 0x00FF_00FF_00FF_00FF;
    [word as u16, (word >> 16) as u16, (word >> 32) as u16, (word >> 48) as u16]
}

fn one_char(units: &[u16], from: &mut usize) -> Option<char> {
    let char = char::decode_utf16(units.iter().copied()).next()?.ok()?;
    *from += char.len_utf16();
    Some(char)
}

/// The role and the text of a message that has nothing else.
fn simple(message: &Message) -> Option<(Role, &str)> {
    match (&message.content[..], &message.metadata) {
        ([ContentPart::Text(text)], None) if text.anchors.is_empty() => Some((message.role, &text.value)),
        _ => None,
    }
}

/// All texts, then of each message the role and the length of its text, how many there are, and that it is packed.
fn write<'env>(env: &'env Env, messages: &[(Role, &str)]) -> napi::Result<JsString<'env>> {
    let size = messages.iter().map(|(_, text)| text.len() + 1 + DIGITS.len()).sum::<usize>() + DIGITS.len() + 1;
    if messages.iter().all(|(_, text)| text.is_ascii()) {
        let mut bytes = Vec::with_capacity(size);
        messages.iter().for_each(|(_, text)| bytes.extend_from_slice(text.as_bytes()));
        bytes.extend(trailer(messages.iter().map(|(role, text)| (*role, text.len()))));
        return env.create_string_latin1(bytes);
    }
    let mut units: Vec<u16> = Vec::with_capacity(size);
    let mut lengths = Vec::with_capacity(messages.len());
    for (role, text) in messages {
        let before = units.len();
        push_utf16(&mut units, text);
        lengths.push((*role, units.len() - before));
    }
    units.extend(trailer(lengths.into_iter()).map(u16::from));
    env.create_string_utf16(units)
}

fn trailer(lengths: impl ExactSizeIterator<Item = (Role, usize)>) -> impl Iterator<Item = u8> {
    let digits = |number: usize| DIGITS.into_iter().map(move |shift| (number >> shift) as u8 & 0x7F);
    let count = lengths.len();
    let messages = lengths.flat_map(move |(role, length)| [role_code(role)].into_iter().chain(digits(length)));
    messages.chain(digits(count)).chain([PACKED])
}

/// The place of a role in the list of `../ts/packed.cts`.
const fn role_code(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::Developer => 1,
        Role::User => 2,
        Role::Assistant => 3,
        Role::Tool => 4,
    }
}

fn push_utf16(units: &mut Vec<u16>, text: &str) {
    let (start, bytes) = (units.len(), text.as_bytes());
    // Runs are written as a whole, whatever is in them.
    units.resize(start + bytes.len() + RUN, 0);
    let (mut from, mut to) = (0, start);
    while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
        if let Some(run) = rest.first_chunk::<RUN>() {
            let run = u64::from_le_bytes(*run);
            units[to..to + 4].copy_from_slice(&widen(run as u32));
            units[to + 4..to + RUN].copy_from_slice(&widen((run >> 32) as u32));
            let ascii = (run & 0x8080_8080_8080_8080).trailing_zeros() as usize / 8;
            (from, to) = (from + ascii, to + ascii);
            if ascii == RUN {
                continue;
            }
        }
        let Some(char) = text[from..].chars().next() else { break };
        from += char.len_utf8();
        to += char.encode_utf16(&mut units[to..]).len();
    }
    units.truncate(to);
}
