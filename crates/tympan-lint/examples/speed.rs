//! Measures how many prompts are checked per second: `cargo run --release --example speed -- FILE…`.

use std::time::{Duration, Instant};

use tympan_core::format::NoReferences;
use tympan_core::text::source::SourceFile;
use tympan_lint::{Options, check_file};

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement reads files and clocks")]
fn main() {
    let options = Options::default();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let source = SourceFile::new(&*path, text);
        let mut count = 0_u32;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) {
            for _ in 0..100 {
                std::hint::black_box(check_file(&source, &mut NoReferences, &options));
            }
            count += 100;
        }
        let each = start.elapsed() / count;
        println!("{path}: {each:?} each, {:.0} per second", 1.0 / each.as_secs_f64());
    }
}
