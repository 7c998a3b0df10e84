//! OpenAI's Images API.

use serde::Deserialize;
use serde_json::Value as Json;

use super::content::{Text, text};
use super::{failure, usage};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::wire::response::{Output, Response};

const EXPECTED: &str = "images under `data`";

#[derive(Deserialize)]
struct Images<'a> {
    #[serde(borrow)]
    data: Option<Vec<Item<'a>>>,
    usage: Option<JsonMap>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    b64_json: Option<Text<'a>>,
}

/// Decodes a complete response.
pub(super) fn decode(body: &[u8]) -> Result<Response> {
    let images: Images<'_> = failure::parse(body, EXPECTED)?;
    if let Some(error) = images.error {
        return Err(failure::reported_error(&error));
    }
    let Some(items) = images.data else { return Err(failure::unexpected(EXPECTED, body)) };
    let pictures = items.iter().map(|item| match text(&item.url) {
        "" => text(&item.b64_json).to_owned(),
        url => url.to_owned(),
    });
    let pictures: Vec<_> = pictures.filter(|picture| !picture.is_empty()).collect();
    if pictures.is_empty() {
        return Err(Error::new(Kind::UnexpectedResponse, "Empty image response"));
    }
    Ok(Response { output: Output::Images(pictures), usage: images.usage.map(usage::openai), ..Response::default() })
}
