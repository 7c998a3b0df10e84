//! The bindings of tools, for the rules about them.

use tympan_core::format::outline::Field;
use tympan_core::spec::{Binding, Tool};

use crate::context::Context;

/// Returns the bindings of all tools.
pub(super) fn bindings<'c>(context: &'c Context<'_>) -> impl Iterator<Item = (&'c Tool, &'c Binding)> {
    let tools = context.prompt.spec().tools.iter();
    tools.flat_map(|tool| tool.bindings.iter().map(move |binding| (tool, binding)))
}

/// Returns what a file says about a binding: the value of this key, or all of it in its short form.
pub(super) fn written<'p>(context: &Context<'p>, tool: &Tool, binding: &Binding, key: &str) -> Option<Field<'p>> {
    let mut bindings = context.tool(&tool.name)?.get("bindings")?.declarations();
    let (_, binding) = bindings.find(|(parameter, _)| *parameter == binding.parameter)?;
    Some(binding.get(key).unwrap_or(binding))
}
