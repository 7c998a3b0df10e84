//! Tympan for Node: conversions between its values and those of JavaScript, and nothing else.
//!
//! Values cross as JSON text, which V8 reads and writes faster than it makes objects for somebody else, and plain ones by a
//! way that is quicker still, `packed`. What is public, and how it is called, is in `../ts`.

// What napi exports, it does not export from a test.
#![cfg_attr(test, allow(dead_code))]

mod border;
mod composition;
mod host;
mod packed;
mod prompt;
mod registry;
mod runtime;
mod show;
mod tool;
mod turn;
mod work;

/// Values that cross are many small pieces, and the system's allocator takes as long as everything else together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
