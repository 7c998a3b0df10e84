//! The syntaxes of templates. Each compiles to the tree that the evaluator runs.
//!
//! Everything that uses the unstable parts of minijinja is in `jinja`.

pub(super) mod directive;
pub(super) mod jinja;
mod leaves;
pub(super) mod mustache;
