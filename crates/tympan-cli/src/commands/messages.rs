//! `tympan messages`: shows the messages that the model would receive.

use std::borrow::Cow;

use tympan::chat::Place;
use tympan::chat::rendered::Segment;
use tympan::{Message, Rendered};

use super::render::{advise, render};
use crate::args::RenderArgs;
use crate::color::{self, HEADING, Writer, paint, parts, styled};
use crate::escape::visible_line;
use crate::output::Looks;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::{json, output};

pub(super) fn run(args: &RenderArgs, quiet: bool) -> Result<(), Failure> {
    let (prompt, rendered) = render(&args.prompt, quiet)?;
    if args.json {
        let messages = prompt.messages_with_segments(&rendered).map_err(|error| in_prompt(error, &prompt))?;
        let messages: Vec<_> = messages.iter().map(|message| message.to_json(rendered.inputs())).collect();
        return Ok(output::print(&(json::pretty(&messages) + "\n"))?);
    }
    // The prompt selects the parser, so this fails if the parser is unknown.
    let placed = prompt.messages_with_places(&rendered).map_err(|error| in_prompt(error, &prompt))?;
    let looks = output::looks();
    let segments: Vec<_> = rendered.segments().collect();
    let placed = placed.into_iter();
    let shown: Vec<_> = placed.map(|(message, place)| Shown::new(message, &place, &rendered, &segments)).collect();
    output::print_lines(&show(&shown, looks))?;
    if !quiet {
        advise(&rendered);
    }
    if looks.colors && !quiet {
        output::print_error(&color::legend());
    }
    Ok(())
}

/// A message whose text is split into parts by writer.
pub(super) struct Shown<'r> {
    message: Message,
    parts: Vec<(Cow<'r, str>, Writer)>,
}

impl<'r> Shown<'r> {
    fn new(message: Message, place: &Place, rendered: &'r Rendered, segments: &[Segment<'r>]) -> Self {
        let parts = match place {
            Place::Text(range) => {
                parts(rendered, segments, range).into_iter().map(|(text, writer)| (text.into(), writer)).collect()
            }
            Place::Thread(range) => {
                // All messages of a thread come from the input whose nonce is at this position.
                let writer = parts(rendered, segments, range).first().map_or(Writer::Untrusted, |(_, writer)| *writer);
                vec![(describe(&message).into(), writer)]
            }
        };
        Self { message, parts }
    }

    /// Creates a message whose text is attributed to the author, because its origin is unknown.
    pub(super) fn plain(message: Message) -> Self {
        let parts = vec![(describe(&message).into(), Writer::Author)];
        Self { message, parts }
    }
}

/// Returns the content of a message as text, with placeholders for other parts.
pub(super) fn describe(message: &Message) -> String {
    let parts = message.content.iter().map(|part| match part {
        tympan::ContentPart::Text(text) => text.value.clone(),
        tympan::ContentPart::Image(_) => "[image]".to_owned(),
        tympan::ContentPart::Audio(_) => "[audio]".to_owned(),
        tympan::ContentPart::File(_) => "[file]".to_owned(),
        _ => "[other]".to_owned(),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Formats messages for people. Text is indented, so that it cannot be mistaken for the heading of a message.
pub(super) fn show(messages: &[Shown<'_>], looks: Looks) -> String {
    let mut out = String::new();
    for (index, Shown { message, parts }) in messages.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let heading = format!("{}:", heading(message));
        if looks.colors {
            styled(&mut out, &heading, HEADING);
        } else {
            out.push_str(&heading);
        }
        out.push('\n');
        show_text(&mut out, parts, looks);
    }
    out
}

fn show_text(out: &mut String, parts: &[(Cow<'_, str>, Writer)], looks: Looks) {
    let mut at_line_start = true;
    for (text, writer) in parts {
        for line in text.split_inclusive('\n') {
            if at_line_start && line != "\n" {
                out.push_str("  ");
            }
            paint(out, line, *writer, looks);
            at_line_start = line.ends_with('\n');
        }
    }
    if !at_line_start {
        out.push('\n');
    }
}

/// Returns the role, with the attributes if there are any.
fn heading(message: &Message) -> String {
    let role = message.role.as_str();
    let Some(metadata) = &message.metadata else { return role.to_owned() };
    let attributes = metadata.iter().map(|(name, value)| format!("{name}={value}"));
    visible_line(&format!("{role}[{}]", attributes.collect::<Vec<_>>().join(", ")))
}
