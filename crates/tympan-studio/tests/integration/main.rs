//! Tests of the server, over real connections.

mod access;
mod client;
mod export;
mod files;
mod lsp;
mod reports;
mod run;
