//! Inputs from anything that serializes to a map: JSON, maps, structs, and the macro [`inputs!`](crate::inputs).

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use crate::chat::rendered::Inputs;
#[cfg(feature = "garde")]
use crate::chat::rendered::Rendered;
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
#[cfg(feature = "garde")]
use crate::prompt::{Prompt, RenderOptions};

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
pub struct NamedInputs(Result<JsonMap, String>);

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
            (Ok(_), Err(_)) => self.0 = Err(name.to_owned()),
            (Err(_), _) => {}
        }
        self
    }
}

impl Serialize for NamedInputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(map) => map.serialize(serializer),
            Err(name) => Err(S::Error::custom(format_args!("the input `{name}` cannot be serialized"))),
        }
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
        self.render_with(vars, options)
    }
}

/// Converts a value that serializes to a map into inputs.
///
/// # Errors
/// Returns an error if the value cannot be serialized, or if it is not a map. The error does not quote the value.
pub fn to_inputs(vars: &(impl Serialize + ?Sized)) -> Result<Inputs> {
    match serde_json::to_value(vars) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(_) => Err(Error::new(Kind::InvalidInput, "variables have to be a map or a struct")
            .with_help("pass a value whose fields are the variables")),
        // serde_json's message may quote the value.
        Err(_) => Err(Error::new(Kind::InvalidInput, "the variables cannot be written as JSON")
            .with_help("keys have to be text, and numbers finite")),
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
    Error::new(Kind::InvalidInput, format_args!("{what} did not pass validation"))
        .with_help("call `validate` to see which rules are broken")
}
