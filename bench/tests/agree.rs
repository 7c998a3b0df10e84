//! Rates are only comparable if the work is the same: every library must produce the expected text.

use tympan_bench::{data, generate, peers};

type Result = tympan_bench::Result<()>;

#[test]
fn every_library_renders_the_expected_text() -> Result {
    for workload in data::workloads()? {
        peers::rows(&workload)?;
    }
    Ok(())
}

#[test]
fn every_library_renders_a_large_value() -> Result {
    let large = data::large();
    assert_eq!(large.inputs["text"].as_str().map(str::len), Some(1 << 20));
    peers::rows(&large)?;
    Ok(())
}

#[test]
fn a_row_can_be_had_by_its_name() -> Result {
    let workload = data::Workload::named("w1")?;
    peers::row(&workload, "minijinja render")?.run(2);
    assert!(peers::row(&workload, "minijinja prepare").is_err());
    Ok(())
}

#[test]
fn a_wrong_text_is_refused() -> Result {
    let mut workload = data::Workload::named("w1")?;
    workload.expected.push('!');
    let refusal = peers::row(&workload, "minijinja render").err().map(|e| e.to_string());
    assert!(refusal.is_some_and(|e| e.starts_with("minijinja render on w1: line ")));
    Ok(())
}

#[test]
fn the_data_is_what_the_generator_writes() -> Result {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, text) in generate::files() {
        let found = std::fs::read_to_string(dir.join(&name))?;
        assert!(found == text, "{name} is out of date: cargo run --manifest-path bench/Cargo.toml --example generate");
    }
    Ok(())
}
