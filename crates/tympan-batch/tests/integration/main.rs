//! Tests of batches through the public interface, in one program.

mod attacks;
mod columns;
mod direct;
#[cfg(unix)]
mod direct_kill;
mod files;
mod ipc;
mod jobs;
mod prepare;
mod results;
mod server;
mod stream;
mod support;
