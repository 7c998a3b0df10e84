//! Tests of prompts: cases, assertions, statistics and reports.
//!
//! A test file describes cases: inputs of a prompt, and assertions about the messages and the model's answer. A runner
//! checks the cases and returns a [`CaseResult`] for each of them. Reports are made from these results alone.
#![warn(missing_docs)]

pub mod answer;
pub mod baseline;
pub mod case;
pub mod comparison;
pub mod estimate;
pub mod expand;
pub mod file;
pub mod judge;
pub mod log;
pub mod matching;
mod matrix;
mod messages;
mod pool;
pub mod promptfoo;
pub mod quote;
pub mod report;
pub mod result;
pub mod revision;
mod rows;
pub mod runner;
pub mod saved_run;
pub mod similarity;
pub mod statistics;
pub mod token_count;

pub use matching::Mismatch;
pub use result::{Attempt, CaseResult, Check, CheckStatus, Verdict};
pub use token_count::{MessageTokens, TokenCount, WriterTokens};
