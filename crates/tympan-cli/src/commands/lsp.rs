//! `tympan lsp`: runs the language server.

use std::process::ExitCode;

use tympan_lsp::Exit;

use crate::report::Failure;

pub(super) fn run() -> Result<ExitCode, Failure> {
    // If the client is gone, there is nobody to report an error to.
    let exit = tympan_lsp::serve_stdio().unwrap_or(Exit::Unclean);
    Ok(if exit == Exit::Clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
