//! Inputs: JSON, maps, structs, and the macro [`inputs!`](crate::inputs).

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value as Json;

use crate::chat::rendered::Inputs;
#[cfg(feature = "garde")]
use crate::chat::rendered::Rendered;
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
#[cfg(feature = "garde")]
use crate::prompt::{Prompt, RenderOptions};
use crate::template::input::InputMap;

/// Values that can be the inputs of a prompt.
///
/// It is implemented for references to anything that serializes to a map and owns its data: `&serde_json::Map`,
/// `&serde_json::Value`, `&HashMap<String, V>`, `&MyStruct`. JSON is read in place; everything else is copied once.
/// Maps, JSON and [`inputs!`](crate::inputs) can be passed by value, too. A struct that borrows its data goes through
/// [`Serialized`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the inputs of a prompt",
    note = "pass `inputs! {{ name: value }}`, a reference to a map or to JSON, or a reference to a struct that implements `Serialize`",
    note = "wrap a struct that borrows its data: `Serialized(&value)`"
)]
pub trait IntoInputs<'a> {
    /// Converts the value.
    ///
    /// # Errors
    /// Returns an error if the value cannot be serialized, or if it is not a map. The error does not quote the value.
    fn into_inputs(self) -> Result<PromptInputs<'a>>;
}

/// The inputs of a prompt: borrowed where possible.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PromptInputs<'a> {
    /// Inputs that are read in place.
    Borrowed(InputMap<'a>),
    /// Inputs that were copied to JSON.
    Owned(JsonMap),
}

impl<'a> PromptInputs<'a> {
    /// Returns the inputs for rendering.
    pub fn as_map(&self) -> InputMap<'_> {
        match self {
            Self::Borrowed(map) => *map,
            Self::Owned(map) => map.into(),
        }
    }

    /// Converts the inputs to JSON, without a copy if they are JSON already.
    pub fn into_json(self) -> Cow<'a, Inputs> {
        match self {
            Self::Borrowed(map) => map.to_json(),
            Self::Owned(map) => Cow::Owned(map),
        }
    }
}

impl<'a, T: Serialize + 'static> IntoInputs<'a> for &'a T {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        let any: &'a dyn Any = self;
        let object = || any.downcast_ref::<Json>().and_then(Json::as_object);
        match any.downcast_ref::<JsonMap>().or_else(object) {
            Some(map) => Ok(PromptInputs::Borrowed(map.into())),
            None => to_inputs(self).map(PromptInputs::Owned),
        }
    }
}

impl<'a> IntoInputs<'a> for InputMap<'a> {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        Ok(PromptInputs::Borrowed(self))
    }
}

impl<'a> IntoInputs<'a> for PromptInputs<'a> {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        Ok(self)
    }
}

impl<'a> IntoInputs<'a> for JsonMap {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        Ok(PromptInputs::Owned(self))
    }
}

impl<'a> IntoInputs<'a> for Json {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        match self {
            Self::Object(map) => map.into_inputs(),
            other => to_inputs(&other).map(PromptInputs::Owned),
        }
    }
}

impl<'a> IntoInputs<'a> for NamedInputs {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        self.0.map(PromptInputs::Owned)
    }
}

impl<'a, K: Serialize, V: Serialize, S> IntoInputs<'a> for HashMap<K, V, S> {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        to_inputs(&self).map(PromptInputs::Owned)
    }
}

impl<'a, K: Serialize, V: Serialize> IntoInputs<'a> for BTreeMap<K, V> {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        to_inputs(&self).map(PromptInputs::Owned)
    }
}

/// A value that serializes to a map, as the inputs of a prompt. It need not own its data.
///
/// ```
/// use tympan::{Prompt, Serialized};
///
/// #[derive(serde::Serialize)]
/// struct Greeting<'a> {
///     name: &'a str,
/// }
///
/// let prompt = Prompt::from_prompty("user:\nHi {{ name }}!")?;
/// let name = String::from("Ada");
/// assert_eq!(prompt.render(Serialized(&Greeting { name: &name }))?.text(), "user:\nHi Ada!");
/// # Ok::<(), tympan::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Serialized<'s, T: ?Sized>(pub &'s T);

impl<'a, T: Serialize + ?Sized> IntoInputs<'a> for Serialized<'_, T> {
    fn into_inputs(self) -> Result<PromptInputs<'a>> {
        to_inputs(self.0).map(PromptInputs::Owned)
    }
}

/// Builds the inputs of a prompt from names and values that serialize.
///
/// ```
/// use tympan::{Prompt, inputs};
///
/// let prompt = Prompt::from_yaml(
///     "{name: greet, role: user, body: 'Hi {{ name }}, {{ n }} times!',
///       variables: {name: {type: string, trusted: false}, n: {type: integer, trusted: false}}}",
/// )?;
/// assert_eq!(prompt.render(inputs! { name: "Ada", n: 3 })?.text(), "Hi Ada, 3 times!");
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// A name that is not an identifier is written in quotes: `inputs! { "first-name": name }`. If a value cannot be
/// serialized, rendering reports it.
#[macro_export]
macro_rules! inputs {
    ($($name:tt : $value:expr),* $(,)?) => {
        $crate::prompt::inputs::NamedInputs::default()$(.with($crate::inputs!(@name $name), &$value))*
    };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:literal) => { $name };
}

/// The inputs that [`inputs!`](crate::inputs) builds.
#[derive(Clone, Debug)]
pub struct NamedInputs(Result<JsonMap>);

impl Default for NamedInputs {
    fn default() -> Self {
        Self(Ok(JsonMap::new()))
    }
}

impl NamedInputs {
    /// Adds an input, replacing any existing one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        match (&mut self.0, serde_json::to_value(value)) {
            (Ok(map), Ok(value)) => drop(map.insert(name.to_owned(), value)),
            // The reason may quote the value.
            (Ok(_), Err(_)) => {
                let error =
                    Error::new(Kind::InvalidInput, format_args!("input `{name}`: cannot be serialized as JSON"));
                self.0 = Err(error.with_help("map keys must be strings, and numbers must be finite"));
            }
            (Err(_), _) => {}
        }
        self
    }
}

#[cfg(feature = "garde")]
impl Prompt {
    /// Validates the variables with garde, then renders the prompt with options.
    ///
    /// # Errors
    /// Returns an error without rendering if validation fails. The error names the fields but does not quote their
    /// values. For garde's full report, call `validate` yourself. Otherwise, the errors are those of
    /// [`Prompt::render_with`].
    pub fn render_validated<V>(&self, vars: &V, options: &RenderOptions<'_>) -> Result<Rendered>
    where
        V: Serialize + garde::Validate,
        V::Context: Default,
    {
        vars.validate().map_err(|report| broken_rules(&report))?;
        self.render_with(Serialized(vars), options)
    }
}

/// Converts a value that serializes to a map into inputs.
///
/// # Errors
/// Returns an error if the value cannot be serialized, or if it is not a map. The error does not quote the value.
pub fn to_inputs(vars: &(impl Serialize + ?Sized)) -> Result<Inputs> {
    match serde_json::to_value(vars) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(_) => Err(Error::new(Kind::InvalidInput, "variables: expected a map or a struct")
            .with_help("pass a value whose fields are the variables")),
        // serde_json's message may quote the value.
        Err(_) => Err(Error::new(Kind::InvalidInput, "cannot serialize the variables as JSON")
            .with_help("map keys must be strings, and numbers must be finite")),
    }
}

/// Builds the error for failed validation. It quotes only the names of top-level fields: deeper parts of a path may be
/// keys of the caller's data, and messages of rules may quote values.
#[cfg(feature = "garde")]
pub(crate) fn broken_rules(report: &garde::Report) -> Error {
    let name = |path: &garde::Path| path.to_string().split(['.', '[']).next().unwrap_or_default().to_owned();
    let mut names: Vec<_> = report.iter().map(|(path, _)| name(path)).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let what = if names.is_empty() { "the variables".to_owned() } else { names.join(", ") };
    Error::new(Kind::InvalidInput, format_args!("{what} failed validation"))
        .with_help("call `validate` to see which rules failed")
}
