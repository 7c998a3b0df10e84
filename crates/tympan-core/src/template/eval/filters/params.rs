//! Positional and named arguments of filters.

use crate::error::{Error, Kind, Result};
use crate::template::eval::expr::Arguments;
use crate::template::value::{Value, ValueKind};
use crate::text::origin::Origin;

/// Takes arguments one by one and detects leftover ones.
pub(super) struct Params<'f, 'a> {
    filter: &'f str,
    positional: std::vec::IntoIter<Value<'a>>,
    named: Vec<(Value<'a>, Value<'a>)>,
    spread: Origin,
}

impl<'f, 'a> Params<'f, 'a> {
    pub(super) fn new(filter: &'f str, args: Arguments<'a>) -> Self {
        Self { filter, positional: args.positional.into_iter(), named: args.named, spread: args.spread }
    }

    pub(super) fn into_arguments(self) -> Arguments<'a> {
        Arguments { positional: self.positional.collect(), named: self.named, spread: self.spread }
    }

    /// Takes the next positional argument, or the one with this name.
    pub(super) fn next(&mut self, name: &str) -> Option<Value<'a>> {
        self.positional.next().or_else(|| self.named(name))
    }

    /// Takes an argument that can only be passed by name.
    pub(super) fn named(&mut self, name: &str) -> Option<Value<'a>> {
        let index = self.named.iter().position(|(given, _)| given.as_str() == Some(name))?;
        Some(self.named.remove(index).1)
    }

    /// Takes all remaining positional arguments.
    pub(super) fn rest(&mut self) -> Vec<Value<'a>> {
        self.positional.by_ref().collect()
    }

    /// Takes all remaining arguments.
    pub(super) fn rest_arguments(&mut self) -> Arguments<'a> {
        Arguments { positional: self.rest(), named: std::mem::take(&mut self.named), spread: self.spread }
    }

    pub(super) fn required(&mut self, name: &str) -> Result<Value<'a>> {
        self.next(name).ok_or_else(|| self.fail(format!("missing argument `{name}`")))
    }

    /// Takes a boolean argument. If it is missing or none, it is false.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.next(name).is_some_and(|value| value.is_true())
    }

    pub(super) fn named_flag(&mut self, name: &str) -> bool {
        self.named(name).is_some_and(|value| value.is_true())
    }

    /// Takes an argument that must be a non-negative integer.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<Value<'a>>> {
        let Some(value) = self.next(name).filter(|value| !value.is_none()) else { return Ok(None) };
        let is_count = value.as_int().is_some_and(|int| usize::try_from(int).is_ok());
        if is_count && value.kind() != ValueKind::Bool {
            return Ok(Some(value));
        }
        if value.as_int().is_some_and(|int| int < 0) {
            return Err(self.fail(format!("`{name}` must not be negative")));
        }
        Err(self.fail(format!("`{name}`: expected an integer, found {}", value.kind().name())))
    }

    pub(super) fn fail(&self, details: impl std::fmt::Display) -> Error {
        Error::new(Kind::InvalidOperation, format_args!("filter `{}`: {details}", self.filter))
    }

    /// Returns an error if an argument is left.
    pub(super) fn finish(self) -> Result<()> {
        if self.positional.len() == 0 && self.named.is_empty() {
            return Ok(());
        }
        Err(self.fail("unexpected argument"))
    }
}

/// Returns the number in a value that [`Params::count`] has checked.
pub(super) fn as_count(value: &Value<'_>) -> usize {
    value.as_int().and_then(|int| usize::try_from(int).ok()).unwrap_or(0)
}
