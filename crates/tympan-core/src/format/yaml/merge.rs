//! Resolves merge keys: `<<` inserts the entries of other maps into a map.

use std::collections::HashSet;

use super::{Entry, Node, Problem, Value};
use crate::text::source::Span;

/// The maps that a merge key refers to.
pub(super) struct Merge<'s> {
    /// Their entries, the most important first.
    entries: Vec<Entry<'s>>,
    /// The number of entries before the merge key.
    at: usize,
    /// The end of the merge key's value.
    pub(super) end: usize,
}

impl<'s> Merge<'s> {
    /// Reads the value of a merge key: a map, or a list of maps.
    pub(super) fn new(node: Node<'s>, at: usize) -> Result<Self, Problem> {
        let end = node.span.end;
        let entries = match node.value {
            Value::Map(entries) => entries,
            Value::List(items) => {
                let mut entries = Vec::new();
                for item in items {
                    match item.value {
                        Value::Map(more) => entries.extend(more),
                        _ => return Err(not_a_map(item.span)),
                    }
                }
                entries
            }
            _ => return Err(not_a_map(node.span)),
        };
        Ok(Self { entries, at, end })
    }

    /// Inserts the merged entries at the position of the merge key. A map's own entries take precedence.
    pub(super) fn into_entries(self, mut own: Vec<Entry<'s>>) -> Vec<Entry<'s>> {
        let mut seen: HashSet<_> = own.iter().map(|entry| entry.key.clone()).collect();
        let merged: Vec<_> = self.entries.into_iter().filter(|entry| seen.insert(entry.key.clone())).collect();
        own.splice(self.at..self.at, merged);
        own
    }
}

fn not_a_map(span: Span) -> Problem {
    Problem {
        span,
        message: "a merge key (`<<`) needs a map or a list of maps".into(),
        help: Some("write `<<: *name` with the anchor of a map; for a key that is literally `<<`, use quotes"),
    }
}
