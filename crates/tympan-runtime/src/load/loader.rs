//! Loads prompts by name: from memory, or from a folder whose files may change.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tympan_core::diagnostic::{guess_name, listed};
use tympan_core::format::{Format, definition, directive};
use tympan_core::prompt::inputs::IntoInputs;
use tympan_core::text::hash::sha256_hex;
use tympan_core::{Error, Kind, Prompt, RenderOptions, Rendered, Result};

use super::{LoadOptions, directory_of, load_prompt_str};
use crate::file::read;
use crate::host::pipeline::default_runtime;

/// How deep folders may be nested.
const MAX_DEPTH: usize = 32;
/// A file that changed this recently may change again without a new time, so its content is compared.
const UNSETTLED: Duration = Duration::from_secs(2);

/// Prompts by name: those in memory, and those in the files of a folder.
///
/// A folder may contain prompts in every format, in subfolders too. A prompt's name is the one that it declares, or else
/// the name of its file without the extension. Each call looks for files that are new, changed or gone, and loads only
/// those. Files of other kinds are ignored. There is no background thread.
///
/// ```
/// use tympan_core::{Prompt, RenderOptions, inputs};
/// use tympan_runtime::PromptLoader;
///
/// let loader = PromptLoader::memory();
/// loader.insert("greet", Prompt::from_yaml("{name: greet, role: user, body: Hi!, variants: {formal: {body: Hello.}}}")?);
/// assert_eq!(loader.names()?, ["greet"]);
/// assert_eq!(loader.variants("greet")?, ["default", "formal"]);
/// let options = RenderOptions { variant: Some("formal"), ..RenderOptions::default() };
/// assert_eq!(loader.render("greet", inputs! {}, &options)?.text(), "Hello.");
/// # Ok::<(), tympan_core::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct PromptLoader {
    memory: RwLock<BTreeMap<String, Arc<Prompt>>>,
    folder: Option<Folder>,
}

impl PromptLoader {
    /// Creates a loader without any prompts. Use [`PromptLoader::insert`] to add some.
    pub fn memory() -> Self {
        Self::default()
    }

    /// Creates a loader for the prompts in a folder, with the load options of the default runtime.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self::folder_with(path, default_runtime().options().load.clone())
    }

    /// Creates a loader for the prompts in a folder, with options.
    pub fn folder_with(path: impl Into<PathBuf>, options: LoadOptions) -> Self {
        let folder = Folder { path: path.into(), options, files: Mutex::default() };
        Self { folder: Some(folder), ..Self::default() }
    }

    /// Adds a prompt, replacing any existing one of the same name. It takes precedence over the files of a folder.
    pub fn insert(&self, name: impl Into<String>, prompt: impl Into<Arc<Prompt>>) {
        self.memory.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), prompt.into());
    }

    /// Returns the prompt with this name.
    ///
    /// # Errors
    /// Returns an error if there is no such prompt, if several files define it, if its file is invalid, or if the folder
    /// cannot be read.
    pub fn load(&self, name: &str) -> Result<Arc<Prompt>> {
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(prompt) = memory.get(name) {
            return Ok(prompt.clone());
        }
        let in_memory: Vec<String> = memory.keys().cloned().collect();
        drop(memory);
        match &self.folder {
            Some(folder) => folder.load(name, &in_memory),
            None => Err(unknown(name, &in_memory, &[])),
        }
    }

    /// Returns the names of all prompts, sorted. Files that cannot be loaded are left out.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> =
            self.memory.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        if let Some(folder) = &self.folder {
            names.extend(names_of(&*folder.refreshed()?));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Returns the names of a prompt's variants: `default`, then the others in order.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`PromptLoader::load`].
    pub fn variants(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.load(name)?.arms().map(str::to_owned).collect())
    }

    /// Renders the prompt with this name, in the variant that the options select.
    ///
    /// # Errors
    /// Returns an error if the prompt cannot be loaded (see [`PromptLoader::load`]), if it has no such variant, or if it
    /// cannot be rendered.
    pub fn render<'a>(&self, name: &str, inputs: impl IntoInputs<'a>, options: &RenderOptions<'_>) -> Result<Rendered> {
        self.load(name)?.render_with(inputs, options)
    }
}

/// A folder, and what is known of its files by their paths.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    options: LoadOptions,
    files: Mutex<Files>,
}

type Files = BTreeMap<PathBuf, Known>;

/// A file as it was when it was last read.
#[derive(Debug)]
struct Known {
    stamp: Stamp,
    /// Whether another change must change the stamp too.
    is_settled: bool,
    hash: String,
    /// The prompt; `None` if the file does not contain one.
    prompt: Result<Option<Arc<Prompt>>>,
}

/// The properties of a file that usually change with its content.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl Folder {
    fn load(&self, name: &str, in_memory: &[String]) -> Result<Arc<Prompt>> {
        let files = self.refreshed()?;
        let found = files.iter().filter_map(|(path, known)| Some((path, known.prompt.as_ref().ok()?.as_ref()?)));
        let found: Vec<_> = found.filter(|(path, prompt)| name_of(path, prompt) == name).collect();
        match found.as_slice() {
            [(_, prompt)] => return Ok((*prompt).clone()),
            [(first, _), (second, _), ..] => {
                let message = format!("`{name}` is the name of {} and {}", first.display(), second.display());
                return Err(Error::new(Kind::DuplicateName, message).with_help("rename one of the two"));
            }
            [] => {}
        }
        let broken = || files.iter().filter_map(|(path, known)| Some((path, known.prompt.as_ref().err()?)));
        if let Some((_, error)) = broken().find(|(path, _)| stem(path) == name) {
            return Err(error.clone());
        }
        let mut names = names_of(&files);
        names.extend_from_slice(in_memory);
        let broken: Vec<_> = broken().map(|(path, _)| path.display().to_string()).collect();
        Err(unknown(name, &names, &broken))
    }

    /// Returns the files, after reading those that are new or have changed.
    fn refreshed(&self) -> Result<std::sync::MutexGuard<'_, Files>> {
        let mut paths = Vec::new();
        collect(&self.path, 0, &mut paths)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut *files);
        for path in paths {
            // A file may be gone since its folder was listed.
            if let Some(known) = self.refresh(&path, old.remove(&path)) {
                files.insert(path, known);
            }
        }
        Ok(files)
    }

    fn refresh(&self, path: &Path, old: Option<Known>) -> Option<Known> {
        let metadata = fs::metadata(path).ok()?;
        let stamp = Stamp { modified: metadata.modified().ok(), length: metadata.len() };
        if let Some(old) = old.as_ref()
            && old.is_settled
            && old.stamp == stamp
        {
            return Some(Known { stamp, is_settled: true, hash: old.hash.clone(), prompt: old.prompt.clone() });
        }
        let age = stamp.modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        let is_settled = age.is_some_and(|age| age > UNSETTLED);
        let relative = path.strip_prefix(&self.path).unwrap_or(path);
        let text = read::open_in(&self.path, relative).and_then(|file| read::text(file, self.options.max_file_bytes));
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                let error = Error::new(Kind::UnreadableFile, format_args!("{}: {error}", path.display()));
                return Some(Known { stamp, is_settled: false, hash: String::new(), prompt: Err(error) });
            }
        };
        let hash = sha256_hex(&text);
        let prompt = match old.filter(|old| old.hash == hash) {
            Some(old) => old.prompt,
            None => load(path, &text, &self.options),
        };
        Some(Known { stamp, is_settled, hash, prompt })
    }
}

/// Loads a prompt from the text of a file. Returns `None` if the text is not a prompt.
fn load(path: &Path, text: &str, options: &LoadOptions) -> Result<Option<Arc<Prompt>>> {
    let is_prompt = match Format::from_name(path) {
        Some(Format::Definition(syntax)) => definition::is_definition(text, syntax),
        // Most Markdown files are not directives.
        Some(Format::Directive) => directive::is_directive(text),
        _ => true,
    };
    if !is_prompt {
        return Ok(None);
    }
    load_prompt_str(text, &path.display().to_string(), directory_of(path), options).map(|prompt| Some(Arc::new(prompt)))
}

/// Collects the files in a folder that may be prompts. Does not follow links to folders.
fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable =
        |error: &dyn std::fmt::Display| Error::new(Kind::UnreadableFile, format_args!("{}: {error}", folder.display()));
    if depth > MAX_DEPTH {
        return Err(unreadable(&"folders are nested too deeply"));
    }
    for entry in fs::read_dir(folder).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            collect(&path, depth + 1, paths)?;
        } else if is_candidate(&path) {
            paths.push(path);
        }
    }
    Ok(())
}

fn is_candidate(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_prompty = extension.eq_ignore_ascii_case("prompty");
    is_prompty || matches!(Format::from_name(path), Some(Format::Definition(_) | Format::Directive))
}

fn names_of(files: &Files) -> Vec<String> {
    let prompts = files.iter().filter_map(|(path, known)| Some((path, known.prompt.as_ref().ok()?.as_ref()?)));
    prompts.map(|(path, prompt)| name_of(path, prompt)).collect()
}

fn name_of(path: &Path, prompt: &Prompt) -> String {
    prompt.name().filter(|name| !name.is_empty()).map_or_else(|| stem(path), str::to_owned)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn unknown(name: &str, names: &[String], broken: &[String]) -> Error {
    let mut help = match guess_name(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "there are no prompts".to_owned(),
        None => format!("known prompts: {}", listed(names.iter().map(String::as_str))),
    };
    if !broken.is_empty() {
        help.push_str(&format!("; cannot be loaded: {}", listed(broken.iter().map(String::as_str))));
    }
    Error::new(Kind::UnknownPrompt, format_args!("`{name}`")).with_help(help)
}
