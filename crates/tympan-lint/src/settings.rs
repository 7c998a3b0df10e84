//! The settings of a project: `tympan.toml`.
//!
//! The file says how prompts are checked and formatted. It comes with the project, so it cannot widen what prompts may
//! reach: variables, directories, addresses and programs are named on the command line, in code, or in the user's own
//! configuration.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path};

use toml::de::{DeTable, DeValue};
use tympan_core::chat::policy::Policy;
use tympan_core::diagnostic::guess;
use tympan_core::spec::role::Role;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::turn::ToolPolicy;
use tympan_core::wire::catalog::Catalog;

use crate::Options;
use crate::glob::Glob;
use crate::model_settings;
use crate::policy::{PolicyCheck, PolicySettings};
use crate::rule::Rule;
use crate::selection::{Selection, Selector, UnknownSelector, narrowest};
use crate::tool_policy;

/// The name of the file.
pub const SETTINGS_FILE: &str = "tympan.toml";

/// The settings of a project.
///
/// ```
/// use tympan_core::text::source::SourceFile;
/// use tympan_lint::Settings;
///
/// let file = SourceFile::new("tympan.toml", "[check]\nselect = [\"TY1\"]\nfiltres = [\"shout\"]\n");
/// let errors = Settings::parse(&file).expect_err("a key is misspelled");
/// assert_eq!(errors[0].message, "unknown key `filtres` in `[check]`");
/// assert_eq!(errors[0].help.as_deref(), Some("did you mean `filters`?"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// `[check]`: the settings of `tympan check`.
    pub check: CheckSettings,
    /// `[policy]`: where untrusted inputs may go, and what tools may do.
    pub policy: PolicySettings,
    /// `[models]`: prices and context windows of models, over the built-in ones.
    pub models: Catalog,
}

/// The settings of `tympan check`. Those that are `None` are not in the file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CheckSettings {
    /// The rules to report.
    pub select: Option<Vec<Selector>>,
    /// The rules to report in addition to `select`.
    pub extend_select: Vec<Selector>,
    /// The rules not to report.
    pub ignore: Option<Vec<Selector>>,
    /// The rules whose findings are errors.
    pub deny: Option<Vec<Selector>>,
    /// The files and directories that a check of a directory leaves out.
    pub exclude: Vec<Glob>,
    /// The rules not to report in files that match a pattern.
    pub per_file_ignores: Vec<(Glob, Vec<Selector>)>,
    /// The names of filters that the application registers.
    pub filters: Vec<String>,
    /// The names of tests that the application registers.
    pub tests: Vec<String>,
    /// The names of functions that the application registers.
    pub functions: Vec<String>,
    /// The names of providers that the application registers.
    pub providers: Vec<String>,
    /// The path of the baseline, relative to the settings file.
    pub baseline: Option<String>,
    /// The name of the output format.
    pub output_format: Option<String>,
}

/// A mistake in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingsError {
    /// What was found and what was expected.
    pub message: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
    /// The position in the file.
    pub span: Span,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

impl std::error::Error for SettingsError {}

impl Settings {
    /// Parses a settings file.
    ///
    /// # Errors
    /// Returns every mistake in the file, in its order.
    pub fn parse(source: &SourceFile) -> Result<Self, Vec<SettingsError>> {
        let text = source.text();
        let table = DeTable::parse(text).map_err(|error| vec![syntax_error(&error)])?;
        let mut errors = Vec::new();
        let mut root = Section::new("", table.get_ref(), &mut errors);
        root.refuse_reach();
        let check = root.table("check");
        root.refuse_fmt();
        let policy = root.table("policy");
        let models = root.table("models");
        root.finish();
        let models = models.map_or_else(Catalog::default, |table| model_settings::read(table, &mut errors));
        let policy = policy.map_or_else(PolicySettings::default, |table| PolicySettings::read(table, &mut errors));
        let check = check.map_or_else(CheckSettings::default, |table| CheckSettings::read(table, &mut errors));
        if !errors.is_empty() {
            errors.sort_by_key(|error| error.span.start);
            return Err(errors);
        }
        Ok(Self { check, policy, models })
    }
}

impl CheckSettings {
    fn read(table: &DeTable<'_>, errors: &mut Vec<SettingsError>) -> Self {
        let mut section = Section::new("check", table, errors);
        section.refuse_reach();
        let settings = Self {
            select: section.selectors("select", str::parse),
            extend_select: section.selectors("extend-select", str::parse).unwrap_or_default(),
            ignore: section.selectors("ignore", str::parse),
            deny: section.selectors("deny", Selector::from_denied),
            exclude: section.globs("exclude"),
            per_file_ignores: section.per_file_ignores(),
            filters: section.strings("filters").unwrap_or_default(),
            tests: section.strings("tests").unwrap_or_default(),
            functions: section.strings("functions").unwrap_or_default(),
            providers: section.strings("providers").unwrap_or_default(),
            baseline: section.inner_path("baseline"),
            output_format: section.string("output-format"),
        };
        section.finish();
        settings
    }

    /// Returns the rules that the settings choose, for all files.
    pub fn selection(&self) -> Selection {
        let mut select = self.select.clone().unwrap_or_default();
        if !select.is_empty() {
            select.extend_from_slice(&self.extend_select);
        } else if !self.extend_select.is_empty() {
            select = [Selector::All].into_iter().chain(self.extend_select.iter().copied()).collect();
        }
        let ignore = self.ignore.clone().unwrap_or_default();
        Selection { select, ignore, deny: self.deny.clone().unwrap_or_default() }
    }

    /// Replaces what the command line or the environment says. Lists that are empty change nothing.
    ///
    /// With `select`, rules that the file ignores stay ignored, unless `select` names them at least as narrowly. `ignore`
    /// and `extend_select` add to what the file says.
    pub fn override_selection(&mut self, over: &Selection, extend_select: &[Selector]) {
        let wanted = [&over.select, extend_select].concat();
        let ignored = self.ignore.take().unwrap_or_default();
        let stays_ignored = |rule: &&&'static Rule| narrowest(&ignored, rule) > narrowest(&wanted, rule);
        let kept = crate::RULES.iter().filter(stays_ignored).map(|rule| Selector::Rule(rule));
        self.ignore = Some(kept.chain(over.ignore.iter().copied()).collect());
        if !over.select.is_empty() {
            self.select = Some(over.select.clone());
            self.extend_select.clear();
        }
        self.extend_select.extend_from_slice(extend_select);
        if !over.deny.is_empty() {
            self.deny = Some(over.deny.clone());
        }
    }

    /// Returns the options for checking a file. The path is relative to the directory of the settings file.
    pub fn options(&self, path: &Path) -> Options {
        let mut selection = self.selection();
        let ignored = self.per_file_ignores.iter().filter(|(glob, _)| glob.matches(path));
        // What is ignored in a file is not reported, however narrow the selection is.
        selection.ignore.extend(ignored.flat_map(|(_, selectors)| rules_of(selectors)));
        Options {
            filters: self.filters.clone(),
            tests: self.tests.clone(),
            functions: self.functions.clone(),
            providers: self.providers.clone(),
            selection,
            policy: None,
            tool_policy: ToolPolicy::default(),
            catalog: Catalog::default(),
        }
    }

    /// Returns whether a check of a directory leaves out this file or directory. The path is relative to the directory
    /// of the settings file.
    pub fn is_excluded(&self, path: &Path) -> bool {
        self.exclude.iter().any(|glob| glob.matches(path))
    }
}

impl PolicySettings {
    fn read(table: &DeTable<'_>, errors: &mut Vec<SettingsError>) -> Self {
        let mut section = Section::new("policy", table, errors);
        let (messages, paths) = (section.table("messages"), section.tables("paths"));
        let tools = section.table("tools");
        section.finish();
        let tools = tools.map(|table| tool_policy::read(table, errors));
        let messages = messages.and_then(|table| {
            let mut section = Section::new("policy.messages", table, errors);
            let check = section.policy();
            section.finish();
            check
        });
        let paths = paths.into_iter().filter_map(|table| {
            let mut section = Section::new("policy.paths", table, errors);
            let (path, check) = (section.required_glob("path"), section.policy());
            section.finish();
            path.zip(check)
        });
        Self { messages, paths: paths.collect(), tools }
    }
}

impl Settings {
    /// Returns the options for checking a file. The path is relative to the directory of the settings file.
    pub fn options(&self, path: &Path) -> Options {
        self.complete(self.check.options(path), path)
    }

    /// Adds the policy and the models to the options for checking a file, which may come from other settings than
    /// [`Settings::check`]. The path is relative to the directory of the settings file.
    #[must_use]
    pub fn complete(&self, options: Options, path: &Path) -> Options {
        let mut options = options.with_policy(self.policy.of(path));
        if let Some(tools) = &self.policy.tools {
            options.tool_policy = options.tool_policy.tightened(tools);
        }
        options.catalog = self.models.clone();
        options
    }
}

/// Returns a selector for each rule that the selectors contain.
fn rules_of(selectors: &[Selector]) -> impl Iterator<Item = Selector> {
    let rules = crate::RULES.iter().filter(|rule| selectors.iter().any(|selector| selector.contains(rule)));
    rules.map(|rule| Selector::Rule(rule))
}

/// Keys that widen what prompts may reach, and where they belong.
const REACH: [(&str, &str); 9] = [
    ("allow-env", "pass `--allow-env` to the commands that need it"),
    ("allow-dir", "pass `--allow-dir` to the commands that need it"),
    ("allow-endpoint", "pass `--allow-endpoint` to the commands that need it"),
    ("env", "pass `--allow-env` to the commands that need it"),
    ("env-files", "write the variables to a `.env` file next to the prompt"),
    ("file-roots", "pass `--allow-dir` to the commands that need it"),
    ("endpoints", "pass `--allow-endpoint` to the commands that need it"),
    ("credential-command", "write it to `tympan/config.toml` in your configuration directory"),
    ("credentials", "write it to `tympan/config.toml` in your configuration directory"),
];

/// A table that is being read. Keys that nobody asked for are unknown.
pub(crate) struct Section<'t, 'e> {
    name: Cow<'t, str>,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
    refused: Vec<Span>,
    errors: &'e mut Vec<SettingsError>,
}

impl<'t, 'e> Section<'t, 'e> {
    pub(crate) fn new(
        name: impl Into<Cow<'t, str>>,
        table: &'t DeTable<'_>,
        errors: &'e mut Vec<SettingsError>,
    ) -> Self {
        Self { name: name.into(), table, known: Vec::new(), refused: Vec::new(), errors }
    }

    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>, help: Option<String>) {
        self.errors.push(SettingsError { message: message.into(), help, span });
    }

    /// Reports keys that a project file must not have.
    fn refuse_reach(&mut self) {
        for (key, _) in self.table.iter() {
            let name = key.get_ref().replace('_', "-");
            let Some((_, help)) = REACH.iter().find(|(refused, _)| *refused == name || format!("{refused}s") == name)
            else {
                continue;
            };
            let message = format!("`{}` widens what prompts may reach, so a project cannot set it", key.get_ref());
            self.refused.push(key.span().into());
            self.error(key.span().into(), message, Some((*help).to_owned()));
        }
    }

    /// Reports a section that projects expect, but that would have no effect.
    fn refuse_fmt(&mut self) {
        let Some((key, _)) = self.table.get_key_value("fmt") else { return };
        let help = "remove it: there is one layout; `exclude` in `[check]` also applies to `tympan fmt`";
        self.refused.push(key.span().into());
        self.error(key.span().into(), "`tympan fmt` has no settings".to_owned(), Some(help.to_owned()));
    }

    pub(crate) fn get(&mut self, key: &'static str) -> Option<(&'t DeValue<'t>, Span)> {
        self.known.push(key);
        let value = self.table.get(key)?;
        Some((value.get_ref(), value.span().into()))
    }

    pub(crate) fn expected(&mut self, key: &str, span: Span, expected: &str, found: &DeValue<'_>) {
        let message = format!("`{key}`: expected {expected}, found {}", describe(found));
        self.error(span, message, None);
    }

    /// Returns a table.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<&'t DeTable<'t>> {
        let (value, span) = self.get(key)?;
        if value.as_table().is_none() {
            self.expected(key, span, "a table", value);
        }
        value.as_table()
    }

    /// Returns a string.
    pub(crate) fn string(&mut self, key: &'static str) -> Option<String> {
        let (value, span) = self.get(key)?;
        if value.as_str().is_none() {
            self.expected(key, span, "a string", value);
        }
        value.as_str().map(str::to_owned)
    }

    /// Returns a path that does not leave the directory of the file.
    fn inner_path(&mut self, key: &'static str) -> Option<String> {
        let path = self.string(key)?;
        let is_inner = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&path).components().all(is_inner) {
            let (_, span) = self.get(key)?;
            let help = format!("pass `--{key} FILE` to the commands that need another file");
            self.error(span, format!("`{key}`: expected a path below the directory of this file"), Some(help));
            return None;
        }
        Some(path)
    }

    /// Returns a boolean.
    fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let (value, span) = self.get(key)?;
        if value.as_bool().is_none() {
            self.expected(key, span, "true or false", value);
        }
        value.as_bool()
    }

    /// Returns the tables of a list.
    pub(crate) fn tables(&mut self, key: &'static str) -> Vec<&'t DeTable<'t>> {
        let Some((value, span)) = self.get(key) else { return Vec::new() };
        let Some(items) = value.as_array() else {
            self.expected(key, span, "a list of tables", value);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items.iter() {
            match item.get_ref().as_table() {
                Some(table) => tables.push(table),
                None => self.expected(key, item.span().into(), "a table", item.get_ref()),
            }
        }
        tables
    }

    /// Reports a key that a table of a list must have.
    pub(crate) fn missing(&mut self, key: &str) {
        let message = format!("missing `{key}` in `[[{}]]`", self.name);
        self.error(Span::default(), message, None);
    }

    /// Returns a pattern that must be there.
    fn required_glob(&mut self, key: &'static str) -> Option<Glob> {
        let Some((value, span)) = self.get(key) else {
            self.missing(key);
            return None;
        };
        let Some(text) = value.as_str() else {
            self.expected(key, span, "a string", value);
            return None;
        };
        self.glob(key, text, span)
    }

    /// Returns the policy for messages.
    fn policy(&mut self) -> Option<PolicyCheck> {
        const KEY: &str = "untrusted";
        let decides = self.boolean("decides").unwrap_or_default();
        let Some((value, span)) = self.get(KEY) else {
            let message = format!("missing `{KEY}` in `[{}]`", self.name);
            let help = "list the roles whose messages may contain untrusted inputs".to_owned();
            self.error(Span::default(), message, Some(help));
            return None;
        };
        let mut roles = Vec::new();
        for (text, span) in self.texts(KEY, value, span) {
            match Role::from_name(text) {
                Some(role) => roles.push(role),
                None => {
                    let help = "known roles: system, developer, user, assistant, tool".to_owned();
                    self.error(span, format!("`{KEY}`: unknown role `{text}`"), Some(help));
                }
            }
        }
        Some(PolicyCheck { decides, ..PolicyCheck::new(Policy::new(roles)) })
    }

    /// Returns a list of strings.
    pub(crate) fn strings(&mut self, key: &'static str) -> Option<Vec<String>> {
        let (value, span) = self.get(key)?;
        Some(self.texts(key, value, span).into_iter().map(|(text, _)| text.to_owned()).collect())
    }

    fn texts(&mut self, key: &str, value: &'t DeValue<'t>, span: Span) -> Vec<(&'t str, Span)> {
        let Some(items) = value.as_array() else {
            self.expected(key, span, "a list of strings", value);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref().as_str() {
                Some(text) => texts.push((text, item.span().into())),
                None => self.expected(key, item.span().into(), "a string", item.get_ref()),
            }
        }
        texts
    }

    fn selectors(&mut self, key: &'static str, parse: ParseSelector) -> Option<Vec<Selector>> {
        let (value, span) = self.get(key)?;
        Some(self.selectors_in(key, value, span, parse))
    }

    fn selectors_in(&mut self, key: &str, value: &'t DeValue<'t>, span: Span, parse: ParseSelector) -> Vec<Selector> {
        let mut selectors = Vec::new();
        for (text, span) in self.texts(key, value, span) {
            match parse(text) {
                Ok(selector) => selectors.push(selector),
                Err(unknown) => {
                    let help = unknown.suggestion.map_or_else(
                        || "`tympan rule` lists all rules".to_owned(),
                        |suggestion| format!("did you mean `{suggestion}`?"),
                    );
                    self.error(span, format!("`{key}`: unknown rule or group `{text}`"), Some(help));
                }
            }
        }
        selectors
    }

    fn globs(&mut self, key: &'static str) -> Vec<Glob> {
        let Some((value, span)) = self.get(key) else { return Vec::new() };
        let texts = self.texts(key, value, span);
        texts.into_iter().filter_map(|(text, span)| self.glob(key, text, span)).collect()
    }

    fn glob(&mut self, key: &str, text: &str, span: Span) -> Option<Glob> {
        let glob = Glob::new(text);
        if let Err(reason) = &glob {
            self.error(span, format!("`{key}`: `{text}` is not a pattern: {reason}"), None);
        }
        glob.ok()
    }

    fn per_file_ignores(&mut self) -> Vec<(Glob, Vec<Selector>)> {
        const KEY: &str = "per-file-ignores";
        let Some(table) = self.table(KEY) else { return Vec::new() };
        let mut ignores = Vec::new();
        for (pattern, value) in table.iter() {
            let selectors = self.selectors_in(KEY, value.get_ref(), value.span().into(), str::parse);
            ignores.extend(self.glob(KEY, pattern.get_ref(), pattern.span().into()).map(|glob| (glob, selectors)));
        }
        ignores
    }

    /// Reports the keys that nobody asked for.
    pub(crate) fn finish(mut self) {
        for (key, _) in self.table.iter() {
            let (name, span) = (key.get_ref().as_ref(), Span::from(key.span()));
            if self.known.contains(&name) || self.refused.contains(&span) {
                continue;
            }
            let place = if self.name.is_empty() { String::new() } else { format!(" in `[{}]`", self.name) };
            let help = match guess(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys: {}", self.known.join(", ")),
            };
            self.error(span, format!("unknown key `{name}`{place}"), Some(help));
        }
    }
}

type ParseSelector = fn(&str) -> Result<Selector, UnknownSelector>;

pub(crate) fn syntax_error(error: &toml::de::Error) -> SettingsError {
    let message = format!("invalid TOML: {}", error.message().lines().collect::<Vec<_>>().join(", "));
    SettingsError { message, help: None, span: error.span().unwrap_or_default().into() }
}

fn describe(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
