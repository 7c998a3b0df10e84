//! Binds functions to the tools that a prompt declares.

use std::collections::HashMap;
use std::sync::Arc;

use tympan_core::spec::ToolKind;
use tympan_core::{Error, Kind, Prompt, Result};

use crate::tool::{Tool, schema_check};

/// Matches functions with the tools that a prompt declares, for [`TurnSettings::tools`](crate::TurnSettings::tools).
///
/// Each function must have a declaration with the same name and of the kind `function`, and must accept the parameters
/// that it declares. A declaration without a function only causes a warning, because the tool may be registered with
/// the runtime.
///
/// ```
/// # fn main() -> tympan_runtime::Result<()> {
/// use tympan_runtime::tool::{bind_tools, function};
///
/// let text = "---\ntools: [{ name: clock, kind: function }]\n---\nuser:\nWhat time is it?\n";
/// let prompt = tympan_runtime::load_str(text, "clock.prompty", ".")?;
/// let tools = bind_tools(&prompt, [("clock", function(|_| Ok::<_, String>("noon")))])?;
/// assert!(tools.contains_key("clock"));
/// let misspelt = bind_tools(&prompt, [("clocks", function(|_| Ok::<_, String>("noon")))]);
/// assert_eq!(misspelt.expect_err("no such tool").code(), "tool_mismatch");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if a function has no declaration, if two functions have the same name, or if a function's
/// parameters do not match its declaration.
pub fn bind_tools<N: Into<String>>(
    prompt: &Prompt,
    tools: impl IntoIterator<Item = (N, Arc<dyn Tool>)>,
) -> Result<HashMap<String, Arc<dyn Tool>>> {
    let declared: Vec<_> = prompt.spec().tools.iter().filter(is_function).collect();
    let mut bound = HashMap::new();
    for (name, tool) in tools {
        let name = name.into();
        let declaration = declared.iter().find(|declared| declared.name == name).ok_or_else(|| {
            let names: Vec<_> = declared.iter().map(|declared| declared.name.as_str()).collect();
            Error::new(Kind::ToolMismatch, format_args!("the prompt does not declare a function `{name}`")).with_help(
                format!("declared functions: {}", if names.is_empty() { "none".into() } else { names.join(", ") }),
            )
        })?;
        if let Some(parameters) = tool.parameters() {
            schema_check::check(declaration, parameters)?;
        }
        if bound.insert(name.clone(), tool).is_some() {
            return Err(Error::new(Kind::DuplicateName, format_args!("two functions are bound to `{name}`")));
        }
    }
    for missing in declared.iter().filter(|declared| !bound.contains_key(&declared.name)) {
        tracing::warn!(tool = %missing.name, "a declared tool has no bound function");
    }
    Ok(bound)
}

fn is_function(tool: &&tympan_core::spec::Tool) -> bool {
    matches!(tool.kind, ToolKind::Function { .. })
}
