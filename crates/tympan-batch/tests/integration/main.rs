//! Tests of batches through the public interface, in one program.

mod attacks;
mod columns;
mod files;
mod jobs;
mod prepare;
mod server;
mod stream;
mod support;
