//! Generated templates and inputs render as with minijinja. The first bytes choose the inputs, and each of the others
//! makes one choice of the grammar that the property tests use, so a changed byte changes a part of the template.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tympan::JsonMap;

// Most of the property tests are compiled only as tests.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/tympan-core/tests/integration/differential.rs"]
mod differential;
#[path = "../../crates/tympan-core/tests/integration/grammar/mod.rs"]
mod grammar;
#[path = "../../crates/tympan-core/tests/integration/oracle/mod.rs"]
mod oracle;

use grammar::{Exprs, block};

/// The number of bytes that choose the inputs.
const SEED: usize = 2;

fn inputs(bytes: &[u8]) -> Option<JsonMap> {
    let mut seed = [1; 16];
    seed[..bytes.len()].copy_from_slice(bytes);
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    Some(differential::inputs().new_tree(&mut runner).ok()?.current())
}

thread_local! {
    static BLOCK: grammar::Rule = block(3, &Exprs::nested(2));
    static EXPRESSION: grammar::Rule = Exprs::nested(3).any;
}

fuzz_target!(
    init: {
        // minijinja panics in a few operations. The comparison catches that, but not if the process ends first.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        let Some((seed, [mode, choices @ ..])) = bytes.split_at_checked(SEED) else { return };
        let Some(inputs) = inputs(seed) else { return };
        let mut choices = choices.iter().copied();
        let template = if mode & 1 == 0 {
            BLOCK.with(|block| block.generate(&mut choices))
        } else {
            format!("{{{{ {} }}}}", EXPRESSION.with(|expression| expression.generate(&mut choices)))
        };
        if let Err(difference) = differential::compare(&template, &inputs, mode & 2 == 0) {
            eprintln!("{difference}");
            std::process::abort();
        }
    }
);
