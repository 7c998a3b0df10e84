//! Writes the workloads to `data/`.

fn main() -> std::io::Result<()> {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, text) in tympan_bench::generate::files() {
        std::fs::write(data.join(name), text)?;
    }
    Ok(())
}
