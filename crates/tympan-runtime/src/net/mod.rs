//! The network: one driver, one HTTP client, and one check of where requests may be sent.

pub mod client;
pub(crate) mod exchange;
pub mod io;
pub(crate) mod reach;
