//! Tympan's language server.
//!
//! It reads only files of the workspace, resolves no environment variables, and executes nothing. [`serve_stdio`] runs
//! it over standard input and output, as editors expect; [`serve`] runs it over any connection.
#![warn(missing_docs)]

mod actions;
mod analysis;
mod capabilities;
mod catalog;
mod client;
mod completion;
mod diagnostics;
mod document;
mod edit;
mod estimate;
mod failure;
mod features;
mod formatting;
mod hover;
mod key_completion;
mod keys;
mod lenses;
mod mustache;
mod names;
mod navigation;
mod outline;
pub mod position;
mod semantic_tokens;
mod server;
mod settings;
mod suite;
mod suppression;
mod symbol;
mod template;
mod toml_cursor;
mod transport;
mod view;
mod workspace;
mod yaml_cursor;

use std::io;

pub use lsp_server;
pub use server::{Exit, serve};

/// Answers a client over standard input and output until it disconnects.
///
/// # Errors
/// Returns an error if standard output cannot be written.
pub fn serve_stdio() -> io::Result<Exit> {
    let (connection, writer) = transport::connect(io::BufReader::new(io::stdin()), io::stdout());
    let exit = serve(&connection);
    drop(connection);
    writer.join()?;
    Ok(exit)
}
