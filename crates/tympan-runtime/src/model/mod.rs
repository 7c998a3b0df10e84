//! Model calls: providers, credentials, answers as a whole or as a stream, and recordings of them.

pub mod cassette;
pub(crate) mod credentials;
pub(crate) mod invoke;
pub mod keys;
pub(crate) mod models;
pub(crate) mod provider;
pub(crate) mod run;
pub(crate) mod stream;
pub mod tokens;
