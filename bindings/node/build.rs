//! Sets the linker options for a Node addon.

fn main() {
    napi_build::setup();
}
