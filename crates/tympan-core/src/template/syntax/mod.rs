//! The template syntaxes. Each compiles to the tree that the evaluator runs.
//!
//! All code that uses unstable parts of minijinja is in `jinja`.

pub(super) mod directive;
pub(super) mod jinja;
mod leaves;
pub(super) mod mustache;
