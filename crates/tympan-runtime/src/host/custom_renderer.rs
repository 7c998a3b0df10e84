//! Renders templates with custom renderers, as safely as with the built-in ones: inputs cannot inject role markers.
//!
//! A custom renderer returns a plain string, and the origin of its parts is unknown. All of it therefore counts as
//! untrusted, except for the template's role markers. They are recognized by a nonce that no input can predict.

use std::collections::HashSet;
use std::sync::Arc;

use tympan_core::chat::marker::pre_render;
use tympan_core::chat::policy::Policy;
use tympan_core::chat::rendered::{InputInfo, InputTable};
use tympan_core::prompt::RenderOptions;
use tympan_core::text::origin::Origin;
use tympan_core::text::traced::TracedText;
use tympan_core::{Error, Inputs, Kind, Prompt, Rendered, Result, Role};

use crate::host::runtime::system_entropy;

/// The name of the input that the renderer's output is attributed to in segments.
const UNKNOWN: &str = "(renderer)";

/// A render that waits for the text of a custom renderer.
pub(crate) struct Job {
    pub(crate) template: String,
    pub(crate) inputs: Inputs,
    table: Arc<InputTable>,
    /// The nonce of the role markers, if they split the text.
    nonce: Option<String>,
    strict: bool,
    policy: Option<(Option<Role>, Policy)>,
}

impl Job {
    /// Checks the inputs and marks the role markers of the template.
    pub(crate) fn new(prompt: &Prompt, inputs: &Inputs, options: &RenderOptions<'_>) -> Result<Self> {
        let spec = prompt.spec();
        // The guard would have to wrap all of the text, including the author's instructions, which makes it useless.
        if options.guard.is_some() {
            let details = format!("renderer `{}` does not track which text comes from inputs", spec.template.format);
            return Err(Error::new(Kind::CannotGuard, details).with_help(
                "use the format jinja2 or mustache to render with the \
                    guard",
            ));
        }
        let inputs = plain_inputs(prompt, inputs)?;
        let template = prompt.get_source(options.variant)?;
        let table = Arc::new(unknown_inputs().with_arm(prompt.arm_info(options.variant)?));
        // The text cannot be attributed to individual inputs, so one strict input makes all of them strict.
        let strict = options.strict.unwrap_or(spec.template.strict) || spec.inputs.iter().any(|input| input.strict);
        let policy = match options.policy {
            Some(policy) => Some((prompt.only_role()?, policy)),
            None => None,
        };
        if !spec.template.is_split() {
            return Ok(Self { template: template.to_owned(), inputs, table, nonce: None, strict, policy });
        }
        let nonce = format!("{:016x}", system_entropy()?);
        Ok(Self { template: pre_render(template, &nonce), inputs, table, nonce: Some(nonce), strict, policy })
    }

    /// Determines which parts of the rendered text come from the author.
    pub(crate) fn finish(self, text: String) -> Result<Rendered> {
        let rendered = match &self.nonce {
            None => Rendered::new(TracedText::whole(text, Origin::input(0)), self.table),
            Some(nonce) => trace(&text, &self.template, nonce, self.table)?.with_strict(self.strict)?,
        };
        if let Some((role, policy)) = self.policy {
            rendered.check_policy(role, policy)?;
        }
        Ok(rendered)
    }
}

/// Fills in defaults, and returns an error for threads, images, files and audio, because a custom renderer would write
/// them as text. This applies to both the caller's values and defaults; an empty default is left out instead.
fn plain_inputs(prompt: &Prompt, given: &Inputs) -> Result<Inputs> {
    let spec = prompt.spec();
    let mut inputs = prompt.validate_inputs(given)?;
    for rich in spec.inputs.iter().filter(|input| input.kind.is_rich()) {
        let Some(value) = inputs.get(&rich.name) else { continue };
        let is_given = given.contains_key(&rich.name);
        if is_given || !value.as_array().is_some_and(Vec::is_empty) {
            let what = if is_given { "input" } else { "the default of input" };
            let details = format!("{what} `{}` is not supported by the renderer `{}`", rich.name, spec.template.format);
            return Err(Error::new(Kind::RichInputMisused, details)
                .with_help("use the format jinja2 or mustache for threads, images, files and audio"));
        }
        inputs.shift_remove(&rich.name);
    }
    Ok(inputs)
}

fn unknown_inputs() -> InputTable {
    InputTable::new(vec![InputInfo { name: UNKNOWN.to_owned(), trusted: false, strict: false }])
}

/// Returns the error for a role marker whose line the renderer changed: the line may contain text from an input.
fn changed_marker() -> Error {
    Error::new(Kind::NonceMismatch, "").with_help(
        "the custom renderer changed a role marker line; with a custom renderer, role markers must not contain \
            template expressions",
    )
}

/// Attributes the role markers and the line breaks around them to the author, and the rest to an unknown input.
fn trace(text: &str, template: &str, nonce: &str, inputs: Arc<InputTable>) -> Result<Rendered> {
    let mark = format!("[nonce={nonce}");
    let markers: HashSet<&str> = template.lines().filter(|line| line.contains(&mark)).map(str::trim_end).collect();
    let mut traced = TracedText::default();
    let mut content = String::new();
    for line in text.split_inclusive('\n') {
        let marker = line.split_once(mark.as_str()).filter(|(role, _)| role.chars().all(char::is_alphanumeric));
        match marker {
            Some(_) if !markers.contains(line.trim_end()) => return Err(changed_marker()),
            Some((role, rest)) => {
                push_content(&mut traced, &std::mem::take(&mut content));
                let attributes = rest.strip_prefix(", ").map(|rest| format!("[{rest}"));
                let line = attributes.unwrap_or_else(|| rest.strip_prefix(']').unwrap_or(rest).to_owned());
                traced.push(&format!("{role}{line}"), Origin::AUTHOR);
            }
            None => content.push_str(line),
        }
    }
    push_content(&mut traced, &content);
    Ok(Rendered::new(traced, inputs))
}

fn push_content(traced: &mut TracedText, content: &str) {
    let body = content.trim_start_matches(['\n', '\r']);
    let start = content.len() - body.len();
    let end = start + body.trim_end_matches(['\n', '\r']).len();
    traced.push(&content[..start], Origin::AUTHOR);
    if start < end {
        traced.push(&content[start..end], Origin::input(0));
    }
    traced.push(&content[end.max(start)..], Origin::AUTHOR);
}
