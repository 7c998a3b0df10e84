//! Byte pair encoding, as OpenAI's models use it.
//!
//! A pattern splits a text into pieces, and each piece is encoded separately. A piece starts out as single bytes. As
//! long as two neighbours together form a token, the two whose token has the lowest rank are merged, leftmost first. A
//! token's rank is its position in the vocabulary.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Read;

use flate2::read::GzDecoder;
use foldhash::fast::FixedState;
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

/// The vocabulary is fixed, so nobody can add keys that collide, and the hashes need no random seed.
type Ranks = HashMap<&'static [u8], u32, FixedState>;

/// Counts the tokens of one vocabulary.
pub(super) struct Tokenizer {
    ranks: Ranks,
    pattern: Regex,
}

/// How `cl100k_base` splits a text, apart from [`WHITESPACE`]. The first alternative that matches takes the piece.
///
/// tiktoken 0.14 keeps the whitespace at the end of a text in one piece, even if it contains a line break. The counts
/// are the same, because no token of whitespace continues after its last line break.
const CL100K: &[&str] = &[
    r"'(?i:[sdmt]|ll|ve|re)",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
];

/// How `o200k_base` splits a text, apart from [`WHITESPACE`].
const O200K: &[&str] = &[
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
];

/// The last alternative of both: whitespace that contains no line break.
const WHITESPACE: &str = r"\s+";

impl Tokenizer {
    /// Builds the tokenizer of `cl100k_base`.
    pub(super) fn cl100k() -> Self {
        Self::new(include_bytes!("../../../data/cl100k_base.gz"), CL100K)
    }

    /// Builds the tokenizer of `o200k_base`.
    pub(super) fn o200k() -> Self {
        Self::new(include_bytes!("../../../data/o200k_base.gz"), O200K)
    }

    fn new(vocabulary: &[u8], alternatives: &[&str]) -> Self {
        Self { ranks: unpack(vocabulary), pattern: split_pattern(alternatives) }
    }

    /// Counts the tokens of a text. A special token, such as `<|endoftext|>`, counts as ordinary text.
    pub(super) fn count(&self, text: &str) -> usize {
        let mut merger = Merger::default();
        self.pieces(text).map(|piece| merger.count(&self.ranks, piece.as_bytes())).sum()
    }

    /// Returns where each token of a text ends, in bytes. A token may end inside of a character.
    pub(super) fn ends(&self, text: &str) -> Vec<usize> {
        let mut merger = Merger::default();
        let (mut ends, mut start) = (Vec::new(), 0);
        for piece in self.pieces(text) {
            let end = start + piece.len();
            if merger.count(&self.ranks, piece.as_bytes()) == 1 {
                ends.push(end);
            } else {
                ends.extend(merger.ends(piece.len()).map(|at| start + at));
            }
            start = end;
        }
        ends
    }

    /// Splits a text into pieces.
    ///
    /// Both patterns are published with the ending `\s+(?!\S)|\s+`: of several spaces, the last one belongs to
    /// what follows. The regex engine has no look-ahead, because it guarantees linear time, so we shorten the match.
    fn pieces<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let found = self.pattern.find(Input::new(text).range(start..).anchored(Anchored::Yes))?;
            let mut piece = &text[found.range()];
            if found.pattern().as_usize() == 1 && found.end() < text.len() {
                let last = piece.chars().next_back().map_or(0, char::len_utf8);
                if last < piece.len() {
                    piece = &piece[..piece.len() - last];
                }
            }
            start += piece.len();
            Some(piece)
        })
    }
}

/// Builds the pattern that splits texts. Its pattern with index 1 is [`WHITESPACE`].
fn split_pattern(alternatives: &[&str]) -> Regex {
    Regex::new_many(&[&alternatives.join("|"), WHITESPACE]).expect("the pattern is valid")
}

/// Unpacks a vocabulary of `data/`. The tokens stay in memory until the process ends.
fn unpack(packed: &[u8]) -> Ranks {
    let mut data = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut data).expect("the vocabulary is intact");
    let data: &'static [u8] = data.leak();
    let (count, rest) = data.split_first_chunk().expect("the vocabulary starts with a count");
    let (lengths, mut tokens) = rest.split_at(u32::from_le_bytes(*count) as usize);
    let mut ranks = Ranks::with_capacity_and_hasher(lengths.len(), FixedState::default());
    for (rank, &length) in (0..).zip(lengths) {
        let (token, rest) = tokens.split_at(length.into());
        ranks.insert(token, rank);
        tokens = rest;
    }
    ranks
}

/// Merges the bytes of a piece into tokens.
///
/// For n bytes, the queue starts with fewer than n pairs. There are fewer than n merges, and each adds at most two
/// pairs. So fewer than 3n pairs go through the queue, and the time is at most proportional to n log n.
#[derive(Default)]
struct Merger {
    /// For each position, the length of the token that starts there, or 0.
    starting: Vec<u8>,
    /// For each position where a token starts, the length of the token before it, or 0.
    before: Vec<u8>,
    /// Neighbours that form a token. Pairs that a merge has made obsolete are skipped when they come out.
    queue: BinaryHeap<Reverse<Pair>>,
    #[cfg(test)]
    steps: usize,
}

/// Two neighbours that form a token. The order is the order of merging.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    rank: u32,
    start: usize,
    length: u8,
}

impl Merger {
    fn count(&mut self, ranks: &Ranks, piece: &[u8]) -> usize {
        if ranks.contains_key(piece) {
            return 1;
        }
        self.starting.clear();
        self.starting.resize(piece.len(), 1);
        self.starting.push(0);
        self.before.clear();
        self.before.push(0);
        self.before.resize(piece.len() + 1, 1);
        for start in 0..piece.len() {
            self.add(ranks, piece, start, 1, self.starting[start + 1]);
        }
        let mut tokens = piece.len();
        while let Some(Reverse(Pair { start, length, .. })) = self.queue.pop() {
            self.step();
            // Tokens only grow, so if the lengths still add up, these are the same two tokens.
            let left = self.starting[start];
            let right = self.starting[start + usize::from(left)];
            if left == 0 || right == 0 || usize::from(left) + usize::from(right) != usize::from(length) {
                continue;
            }
            let end = start + usize::from(length);
            self.starting[start + usize::from(left)] = 0;
            self.starting[start] = length;
            self.before[end] = length;
            tokens -= 1;
            self.add(ranks, piece, start, length, self.starting[end]);
            let before = self.before[start];
            self.add(ranks, piece, start - usize::from(before), before, length);
        }
        tokens
    }

    /// Returns where the tokens of the piece end that was counted last, if it has more than one.
    fn ends(&self, bytes: usize) -> impl Iterator<Item = usize> {
        let next = move |at: &usize| Some(at + usize::from(self.starting[*at])).filter(|_| *at < bytes);
        std::iter::successors(Some(0), next).skip(1)
    }

    /// Adds two neighbours to the queue if they form a token.
    fn add(&mut self, ranks: &Ranks, piece: &[u8], start: usize, left: u8, right: u8) {
        self.step();
        if left == 0 || right == 0 {
            return;
        }
        let Some(length) = left.checked_add(right) else { return };
        if let Some(&rank) = ranks.get(&piece[start..start + usize::from(length)]) {
            self.queue.push(Reverse(Pair { rank, start, length }));
        }
    }

    fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use regex_automata::hybrid::dfa::DFA;
    use sha2::{Digest as _, Sha256};

    /// The hashes of the published vocabularies.
    const PUBLISHED: [&str; 2] = [
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ];

    #[test]
    fn vocabularies_are_the_published_ones() {
        for (tokenizer, published) in [Tokenizer::cl100k(), Tokenizer::o200k()].iter().zip(PUBLISHED) {
            let mut tokens: Vec<_> = tokenizer.ranks.iter().map(|(token, rank)| (rank, token)).collect();
            tokens.sort_unstable();
            let mut hash = Sha256::new();
            for (rank, token) in tokens {
                hash.update(format!("{} {rank}\n", BASE64_STANDARD.encode(token)));
            }
            let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, published);
        }
    }

    #[test]
    fn pieces_cover_the_whole_text() {
        let text = "It's  a\u{3000} b,\n\n  \u{301}x 漢字🦀 \u{10ffff}\0 12345 \n ";
        for tokenizer in [Tokenizer::cl100k(), Tokenizer::o200k()] {
            assert_eq!(tokenizer.pieces(text).collect::<String>(), text);
        }
    }

    /// Texts whose length is proportional to `n`, made to be slow.
    fn adversarial(n: usize) -> Vec<String> {
        let repeated =
            ["a", "ab", "A", "aA", "あ", "あA", "漢字", "é", "\u{301}", "🦀", "0", "=", "!/\n", "'", "'l", "'s"]
                .into_iter()
                .chain([" ", " \n", "\n ", "\r", "\u{3000}", "  x", " '", "x "]);
        let mut texts: Vec<_> = repeated.map(|part| part.repeat(n)).collect();
        for (first, run, last) in
            [("あ", "A", ""), ("", "A", "a"), ("\n", " ", "x"), ("", " ", "\nx"), ("!", "\n", "!")]
        {
            texts.push(format!("{first}{}{last}", run.repeat(n)));
        }
        // All letters in a fixed, irregular order.
        let mut state = 1_u32;
        texts.push(
            (0..n)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    char::from(b'a' + (state >> 24) as u8 % 26)
                })
                .collect(),
        );
        texts
    }

    #[test]
    fn merging_takes_few_steps_per_byte() {
        for tokenizer in [Tokenizer::cl100k(), Tokenizer::o200k()] {
            for n in [1000, 2000, 4000] {
                for text in adversarial(n) {
                    let mut merger = Merger::default();
                    merger.count(&tokenizer.ranks, text.as_bytes());
                    let most = 6 * text.len();
                    assert!(merger.steps <= most, "{} steps, at most {most}: {n} × {text:.20}", merger.steps);
                }
            }
        }
    }

    #[test]
    fn splitting_reads_no_byte_often() {
        for alternatives in [CL100K, O200K] {
            let pattern = split_pattern(alternatives);
            let tokenizer = Tokenizer { ranks: Ranks::default(), pattern };
            for n in [1000, 2000, 4000] {
                for text in adversarial(n) {
                    let read = bytes_read(&tokenizer, alternatives, &text);
                    let most = 4 * text.len() + 8;
                    assert!(read <= most, "{read} bytes read, at most {most}: {n} × {text:.20}");
                }
            }
        }
    }

    /// Counts the bytes that an automaton reads to find all pieces of a text.
    fn bytes_read(tokenizer: &Tokenizer, alternatives: &[&str], text: &str) -> usize {
        let dfa = DFA::new_many(&[&alternatives.join("|"), WHITESPACE]).expect("the pattern is valid");
        let mut cache = dfa.create_cache();
        let (mut read, mut start) = (0, 0);
        for piece in tokenizer.pieces(text) {
            let input = Input::new(text).range(start..).anchored(Anchored::Yes);
            let mut state = dfa.start_state_forward(&mut cache, &input).expect("the cache is large enough");
            for &byte in &text.as_bytes()[start..] {
                if state.is_dead() {
                    break;
                }
                state = dfa.next_state(&mut cache, state, byte).expect("the cache is large enough");
                read += 1;
            }
            start += piece.len();
        }
        read
    }
}
