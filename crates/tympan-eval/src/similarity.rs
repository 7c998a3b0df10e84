//! Measures of the similarity of two texts, from 0 to 1.
//!
//! They need no model, and have the same result on every machine:
//!
//! - `words` is the cosine of the word counts. The order of the words does not matter.
//! - `characters` is one minus the Levenshtein distance divided by the length of the longer text. Characters are Unicode
//!   scalar values.
//! - `longest` is the F1 score of ROUGE-L: twice the length of the longest common subsequence of words, divided by the
//!   number of words of both texts.
//!
//! Words are those of Unicode's word boundaries (UAX #29), in lower case and without punctuation. Texts without words
//! are similar only if they are equal. The last two measures take time proportional to the product of the lengths, so
//! they refuse texts that are too long.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use tympan_core::spec::test_suite::Measure;
use unicode_segmentation::UnicodeSegmentation;

/// The maximum product of the lengths of two texts, in characters or words. A machine word handles 64 of them at once.
const MAX_PRODUCT: usize = 2_500_000_000;

/// Two texts are too long for a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    measure: Measure,
    lengths: (usize, usize),
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (measure, what) = match self.measure {
            Measure::Characters => ("characters", "characters"),
            _ => ("longest", "words"),
        };
        let (a, b) = self.lengths;
        write!(f, "the measure `{measure}` cannot compare texts of {a} and {b} {what}; the measure `words` can")
    }
}

impl std::error::Error for TooLong {}

/// Returns the similarity of two texts.
///
/// ```
/// use tympan_core::spec::test_suite::Measure;
/// use tympan_eval::similarity::similarity;
///
/// assert_eq!(similarity(Measure::Words, "Good day, Ada!", "ada, good day")?, 1.0);
/// assert_eq!(similarity(Measure::Characters, "kitten", "kitchen")?, 1.0 - 2.0 / 7.0);
/// assert_eq!(similarity(Measure::Longest, "the cat sat", "the dog sat")?, 2.0 / 3.0);
/// # Ok::<(), tympan_eval::similarity::TooLong>(())
/// ```
///
/// # Errors
/// Returns an error if the texts are too long for the measure.
pub fn similarity(measure: Measure, a: &str, b: &str) -> Result<f64, TooLong> {
    match measure {
        Measure::Characters => characters(a, b),
        Measure::Longest => longest(a, b),
        _ => Ok(cosine(a, b)),
    }
}

/// Splits a text into words in lower case.
fn words(text: &str) -> Vec<String> {
    text.unicode_words().map(str::to_lowercase).collect()
}

/// Returns the similarity of texts of which at least one has no words.
fn without_words(a: &str, b: &str, words: [usize; 2]) -> f64 {
    if words == [0, 0] && a.trim() == b.trim() { 1.0 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "no text has 2^52 words")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn cosine(a: &str, b: &str) -> f64 {
    let (words_a, words_b) = (words(a), words(b));
    if words_a.is_empty() || words_b.is_empty() {
        return without_words(a, b, [words_a.len(), words_b.len()]);
    }
    let (counts_a, counts_b) = (counts(&words_a), counts(&words_b));
    // Integers, because the order of a hash map must not change the sum.
    let square = |counts: &HashMap<&str, u128>| counts.values().map(|count| count * count).sum::<u128>();
    let product = |(word, count): (&&str, &u128)| counts_b.get(word).copied().unwrap_or_default() * count;
    let dot: u128 = counts_a.iter().map(product).sum();
    #[expect(clippy::cast_precision_loss, reason = "rounding does not matter here")]
    let cosine = dot as f64 / ((square(&counts_a) as f64).sqrt() * (square(&counts_b) as f64).sqrt());
    // Rounding must not make equal texts differ.
    if counts_a == counts_b { 1.0 } else { cosine.clamp(0.0, 1.0) }
}

fn counts(words: &[String]) -> HashMap<&str, u128> {
    words.iter().fold(HashMap::new(), |mut counts, word| {
        *counts.entry(word.as_str()).or_default() += 1;
        counts
    })
}

fn characters(a: &str, b: &str) -> Result<f64, TooLong> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let longer = a.len().max(b.len());
    if longer == 0 {
        return Ok(1.0);
    }
    let (short_a, short_b) = without_common_ends(&a, &b);
    check_length(Measure::Characters, short_a, short_b)?;
    Ok(ratio(longer - distance(short_a, short_b), longer))
}

fn longest(a: &str, b: &str) -> Result<f64, TooLong> {
    let (words_a, words_b) = (words(a), words(b));
    if words_a.is_empty() || words_b.is_empty() {
        return Ok(without_words(a, b, [words_a.len(), words_b.len()]));
    }
    let (short_a, short_b) = without_common_ends(&words_a, &words_b);
    check_length(Measure::Longest, short_a, short_b)?;
    let common = words_a.len() - short_a.len() + common_subsequence(short_a, short_b);
    Ok(ratio(2 * common, words_a.len() + words_b.len()))
}

/// Removes what two lists have in common at the beginning and at the end. It is part of every best alignment.
fn without_common_ends<'l, T: Eq>(a: &'l [T], b: &'l [T]) -> (&'l [T], &'l [T]) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    (&a[..a.len() - end], &b[..b.len() - end])
}

fn check_length<T>(measure: Measure, a: &[T], b: &[T]) -> Result<(), TooLong> {
    match a.len().saturating_mul(b.len()) <= MAX_PRODUCT {
        true => Ok(()),
        false => Err(TooLong { measure, lengths: (a.len(), b.len()) }),
    }
}

/// The positions of an item in a list, as bits: the index of a machine word, and its bits if there are any. Most items
/// occur in few places.
type Positions = Vec<(usize, u64)>;

fn positions<T: Eq + Hash>(list: &[T]) -> HashMap<&T, Positions> {
    let mut found: HashMap<&T, Positions> = HashMap::new();
    for (index, item) in list.iter().enumerate() {
        let (block, bit) = (index / 64, 1 << (index % 64));
        let positions = found.entry(item).or_default();
        match positions.last_mut().filter(|(last, _)| *last == block) {
            Some((_, bits)) => *bits |= bit,
            None => positions.push((block, bit)),
        }
    }
    found
}

/// Returns the bits of a machine word, and moves on to the next one.
fn next_bits(positions: &mut &[(usize, u64)], block: usize) -> u64 {
    match positions {
        [(next, bits), rest @ ..] if *next == block => {
            let bits = *bits;
            *positions = rest;
            bits
        }
        _ => 0,
    }
}

/// Returns the Levenshtein distance, with the bit-parallel algorithm of Myers in Hyyrö's version for several words.
fn distance<T: Eq + Hash>(a: &[T], b: &[T]) -> usize {
    let Some(last) = a.len().checked_sub(1) else { return b.len() };
    let (found, blocks) = (positions(a), last / 64 + 1);
    // The bits say where a column of the table of distances grows or shrinks by one.
    let (mut plus, mut minus) = (vec![u64::MAX; blocks], vec![0_u64; blocks]);
    let mut score = a.len();
    for item in b {
        let mut positions = found.get(item).map_or(&[][..], Vec::as_slice);
        let (mut carry_plus, mut carry_minus) = (1_u64, 0_u64);
        for block in 0..blocks {
            let (p, m) = (plus[block], minus[block]);
            let equal = next_bits(&mut positions, block);
            let vertical = equal | m;
            let equal = equal | carry_minus;
            let horizontal = (((equal & p).wrapping_add(p)) ^ p) | equal;
            let (mut grows, mut shrinks) = (m | !(horizontal | p), p & horizontal);
            if block == blocks - 1 {
                score += usize::from(grows >> (last % 64) & 1 == 1);
                score -= usize::from(shrinks >> (last % 64) & 1 == 1);
            }
            let (next_plus, next_minus) = (grows >> 63, shrinks >> 63);
            grows = grows << 1 | carry_plus;
            shrinks = shrinks << 1 | carry_minus;
            plus[block] = shrinks | !(vertical | grows);
            minus[block] = grows & vertical;
            (carry_plus, carry_minus) = (next_plus, next_minus);
        }
    }
    score
}

/// Returns the length of the longest common subsequence, with the bit-parallel algorithm of Hyyrö.
fn common_subsequence<T: Eq + Hash>(a: &[T], b: &[T]) -> usize {
    let found = positions(a);
    let mut state = vec![u64::MAX; a.len().div_ceil(64)];
    for positions in b.iter().filter_map(|item| found.get(item)) {
        let mut positions = positions.as_slice();
        let mut carry = false;
        for (block, word) in state.iter_mut().enumerate() {
            let matched = *word & next_bits(&mut positions, block);
            let (sum, over) = word.overflowing_add(matched);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            carry = over || over_again;
            *word = sum | (*word - matched);
        }
    }
    let bits = |(block, word): (usize, &u64)| {
        let used = (a.len() - block * 64).min(64);
        let unused = if used == 64 { 0 } else { u64::MAX << used };
        (word | unused).count_zeros() as usize
    };
    state.iter().enumerate().map(bits).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Measure; 3] = [Measure::Words, Measure::Characters, Measure::Longest];

    fn of(measure: Measure, a: &str, b: &str) -> f64 {
        similarity(measure, a, b).expect("short texts")
    }

    #[test]
    fn measures_have_known_values() {
        // The example of Lin's paper on ROUGE: LCS of "police killed the gunman" and "police kill the gunman" is 3.
        assert_eq!(of(Measure::Longest, "police killed the gunman", "police kill the gunman"), 0.75);
        assert_eq!(of(Measure::Longest, "police killed the gunman", "the gunman kill police"), 0.5);
        assert_eq!(of(Measure::Characters, "sitting", "kitten"), 1.0 - 3.0 / 7.0);
        assert_eq!(of(Measure::Characters, "", "abc"), 0.0);
        // (1·1 + 1·1) / (√3 · √2)
        assert!((of(Measure::Words, "red green blue", "Blue, red.") - 2.0 / 6.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(of(Measure::Words, "東京は晴れ", "晴れは東京"), 1.0, "each ideograph is a word");
        assert_eq!((of(Measure::Words, "!!!", "???"), of(Measure::Words, "!!!", " !!! ")), (0.0, 1.0));
    }

    #[test]
    fn long_texts_are_bounded() {
        let (long, other) = ("a b ".repeat(60_000), "c d ".repeat(60_000));
        assert_eq!(of(Measure::Words, &long, &other), 0.0);
        for measure in [Measure::Characters, Measure::Longest] {
            let error = similarity(measure, &long, &other).expect_err("too long");
            assert!(error.to_string().contains("the measure `words` can"), "{error}");
            // What both have in common costs nothing.
            let changed = format!("{long}x{long}");
            assert!(of(measure, &changed, &format!("{long}y{long}")) > 0.999);
        }
    }

    /// Texts over a small alphabet, so that there is something in common, and longer than a machine word.
    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", " ", "é", ". ", "東"]), 0..200)
            .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn measures_are_symmetric_and_in_range(a in text(), b in text()) {
            for measure in ALL {
                let score = of(measure, &a, &b);
                prop_assert!((0.0..=1.0).contains(&score), "{:?} {}", measure, score);
                prop_assert_eq!(score, of(measure, &b, &a));
                prop_assert_eq!(of(measure, &a, &a), 1.0);
            }
        }

        #[test]
        fn distances_are_those_of_the_textbook(a in text(), b in text()) {
            let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            prop_assert_eq!(distance(&left, &right), strsim::levenshtein(&a, &b));
            prop_assert_eq!(common_subsequence(&left, &right), textbook(&left, &right));
        }
    }

    fn textbook(a: &[char], b: &[char]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (index, y) in b.iter().enumerate() {
                let above = row[index + 1];
                row[index + 1] = if x == y { diagonal + 1 } else { above.max(row[index]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }
}
