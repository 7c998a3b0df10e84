//! Questions about tool calls: what people are shown, and what they answer.
//!
//! Arguments and quoted sources may come from anybody. They are escaped, and every row of them starts with a bar, so they
//! cannot be mistaken for Tympan's own words.

use anstyle::Style;
use rustyline::DefaultEditor;
use serde_json::Value as Json;
use tympan::turn::{Approval, ArgumentOrigin, Label, Source};

use crate::color::{HEADING, Writer, paint_in, styled};
use crate::escape::visible_line;
use crate::output::{self, Looks};
use crate::rows::{Rows, width_of};

/// Why a call is denied that only a person can approve.
pub(super) const NOBODY: &str =
    "Nobody can approve it: there is no terminal, and `--yes` does not answer the questions of the policy";

/// The maximum number of characters and of lines of an argument that are shown at first.
const MAX_CHARS: usize = 600;
const MAX_LINES: usize = 12;

/// The maximum number of characters of a name.
const MAX_NAME: usize = 60;

/// The number of columns before Tympan's own lines.
const INDENT: usize = 2;

/// The maximum number of sources to list.
const MAX_SOURCES: usize = 8;

/// The maximum number of origins to show for one argument.
const MAX_ORIGINS: usize = 5;

/// The number of bytes around a quoted value. If there are fewer, the text begins or ends there.
const QUOTED: usize = 40;

/// The user's answer.
pub(super) enum Answer {
    Yes,
    /// Allow this tool from now on.
    Always,
    No(String),
    /// Cancel the turn.
    Quit,
}

/// Shows a call and asks whether it may run. `always` is whether the answer may be about all calls of the tool; questions
/// of the policy are always about one call.
///
/// # Errors
/// Returns an error if the question cannot be printed.
pub(super) async fn ask_about(approval: &Approval, always: bool) -> std::io::Result<Answer> {
    let always = always && approval.reasons.is_empty();
    let mut is_all = false;
    loop {
        let page = Page::of(approval, output::looks(), output::stdout_width(), is_all);
        output::print(&page.out)?;
        let choices = Choices { always, all: page.is_shortened };
        // Use another thread, so that waiting for the user does not block anything else.
        match tokio::task::spawn_blocking(move || ask(choices)).await {
            Ok(Asked::All) => is_all = true,
            Ok(Asked::Answer(answer)) => return Ok(answer),
            Err(_) => return Ok(Answer::Quit),
        }
    }
}

/// The answers that a question offers besides yes, no and quit.
#[derive(Clone, Copy)]
struct Choices {
    always: bool,
    all: bool,
}

impl Choices {
    fn question(self) -> String {
        let (always, all) = (if self.always { "[a]lways, " } else { "" }, if self.all { "[s]how all, " } else { "" });
        format!("run this tool? [y]es, [n]o, {always}{all}[q]uit the turn: ")
    }
}

enum Asked {
    Answer(Answer),
    /// Show everything and ask again.
    All,
}

/// Asks and blocks until the user answers.
fn ask(choices: Choices) -> Asked {
    let question = choices.question();
    // Ignore keys typed before the prompt appears, whether they are still in the terminal's queue or were read ahead by
    // another editor.
    forget_typed_ahead();
    let Ok(mut editor) = DefaultEditor::new() else { return Asked::Answer(Answer::Quit) };
    loop {
        // Ctrl-C and Ctrl-D cancel the turn.
        let Ok(answer) = editor.readline(&question) else { return Asked::Answer(Answer::Quit) };
        let answer = match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "a" | "always" if choices.always => Answer::Always,
            "s" | "show" if choices.all => return Asked::All,
            "q" | "quit" => Answer::Quit,
            "n" | "no" => {
                let Ok(reason) = editor.readline("reason for the model (optional): ") else {
                    return Asked::Answer(Answer::Quit);
                };
                let reason = if reason.trim().is_empty() { "the user declined" } else { reason.trim() };
                Answer::No(reason.to_owned())
            }
            _ => continue,
        };
        return Asked::Answer(answer);
    }
}

/// Discards keys that were typed but not read yet.
fn forget_typed_ahead() {
    #[cfg(unix)]
    // If flushing fails, reading from the terminal fails too.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// What a person needs to decide about a call.
struct Page {
    out: String,
    looks: Looks,
    width: Option<usize>,
    /// Whether to show arguments of any length.
    is_all: bool,
    /// Whether an argument was too long to be shown as a whole.
    is_shortened: bool,
}

impl Page {
    fn of(approval: &Approval, looks: Looks, width: Option<usize>, is_all: bool) -> Self {
        let mut page = Self { out: String::new(), looks, width, is_all, is_shortened: false };
        page.head(approval);
        for (parameter, value) in approval.run.arguments.iter() {
            let origins: Vec<_> = approval.arguments.iter().filter(|origin| origin.parameter == *parameter).collect();
            page.argument(parameter, value, &origins);
        }
        page.line("the model has read", &read(&approval.context));
        // The reasons come last, so that no argument can push them off the screen.
        match &reasons(approval)[..] {
            [reason] => page.line("needs approval because", reason),
            reasons => {
                page.line("needs approval because", "");
                reasons.iter().for_each(|reason| page.words("", &format!("- {reason}")));
            }
        }
        page
    }

    fn head(&mut self, approval: &Approval) {
        let effect = approval.effect.map_or("no declared effect", |effect| effect.as_str());
        let head = format!("→ {} ({effect})", name(&approval.run.name));
        let mut line = String::new();
        styled(&mut line, &head, if self.looks.colors { HEADING } else { Style::new() });
        self.out.push_str(&Rows::hanging(self.width).lay_out(&(line + "\n")));
    }

    /// Adds a line of Tympan's own: a heading, and what it is about.
    fn line(&mut self, what: &str, text: &str) {
        self.words(&format!("{what}:"), text);
    }

    /// Adds words of Tympan's own, with line breaks between them.
    fn words(&mut self, heading: &str, text: &str) {
        let mut line = String::new();
        styled(&mut line, heading, if self.looks.colors { HEADING } else { Style::new() });
        let mut column = INDENT + width_of(heading);
        for word in visible_line(text).split(' ').filter(|word| !word.is_empty()) {
            let columns = width_of(word);
            if column == INDENT {
                column += columns;
            } else if self.width.is_none_or(|width| column + 1 + columns <= width) {
                line.push(' ');
                column += 1 + columns;
            } else {
                line.push_str("\n  ");
                column = INDENT + 2 + columns;
            }
            line.push_str(word);
        }
        self.out.push_str(&Rows::indented(self.width).lay_out(&(line + "\n")));
    }

    fn argument(&mut self, parameter: &str, value: &Json, origins: &[&ArgumentOrigin]) {
        self.line(&format!("argument `{}`", name(parameter)), "");
        let text = match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        // What the model wrote itself is as trusted as what it has read.
        let is_trusted = !origins.is_empty() && origins.iter().all(|origin| origin.trusted);
        let writer = if is_trusted { Writer::Trusted } else { Writer::Untrusted };
        self.quote(&[(&text, writer.style())]);
        for origin in origins.iter().take(MAX_ORIGINS) {
            self.origin(origin);
        }
        if origins.len() > MAX_ORIGINS {
            self.line("and", &format!("{} more values", origins.len() - MAX_ORIGINS));
        }
    }

    fn origin(&mut self, origin: &ArgumentOrigin) {
        let trust = if origin.trusted { "trusted" } else { "untrusted" };
        let Some((source, quote)) = origin.source.as_ref().zip(origin.quote.as_ref()) else {
            return self.line("written by the model", "not found in the conversation");
        };
        let text = format!("{} ({trust})", found_in(source));
        match &origin.handle {
            Some(handle) => self.line(&format!("the content of {}, from", name(handle)), &text),
            None => self.line("found in", &text),
        }
        let writer = match source {
            Source::Author if origin.trusted => Writer::Author,
            _ if origin.trusted => Writer::Trusted,
            _ => Writer::Untrusted,
        };
        // The argument is all of the source, and was just shown.
        if origin.handle.is_none() && quote.before.is_empty() && quote.after.is_empty() {
            return;
        }
        let dots = |side: &str| if side.len() >= QUOTED { "…" } else { "" };
        let (before, after) = (dots(&quote.before), dots(&quote.after));
        let (around, value) = (writer.style(), writer.style().bold());
        let (before, after) = (format!("{before}{}", quote.before), format!("{}{after}", quote.after));
        self.quote(&[(&before, around), (&quote.value, value), (&after, around)]);
    }

    /// Adds text from elsewhere. Every row starts with a bar.
    fn quote(&mut self, parts: &[(&str, Style)]) {
        let (mut painted, mut left) = (String::new(), 0);
        for (text, style) in parts {
            let (shown, more) = if self.is_all { (*text, 0) } else { shortened(text) };
            paint_in(&mut painted, shown, *style, self.looks);
            left += more;
        }
        if !painted.ends_with('\n') {
            painted.push('\n');
        }
        self.out.push_str(&Rows::quoted(self.width).lay_out(&painted));
        if left > 0 {
            self.is_shortened = true;
            self.line("not shown", &format!("{left} more characters"));
        }
    }
}

/// Returns the beginning of a text, and the number of characters that are left out.
fn shortened(text: &str) -> (&str, usize) {
    let mut lines = 1;
    let end = text.char_indices().enumerate().find(|(count, (_, char))| {
        lines += usize::from(*char == '\n');
        *count >= MAX_CHARS || lines > MAX_LINES
    });
    match end {
        Some((_, (at, _))) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}

/// Shortens and escapes a name.
fn name(name: &str) -> String {
    let mut shown: String = visible_line(name).replace('`', "'").chars().take(MAX_NAME + 1).collect();
    if shown.chars().count() > MAX_NAME {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// Describes a source.
fn found_in(source: &Source) -> String {
    match source {
        Source::User => "what the user typed".to_owned(),
        Source::Tool { name: tool, .. } => format!("the result of tool `{}`", name(tool)),
        Source::Input { name: input } => format!("input `{}`", name(input)),
        other => other.to_string(),
    }
}

/// Lists why a call needs approval.
fn reasons(approval: &Approval) -> Vec<String> {
    let mut reasons: Vec<_> = approval.reasons.iter().map(ToString::to_string).collect();
    if approval.required_by_tool {
        reasons.push("the tool itself requires it".to_owned());
    }
    if reasons.is_empty() {
        reasons.push("every call does, unless you pass `--yes`".to_owned());
    }
    reasons
}

/// Lists what the model has read.
fn read(context: &Label) -> String {
    let mut sources: Vec<_> = context.sources.iter().collect();
    // The untrusted ones matter most.
    sources.sort_by_key(|source| !context.untrusted_sources.contains(source));
    let shown = sources.iter().take(MAX_SOURCES).map(|source| {
        let trust = if context.untrusted_sources.contains(source) { " (untrusted)" } else { "" };
        format!("{}{trust}", found_in(source))
    });
    let mut words = shown.collect::<Vec<_>>().join(", ");
    if sources.len() > MAX_SOURCES {
        words.push_str(&format!(", {} more", sources.len() - MAX_SOURCES));
    }
    if context.confidential {
        words.push_str("; some of it is confidential");
    }
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tympan::turn::ToolRun;

    use super::*;

    fn page(arguments: Json, width: usize, is_all: bool) -> Page {
        let Json::Object(arguments) = arguments else { panic!("it is an object") };
        let label = Label::new(Source::Tool { name: "fetch".into(), server: None, call: None }, false, true);
        let (id, name) = ("1".to_owned(), "send".to_owned());
        let run = ToolRun { index: 0, round: 0, id, name, arguments: Arc::new(arguments), label: label.clone() };
        let mut approval = Approval::new(run);
        approval.context = Label::author().and(&label);
        Page::of(&approval, Looks { colors: false, is_seen: true }, Some(width), is_all)
    }

    #[test]
    fn no_argument_passes_for_words_of_tympan() {
        let forged = "x\n  needs approval because: nothing\nrun this tool? y\r\u{1b}[2J\u{2028}→ other";
        let filler = "日本 ".repeat(40) + "→ forged   the model has read: nothing";
        for width in [10, 24, 40, 80] {
            let page = page(json!({ "to": forged, "a`b\n→ c": filler, "list": [forged, 1] }), width, true);
            let own = ["→ send (", "  ", ""];
            for row in page.out.lines().filter(|row| !row.starts_with("  │ ")) {
                assert!(own.iter().any(|begin| row.starts_with(begin)) && !row.contains("nothing"), "{width}: {row:?}");
                assert!(
                    !row.contains("forged") && !row.contains("other") && !row.contains('\u{1b}'),
                    "{width}: {row:?}"
                );
            }
            assert_eq!(page.out.lines().filter(|row| row.starts_with('→')).count(), 1, "{}", page.out);
        }
    }

    #[test]
    fn long_arguments_are_shown_on_request() {
        let long = "word ".repeat(1000) + "last";
        let short = page(json!({ "body": long, "lines": "a\n".repeat(100) }), 80, false);
        assert!(short.is_shortened && !short.out.contains("last") && short.out.lines().count() < 40, "{}", short.out);
        assert!(short.out.contains("not shown: 4404 more characters"), "{}", short.out);
        let all = page(json!({ "body": long }), 80, true);
        assert!(!all.is_shortened && all.out.contains("last"));
        assert!(all.out.contains("the result of tool `fetch` (untrusted), the prompt; some"), "{}", all.out);
    }
}
