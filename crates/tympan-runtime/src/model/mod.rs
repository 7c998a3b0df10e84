//! Model calls: providers, credentials, complete and streamed responses, and recordings.

pub(crate) mod budget;
pub mod cassette;
pub(crate) mod credentials;
#[cfg(feature = "tokens")]
pub mod estimate;
pub(crate) mod invoke;
pub(crate) mod models;
pub(crate) mod provider;
pub(crate) mod resource;
pub(crate) mod run;
pub mod spending;
pub(crate) mod stream;
pub(crate) mod token;
#[cfg(feature = "tokens")]
pub mod tokens;
