//! Lists the models of a provider.

use tympan_core::wire::echo::ECHO;
use tympan_core::wire::{self, ModelInfo};
use tympan_core::{Error, Kind, Prompt, Redactor, Result};

use crate::host::runtime::Runtime;
use crate::model::credentials::Purpose;
use crate::model::run::RunOptions;
use crate::net::exchange::{Received, exchange};
use crate::net::io;

impl Runtime {
    /// Lists the models of the provider in the options, or else of the prompt's provider.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached, responds with an error, or does not offer a list.
    pub fn list_models(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<Vec<ModelInfo>> {
        io::wait(self.list_models_async(prompt, options))
    }

    /// Lists the models of a provider: the async variant of [`Runtime::list_models`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::list_models`].
    pub async fn list_models_async(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<Vec<ModelInfo>> {
        let none = Prompt::from_spec(Default::default());
        let prompt = prompt.unwrap_or(&none);
        if options.select_model(prompt).provider == ECHO {
            return Ok(vec![ModelInfo::new(ECHO)]);
        }
        // A model name is required, but no model is called, so any name will do.
        let run = RunOptions { model: Some("any".to_owned()), ..options.clone() };
        let cassette = self.cassette();
        let mut credentials = self.credentials(prompt, &run, Purpose::of(cassette))?;
        credentials.obtain_token(self).await?;
        let encode = credentials.options(&run, false);
        let target = wire::target(prompt, &encode)?;
        let request = wire::list_models(target.provider, target.base_url, target.api_key, target.token)?;
        let protocol = request.protocol;
        let mut redactor = Redactor::default();
        redactor.register_all(&credentials.secrets(prompt, &run, &request.url));
        let whole = match credentials
            .after(self, exchange(|| self.client(), cassette, request, None, &redactor).await)?
        {
            Received::Whole(whole) => whole,
            // No stream was requested, and the client rejects one, so this is a cassette that was edited.
            Received::Stream(_) => return Err(Error::new(Kind::UnexpectedResponse, "expected a list, found a stream")),
        };
        let models = wire::decode_models(protocol, &String::from_utf8_lossy(&whole.body))?;
        whole.keep()?;
        Ok(models)
    }
}
