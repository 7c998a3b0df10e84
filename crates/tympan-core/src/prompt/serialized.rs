//! Rendering with inputs from any serializable value, such as a struct.

use serde::Serialize;
use serde_json::Value as Json;

use crate::chat::rendered::{Inputs, Rendered};
use crate::error::{Error, Kind, Result};
use crate::prompt::{Prompt, RenderOptions};

impl Prompt {
    /// Renders the prompt with the fields of any value that serializes to a map, such as a struct.
    ///
    /// ```
    /// #[derive(serde::Serialize)]
    /// struct Greeting<'a> {
    ///     name: &'a str,
    /// }
    ///
    /// let prompt = tympan::Prompt::from_yaml(
    ///     "{name: greet, role: user, body: 'Hi {{ name }}!', variables: {name: {type: string, trusted: false}}}",
    /// )?;
    /// assert_eq!(prompt.render_from(&Greeting { name: "Ada" })?.text(), "Hi Ada!");
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the value does not serialize to a map, or if rendering fails (see [`Prompt::render`]).
    pub fn render_from(&self, vars: &(impl Serialize + ?Sized)) -> Result<Rendered> {
        self.render_from_with(vars, &RenderOptions::default())
    }

    /// Renders the prompt with options and with the fields of any value that serializes to a map.
    ///
    /// # Errors
    /// Returns an error if the value does not serialize to a map, or if rendering fails (see [`Prompt::render_with`]).
    pub fn render_from_with(&self, vars: &(impl Serialize + ?Sized), options: &RenderOptions<'_>) -> Result<Rendered> {
        self.render_with(&to_inputs(vars)?, options)
    }

    /// Validates the variables with garde, then renders the prompt with options.
    ///
    /// # Errors
    /// Returns an error without rendering if validation fails. The error names the fields but does not quote their
    /// values. For garde's full report, call `validate` yourself. Otherwise, the errors are those of
    /// [`Prompt::render_from_with`].
    #[cfg(feature = "garde")]
    pub fn render_validated<V>(&self, vars: &V, options: &RenderOptions<'_>) -> Result<Rendered>
    where
        V: Serialize + garde::Validate,
        V::Context: Default,
    {
        vars.validate().map_err(|report| broken_rules(&report))?;
        self.render_from_with(vars, options)
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
