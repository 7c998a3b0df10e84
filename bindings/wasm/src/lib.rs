//! Tympan as WebAssembly: the engine and the rules in a web page.
//!
//! The module has no I/O, no environment and no clock. Every function takes and returns strings; structured values are
//! JSON. `engine` has the functions as plain Rust, so that they can be used and tested without a browser.
#![warn(missing_docs)]

pub mod engine;

use tympan_core::{Error, Kind};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// The Web Crypto API.
    #[wasm_bindgen(js_namespace = crypto, js_name = getRandomValues, catch)]
    fn fill_random(bytes: &mut [u8]) -> Result<(), JsValue>;
}

/// Returns 64 random bits.
fn entropy() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    fill_random(&mut bytes).map_err(|_| Error::new(Kind::NoEntropy, "crypto.getRandomValues failed"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns the version of Tympan.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Returns short texts that try to forge messages, as a JSON list of `{id, title, text}`.
#[wasm_bindgen]
pub fn forgeries() -> String {
    engine::FORGERIES.to_owned()
}

/// Opens the text of a prompt file or a test file. `path` implies its format. `files_json` is a JSON map from the paths
/// of the files that the text refers to, as they are written, to their texts.
///
/// Mistakes in the text are part of [`Prompt::info`].
#[wasm_bindgen]
pub fn open(path: &str, text: &str, files_json: Option<String>) -> Prompt {
    Prompt(engine::Prompt::open(path, text, files_json.as_deref()))
}

/// A prompt file or a test file.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Prompt(engine::Prompt);

#[wasm_bindgen]
impl Prompt {
    /// Returns what the file declares, as JSON.
    pub fn info(&self) -> String {
        self.0.info().to_string()
    }

    /// Returns the findings of all rules, as a JSON list.
    pub fn check(&self) -> String {
        self.0.check().to_string()
    }

    /// Returns `{"text": …}` with the formatted file, or `{"error": …}`, as JSON.
    pub fn format(&self) -> String {
        self.0.format().to_string()
    }

    /// Returns which inputs can reach which messages, as JSON.
    pub fn reach(&self) -> String {
        self.0.reach().to_string()
    }

    /// Renders the prompt, and returns its messages with the origin of every part of their texts, or `{"error": …}`, as
    /// JSON. Both arguments are JSON maps.
    pub fn render(&self, inputs_json: &str, options_json: &str) -> String {
        self.0.render(inputs_json, options_json, &entropy).to_string()
    }

    /// Returns the request that would be sent to a provider, without keys, or `{"error": …}`, as JSON. Both arguments
    /// are JSON maps.
    pub fn request(&self, inputs_json: &str, options_json: &str) -> String {
        self.0.request(inputs_json, options_json, &entropy).to_string()
    }
}
