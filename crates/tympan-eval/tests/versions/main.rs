//! Tokens of prompts, comparisons of their versions, and files of git revisions.

mod comparison;
mod revision;
mod tokens;
