//! prompting-press: prompt definitions with content hashes, over minijinja 2.

use crate::Result;
use crate::data::Workload;
use crate::row::{Entry, Operation};
use ::prompting_press::{GuardConfig, Prompt};
use garde::Validate;
use serde::Serialize;
use serde_json::{Map, Value};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::new("prompting-press", "load", load),
        Entry::new("prompting-press", "render", render),
        Entry::new("prompting-press", "guarded", |workload| guarded(&workload.press, workload)),
        Entry::new("prompting-press", "wrapped", |workload| guarded(&workload.untrusted_press(), workload)),
    ]
}

/// Renders with the guard on. The guard does not wrap values inside loops, so without trusted inputs it writes less
/// text than Tympan.
fn guarded(definition: &str, workload: &Workload) -> Result<Operation> {
    let prompt = Prompt::from_yaml(definition).map_err(|e| e.to_string())?;
    let inputs = Inputs(workload.inputs.clone());
    let guard = GuardConfig { enabled: true, ..GuardConfig::default() };
    let operate = move || prompt.render(&inputs, None, &guard, false);
    Ok(Operation::new(operate, |_| None).map_err(|e| e.to_string())?)
}

fn load(workload: &Workload) -> Result<Operation> {
    let definition = workload.press.clone();
    Ok(Operation::new(move || Prompt::from_yaml(&definition), |_| None).map_err(|e| e.to_string())?)
}

/// Renders with the hashes of the template and the text, which are always part of the result.
fn render(workload: &Workload) -> Result<Operation> {
    let prompt = Prompt::from_yaml(&workload.press).map_err(|e| e.to_string())?;
    let inputs = Inputs(workload.inputs.clone());
    let guard = GuardConfig::default();
    let operate = move || prompt.render(&inputs, None, &guard, false);
    Ok(Operation::new(operate, |rendered| Some(rendered.text)).map_err(|e| e.to_string())?)
}

/// JSON inputs without validation rules, so that validation is free.
#[derive(Serialize, Validate)]
#[serde(transparent)]
#[garde(allow_unvalidated)]
struct Inputs(Map<String, Value>);
