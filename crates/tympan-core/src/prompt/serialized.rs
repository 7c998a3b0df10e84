//! Inputs from any value that serializes, such as a struct.

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
    /// As [`Prompt::render`]; or the value is no map.
    pub fn render_from(&self, vars: &(impl Serialize + ?Sized)) -> Result<Rendered> {
        self.render_from_with(vars, &RenderOptions::default())
    }

    /// As [`Prompt::render_from`], with options.
    ///
    /// # Errors
    /// As [`Prompt::render_from`] and [`Prompt::render_with`].
    pub fn render_from_with(&self, vars: &(impl Serialize + ?Sized), options: &RenderOptions<'_>) -> Result<Rendered> {
        self.render_with(&to_inputs(vars)?, options)
    }

    /// As [`Prompt::render_from_with`], but only if garde finds the variables valid.
    ///
    /// # Errors
    /// A rule is broken: the error names the fields, and quotes nothing of what they hold. For garde's own report,
    /// call `validate` yourself. Nothing is rendered then.
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

/// The fields of a value that serializes to a map.
///
/// # Errors
/// It cannot be serialized, or it is no map. The error quotes nothing of it.
pub fn to_inputs(vars: &(impl Serialize + ?Sized)) -> Result<Inputs> {
    match serde_json::to_value(vars) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(_) => Err(Error::new(Kind::InvalidInput, "variables have to be a map or a struct")
            .with_help("pass a value whose fields are the variables")),
        // The reason may quote the value.
        Err(_) => Err(Error::new(Kind::InvalidInput, "the variables cannot be written as JSON")
            .with_help("keys have to be text, and numbers finite")),
    }
}

/// Which fields break a rule. Only names of fields are quoted: what is further down may be a key of the caller's data,
/// and messages of rules may quote values.
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
