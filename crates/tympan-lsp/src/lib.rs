//! Tympan's language server.
//!
//! It reads only files of the workspace, resolves no environment variables, and executes nothing. [`serve_stdio`] runs
//! it over standard input and output, as editors expect; [`serve`] runs it over any connection.
#![warn(missing_docs)]
#![allow(dead_code, reason = "hover, completion and navigation are not answered yet")]

mod actions;
mod analysis;
mod capabilities;
mod client;
mod diagnostics;
mod document;
mod edit;
mod failure;
mod features;
pub mod position;
mod server;
mod suppression;
mod transport;
mod workspace;

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
