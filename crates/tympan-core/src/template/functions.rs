//! Filters, tests and functions that a host registers for its templates.
//!
//! They are pure functions of JSON values. What they return counts as written by everything they received: its origin
//! is the union of the origins of all arguments.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value as Json;

use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::template::names::{FILTERS, TESTS};
use crate::template::tree::Function;

/// An error of a registered function. Any error type and any string converts to it. Its text becomes part of the
/// template error, so it should not quote values that must not appear in logs.
pub type FunctionError = Box<dyn std::error::Error + Send + Sync>;

/// The arguments of a call. The first positional argument of a filter or a test is the value that it is applied to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionArgs {
    /// The positional arguments.
    pub positional: Vec<Json>,
    /// The named arguments.
    pub named: JsonMap,
}

impl FunctionArgs {
    /// Returns the positional argument with this index, or else the argument with this name.
    pub fn get(&self, index: usize, name: &str) -> Option<&Json> {
        self.positional.get(index).or_else(|| self.named.get(name))
    }

    /// Returns the first positional argument: the value that a filter or a test is applied to.
    pub fn value(&self) -> &Json {
        self.positional.first().unwrap_or(&Json::Null)
    }
}

type Callable<T> = dyn Fn(&FunctionArgs) -> Result<T, FunctionError> + Send + Sync;

/// Filters, tests and functions by name. Names can be added at any time and from any thread.
///
/// ```
/// use serde_json::json;
/// use tympan::template::functions::TemplateFunctions;
/// use tympan::{Prompt, RenderOptions};
///
/// let functions = TemplateFunctions::default();
/// functions.add_filter("shout", |args| {
///     let text = args.value().as_str().ok_or("expected a string")?;
///     Ok(json!(format!("{}!", text.to_uppercase())))
/// })?;
/// let source = "{name: a, role: user, body: '{{ word|shout }}', variables: {word: {type: string, trusted: false}}}";
/// let prompt = Prompt::from_yaml(source)?;
/// let options = RenderOptions { functions: Some(&functions), ..RenderOptions::default() };
/// assert_eq!(prompt.render_with(&json!({"word": "hello"}), &options)?.text(), "HELLO!");
/// # Ok::<(), tympan::Error>(())
/// ```
#[derive(Default)]
pub struct TemplateFunctions {
    filters: Names<Json>,
    tests: Names<bool>,
    functions: Names<Json>,
}

struct Names<T> {
    entries: RwLock<HashMap<String, Arc<Callable<T>>>>,
    /// Most hosts register nothing, and should not pay for a lock.
    is_used: AtomicBool,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { entries: RwLock::default(), is_used: AtomicBool::new(false) }
    }
}

impl<T> Names<T> {
    fn insert(&self, name: String, function: Arc<Callable<T>>) {
        let before = self.entries.write().unwrap_or_else(PoisonError::into_inner).insert(name, function);
        // Dropping a function can run code of the host, so it is dropped after the lock is released.
        drop(before);
        self.is_used.store(true, Ordering::Release);
    }

    fn get(&self, name: &str) -> Option<Arc<Callable<T>>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn list(&self) -> Vec<String> {
        let mut names: Vec<_> = self.entries.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        names.sort();
        names
    }
}

impl fmt::Debug for TemplateFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TemplateFunctions")
            .field("filters", &self.filters())
            .field("tests", &self.tests())
            .field("functions", &self.functions())
            .finish()
    }
}

impl TemplateFunctions {
    /// Adds a filter, `{{ value|name(…) }}`, replacing any registered one of this name.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in filter.
    pub fn add_filter(
        &self,
        name: impl Into<String>,
        filter: impl Fn(&FunctionArgs) -> Result<Json, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        let name = checked("filter", name.into(), |name| FILTERS.contains(&name))?;
        self.filters.insert(name, Arc::new(filter));
        Ok(())
    }

    /// Adds a test, `{% if value is name(…) %}`, replacing any registered one of this name.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in test.
    pub fn add_test(
        &self,
        name: impl Into<String>,
        test: impl Fn(&FunctionArgs) -> Result<bool, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        let name = checked("test", name.into(), |name| TESTS.contains(&name))?;
        self.tests.insert(name, Arc::new(test));
        Ok(())
    }

    /// Adds a function, `{{ name(…) }}`, replacing any registered one of this name. A macro or a declared input of the
    /// same name hides it.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in function.
    pub fn add_function(
        &self,
        name: impl Into<String>,
        function: impl Fn(&FunctionArgs) -> Result<Json, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        let is_built_in = |name: &str| Function::from_name(name).is_some() || RESERVED.contains(&name);
        let name = checked("function", name.into(), is_built_in)?;
        self.functions.insert(name, Arc::new(function));
        Ok(())
    }

    /// Returns the names of the registered filters, sorted.
    pub fn filters(&self) -> Vec<String> {
        self.filters.list()
    }

    /// Returns the names of the registered tests, sorted.
    pub fn tests(&self) -> Vec<String> {
        self.tests.list()
    }

    /// Returns the names of the registered functions, sorted.
    pub fn functions(&self) -> Vec<String> {
        self.functions.list()
    }

    pub(crate) fn filter(&self, name: &str) -> Option<Arc<Callable<Json>>> {
        self.filters.get(name)
    }

    pub(crate) fn test(&self, name: &str) -> Option<Arc<Callable<bool>>> {
        self.tests.get(name)
    }

    pub(crate) fn function(&self, name: &str) -> Option<Arc<Callable<Json>>> {
        self.functions.get(name)
    }
}

/// Names that have a meaning of their own in templates.
const RESERVED: &[&str] =
    &["loop", "caller", "self", "super", "true", "false", "none", "True", "False", "None", "not", "and", "or", "in"];

fn checked(what: &str, name: String, is_built_in: impl Fn(&str) -> bool) -> Result<String> {
    let mut chars = name.chars();
    let is_start = |char: char| char == '_' || char.is_alphabetic();
    let is_identifier = chars.next().is_some_and(is_start) && chars.all(|char| char == '_' || char.is_alphanumeric());
    if !is_identifier {
        let details = format!("name of a {what}: expected an identifier, found {name:?}");
        return Err(Error::new(Kind::InvalidInput, details));
    }
    if is_built_in(&name) {
        let error = Error::new(Kind::InvalidInput, format_args!("the {what} `{name}` is built in"));
        return Err(error.with_help("choose another name, so that the prompt means the same in every application"));
    }
    Ok(name)
}

/// Calls a registered function. An error and a panic become template errors.
pub(crate) fn call<T>(what: &str, name: &str, function: &Callable<T>, args: &FunctionArgs) -> Result<T> {
    let fail = |reason: &dyn fmt::Display| {
        Error::new(Kind::InvalidOperation, format_args!("{what} `{name}`: {reason}")).permanent()
    };
    // The arguments are not used after a panic, and the state of the host's function is its own.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| function(args))) {
        Ok(result) => result.map_err(|error| fail(&error)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Err(fail(&format_args!("the function panicked: {}", text.unwrap_or("no message"))))
        }
    }
}
