//! The server of Tympan's studio: one web page, for the person who started it.
//!
//! The server listens on the loopback address only. Its address contains a token that works once, and becomes a cookie.
//! Every request is checked: which host it names, which page sent it, and whether it belongs to the session. Files are
//! only read and written beneath one directory, by their kind, and never through links.
//!
//! ```no_run
//! use tympan_studio::{Studio, StudioOptions};
//!
//! # async fn example() -> std::io::Result<()> {
//! let studio = Studio::bind(StudioOptions::new("prompts")).await?;
//! println!("open {}", studio.url());
//! studio.serve(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod access;
mod api;
mod assets;
mod connection;
pub mod export;
mod failure;
mod host;
mod options;
mod project;
mod server;
mod session;
mod stream;

pub use host::{Host, Tools};
pub use options::{Limits, StudioOptions};
pub use server::Studio;
