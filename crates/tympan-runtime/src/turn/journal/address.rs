//! Checks the address that a journal names.

use tympan_core::wire::{is_allowed, parse_endpoint, target};
use tympan_core::{Error, Kind, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::credentials::Purpose;
use crate::model::run::RunOptions;
use crate::turn::journal::Header;

impl Runtime {
    /// Checks the address that a journal says the model was called at. Whoever can write to a journal is not the host, so
    /// another address than the usual one has to be named or allowed again.
    ///
    /// # Errors
    /// It is such an address.
    pub(crate) fn check_journal_address(&self, header: &mut Header, prompt: &Prompt, now: &RunOptions) -> Result<()> {
        let Some(then) = header.base_url.as_deref().filter(|_| now.base_url.is_none()) else { return Ok(()) };
        let run = RunOptions { base_url: None, ..header.run(now) };
        let usual = self.credentials(prompt, &run, Purpose::Replay).ok().and_then(|usual| {
            let target = target(prompt, &usual.options(&run, false)).ok()?;
            target.base_url.map(str::to_owned)
        });
        if usual.as_deref() == Some(then) {
            // Then it is whoever names it now that counts.
            header.base_url = None;
            return Ok(());
        }
        let url = parse_endpoint(then)?;
        if is_allowed(&url, &self.options().allow_endpoints)? {
            return Ok(());
        }
        let origin = url.origin().ascii_serialization();
        let details = format_args!("the turn started with {origin}, an endpoint that is set only by its journal");
        Err(Error::new(Kind::UntrustedEndpoint, details).with_help(format!(
            "to continue there, pass the URL again with `--base-url {then}` or RunOptions::base_url, or allow it \
                with `--allow-endpoint {origin}` or RuntimeOptions::allow_endpoints"
        )))
    }
}
