//! The encoded forms of secrets, and a search for all of them at once.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, general_purpose::NO_PAD};

use super::decode::fully_decoded;

/// Shorter secrets are not searched for in base64 and hexadecimal, because those forms also occur in other text.
const MIN_ENCODED_BYTES: usize = 8;

/// The lengths of the prefixes by which forms are looked up: the long one for most forms, and the short one for forms
/// that are shorter than it.
const WINDOWS: [usize; 2] = [16, super::MIN_SECRET_BYTES];

/// All forms of all secrets, in lowercase.
///
/// The search uses a rolling hash over a window of bytes. If the hash equals that of a form's prefix, the form is
/// compared. The time is therefore linear in the length of the text, however many forms there are.
#[derive(Clone, Default)]
pub(super) struct Needles {
    forms: Vec<Vec<u8>>,
    indexes: [Index; WINDOWS.len()],
}

/// The forms with the same prefix length.
#[derive(Clone, Default)]
struct Index {
    /// The indexes of forms, by the hash of their prefix.
    forms: HashMap<u64, Vec<usize>>,
    /// A bit for every hash that may be in the map. Empty if the map is empty.
    filter: Vec<u64>,
}

/// The base-2 logarithm of the number of bits in a filter.
const FILTER_BITS: u32 = 16;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

fn extended(hash: u64, byte: u8) -> u64 {
    hash.wrapping_add(u64::from(byte) + 1).wrapping_mul(FACTOR)
}

fn hash_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |hash, byte| extended(hash, *byte))
}

fn filter_place(hash: u64) -> (usize, u64) {
    let bit = hash >> (u64::BITS - FILTER_BITS);
    ((bit / 64) as usize, 1 << (bit % 64))
}

impl Needles {
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Adds all forms of a secret.
    pub(super) fn add_forms_of(&mut self, secret: &str) {
        let mut forms = vec![secret.to_owned(), secret.to_uppercase(), secret.to_lowercase(), fully_decoded(secret)];
        // As in URL-encoded form data.
        forms.push(secret.replace(' ', "+"));
        if secret.len() >= MIN_ENCODED_BYTES {
            for alphabet in [alphabet::STANDARD, alphabet::URL_SAFE] {
                let engine = GeneralPurpose::new(&alphabet, NO_PAD);
                forms.extend((0..3).map(|shift| base64_inside(secret, shift, &engine)));
            }
            forms.push(hexadecimal(secret));
        }
        forms.iter_mut().for_each(|form| form.make_ascii_lowercase());
        forms.sort_unstable();
        forms.dedup();
        forms.into_iter().for_each(|form| self.add(form.into_bytes()));
    }

    fn add(&mut self, form: Vec<u8>) {
        let Some(number) = WINDOWS.iter().position(|window| form.len() >= *window) else { return };
        let (index, hash) = (&mut self.indexes[number], hash_of(&form[..WINDOWS[number]]));
        index.filter.resize(1 << (FILTER_BITS - 6), 0);
        let (word, bit) = filter_place(hash);
        index.filter[word] |= bit;
        index.forms.entry(hash).or_default().push(self.forms.len());
        self.forms.push(form);
    }

    /// Reports every occurrence of every form in a lowercase text.
    pub(super) fn find(&self, text: &[u8], mut found: impl FnMut(Range<usize>)) {
        for (window, index) in WINDOWS.into_iter().zip(&self.indexes) {
            if index.filter.is_empty() || text.len() < window {
                continue;
            }
            // The power of the factor that the first byte of the window has been multiplied by.
            let leaving = (0..window).fold(1, |power: u64, _| power.wrapping_mul(FACTOR));
            let mut hash = hash_of(&text[..window]);
            for start in 0..=text.len() - window {
                let (word, bit) = filter_place(hash);
                if index.filter[word] & bit != 0 {
                    for number in index.forms.get(&hash).into_iter().flatten() {
                        let form = &self.forms[*number];
                        if text[start..].starts_with(form) {
                            found(start..start + form.len());
                        }
                    }
                }
                if let Some(next) = text.get(start + window) {
                    // `extended` multiplies the byte that leaves the window by the factor once more.
                    let first = (u64::from(text[start]) + 1).wrapping_mul(leaving).wrapping_mul(FACTOR);
                    hash = extended(hash, *next).wrapping_sub(first);
                }
            }
        }
    }
}

fn hexadecimal(secret: &str) -> String {
    secret.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Returns the base64 characters that the secret alone determines, if it starts `shift` bytes after a multiple of
/// three.
fn base64_inside(secret: &str, shift: usize, engine: &GeneralPurpose) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(secret.as_bytes());
    let encoded = engine.encode(&bytes);
    // The first characters contain bits of the preceding bytes, and the last one may contain bits of the following
    // bytes.
    let first = (shift * 8).div_ceil(6);
    encoded[first..bytes.len() * 8 / 6].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found() {
        let mut needles = Needles::default();
        for form in ["abcd", "cdef", "a-form-of-exactly-many-bytes", "sixteen-bytes-ab"] {
            needles.add(form.as_bytes().to_vec());
        }
        let text = "abcdef sixteen-bytes-ab xabcdabcd a-form-of-exactly-many-bytes";
        let mut found = Vec::new();
        needles.find(text.as_bytes(), |range| found.push(&text[range]));
        let expected = ["sixteen-bytes-ab", "a-form-of-exactly-many-bytes", "abcd", "cdef", "abcd", "abcd"];
        assert_eq!(found, expected);
        for short in ["", "abc", "sixteen-bytes-a"] {
            needles.find(short.as_bytes(), |range| panic!("{short}: {range:?}"));
        }
    }
}
