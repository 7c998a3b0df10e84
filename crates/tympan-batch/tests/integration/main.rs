//! Tests of batches through the public interface, in one program.

mod attacks;
mod columns;
mod files;
mod prepare;
mod stream;
mod support;
