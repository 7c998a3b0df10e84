//! Model calls: providers, credentials, answers as a whole or as a stream, and recordings of them.

pub(crate) mod budget;
pub mod cassette;
pub(crate) mod credentials;
pub(crate) mod invoke;
pub(crate) mod models;
pub(crate) mod provider;
pub(crate) mod run;
pub(crate) mod stream;
#[cfg(feature = "tokens")]
pub mod tokens;
