//! The entries of a body, serialized without an intermediate value.

use serde::Serialize;
use serde::ser::SerializeMap;
use smallvec::SmallVec;

use super::Ask;
use super::options::{Mapped, mapped};
use crate::json::JsonMap;

/// Writes the entries of a body and records which ones it has written.
pub(super) struct Entries<M> {
    map: M,
    written: SmallVec<[&'static str; 16]>,
}

impl<M: SerializeMap> Entries<M> {
    pub(super) fn new(map: M) -> Self {
        Self { map, written: SmallVec::new() }
    }

    /// Writes an entry.
    pub(super) fn put(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) -> Result<(), M::Error> {
        self.written.push(key);
        self.map.serialize_entry(key, value)
    }

    /// Writes an entry if it has a value. Only an entry that was written takes precedence over additional properties.
    pub(super) fn put_some(&mut self, key: &'static str, value: Option<impl Serialize>) -> Result<(), M::Error> {
        match value {
            Some(value) => self.put(key, &value),
            None => Ok(()),
        }
    }

    /// Writes the options that the provider supports.
    pub(super) fn put_options(&mut self, ask: &Ask<'_>) -> Result<(), M::Error> {
        for Mapped { name, value, .. } in mapped(ask.options, ask.target.provider, ask.target.protocol) {
            if let Some(name) = name {
                self.put(name, &value)?;
            }
        }
        Ok(())
    }

    /// Writes the author's additional properties, except those that were already written, and ends the body.
    ///
    /// The stream options are reserved, because the caller must know whether to decode the response as a stream.
    pub(super) fn end_with(mut self, additional: &JsonMap) -> Result<M::Ok, M::Error> {
        for (key, value) in additional {
            let is_reserved = matches!(key.as_str(), "stream" | "stream_options");
            if !is_reserved && !self.written.contains(&key.as_str()) {
                self.map.serialize_entry(key, value)?;
            }
        }
        self.map.end()
    }
}
