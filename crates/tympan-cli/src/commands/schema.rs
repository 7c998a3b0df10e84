//! `tympan schema`: prints the JSON Schema of prompt definitions or of test files.

use tympan::format::{definition, test_file};

use crate::args::{SchemaArgs, SchemaKind};
use crate::output;
use crate::report::Failure;

pub(super) fn run(args: &SchemaArgs) -> Result<(), Failure> {
    let schema = match args.kind {
        SchemaKind::Definition => definition::SCHEMA,
        SchemaKind::Tests => test_file::SCHEMA,
    };
    Ok(output::print(schema)?)
}
