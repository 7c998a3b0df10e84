//! A row of the table: one operation of one library on one workload.

use crate::Result;
use crate::data::Workload;
use std::fmt::{self, Display};
use std::hint::black_box;

/// What a row is called: `prompty prepare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName {
    /// The library.
    pub library: &'static str,
    /// What it does: `load`, `render` or `prepare`.
    pub operation: &'static str,
}

impl Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.library, self.operation)
    }
}

/// What a library offers: how to get an operation ready for a workload.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What its rows are called.
    pub name: RowName,
    /// Does all that a program would do once, such as loading, and returns what it would repeat.
    pub ready: fn(&Workload) -> Result<Operation>,
}

impl Entry {
    /// An operation of a library.
    pub const fn new(
        library: &'static str,
        operation: &'static str,
        ready: fn(&Workload) -> Result<Operation>,
    ) -> Entry {
        Entry { name: RowName { library, operation }, ready }
    }

    /// The operation, ready, and known to produce what the workload expects.
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

/// Points at the first line that is not as expected.
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

/// An operation that can be repeated.
pub struct Operation {
    /// The text it produces; none if it produces no text.
    text: Option<String>,
    batch: Box<dyn Fn(u64) + Send + Sync>,
}

impl Operation {
    /// Repeats `operate`; `show` tells what it produced as text.
    ///
    /// What is measured includes dropping the result: a program pays for that too.
    pub fn new<T, E>(
        operate: impl Fn() -> Result<T, E> + Send + Sync + 'static,
        show: impl FnOnce(T) -> Option<String>,
    ) -> Result<Operation, E> {
        let text = show(operate()?);
        // The loop is in here so that a repetition costs no call through a pointer.
        let batch = move |times| {
            for _ in 0..times {
                let _ = black_box(operate());
            }
        };
        Ok(Operation::batched(text, batch))
    }

    /// Does its own repeating, for what has to be entered before it is repeated (an async runtime).
    pub fn batched(text: Option<String>, batch: impl Fn(u64) + Send + Sync + 'static) -> Operation {
        Operation { text, batch: Box::new(batch) }
    }
}

/// One operation of one library on one workload.
pub struct Row {
    /// What it is called.
    pub name: RowName,
    operation: Operation,
}

impl Row {
    /// A row that counts something; an error if it counts anything but `expected`.
    pub fn counting(name: RowName, operation: Operation, expected: usize) -> Result<Row> {
        match operation.text.as_deref() {
            Some(count) if count == expected.to_string() => Ok(Row { name, operation }),
            count => Err(format!("{name}: counts {count:?}, and {expected} were expected").into()),
        }
    }

    /// Performs the operation so many times.
    pub fn run(&self, times: u64) {
        (self.operation.batch)(times);
    }
}
