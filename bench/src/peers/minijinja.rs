//! minijinja: the template engine alone.

use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Operation};
use ::minijinja::Environment;
use ::minijinja::value::Serde;

pub(super) fn entries() -> Vec<Entry> {
    vec![Entry::new("minijinja", "render", render)]
}

/// Renders a template that is compiled once. The inputs are passed as JSON in each render.
fn render(workload: &Workload) -> Result<Operation> {
    let mut environment = Environment::new();
    environment.add_template_owned("prompt.txt", workload.jinja.clone())?;
    // A template borrows its environment. Leaking it avoids a lookup by name in each render.
    let template = Box::leak(Box::new(environment)).get_template("prompt.txt")?;
    let inputs = workload.inputs.clone();
    Ok(Operation::new(move || template.render(Serde(&inputs)), Some)?)
}
