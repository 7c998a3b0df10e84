//! Which models a provider serves.

use tympan_core::wire::echo::ECHO;
use tympan_core::wire::{self, ModelInfo};
use tympan_core::{Error, Kind, Prompt, Redactor, Result};

use crate::host::runtime::Runtime;
use crate::model::credentials::Purpose;
use crate::model::run::RunOptions;
use crate::net::exchange::{Received, exchange};
use crate::net::io;

impl Runtime {
    /// The models of the provider that the options name, or else the prompt.
    ///
    /// # Errors
    /// The provider cannot be reached, answers with an error, or has no such list.
    pub fn list_models(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<Vec<ModelInfo>> {
        io::wait(self.list_models_async(prompt, options))
    }

    /// The async twin of [`Runtime::list_models`].
    ///
    /// # Errors
    /// As [`Runtime::list_models`].
    pub async fn list_models_async(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<Vec<ModelInfo>> {
        let none = Prompt::from_spec(Default::default());
        let prompt = prompt.unwrap_or(&none);
        if options.provider_of(prompt) == ECHO {
            return Ok(vec![ModelInfo { id: ECHO.to_owned(), display_name: None, created: None, owned_by: None }]);
        }
        // No model is called, and any name will do.
        let run = RunOptions { model: Some("any".to_owned()), ..options.clone() };
        let cassette = self.options().cassette.as_ref();
        let credentials = self.credentials(prompt, &run, Purpose::of(cassette))?;
        let encode = credentials.options(&run, false);
        let target = wire::target(prompt, &encode)?;
        let request = wire::list_models(target.provider, target.base_url, target.api_key)?;
        let protocol = request.protocol;
        let mut redactor = Redactor::default();
        redactor.register_all(&credentials.secrets(prompt, &run, &request.url));
        let whole = match exchange(|| self.client(), cassette, request, &redactor).await? {
            Received::Whole(whole) => whole,
            // Nobody has asked for one: the client refuses it, and so this is a file that somebody has changed.
            Received::Stream(_) => return Err(Error::new(Kind::UnexpectedResponse, "expected a list, found a stream")),
        };
        let models = wire::decode_models(protocol, &String::from_utf8_lossy(&whole.body))?;
        whole.keep()?;
        Ok(models)
    }
}
