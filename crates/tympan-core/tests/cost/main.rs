//! The cost of an operation grows no faster than its input.

mod measure;
mod readers;
mod wire;
