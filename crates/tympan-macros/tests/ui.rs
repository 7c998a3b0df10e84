//! Code that does not compile, with the compiler's messages. Each file costs a run of the compiler, so there are few.

use std::path::Path;

/// Copies the prompts to the crate that trybuild generates, because paths of prompts are relative to the crate that is
/// compiled.
fn copy_prompts() -> std::io::Result<()> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tests");
    let copies = target.join("trybuild").join(env!("CARGO_PKG_NAME")).join("prompts");
    std::fs::create_dir_all(&copies)?;
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompts"))? {
        let entry = entry?;
        std::fs::copy(entry.path(), copies.join(entry.file_name()))?;
    }
    Ok(())
}

#[test]
fn messages() {
    copy_prompts().expect("the prompts can be copied");
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail_*.rs");
}
