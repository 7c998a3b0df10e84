//! Lists the files of the web page, so that they become part of the program.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("assets");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    list(&root, &mut files)?;
    files.sort();
    let mut out = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root)?.to_str().ok_or("a name is not UTF-8")?.replace('\\', "/");
        let _ = writeln!(out, "    ({name:?}, include_bytes!({:?})),", file.display().to_string());
    }
    out.push(']');
    fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("assets.rs"), out)?;
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
