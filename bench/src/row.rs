//! Rows of the table: one operation of one library on one workload.

use crate::Result;
use crate::data::Workload;
use std::fmt::{self, Display};
use std::hint::black_box;

/// The name of a row, such as `prompty prepare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName {
    /// The library.
    pub library: &'static str,
    /// The operation: `load`, `render` or `prepare`.
    pub operation: &'static str,
}

impl Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.library, self.operation)
    }
}

/// An operation of a library that can be prepared for any workload.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name of its rows.
    pub name: RowName,
    /// Does everything that a program would do once, such as loading, and returns the part to repeat.
    pub ready: fn(&Workload) -> Result<Operation>,
}

impl Entry {
    /// Creates an entry for an operation of a library.
    pub const fn new(
        library: &'static str,
        operation: &'static str,
        ready: fn(&Workload) -> Result<Operation>,
    ) -> Entry {
        Entry { name: RowName { library, operation }, ready }
    }

    /// Prepares the operation and checks that it produces the workload's expected text.
    pub fn row(&self, workload: &Workload) -> Result<Row> {
        let (name, on) = (self.name, &workload.name);
        let operation = (self.ready)(workload).map_err(|e| format!("{name} on {on}: {e}"))?;
        match &operation.text {
            Some(text) if *text != workload.expected => {
                Err(difference(&format!("{name} on {on}"), text, workload).into())
            }
            _ => Ok(Row { name, operation }),
        }
    }
}

/// Describes the first line that differs from the expected text.
fn difference(what: &str, text: &str, workload: &Workload) -> String {
    let (mut found, mut expected) = (text.lines(), workload.expected.lines());
    for line in 1.. {
        match (found.next(), expected.next()) {
            (None, None) => break,
            (f, e) if f != e => return format!("{what}: line {line} is {f:?} and should be {e:?}"),
            _ => {}
        }
    }
    format!("{what}: {} bytes, and {} were expected", text.len(), workload.expected.len())
}

/// A repeatable operation.
pub struct Operation {
    /// The text that the operation produces, if any.
    text: Option<String>,
    batch: Box<dyn Fn(u64) + Send + Sync>,
}

impl Operation {
    /// Creates an operation that repeats `operate`. `show` converts the result to text.
    ///
    /// The measurement includes dropping the result, because a program pays for that too.
    pub fn new<T, E>(
        operate: impl Fn() -> Result<T, E> + Send + Sync + 'static,
        show: impl FnOnce(T) -> Option<String>,
    ) -> Result<Operation, E> {
        let text = show(operate()?);
        // The loop is inside the closure, so that a repetition costs no indirect call.
        let batch = move |times| {
            for _ in 0..times {
                let _ = black_box(operate());
            }
        };
        Ok(Operation::batched(text, batch))
    }

    /// Creates an operation that repeats itself, for operations with a context to enter first, such as an async
    /// runtime.
    pub fn batched(text: Option<String>, batch: impl Fn(u64) + Send + Sync + 'static) -> Operation {
        Operation { text, batch: Box::new(batch) }
    }
}

/// One operation of one library on one workload.
pub struct Row {
    /// The name of the row.
    pub name: RowName,
    operation: Operation,
}

impl Row {
    /// Creates a row that counts something. Returns an error if the count is not `expected`.
    pub fn counting(name: RowName, operation: Operation, expected: usize) -> Result<Row> {
        match operation.text.as_deref() {
            Some(count) if count == expected.to_string() => Ok(Row { name, operation }),
            count => Err(format!("{name}: counts {count:?}, and {expected} were expected").into()),
        }
    }

    /// Repeats the operation.
    pub fn run(&self, times: u64) {
        (self.operation.batch)(times);
    }
}
