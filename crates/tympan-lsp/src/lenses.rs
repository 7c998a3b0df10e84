//! Code lenses, inlay hints, and the command that renders a prompt.

use gen_lsp_types::{CodeLens, Command, InlayHint, Range};
use lsp_server::ErrorCode;
use serde_json::{Value as Json, json};
use tympan_core::format::outline::Outline;
use tympan_core::text::source::Span;
use tympan_core::{Inputs, Prompt};

use crate::analysis::Analysis;
use crate::client::Client;
use crate::document::Document;
use crate::estimate::tokens;
use crate::failure::{Answer, Failure};
use crate::suite::{self, Suite};
use crate::view::View;

/// The command that returns the prompt rendered with its examples. The client may define it to show the text.
pub(crate) const RENDER: &str = "tympan.render";
/// The command that calls the model. Only the client executes it.
const RUN: &str = "tympan.run";

/// Returns the lenses of a document. Running needs a workspace that the user trusts.
pub(crate) fn lenses(document: &Document, analysis: &Analysis, client: &Client) -> Vec<CodeLens> {
    if !analysis.loads {
        return Vec::new();
    }
    let outline = Outline::new(document.source(), document.format());
    let suite = Suite::new(document, &outline).filter(|_| client.trusted);
    let tests = suite.map(suite::outline::lenses).unwrap_or_default();
    if document.is_test_file() {
        return tests;
    }
    let range = document.range(Span::new(0, 0));
    let lens = |title: &str, command: &str| CodeLens {
        range,
        command: Some(Command {
            title: title.to_owned(),
            tooltip: None,
            command: command.to_owned(),
            arguments: Some(vec![json!(document.uri)]),
        }),
        data: None,
    };
    let mut lenses = vec![lens("Render with sample", RENDER)];
    lenses.extend(client.trusted.then(|| lens("Run", RUN)));
    lenses.extend(tests);
    lenses
}

/// Returns the estimated number of tokens of each message, after its role marker.
pub(crate) fn hints(view: &View<'_>, range: Range) -> Vec<InlayHint> {
    let visible = view.document.span(range);
    let mut hints = Vec::new();
    for template in &view.templates {
        for message in template.analysis.messages() {
            let Some(marker) = message.marker.and_then(|marker| template.file_span(marker)) else { continue };
            if marker.start > visible.end || marker.end < visible.start {
                continue;
            }
            let count = tokens(template.text(message.content));
            let tooltip =
                "An estimate for the text of the template: one token per four bytes. Inputs are not included.";
            hints.push(InlayHint {
                position: view.document.position(marker.end),
                label: format!("≈ {count} tokens").into(),
                kind: None,
                text_edits: None,
                tooltip: Some(tooltip.to_owned().into()),
                padding_left: Some(true),
                padding_right: None,
                data: None,
            });
        }
    }
    hints
}

/// Renders a prompt with its examples. This is a pure function: it reads no files and calls no model.
pub(crate) fn render(analysis: &Analysis) -> Answer<Json> {
    let prompt = analysis.prompt.as_ref().filter(|_| analysis.loads);
    let prompt = prompt.ok_or_else(|| Failure::refused("the prompt has errors"))?;
    let rendered = prompt.render(examples(prompt)).map_err(|error| {
        let help = error.help().map_or_else(String::new, |help| format!(" ({help})"));
        Failure::refused(format_args!("{error}{help}"))
    })?;
    Ok(json!({"text": rendered.text()}))
}

/// Returns the examples of all inputs that have one.
fn examples(prompt: &Prompt) -> Inputs {
    let declared = prompt.variables().iter();
    declared.filter_map(|input| Some((input.name.clone(), input.example.clone()?))).collect()
}

/// Returns the document that a command is about.
pub(crate) fn command_uri(command: &str, arguments: Option<&[Json]>) -> Answer<gen_lsp_types::Uri> {
    if command != RENDER {
        let message = format_args!("unknown command `{command}`: this server only executes `{RENDER}`");
        return Err(Failure::new(ErrorCode::InvalidParams, message));
    }
    let uri = arguments.and_then(<[Json]>::first).and_then(Json::as_str).and_then(|uri| uri.parse().ok());
    uri.ok_or_else(|| Failure::new(ErrorCode::InvalidParams, "expected the URI of a document"))
}
