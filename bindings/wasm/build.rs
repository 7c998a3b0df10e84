//! Sets the stack of the WebAssembly module.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        // The engine bounds how deeply files and templates nest, for the stacks that threads have elsewhere. The default
        // of the linker is 1 MB.
        println!("cargo::rustc-link-arg-cdylib=-zstack-size=4194304");
    }
}
