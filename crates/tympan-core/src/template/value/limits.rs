//! What a render may cost.

use crate::error::{Error, Kind, Result};
use crate::template::value::{Repr, Value};
use crate::text::traced::Piece;

/// How deep containers may be nested that a template makes, and values that it prints.
pub(crate) const MAX_VALUE_DEPTH: u16 = 100;

/// What the template itself and each call may take up of the stack, in the units of
/// [`Tree::stack`](super::tree::Tree::stack). With the default limits it all fits 512 KiB, optimised
/// or not.
const STACK: usize = 240;
const STACK_OF_CALL: usize = 16;

/// The budget of one render. The host sets it, never the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Statements executed, passes of loops, and elements looked at by filters.
    pub steps: u64,
    /// Bytes of the rendered text.
    pub output_bytes: usize,
    /// Bytes that any one operation may make: a repetition, a join, a list, …
    pub operation_bytes: usize,
    /// Bytes that all operations together may make.
    pub total_bytes: usize,
    /// How deep calls of macros and recursive loops may nest. If their bodies nest deeply in
    /// themselves, calls may nest less.
    pub call_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            output_bytes: 16 << 20,
            operation_bytes: 16 << 20,
            total_bytes: 64 << 20,
            call_depth: 40,
        }
    }
}

impl Limits {
    /// Fails if the rendered text may not have this many bytes.
    #[inline]
    pub(crate) fn check_output(&self, bytes: usize) -> Result<()> {
        if bytes <= self.output_bytes {
            return Ok(());
        }
        Err(exceeded("bytes of output", self.output_bytes as u64))
    }
}

/// What is left of a budget.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    steps: u64,
    bytes: usize,
    /// Bytes that the current output may have: less in a capture, while other output waits.
    output: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, steps: limits.steps, bytes: limits.total_bytes, output: limits.output_bytes }
    }

    /// Pays for a number of steps.
    #[inline]
    pub(crate) fn step(&mut self, steps: usize) -> Result<()> {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(exceeded("steps", self.limits.steps)),
        }
    }

    /// Begins to measure work whose amount is only known when it is done.
    pub(crate) fn meter(&self) -> Meter {
        Meter { left: usize::try_from(self.steps).unwrap_or(usize::MAX), spent: 0, depth: 0 }
    }

    /// Pays for the work that was measured.
    pub(crate) fn pay(&mut self, meter: &Meter) -> Result<()> {
        self.step(meter.spent)
    }

    /// Pays for bytes that an operation is about to make.
    pub(crate) fn make(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.limits.operation_bytes {
            return Err(exceeded("bytes made by one operation", self.limits.operation_bytes as u64));
        }
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(exceeded("bytes made by all operations", self.limits.total_bytes as u64)),
        }
    }

    /// Pays for text in this many pieces that an operation is about to make.
    pub(crate) fn make_text(&mut self, bytes: usize, pieces: usize) -> Result<()> {
        self.step(pieces)?;
        self.make(bytes.saturating_add(pieces.saturating_mul(size_of::<Piece>())))
    }

    /// Takes bytes for as long as something lasts; [`Budget::release`] gives them back.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or_else(|| exceeded("bytes made by all operations", self.limits.total_bytes as u64))?;
        Ok(())
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Pays for printing a value: everything in a container, which may hold others many times over, or the pieces of a
    /// text.
    #[inline]
    pub(crate) fn print(&mut self, value: &Value<'_>) -> Result<()> {
        match &value.repr {
            Repr::List(_) | Repr::Dict(_) | Repr::GivenList(_) | Repr::GivenMap(_) => self.print_indented(value, 0),
            Repr::Text(text) => self.step(text.traced.piece_ends().len()),
            _ => Ok(()),
        }
    }

    /// Pays for printing any value as JSON, with so many spaces for each level.
    pub(crate) fn print_indented(&mut self, value: &Value<'_>, indent: usize) -> Result<()> {
        let cost = crate::template::value::print::cost(value, indent, self.limits.operation_bytes);
        if cost > self.limits.operation_bytes {
            return Err(exceeded("bytes made by one operation", self.limits.operation_bytes as u64));
        }
        self.step(cost / crate::template::value::ops::BYTES_PER_STEP)
    }

    /// Pays for a list of values that an operation is about to make.
    pub(crate) fn make_list(&mut self, len: usize) -> Result<()> {
        self.step(len)?;
        self.make(len.saturating_mul(size_of::<Value<'_>>()))
    }

    /// Pays for slots that begin empty.
    #[inline]
    pub(crate) fn fill(&mut self, slots: usize) -> Result<()> {
        const SLOTS_PER_STEP: usize = 8;
        self.step(slots / SLOTS_PER_STEP)
    }

    /// Begins a capture while this much output waits. Returns what the output could have had.
    pub(crate) fn begin_capture(&mut self, bytes: usize) -> usize {
        let left = self.output.saturating_sub(bytes);
        std::mem::replace(&mut self.output, left)
    }

    pub(crate) fn end_capture(&mut self, output: usize) {
        self.output = output;
    }

    /// The bytes that one operation may make.
    pub(crate) fn operation_bytes(&self) -> usize {
        self.limits.operation_bytes
    }

    /// Checks the length of the output.
    #[inline]
    pub(crate) fn output(&self, bytes: usize) -> Result<()> {
        if bytes <= self.output { Ok(()) } else { Err(exceeded("bytes of output", self.limits.output_bytes as u64)) }
    }

    /// Checks how deep calls are nested, and how much of the stack they may take up.
    pub(crate) fn call(&self, depth: usize, stack: usize) -> Result<()> {
        let limit = self.limits.call_depth;
        if depth <= limit && stack <= STACK.saturating_add(limit.saturating_mul(STACK_OF_CALL)) {
            return Ok(());
        }
        Err(exceeded("nested calls, where deep bodies count for more", limit as u64))
    }
}

/// Measures work in steps. Once it has used up what is left of the budget, or gone too deep, it
/// says that nothing more is to be done; paying for it then fails.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
    spent: usize,
    depth: u16,
}

impl Meter {
    /// Whether work that costs this much may still be done.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        self.spent = self.spent.saturating_add(steps);
        self.spent <= self.left
    }

    /// Whether there is nothing left, so that no more work is to be done.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.spent > self.left
    }

    /// Whether everything in a value may still be looked at to print it.
    pub(crate) fn print(&mut self, value: &Value<'_>) -> bool {
        let most = self.left.saturating_mul(super::ops::BYTES_PER_STEP);
        let cost = crate::template::value::print::cost(value, 0, most);
        self.spend(cost.div_ceil(super::ops::BYTES_PER_STEP))
    }

    /// Does work one level deeper, if there is still room.
    pub(crate) fn deeper<T>(&mut self, otherwise: T, work: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_VALUE_DEPTH {
            (self.spent, self.left) = (usize::MAX, 0);
            return otherwise;
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }
}

#[cold]
fn exceeded(what: &str, limit: u64) -> Error {
    Error::new(Kind::LimitExceeded, format_args!("the render needs more than {limit} {what}"))
        .with_help("the host can raise the limits of a render; a prompt file cannot")
}
