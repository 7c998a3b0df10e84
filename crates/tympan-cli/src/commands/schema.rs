//! `tympan schema`: prints the JSON Schema of prompt definitions.

use tympan::format::definition::SCHEMA;

use crate::output;
use crate::report::Failure;

pub(super) fn run() -> Result<(), Failure> {
    Ok(output::print(SCHEMA)?)
}
