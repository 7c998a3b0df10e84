//! Directives from files.

use std::path::Path;

use tympan::directive::{INSTRUCTION, is_directive, load};
use tympan::source::SourceFile;
use tympan::{Prompt, Result};

use crate::load::{LoadOptions, read_prompt_file};

/// Loads a directive, if the file is one by its name: they are markdown.
pub(crate) fn load_directive(path: &Path, options: &LoadOptions) -> Option<Result<Prompt>> {
    is_markdown(path).then(|| prompt(read_prompt_file(path, options.max_file_bytes)?, options))
}

/// Loads a directive, if the text is one by its name, or by what is in it where the name says nothing.
pub(crate) fn load_directive_str(text: &str, name: &str, options: &LoadOptions) -> Option<Result<Prompt>> {
    let is_one = match Path::new(name).extension() {
        Some(_) => is_markdown(Path::new(name)),
        None => is_directive(text),
    };
    is_one.then(|| prompt(SourceFile::new(name, text), options))
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

fn prompt(source: SourceFile, options: &LoadOptions) -> Result<Prompt> {
    load(source, options.directive_instruction.as_deref().unwrap_or(INSTRUCTION))
}
