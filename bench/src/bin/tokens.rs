//! Prints, as JSON, how long it takes to count tokens: the first time, which includes unpacking the vocabulary, and
//! then for ordinary text and for one long word.

use std::time::Instant;

use tympan::model::tokens::Encoding;
use tympan_bench::Result;

/// Ordinary text: English with some code.
const TEXT: &str = include_str!("../../../docs/DESIGN.md");

/// How often the counts after the first are timed; the best counts, because other programs run on the machine too.
const REPEATS: usize = 20;

/// How many bytes the long word has.
const WORD: usize = 1_000_000;

/// How long the first count may take.
const MAX_FIRST_MILLISECONDS: f64 = 200.0;

fn main() -> Result<()> {
    let word = "a".repeat(WORD);
    for (name, encoding) in [("cl100k_base", Encoding::Cl100k), ("o200k_base", Encoding::O200k)] {
        let first = seconds(encoding, "hello world") * 1e3;
        let text = TEXT.len() as f64 / best(encoding, TEXT) / 1e6;
        let word = WORD as f64 / best(encoding, &word) / 1e6;
        println!("{{\"name\":\"{name}\",\"first_ms\":{first:.1},\"text_mb_s\":{text:.1},\"word_mb_s\":{word:.1}}}");
        if first > MAX_FIRST_MILLISECONDS {
            return Err(format!("the first count took more than {MAX_FIRST_MILLISECONDS} ms").into());
        }
    }
    Ok(())
}

/// Returns the seconds that the fastest of some counts took.
fn best(encoding: Encoding, text: &str) -> f64 {
    (0..REPEATS).map(|_| seconds(encoding, text)).fold(f64::INFINITY, f64::min)
}

/// Returns the seconds that one count took.
fn seconds(encoding: Encoding, text: &str) -> f64 {
    let started = Instant::now();
    std::hint::black_box(encoding.count(text));
    started.elapsed().as_secs_f64()
}
