//! An OpenAPI document as JSON, with resolution of references.
//!
//! The document is not deserialized into typed structs: an error in one operation must not affect the others, and
//! schemas are passed to the model with all their details.

use percent_encoding::percent_decode_str;
use serde_json::Value as Json;
use tympan_core::format::parse_inputs;
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Result};

use crate::net::client::shown;
use crate::tool::openapi::Reason;

/// The maximum size of a document, in bytes.
pub(super) const MAX_BYTES: u64 = 8 << 20;
/// The maximum number of values in a JSON document. YAML documents are subject to the general limits for YAML.
const MAX_VALUES: usize = 1_000_000;
/// The maximum length of a chain of references.
const MAX_HOPS: usize = 16;
/// The supported methods. `TRACE` is excluded because its response echoes the key.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Parses the text of a document in JSON or YAML.
pub(super) fn read(name: &str, text: &str) -> Result<Json> {
    if text.len() as u64 > MAX_BYTES {
        return Err(unusable(name, format_args!("larger than {MAX_BYTES} bytes")));
    }
    // This bounds the number of JSON values before parsing. The YAML parser has its own limit.
    let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']) && values > MAX_VALUES {
        return Err(unusable(name, format_args!("more than {MAX_VALUES} values")));
    }
    parse_inputs(&SourceFile::new(name, text)).map(Json::Object).map_err(|error| {
        let place = error.line_column().map(|at| format!(", line {}", at.line)).unwrap_or_default();
        let reason = error.message().trim_start_matches("Invalid input: ");
        unusable(&format!("{name}{place}"), format_args!("cannot parse the document: {reason}"))
            .with_help("expected an OpenAPI document: a map in JSON, or in YAML with at most 100,000 values")
    })
}

/// Returns an error for an unusable document.
pub(super) fn unusable(name: &str, reason: impl std::fmt::Display) -> Error {
    Error::new(Kind::ToolUnavailable, format_args!("{}: {reason}", shown(name)))
}

/// A document of a supported version.
#[derive(Clone, Copy)]
pub(super) struct Document<'d> {
    pub(super) root: &'d Json,
    /// Whether its schemas follow OpenAPI 3.0 instead of plain JSON Schema.
    pub(super) is_3_0: bool,
}

/// An operation as it appears in the document.
pub(super) struct DocumentOperation<'d> {
    pub(super) path: &'d str,
    pub(super) method: &'static str,
    pub(super) item: &'d Json,
    pub(super) operation: &'d Json,
}

impl DocumentOperation<'_> {
    /// Returns the `operationId`, if any.
    pub(super) fn id(&self) -> Option<&str> {
        text_of(self.operation, "operationId").filter(|id| !id.is_empty())
    }

    /// Returns the method and the path, as in `GET /pets/{id}`.
    pub(super) fn label(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), shown(self.path))
    }
}

impl<'d> Document<'d> {
    pub(super) fn new(root: &'d Json) -> Result<Self, Reason> {
        let version = root.get("openapi").and_then(Json::as_str);
        match version {
            Some(version) if version == "3.0" || version.starts_with("3.0.") => Ok(Self { root, is_3_0: true }),
            Some(version) if version == "3.1" || version.starts_with("3.1.") => Ok(Self { root, is_3_0: false }),
            Some(version) => Err(format!("unsupported OpenAPI version `{}`, expected 3.0 or 3.1", shown(version))),
            None if root.get("swagger").is_some() => {
                Err("expected OpenAPI 3, found Swagger 2.0; convert the document".to_owned())
            }
            None => Err("not an OpenAPI document: missing `openapi`, such as `openapi: 3.1.0`".to_owned()),
        }
    }

    /// Returns all operations, in the order of the document.
    pub(super) fn operations(self) -> impl Iterator<Item = DocumentOperation<'d>> {
        let paths = self.root.get("paths").and_then(Json::as_object);
        paths.into_iter().flatten().filter(|(path, _)| path.starts_with('/')).flat_map(move |(path, item)| {
            // A path with an unresolvable reference has no operations.
            let item = self.resolve(item).unwrap_or(item);
            item.as_object().into_iter().flatten().filter_map(move |(key, operation)| {
                let method = METHODS.into_iter().find(|method| *method == key)?;
                operation.is_object().then_some(DocumentOperation { path, method, item, operation })
            })
        })
    }

    /// Resolves a value's references.
    pub(super) fn resolve(self, mut value: &'d Json) -> Result<&'d Json, Reason> {
        for _ in 0..MAX_HOPS {
            match text_of(value, "$ref") {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err("circular reference".to_owned())
    }

    /// Returns the target of a reference. References to other documents are not supported.
    pub(super) fn target(self, reference: &str) -> Result<&'d Json, Reason> {
        let pointer = reference
            .strip_prefix('#')
            .ok_or_else(|| format!("reference to another document: `{}`", shown(reference)))?;
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        self.root.pointer(&pointer).ok_or_else(|| format!("unresolved reference `{}`", shown(reference)))
    }
}

/// Returns the string under a key.
pub(super) fn text_of<'d>(value: &'d Json, key: &str) -> Option<&'d str> {
    value.get(key)?.as_str()
}

/// Returns whether the value under a key is `true`.
pub(super) fn is_true(value: &Json, key: &str) -> bool {
    value.get(key) == Some(&Json::Bool(true))
}
