//! The limits of a render.

use crate::error::{Error, Kind, Result};
use crate::template::value::{Repr, Value};
use crate::text::traced::Piece;

/// The maximum nesting depth of containers that a template creates and of values that it prints.
pub(crate) const MAX_VALUE_DEPTH: u16 = 100;

/// The stack that the template itself and each call may take up, in the units of
/// [`Tree::stack`](crate::template::tree::Tree::stack). With the default limits, everything fits into 512 KiB, with or
/// without optimizations.
const STACK: usize = 240;
const STACK_OF_CALL: usize = 16;

/// The limits of one render. The host sets them; a prompt file cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of steps: executed statements, loop iterations, and elements that filters process.
    pub steps: u64,
    /// The maximum size of the rendered text, in bytes.
    pub output_bytes: usize,
    /// The maximum number of bytes that a single operation may create: a repetition, a join, a list, …
    pub operation_bytes: usize,
    /// The maximum number of bytes that all operations together may create.
    pub total_bytes: usize,
    /// The maximum nesting depth of macro calls and recursive loops. It is lower for bodies that are deeply nested
    /// themselves.
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
    /// Returns an error if the rendered text must not have this many bytes.
    #[inline]
    pub(crate) fn check_output(&self, bytes: usize) -> Result<()> {
        if bytes <= self.output_bytes {
            return Ok(());
        }
        Err(exceeded("bytes of output", self.output_bytes as u64))
    }
}

/// The remaining budget of a render.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    steps: u64,
    bytes: usize,
    /// The maximum size of the current output. It is smaller in a capture, because the enclosing output counts too.
    output: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, steps: limits.steps, bytes: limits.total_bytes, output: limits.output_bytes }
    }

    /// Charges for a number of steps.
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

    /// Creates a meter for work whose cost is only known afterwards.
    pub(crate) fn meter(&self) -> Meter {
        Meter { left: usize::try_from(self.steps).unwrap_or(usize::MAX), spent: 0, depth: 0 }
    }

    /// Charges for the work that was measured.
    pub(crate) fn pay(&mut self, meter: &Meter) -> Result<()> {
        self.step(meter.spent)
    }

    /// Charges for bytes that an operation is about to create.
    pub(crate) fn make(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.limits.operation_bytes {
            return Err(exceeded("bytes in one operation", self.limits.operation_bytes as u64));
        }
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(exceeded("bytes in all operations", self.limits.total_bytes as u64)),
        }
    }

    /// Charges for text with this many pieces that an operation is about to create.
    pub(crate) fn make_text(&mut self, bytes: usize, pieces: usize) -> Result<()> {
        self.step(pieces)?;
        self.make(bytes.saturating_add(pieces.saturating_mul(size_of::<Piece>())))
    }

    /// Reserves bytes temporarily. [`Budget::release`] returns them.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or_else(|| exceeded("bytes in all operations", self.limits.total_bytes as u64))?;
        Ok(())
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Charges for printing a value: for everything in a container, which may contain others many times over, or for
    /// the pieces of a text.
    #[inline]
    pub(crate) fn print(&mut self, value: &Value<'_>) -> Result<()> {
        match &value.repr {
            Repr::List(_) | Repr::Dict(_) | Repr::InputList(_) | Repr::InputMap(_) => self.print_indented(value, 0),
            Repr::Text(text) => self.step(text.traced.piece_ends().len()),
            _ => Ok(()),
        }
    }

    /// Charges for printing a value as JSON, with `indent` spaces for each level.
    pub(crate) fn print_indented(&mut self, value: &Value<'_>, indent: usize) -> Result<()> {
        let cost = crate::template::value::print::cost(value, indent, self.limits.operation_bytes);
        if cost > self.limits.operation_bytes {
            return Err(exceeded("bytes in one operation", self.limits.operation_bytes as u64));
        }
        self.step(cost / crate::template::value::ops::BYTES_PER_STEP)
    }

    /// Charges for a list of values that an operation is about to create.
    pub(crate) fn make_list(&mut self, len: usize) -> Result<()> {
        self.step(len)?;
        self.make(len.saturating_mul(size_of::<Value<'_>>()))
    }

    /// Charges for clearing slots.
    #[inline]
    pub(crate) fn fill(&mut self, slots: usize) -> Result<()> {
        const SLOTS_PER_STEP: usize = 8;
        self.step(slots / SLOTS_PER_STEP)
    }

    /// Starts a capture while the enclosing output has this many bytes. Returns the enclosing output's limit.
    pub(crate) fn begin_capture(&mut self, bytes: usize) -> usize {
        let left = self.output.saturating_sub(bytes);
        std::mem::replace(&mut self.output, left)
    }

    pub(crate) fn end_capture(&mut self, output: usize) {
        self.output = output;
    }

    /// Returns the number of bytes that a single operation may create.
    pub(crate) fn operation_bytes(&self) -> usize {
        self.limits.operation_bytes
    }

    /// Checks the size of the output.
    #[inline]
    pub(crate) fn output(&self, bytes: usize) -> Result<()> {
        if bytes <= self.output { Ok(()) } else { Err(exceeded("bytes of output", self.limits.output_bytes as u64)) }
    }

    /// Checks the nesting depth of calls and the stack that they may take up.
    pub(crate) fn call(&self, depth: usize, stack: usize) -> Result<()> {
        let limit = self.limits.call_depth;
        if depth <= limit && stack <= STACK.saturating_add(limit.saturating_mul(STACK_OF_CALL)) {
            return Ok(());
        }
        Err(exceeded("nested calls (deep bodies count as several)", limit as u64))
    }
}

/// Measures work in steps. When the rest of the budget is used up, or the work nests too deeply, the caller has to
/// stop. [`Budget::pay`] then fails.
#[derive(Debug)]
pub(crate) struct Meter {
    left: usize,
    spent: usize,
    depth: u16,
}

impl Meter {
    /// Spends steps and returns whether the work may be done.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        self.spent = self.spent.saturating_add(steps);
        self.spent <= self.left
    }

    /// Returns whether the budget is used up, so that no more work may be done.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.spent > self.left
    }

    /// Spends the cost of printing a value and returns whether it may be printed.
    pub(crate) fn print(&mut self, value: &Value<'_>) -> bool {
        let most = self.left.saturating_mul(super::ops::BYTES_PER_STEP);
        let cost = crate::template::value::print::cost(value, 0, most);
        self.spend(cost.div_ceil(super::ops::BYTES_PER_STEP))
    }

    /// Runs work one level deeper, or returns `otherwise` if the maximum depth is reached.
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
    Error::new(Kind::LimitExceeded, format_args!("rendering needs more than {limit} {what}"))
        .with_help("the application can raise the limits with RenderOptions::limits; a prompt file cannot")
}
