//! The files that prompts of the project refer to.

use std::collections::BTreeMap;
use std::path::Path;

use tympan_core::format::{Format, ReferencedFile, Resolve};
use tympan_core::secret::env_value::ValueSource;
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Prompt, Result, directive};
use tympan_runtime::LoadOptions;
use tympan_runtime::load::{DEFAULT_MAX_FILE_BYTES, References};

use super::{Project, RelativePath};

/// Resolves the references of a prompt: files beneath the project, which are neither hidden nor behind links, and
/// variables as the options say.
pub(crate) struct ProjectFiles<'p> {
    project: &'p Project,
    path: &'p RelativePath,
    /// Reads the environment.
    env: References<'p>,
    /// The texts that were read, by the path that the prompt writes.
    pub(crate) found: BTreeMap<String, String>,
}

impl<'p> ProjectFiles<'p> {
    pub(crate) fn new(project: &'p Project, path: &'p RelativePath, options: &'p LoadOptions) -> Self {
        Self { project, path, env: References::new(Path::new(""), options), found: BTreeMap::new() }
    }
}

impl Resolve for ProjectFiles<'_> {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        self.env.env(name)
    }

    fn env_source(&mut self, name: &str) -> ValueSource {
        self.env.env_source(name)
    }

    fn defers_env(&self) -> bool {
        self.env.defers_env()
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        let target = self.path.resolve(path).ok_or_else(|| {
            Error::new(Kind::FileOutsideRoot, path)
                .with_help("the studio reads files in the folder that it shows, and no hidden ones")
        })?;
        let text = self.project.read_any(&target, DEFAULT_MAX_FILE_BYTES).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(Kind::ReferencedFileNotFound, path),
            _ => Error::new(Kind::InvalidReferencedFile, format_args!("{path}: {error}")),
        })?;
        self.found.insert(path.to_owned(), text.text.clone());
        Ok(ReferencedFile { text: text.text })
    }
}

impl Project {
    /// Loads a prompt from its text, as it is in the editor.
    ///
    /// # Errors
    /// Returns an error if the prompt is invalid, or refers to files that it may not read.
    pub(crate) fn load(&self, path: &RelativePath, text: String, options: &LoadOptions) -> Result<Prompt> {
        let source = SourceFile::new(path.as_str(), text);
        let prompt = match Format::from_name(path.name()) {
            Some(Format::Definition(syntax)) => Prompt::from_definition_source(source, syntax),
            Some(Format::Directive) => directive::load(source, directive::INSTRUCTION),
            Some(Format::Tests(_)) => Err(Error::new(Kind::InvalidDefinition, "expected a prompt, found a test file")),
            _ => Prompt::from_prompty_source(source, &mut ProjectFiles::new(self, path, options)),
        };
        let absolute = self.absolute(path);
        Ok(prompt?.in_directory(absolute.parent().unwrap_or(self.root())))
    }

    /// Returns the texts of the files that a prompt refers to, by the path that it writes.
    pub(crate) fn referenced(&self, path: &RelativePath, text: &str) -> BTreeMap<String, String> {
        if !text.contains("${file:") {
            return BTreeMap::new();
        }
        let options = LoadOptions { defer_env: true, env_vars: Some(Default::default()), ..LoadOptions::default() };
        let mut files = ProjectFiles::new(self, path, &options);
        let _ = Prompt::from_prompty_source(SourceFile::new(path.as_str(), text), &mut files);
        files.found
    }
}
