//! Tympan for Node: converts values between Rust and JavaScript, and nothing else.
//!
//! Values cross as JSON text, which V8 parses and writes faster than native code can build objects. Plain values use a
//! path that is faster still, `packed`. The public API is in `../ts`.

// Functions that napi exports are unused in tests.
#![cfg_attr(test, allow(dead_code))]

mod arrow;
mod border;
mod check;
mod composition;
mod host;
mod loader;
mod packed;
mod prompt;
mod registry;
mod runtime;
mod show;
mod test_file;
mod tool;
mod turn;
mod work;

/// Converting values allocates many small objects. With the system's allocator, that takes as long as everything else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
