//! Tests of the language server through its protocol.

mod client;
mod code_actions;
mod fixtures;
mod positions;
mod protocol;
mod robustness;
mod show;
