//! Rendering on a small stack.
#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::Value;
use tympan::Inputs;
use tympan::template::{CompileOptions, Syntax, Template};

/// The smallest stack that the engine supports.
const STACK: usize = 512 << 10;

pub(crate) fn map(inputs: &Value) -> Inputs {
    inputs.as_object().cloned().unwrap_or_default()
}

pub(crate) fn render(syntax: Syntax, template: &str, inputs: &Value) -> tympan::Result<String> {
    let template = Template::compile(template, CompileOptions { syntax, ..CompileOptions::default() })?;
    Ok(template.render_json(&map(inputs), false)?.as_str().to_owned())
}

/// Runs some work on a small stack. An overflow aborts the test.
pub(crate) fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread can be started");
    thread.join().expect("nothing panics")
}
