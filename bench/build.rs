//! Selects the workloads and passes their templates to askama, which compiles templates to Rust.
//!
//! The selection is made here because askama needs it at build time. The rest of the crate reads it from
//! `TYMPAN_BENCH_DATA`, so that all libraries get the same work.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-env-changed=TYMPAN_WORKLOADS");
    let crate_dir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let data = data_dir(&crate_dir)?;
    println!("cargo::rerun-if-changed={}", data.display());
    println!("cargo::rustc-env=TYMPAN_BENCH_DATA={}", data.display());

    let out = PathBuf::from(env::var("OUT_DIR")?);
    for workload in ["w1", "w2", "w3"] {
        let source = fs::read_to_string(data.join(format!("{workload}.jinja")))?;
        fs::write(out.join(format!("{workload}.rs")), askama_template(workload, &source))?;
    }
    Ok(())
}

/// Returns `TYMPAN_WORKLOADS`, relative to the root of the repository, or our own data if it is not set.
fn data_dir(crate_dir: &Path) -> io::Result<PathBuf> {
    let root = crate_dir.parent().unwrap_or(crate_dir);
    let dir = env::var_os("TYMPAN_WORKLOADS").map_or_else(|| crate_dir.join("data"), |dir| root.join(dir));
    dir.canonicalize().map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", dir.display())))
}

/// Generates the struct `W1` (`W2`, `W3`) that renders `source`, with the inputs of the same name in `peers/askama.rs`.
///
/// Templates are used unchanged, except for `default`: askama resolves it at compile time, and its filter for optional
/// values is called `assigned_or`.
fn askama_template(workload: &str, source: &str) -> String {
    let source = source.replace("| default(", "| assigned_or(");
    let name = workload.to_uppercase();
    format!(
        "#[derive(askama::Template)]\n#[template(ext = \"txt\", source = {source:?})]\nstruct {name}<'a> {{ {} }}\n",
        fields(workload)
    )
}

fn fields(workload: &str) -> &'static str {
    match workload {
        "w1" => "customer: &'a str, premium: bool, question: &'a str, tone: Option<&'a str>",
        "w2" => "user: &'a User, strict: bool, docs: &'a [Doc], question: &'a str",
        _ => "customer: &'a str, history: &'a [Turn], question: &'a str",
    }
}
