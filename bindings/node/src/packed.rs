//! The quick way across the border, for what most prompts are given and give: plain data in, messages of text out.
//!
//! JSON has to be escaped, converted to UTF-8 and read again, each of which takes longer than to render. Here all strings
//! cross as one, in UTF-16 as JavaScript has it, and beside it goes what they are strings of: see `../ts/packed.cts`.

use encoding_rs::mem::{convert_str_to_utf16, convert_utf16_to_str, utf16_valid_up_to};
use napi::bindgen_prelude::{Float64ArraySlice, Uint16ArraySlice};
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
const ALIKE: i32 = -7;
const ABSENT: i32 = -8;

/// From this length on, texts stand by themselves.
const LONG: usize = 128;
/// What a unit of UTF-16 takes at most in UTF-8.
const MAX_BYTES: usize = 3;
/// How long a number in a string is: four digits of seven bits, so that any of them is a character of ASCII.
const DIGITS: usize = 4;
/// What these digits can say.
const MAX_LENGTH: usize = 1 << (7 * DIGITS);
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
        texts: Uint16ArraySlice<'_>,
        tape: Float64ArraySlice<'_>,
    ) -> napi::Result<Option<JsString<'env>>> {
        let Some(inputs) = Reader::new(&texts, &tape).and_then(Reader::inputs) else {
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
    long: &'a [u16],
    short: &'a [u16],
    has_surrogates: bool,
    tape: &'a [f64],
    /// Of each depth, a map with the keys of the last one there, and without values. Lists are of maps that are alike, and to
    /// copy one takes less than to make it key by key.
    shapes: Vec<JsonMap>,
    /// Where texts are converted, because only then is known how long they are.
    scratch: String,
}

impl<'a> Reader<'a> {
    /// The tape begins with where it ends, and where short texts begin and end: what follows is left from another prompt.
    fn new(texts: &'a [u16], tape: &'a [f64]) -> Option<Self> {
        let [length, start, end] = tape.first_chunk()?;
        let tape = tape.get(3..*length as usize)?;
        let texts = texts.get(..*end as usize)?;
        let (long, short) = texts.split_at_checked(*start as usize)?;
        // All units are looked at, whatever is found: that goes many at a time.
        let has_surrogates = texts.iter().fold(false, |found, unit| found | (unit & 0xF800 == 0xD800));
        Some(Self { long, short, has_surrogates, tape, shapes: Vec::new(), scratch: String::new() })
    }

    fn inputs(mut self) -> Option<JsonMap> {
        if self.next()? as i32 != MAP {
            return None;
        }
        let mut inputs = self.shape()?;
        self.fill_map(&mut inputs, 0)?;
        (self.tape.is_empty() && self.long.is_empty() && self.short.is_empty()).then_some(inputs)
    }

    fn next(&mut self) -> Option<f64> {
        let (first, rest) = self.tape.split_first()?;
        self.tape = rest;
        Some(*first)
    }

    /// Reads a value into its place: to move values takes longer than to read them.
    fn value(&mut self, code: f64, depth: usize, place: &mut Json) -> Option<()> {
        if code >= 0.0 {
            *place = Json::String(self.text(code as usize)?.to_owned());
            return Some(());
        }
        match code as i32 {
            NULL => *place = Json::Null,
            TRUE => *place = Json::Bool(true),
            FALSE => *place = Json::Bool(false),
            NUMBER => *place = number(self.next()?)?,
            LIST => *place = Json::Array(self.list(depth)?),
            MAP => {
                let shape = self.shape()?;
                self.keep(&shape, depth);
                self.map(shape, depth, place)?;
            }
            ALIKE => {
                let shape = self.shapes.get(depth)?.clone();
                self.map(shape, depth, place)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Json>> {
        let count = self.next()? as usize;
        // Each takes a number at least.
        let mut items = vec![Json::Null; count.min(self.tape.len())];
        for place in &mut items {
            let code = self.next()?;
            self.value(code, depth + 1, place)?;
        }
        Some(items)
    }

    fn shape(&mut self) -> Option<JsonMap> {
        let count = self.next()? as usize;
        let mut shape = JsonMap::with_capacity(count.min(self.tape.len()));
        for _ in 0..count {
            let length = self.next()? as usize;
            shape.entry(self.text(length)?.to_owned()).or_insert(Json::Null);
        }
        Some(shape)
    }

    fn keep(&mut self, shape: &JsonMap, depth: usize) {
        if self.shapes.len() <= depth {
            self.shapes.resize_with(depth + 1, JsonMap::new);
        }
        self.shapes[depth].clone_from(shape);
    }

    fn map(&mut self, shape: JsonMap, depth: usize, place: &mut Json) -> Option<()> {
        *place = Json::Object(shape);
        self.fill_map(place.as_object_mut()?, depth)
    }

    /// Gives a map that has only keys its values.
    fn fill_map(&mut self, map: &mut JsonMap, depth: usize) -> Option<()> {
        let mut absent = Vec::new();
        for (at, place) in map.values_mut().enumerate() {
            match self.next()? {
                code if code as i32 == ABSENT => absent.push(at),
                code => self.value(code, depth + 1, place)?,
            }
        }
        if !absent.is_empty() {
            let mut places = 0..;
            map.retain(|_, _| places.next().is_some_and(|at| !absent.contains(&at)));
        }
        Some(())
    }

    /// Nothing if half of a surrogate pair is in it.
    fn text(&mut self, length: usize) -> Option<&str> {
        let texts = if length < LONG { &mut self.short } else { &mut self.long };
        let units = texts.split_off(..length)?;
        if self.has_surrogates && utf16_valid_up_to(units) < length {
            return None;
        }
        if self.scratch.len() < MAX_BYTES * length {
            self.scratch = "\0".repeat((MAX_BYTES * length).next_power_of_two());
        }
        let written = convert_utf16_to_str(units, &mut self.scratch);
        self.scratch.get(..written)
    }
}

/// An integer that is safe in JavaScript, or a number that is not whole.
fn number(number: f64) -> Option<Json> {
    if number.fract() == 0.0 { Some((number as i64).into()) } else { Number::from_f64(number).map(Json::Number) }
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
    let size = messages.iter().map(|(_, text)| text.len()).sum::<usize>();
    if messages.iter().all(|(_, text)| text.is_ascii()) {
        let mut bytes = Vec::with_capacity(size + trailer_size(messages.len()));
        messages.iter().for_each(|(_, text)| bytes.extend_from_slice(text.as_bytes()));
        bytes.extend(trailer(messages.iter().map(|(role, text)| (*role, text.len()))));
        return env.create_string_latin1(bytes);
    }
    let mut units = vec![0; size + trailer_size(messages.len())];
    let mut end = 0;
    let lengths = messages.iter().map(|(role, text)| {
        let length = convert_str_to_utf16(text, &mut units[end..]);
        end += length;
        (*role, length)
    });
    let trailer = trailer(lengths);
    units.truncate(end);
    units.extend(trailer.into_iter().map(u16::from));
    env.create_string_utf16(units)
}

const fn trailer_size(messages: usize) -> usize {
    (1 + DIGITS) * (messages + 1)
}

fn trailer(lengths: impl ExactSizeIterator<Item = (Role, usize)>) -> Vec<u8> {
    let count = lengths.len();
    let mut trailer = Vec::with_capacity(trailer_size(count));
    for (role, length) in lengths {
        trailer.push(role_code(role));
        trailer.extend_from_slice(&digits(length));
    }
    trailer.extend_from_slice(&digits(count));
    trailer.push(PACKED);
    trailer
}

fn digits(number: usize) -> [u8; DIGITS] {
    [21, 14, 7, 0].map(|shift| (number >> shift) as u8 & 0x7F)
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
