//! Generated templates and inputs render as with minijinja. The bytes are the random numbers of the generator that the
//! property tests use, so a changed byte changes a part of the template.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

// Most of the property tests are compiled only as tests.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/tympan-core/tests/integration/differential.rs"]
mod differential;
#[path = "../../crates/tympan-core/tests/integration/grammar/mod.rs"]
mod grammar;
#[path = "../../crates/tympan-core/tests/integration/oracle/mod.rs"]
mod oracle;

use grammar::{Exprs, block};

thread_local! {
    static TEMPLATES: BoxedStrategy<String> = prop_oneof![
        block(3, &Exprs::nested(2)),
        Exprs::nested(3).any.prop_map(|expression| format!("{{{{ {expression} }}}}")),
    ]
    .boxed();
}

/// Appends numbers that depend on the bytes: a generator without numbers would not end.
fn long(bytes: &[u8]) -> Vec<u8> {
    let mut state = bytes.iter().fold(1, |state: u64, byte| state.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let numbers = std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    });
    bytes.iter().copied().chain(numbers.take(TAIL)).collect()
}

/// More bytes than any template takes.
const TAIL: usize = 1 << 16;

fuzz_target!(
    init: {
        // minijinja panics in a few operations. The comparison catches that, but not if the process ends first.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        let rng = TestRng::from_seed(RngAlgorithm::PassThrough, &long(bytes));
        let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
        let strategy = TEMPLATES.with(|templates| (templates.clone(), differential::inputs(), any::<bool>()));
        let Ok(generated) = strategy.new_tree(&mut runner) else { return };
        let (template, inputs, lenient) = generated.current();
        if let Err(difference) = differential::compare(&template, &inputs, lenient) {
            eprintln!("{difference}");
            std::process::abort();
        }
    }
);
