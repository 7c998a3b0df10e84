//! `tympan render`: renders a prompt's template.

use serde_json::{Value as Json, json};
use tympan::turn::{Label, MessageLabel, message_labels};
use tympan::{Guard, Inputs, Message, Prompt, RenderOptions, Rendered};
use tympan::{Runtime, RuntimeOptions};

use crate::args::{KindsChoice, PromptArgs, RenderArgs};
use crate::color::{self, Writer, paint};
use crate::escape::visible_line;
use crate::output::Looks;
use crate::report::Failure;
use crate::{inputs, json, output, policy, prompt_file, report};

pub(super) fn run(args: &RenderArgs, quiet: bool) -> Result<(), Failure> {
    let (_, rendered) = render(&args.prompt, quiet)?;
    if args.json {
        return Ok(output::print(&(json::pretty(&to_json(&rendered)) + "\n"))?);
    }
    let looks = output::looks();
    if looks.is_seen {
        output::print_lines(&seen(&rendered, looks))?;
    } else {
        output::print(rendered.text())?;
    }
    if !quiet {
        advise(&rendered);
    }
    if looks.colors && !quiet {
        output::print_error(&color::legend());
    }
    Ok(())
}

/// Formats the text for a terminal. Lines that an input starts get a bar, so that they cannot be mistaken for the
/// author's.
fn seen(rendered: &Rendered, looks: Looks) -> String {
    let mut out = String::with_capacity(rendered.text().len());
    let mut is_new = true;
    for segment in rendered.segments() {
        let writer = Writer::of(rendered, segment.origin);
        for line in segment.text.split_inclusive('\n') {
            if is_new && line != "\n" {
                out.push_str(if writer == Writer::Author { "  " } else { "│ " });
            }
            paint(&mut out, line, writer, looks);
            is_new = line.ends_with('\n');
        }
    }
    if !is_new {
        out.push('\n');
    }
    out
}

/// Loads and renders the prompt named on the command line.
///
/// # Errors
/// Returns an error if the prompt, its inputs or the command line are invalid.
pub(super) fn render(args: &PromptArgs, quiet: bool) -> Result<(Prompt, Rendered), Failure> {
    let runtime = prompt_file::runtime(&args.file, prompt_file::deferred(options(args)?), quiet);
    let (prompt, _, rendered) = render_in(&runtime, args, quiet)?;
    Ok((prompt, rendered))
}

/// Renders like [`render`], with a given runtime, and also returns the inputs.
///
/// # Errors
/// Returns an error if the prompt, its inputs or the command line are invalid.
pub(super) fn render_in(
    runtime: &Runtime,
    args: &PromptArgs,
    quiet: bool,
) -> Result<(Prompt, Inputs, Rendered), Failure> {
    let (prompt, inputs) = load_in(runtime, args, quiet)?;
    let rendered = render_with(runtime, &prompt, &inputs, args.variant.as_deref())?;
    Ok((prompt, inputs, rendered))
}

/// Loads the prompt and the inputs named on the command line.
///
/// # Errors
/// Returns an error if the prompt, its inputs or the command line are invalid.
pub(super) fn load_in(runtime: &Runtime, args: &PromptArgs, quiet: bool) -> Result<(Prompt, Inputs), Failure> {
    let takes_stdin = args.inputs.inputs.as_deref().is_some_and(prompt_file::is_stdin);
    if takes_stdin && prompt_file::is_stdin(&args.file) {
        return Err(Failure::Usage("only one of the prompt and its inputs can be read from standard input".to_owned()));
    }
    let prompt = prompt_file::load_and_warn(runtime, &args.file, quiet)?;
    let inputs = inputs::collect(&args.inputs, &prompt)?;
    if !quiet {
        inputs::warnings(&args.inputs, &prompt)
            .iter()
            .for_each(|warning| report::warn_plainly("unknown_input", warning));
        if args.kinds == KindsChoice::Warn {
            report::warn(&prompt.kind_warnings((&inputs).into()), prompt.source());
        }
    }
    Ok((prompt, inputs))
}

/// Renders a variant of a loaded prompt.
///
/// # Errors
/// Returns an error if the variant is unknown, if the inputs are invalid, or if rendering fails.
pub(super) fn render_with(
    runtime: &Runtime,
    prompt: &Prompt,
    inputs: &Inputs,
    variant: Option<&str>,
) -> Result<Rendered, Failure> {
    let options = RenderOptions { variant, ..runtime.render_options() };
    let rendered = runtime.render_with(prompt, inputs, &options);
    Ok(rendered.map_err(|error| prompt_file::in_prompt(error, prompt))?)
}

/// Returns the runtime options for a command line.
///
/// # Errors
/// Returns an error if the policy is invalid.
pub(super) fn options(args: &PromptArgs) -> Result<RuntimeOptions, Failure> {
    let policy = args.policy.as_ref().map(|value| policy::parse(value, &args.file)).transpose()?;
    let options = RuntimeOptions { policy, ..options_of(args.strict, args.lenient, args.guard) };
    let options = RuntimeOptions { strict_inputs: args.strict_inputs, seed: args.seed, ..options };
    Ok(args.env.over(RuntimeOptions { kinds: args.kinds.for_runtime(), ..options }))
}

/// Returns the runtime options for these rendering flags.
pub(super) fn options_of(strict: bool, lenient: bool, guard: bool) -> RuntimeOptions {
    RuntimeOptions {
        strict: strict.then_some(true),
        lenient: lenient.then_some(true),
        guard: guard.then(Guard::default),
        ..RuntimeOptions::default()
    }
}

/// Messages, and the labels that say where each of them came from.
#[derive(Clone, Debug, Default)]
pub(super) struct Labeled {
    pub(super) messages: Vec<Message>,
    pub(super) labels: Vec<MessageLabel>,
}

impl Labeled {
    /// Adds a message whose parts all have the same label.
    pub(super) fn push(&mut self, message: Message, label: &Label) {
        self.labels.push(MessageLabel::whole(&message, label));
        self.messages.push(message);
    }

    /// Adds other messages.
    pub(super) fn extend(&mut self, other: &Self) {
        self.messages.extend_from_slice(&other.messages);
        self.labels.extend_from_slice(&other.labels);
    }

    /// Returns the label of all messages together: that of what a model writes that has read them.
    pub(super) fn label(&self) -> Label {
        self.labels.iter().fold(Label::default(), |label, message| label.and(&message.union()))
    }

    /// Adds the guard's advisory to the instructions.
    pub(super) fn with_advisory(mut self, rendered: &Rendered) -> Self {
        let Some(guard) = rendered.guard() else { return self };
        let before = self.messages.clone();
        guard.insert_into(&mut self.messages);
        let same = self.messages.iter().zip(&before).take_while(|(now, then)| now == then).count();
        // Without a role for it, there is no message to add.
        if let Some(message) = self.messages.get(same).filter(|_| self.messages.len() > before.len()) {
            self.labels.insert(same, MessageLabel::whole(message, &Label::author()));
        }
        self
    }
}

/// Returns the messages for a model, with the guard's advisory among its instructions.
///
/// # Errors
/// Returns an error if the rendered text cannot be split into messages.
pub(super) fn messages(runtime: &Runtime, prompt: &Prompt, rendered: &Rendered) -> Result<Labeled, Failure> {
    labeled(runtime, prompt, rendered).map(|messages| messages.with_advisory(rendered))
}

/// Returns the messages of a prompt with their labels.
///
/// # Errors
/// Returns an error if the rendered text cannot be split into messages.
pub(super) fn labeled(runtime: &Runtime, prompt: &Prompt, rendered: &Rendered) -> Result<Labeled, Failure> {
    let in_file = |error| prompt_file::in_prompt(error, prompt);
    let messages = runtime.parse(prompt, rendered).map_err(in_file)?;
    let labels = message_labels(prompt, rendered).map_err(in_file)?;
    Ok(Labeled { messages, labels })
}

/// Prints the guard's advisory to standard error, because it is not part of the output.
pub(super) fn advise(rendered: &Rendered) {
    if let Some(guard) = rendered.guard() {
        output::print_error(&format!("advisory: {}\n", visible_line(guard.advisory)));
    }
}

fn to_json(rendered: &Rendered) -> Json {
    let segments = rendered.segments().map(|segment| {
        json!({
            "start": segment.range.start,
            "end": segment.range.end,
            "inputs": rendered.inputs().names(segment.origin).collect::<Vec<_>>(),
            "trusted": rendered.is_trusted(&segment),
        })
    });
    json!({
        "text": rendered.text(),
        "segments": segments.collect::<Json>(),
        "name": rendered.name(),
        "variant": rendered.variant(),
        "is_default": rendered.is_default(),
        "template_hash": rendered.template_hash(),
        "render_hash": rendered.render_hash(),
        "guard": rendered.guard().map(|guard| json!({ "advisory": guard.advisory })),
    })
}
