//! OpenAI's Embeddings API.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::content::Text;
use super::{failure, usage};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::wire::response::{Output, Response};

const EXPECTED: &str = "embeddings under `data`";

#[derive(Deserialize)]
struct Embeddings<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    data: Option<Vec<Item>>,
    usage: Option<JsonMap>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<u64>,
    embedding: Vector,
}

/// A vector, sent as a list of numbers or as base64-encoded little-endian 32-bit floats.
struct Vector(Vec<f64>);

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VectorVisitor)
    }
}

struct VectorVisitor;

impl<'de> Visitor<'de> for VectorVisitor {
    type Value = Vector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers, or base64")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vector, E> {
        let bytes = STANDARD.decode(text).map_err(|_| E::custom("not base64"))?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(E::custom("the byte length is not a multiple of 4"));
        }
        Ok(Vector(numbers.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vector, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = seq.next_element()? {
            numbers.push(number);
        }
        if numbers.is_empty() {
            return Err(A::Error::custom("empty vector"));
        }
        Ok(Vector(numbers))
    }
}

/// Decodes a complete response.
pub(super) fn decode(body: &[u8]) -> Result<Response> {
    let embeddings: Embeddings<'_> = failure::parse(body, EXPECTED)?;
    if let Some(error) = embeddings.error {
        return Err(failure::reported_error(&error));
    }
    let Some(mut items) = embeddings.data else { return Err(failure::unexpected(EXPECTED, body)) };
    if items.is_empty() {
        return Err(Error::new(Kind::UnexpectedResponse, "Empty embedding response"));
    }
    items.sort_by_key(|item| item.index.unwrap_or(0));
    Ok(Response {
        id: None,
        model: embeddings.model.map(|model| model.0.into_owned()),
        output: Output::Embeddings(items.into_iter().map(|item| item.embedding.0).collect()),
        finish_reason: None,
        usage: embeddings.usage.map(usage::openai),
    })
}
