//! Unpacking of inputs from JavaScript.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use encoding_rs::mem::convert_utf16_to_str_partial;
use memchr::memchr_iter;
use tympan::template::input::InputData;

// The codes of the tape. A number that is not negative is the length of a string.
const NULL: i32 = -1;
const TRUE: i32 = -2;
const FALSE: i32 = -3;
const NUMBER: i32 = -4;
const LIST: i32 = -5;
const MAP: i32 = -6;
const ALIKE: i32 = -7;
const ABSENT: i32 = -8;

/// The minimum length of a long text. Long texts are stored separately.
const LONG: usize = 128;
/// The maximum number of UTF-8 bytes of a UTF-16 code unit.
const MAX_BYTES: usize = 3;
/// The character that replaces a lone surrogate.
const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();
/// The free space that a conversion needs at its end.
const MARGIN: usize = 16;

/// All packed texts in UTF-8: first the short ones, then the long ones. Inputs use no other memory.
pub(super) struct Texts<'a> {
    utf8: String,
    /// The short texts in UTF-16.
    short: &'a [u16],
    short_bytes: usize,
    /// The end of each long text.
    long_ends: Vec<usize>,
}

impl<'a> Texts<'a> {
    /// Returns `None` if a text contains a lone surrogate, or the character that replaces one: the two look the same
    /// after the conversion.
    fn new(units: &'a [u16], short_start: usize, tape: &[f64]) -> Option<Self> {
        let (mut long, short) = units.split_at_checked(short_start)?;
        let mut writer = TextWriter { utf8: "\0".repeat(units.len() + units.len() / 8 + MARGIN), end: 0 };
        writer.push(short);
        let (short_bytes, mut long_ends) = (writer.end, Vec::new());
        for length in long_lengths(tape) {
            writer.push(long.split_off(..length)?);
            long_ends.push(writer.end);
        }
        let utf8 = &writer.utf8.as_bytes()[..writer.end];
        // Its first byte is rare, so a search for that is enough, and needs no preparation.
        let is_replaced = memchr_iter(REPLACEMENT[0], utf8).any(|at| utf8[at..].starts_with(REPLACEMENT));
        (long.is_empty() && !is_replaced).then_some(Self { utf8: writer.utf8, short, short_bytes, long_ends })
    }

    /// Returns the long texts, in the order in which JavaScript numbers them.
    pub(super) fn long(&self) -> Vec<&str> {
        (0..self.long_ends.len()).filter_map(|at| self.long_at(at)).collect()
    }

    fn long_at(&self, at: usize) -> Option<&str> {
        let start = at.checked_sub(1).map_or(self.short_bytes, |before| self.long_ends[before]);
        self.utf8.get(start..*self.long_ends.get(at)?)
    }

    /// Returns the short text at a position. Returns `None` if it ends inside of a surrogate pair.
    fn short_at(&self, start: Place, length: usize) -> Option<(&str, Place)> {
        let units = self.short.get(start.unit..start.unit + length)?;
        let bytes = if self.short_bytes == self.short.len() { length } else { utf8_length(units) };
        let end = Place { unit: start.unit + length, byte: start.byte + bytes };
        Some((self.utf8.get(start.byte..end.byte)?, end))
    }
}

/// A position in the short texts.
#[derive(Clone, Copy, Default)]
struct Place {
    unit: usize,
    byte: usize,
}

/// Returns the lengths of all long texts.
fn long_lengths(tape: &[f64]) -> impl Iterator<Item = usize> {
    let mut codes = tape.iter();
    std::iter::from_fn(move || {
        loop {
            let code = *codes.next()?;
            if code >= LONG as f64 {
                return Some(code as usize);
            }
            if code < 0.0 && matches!(code as i32, NUMBER | LIST | MAP) {
                codes.next();
            }
        }
    })
}

/// Returns the number of UTF-8 bytes of a text. Each half of a surrogate pair counts as two bytes.
fn utf8_length(units: &[u16]) -> usize {
    // Most texts are ASCII. This loop reads all units, so that it can be vectorized.
    if units.iter().fold(0, |all, unit| all | unit) < 0x80 {
        return units.len();
    }
    let bytes = |unit: &u16| match unit {
        0..0x80 => 1,
        0x80..0x800 | 0xD800..0xE000 => 2,
        _ => 3,
    };
    units.iter().map(bytes).sum()
}

/// A buffer that texts are converted into.
struct TextWriter {
    /// The bytes after `end` are free space.
    utf8: String,
    end: usize,
}

impl TextWriter {
    fn push(&mut self, mut units: &[u16]) {
        loop {
            let (read, written) = convert_utf16_to_str_partial(units, &mut self.utf8[self.end..]);
            self.end += written;
            units = &units[read..];
            if units.is_empty() {
                return;
            }
            let more = MAX_BYTES * units.len() + MARGIN;
            self.utf8.push_str(&"\0".repeat(more));
        }
    }
}

/// Splits the packed data into texts and tape. The tape starts with its own end, and the start and end of the short
/// texts. What follows its end is left over from another prompt.
pub(super) fn unpack<'a>(units: &'a [u16], tape: &'a [f64]) -> Option<(Texts<'a>, &'a [f64])> {
    let [length, start, end] = tape.first_chunk()?;
    let tape = tape.get(3..*length as usize)?;
    let texts = Texts::new(units.get(..*end as usize)?, *start as usize, tape)?;
    Some((texts, tape))
}

/// Reads packed inputs.
pub(super) struct Reader<'a> {
    texts: &'a Texts<'a>,
    /// The number of long texts read so far.
    long: usize,
    /// The position of the next short text.
    short: Place,
    tape: &'a [f64],
    room: &'a Bump,
    /// The keys of the last map at each depth, because lists often contain maps with the same keys.
    shapes: Vec<&'a [&'a str]>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(texts: &'a Texts<'a>, tape: &'a [f64], room: &'a Bump) -> Self {
        Self { texts, long: 0, short: Place::default(), tape, room, shapes: Vec::new() }
    }

    pub(super) fn inputs(mut self) -> Option<InputData<'a>> {
        let code = self.next()?;
        let inputs = self.value(code, 0)?;
        let is_all_read = self.long == self.texts.long_ends.len() && self.short.unit == self.texts.short.len();
        (self.tape.is_empty() && is_all_read).then_some(inputs)
    }

    fn next(&mut self) -> Option<f64> {
        let (first, rest) = self.tape.split_first()?;
        self.tape = rest;
        Some(*first)
    }

    /// Reads a value. Most are texts and numbers, so these are read where they are needed, and only the others by a call.
    #[expect(clippy::inline_always, reason = "a result that is returned through memory takes longer than its value")]
    #[inline(always)]
    fn value(&mut self, code: f64, depth: usize) -> Option<InputData<'a>> {
        if code >= 0.0 {
            return self.text(code as usize).map(InputData::Str);
        }
        if code as i32 == NUMBER {
            return self.next().map(number);
        }
        self.other_value(code as i32, depth)
    }

    #[inline(never)]
    fn other_value(&mut self, code: i32, depth: usize) -> Option<InputData<'a>> {
        match code {
            NULL => Some(InputData::Null),
            TRUE => Some(InputData::Bool(true)),
            FALSE => Some(InputData::Bool(false)),
            LIST => self.list(depth),
            MAP => {
                let names = self.names()?;
                if self.shapes.len() <= depth {
                    self.shapes.resize(depth + 1, &[]);
                }
                self.shapes[depth] = names;
                self.map(names, depth)
            }
            ALIKE => self.map(self.shapes.get(depth)?, depth),
            _ => None,
        }
    }

    /// Reads a count of items. Each item takes at least one number, so larger counts are invalid.
    fn count(&mut self) -> Option<usize> {
        self.next().map(|count| count as usize).filter(|count| *count <= self.tape.len())
    }

    fn list(&mut self, depth: usize) -> Option<InputData<'a>> {
        let count = self.count()?;
        let mut items = BumpVec::with_capacity_in(count, self.room);
        for _ in 0..count {
            let code = self.next()?;
            items.push(self.value(code, depth + 1)?);
        }
        Some(InputData::List(items.into_bump_slice()))
    }

    fn names(&mut self) -> Option<&'a [&'a str]> {
        let count = self.count()?;
        let mut names = BumpVec::with_capacity_in(count, self.room);
        for _ in 0..count {
            let length = self.next()? as usize;
            names.push(self.text(length)?);
        }
        Some(names.into_bump_slice())
    }

    fn map(&mut self, names: &[&'a str], depth: usize) -> Option<InputData<'a>> {
        let mut entries = BumpVec::with_capacity_in(names.len(), self.room);
        for name in names {
            match self.next()? {
                code if code as i32 == ABSENT => {}
                code => entries.push((*name, self.value(code, depth + 1)?)),
            }
        }
        InputData::map(entries.into_bump_slice())
    }

    fn text(&mut self, length: usize) -> Option<&'a str> {
        if length >= LONG {
            self.long += 1;
            return self.texts.long_at(self.long - 1);
        }
        let (text, end) = self.texts.short_at(self.short, length)?;
        self.short = end;
        Some(text)
    }
}

/// Converts a number to an integer if it is whole, and to a float otherwise. Packed integers are safe in JavaScript.
fn number(number: f64) -> InputData<'static> {
    if number.fract() == 0.0 { InputData::Int(number as i64) } else { InputData::Float(number) }
}
