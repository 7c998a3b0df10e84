//! Comparisons as text for people.
//!
//! All lines of text from prompts and inputs are indented further than Tympan's own, and control characters are escaped
//! even if the output is not a terminal, so that nothing can be mistaken for a line of Tympan's own.

use std::collections::HashSet;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Effects, Style};
use serde_json::Value as Json;
use tympan::diagnostic::Severity;
use tympan::spec::DEFAULT_VARIANT;
use tympan::text::source::SourceFile;
use tympan_eval::baseline::Comparison as Verdicts;
use tympan_eval::comparison::{
    Change, Comparison, DefinitionChange, HashChange, InputPath, MessageComparison, MessageVersion, ModelTokens, Piece,
    PromptVersion, ReachChange, ReachTarget, TextWriter, VariantComparison, WriterKind,
};
use tympan_lint::Finding;

use crate::color::{HEADING, Writer, paint_in, styled};
use crate::escape::visible_line;
use crate::output::Looks;
use crate::prices;

/// The number of unchanged lines around a change.
const CONTEXT: usize = 2;

/// The most characters of a value.
const MAX_VALUE: usize = 80;

/// The digits of a hash that are shown.
const HASH_DIGITS: usize = 12;

/// The most cases whose verdicts are shown.
const MAX_CASES: usize = 20;

/// The most notes about text with another writer.
const MAX_NOTES: usize = 5;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const WARNING: Style = AnsiColor::Red.on_default().bold();

/// Returns the comparison as text. It is empty if nothing changed.
pub(super) fn comparison(
    compared: &Comparison,
    verdicts: Option<&Verdicts>,
    names: [&str; 2],
    versions: [&PromptVersion; 2],
    colors: bool,
) -> String {
    let mut page = Page { out: String::new(), looks: Looks { colors, is_seen: true } };
    if compared.is_equal() {
        return page.out;
    }
    let [before, after] = names.map(visible_line);
    page.line(&format!("--- {before}"), REMOVED);
    page.line(&format!("+++ {after}"), ADDED);
    page.warnings(compared);
    page.section("definition", &compared.definition, Page::definition);
    page.section("reach", &compared.reach, Page::reach);
    compared.variants.iter().for_each(|variant| page.messages(variant));
    page.tokens(&compared.variants);
    verdicts.into_iter().for_each(|verdicts| page.verdicts(verdicts));
    page.findings(compared, versions);
    let is_same = compared.variants.iter().all(VariantComparison::is_equal);
    let has_note = is_same && !compared.variants.is_empty() && compared.hashes.iter().any(|hash| hash.is_template);
    page.section("hashes", &compared.hashes, Page::hash);
    if has_note {
        page.line("  the messages for these inputs are the same", Style::new());
    }
    page.out
}

struct Page {
    out: String,
    looks: Looks,
}

impl Page {
    /// Appends text in a style. It must be safe to print.
    fn add(&mut self, text: &str, style: Style) {
        styled(&mut self.out, text, if self.looks.colors { style } else { Style::new() });
    }

    fn line(&mut self, text: &str, style: Style) {
        self.add(text, style);
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        self.out.push('\n');
        self.line(text, HEADING);
    }

    fn section<T>(&mut self, name: &str, items: &[T], show: impl Fn(&mut Self, &T)) {
        if !items.is_empty() {
            self.heading(&format!("{name}:"));
            items.iter().for_each(|item| show(self, item));
        }
    }

    /// Appends a line with a sign for what was added, removed or changed.
    fn signed(&mut self, has_before: bool, has_after: bool, text: &str) {
        let (sign, style) = match (has_before, has_after) {
            (false, true) => ('+', ADDED),
            (true, false) => ('-', REMOVED),
            _ => ('~', Style::new()),
        };
        self.line(&format!("  {sign} {}", visible_line(text)), style);
    }

    /// Appends what a reviewer should see first.
    fn warnings(&mut self, compared: &Comparison) {
        let trusted = compared.newly_trusted.iter();
        let trusted =
            trusted.map(|name| format!("the input `{name}` is newly trusted: its text counts as the author's"));
        let warnings: Vec<_> = compared.warnings.iter().map(|warning| warning.message()).chain(trusted).collect();
        if !warnings.is_empty() {
            self.out.push('\n');
        }
        for warning in warnings {
            self.add("warning", WARNING);
            self.line(&format!(": {}", visible_line(&warning)), HEADING);
        }
    }

    fn definition(&mut self, change: &DefinitionChange) {
        let path = change.path.join(".");
        let is_declaration = matches!(&change.path[..], [list, _] if LISTS.contains(&list.as_str()));
        let text = match (&change.before, &change.after) {
            (Some(item), None) | (None, Some(item)) if is_declaration => match described(item) {
                about if about.is_empty() => path,
                about => format!("{path}: {about}"),
            },
            (None, Some(value)) | (Some(value), None) => format!("{path}: {}", shown(value)),
            (Some(before), Some(after)) if is_reordered(before, after) => format!("{path}: in another order"),
            (Some(before), Some(after)) => format!("{path}: {} → {}", shown(before), shown(after)),
            (None, None) => path,
        };
        self.signed(change.before.is_some(), change.after.is_some(), &text);
    }

    fn reach(&mut self, change: &ReachChange) {
        let mut text = format!("{} → {}", change.input, target(&change.target));
        if !change.template.is_empty() && change.template != DEFAULT_VARIANT {
            let _ = write!(text, " ({})", change.template);
        }
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => {
                let _ = write!(text, ": {} → {}", way(before), way(after));
            }
            (path, None) | (None, path) => path.iter().for_each(|path| {
                let _ = write!(text, ": {}", way(path));
            }),
        }
        self.signed(change.before.is_some(), change.after.is_some(), &text);
    }

    fn messages(&mut self, variant: &VariantComparison) {
        if variant.is_equal() {
            return;
        }
        match variant.variant.as_str() {
            DEFAULT_VARIANT => self.heading("messages:"),
            name => self.heading(&visible_line(&format!("messages ({name}):"))),
        }
        for message in variant.messages.iter().filter(|message| !message.is_equal()) {
            self.message(message);
        }
    }

    fn message(&mut self, message: &MessageComparison) {
        let (text, style) = match (&message.before, &message.after) {
            (Some(before), Some(after)) if heading(before) == heading(after) => (heading(after), HEADING),
            (Some(before), Some(after)) => (format!("{} (before: {})", heading(after), heading(before)), HEADING),
            (Some(before), None) => (format!("{} (removed)", heading(before)), REMOVED),
            (None, after) => (format!("{} (added)", after.as_ref().map(heading).unwrap_or_default()), ADDED),
        };
        self.line(&format!("  {text}:"), style);
        let lines = lines(&message.pieces);
        let changed: Vec<_> = (0..lines.len()).filter(|index| lines[*index].iter().any(Fragment::is_changed)).collect();
        let is_near = |index: usize| {
            let next = changed.partition_point(|changed| changed + CONTEXT < index);
            changed.get(next).is_some_and(|changed| *changed <= index + CONTEXT)
        };
        let mut is_skipping = false;
        for (index, line) in lines.iter().enumerate() {
            if is_near(index) {
                is_skipping = false;
                self.text_line(line);
            } else if !std::mem::replace(&mut is_skipping, true) {
                self.line("    …", Style::new());
            }
        }
        self.notes(&message.pieces);
    }

    fn text_line(&mut self, line: &[Fragment<'_>]) {
        if !line.is_empty() {
            self.out.push_str("    ");
        }
        for fragment in line {
            let (start, end, mark, effects) = match fragment.piece.change {
                Change::Equal => ("", "", Style::new(), Effects::new()),
                Change::Removed => ("[-", "-]", REMOVED, Effects::STRIKETHROUGH),
                Change::Added => ("{+", "+}", ADDED, Effects::BOLD),
                Change::Rewritten => ("{~", "~}", WARNING, Effects::BOLD),
            };
            self.add(start, mark);
            let style = writer(fragment.piece.writer.kind).style();
            paint_in(&mut self.out, fragment.text, style.effects(effects), self.looks);
            self.add(end, mark);
        }
        self.out.push('\n');
    }

    /// Appends who wrote text before that has another writer now.
    fn notes(&mut self, pieces: &[Piece]) {
        let mut seen = HashSet::new();
        let notes = pieces.iter().filter_map(|piece| {
            let before = by(piece.before.as_ref()?);
            let note = format!(
                "{} was written by {before}, and now by {}",
                shown(&piece.text.as_str().into()),
                by(&piece.writer)
            );
            seen.insert(note.clone()).then_some(note)
        });
        let notes: Vec<_> = notes.collect();
        for note in notes.iter().take(MAX_NOTES) {
            self.add("    note", WARNING);
            self.line(&format!(": {}", visible_line(note)), Style::new());
        }
        if notes.len() > MAX_NOTES {
            self.line(&format!("    note: and {} more", notes.len() - MAX_NOTES), Style::new());
        }
    }

    fn tokens(&mut self, variants: &[VariantComparison]) {
        let changed = |variant: &&VariantComparison| {
            let VariantComparison { before, after, .. } = variant;
            (before.count.total(), &before.model) != (after.count.total(), &after.model)
        };
        let changed: Vec<_> = variants.iter().filter(changed).collect();
        self.section("tokens", &changed, |page, variant| {
            let VariantComparison { before, after, .. } = variant;
            let name = match variant.variant.as_str() {
                DEFAULT_VARIANT => String::new(),
                name => format!("{name}: "),
            };
            let text = format!("{name}{}", tokens(before, after));
            page.line(&format!("  {}", visible_line(&text)), Style::new());
        });
    }

    fn findings(&mut self, compared: &Comparison, versions: [&PromptVersion; 2]) {
        let [before, after] = versions.map(|version| version.written.source());
        let new = compared.new_findings.iter().map(|finding| (true, finding, after));
        let fixed = compared.fixed_findings.iter().map(|finding| (false, finding, before));
        let all: Vec<_> = new.chain(fixed).collect();
        self.section("findings", &all, |page, (is_new, finding, source)| {
            page.signed(!is_new, *is_new, &found(finding, source));
        });
    }

    /// Appends the cases whose verdict changed.
    fn verdicts(&mut self, verdicts: &Verdicts) {
        let worse = verdicts.regressed.iter().map(|id| ('-', REMOVED, format!("worse: {id}")));
        let better = verdicts.improved.iter().map(|id| ('+', ADDED, format!("better: {id}")));
        let other = verdicts.other.iter().map(|change| {
            let [before, now] = [change.before, change.now].map(|verdict| verdict.as_str().replace('_', " "));
            ('~', Style::new(), format!("{before} → {now}: {}", change.id))
        });
        let all: Vec<_> = worse.chain(better).chain(other).collect();
        if all.is_empty() {
            return;
        }
        self.heading("tests:");
        for (sign, style, text) in all.iter().take(MAX_CASES) {
            self.line(&format!("  {sign} {}", visible_line(text)), *style);
        }
        if all.len() > MAX_CASES {
            self.line(&format!("  and {} more", all.len() - MAX_CASES), Style::new());
        }
    }

    fn hash(&mut self, change: &HashChange) {
        let name = match (change.is_template, change.name.as_str()) {
            (false, name) => name.to_owned(),
            (true, DEFAULT_VARIANT) => "template".to_owned(),
            (true, name) => format!("template {name}"),
        };
        let digits = |hash: &String| format!("{}…", &hash[..hash.floor_char_boundary(HASH_DIGITS)]);
        let hashes: Vec<_> = [&change.before, &change.after].into_iter().flatten().map(digits).collect();
        self.signed(change.before.is_some(), change.after.is_some(), &format!("{name}: {}", hashes.join(" → ")));
    }
}

/// The lists of declarations that have names.
const LISTS: [&str; 3] = ["inputs", "outputs", "tools"];

/// Describes a declaration in a few words.
fn described(item: &Json) -> String {
    let mut words: Vec<String> = item["kind"].as_str().map(str::to_owned).into_iter().collect();
    words.extend((item["required"] == true).then(|| "required".to_owned()));
    words.extend((item["trusted"] == true).then(|| "trusted".to_owned()));
    words.extend(item.get("default").map(|default| format!("default {}", shown(default))));
    words.join(", ")
}

/// Writes a value in one line, and shortens it.
fn shown(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn is_reordered(before: &Json, after: &Json) -> bool {
    let (Some(before), Some(after)) = (before.as_array(), after.as_array()) else { return false };
    let is_named = |item: &Json| item["name"].is_string();
    before.len() == after.len() && before.iter().all(is_named) && before.iter().all(|item| after.contains(item))
}

fn target(target: &ReachTarget) -> String {
    match target {
        ReachTarget::Role(role) => role.as_str().to_owned(),
        ReachTarget::Thread(name) => format!("thread {name}"),
        ReachTarget::Parameter { tool, parameter } => format!("parameter {tool}.{parameter}"),
        _ => "any role".to_owned(),
    }
}

fn way(path: &InputPath) -> String {
    let trust = if path.trusted { "trusted" } else { "untrusted" };
    let marker = if path.in_marker { ", in a role marker" } else { "" };
    format!("{}{marker}, {trust}", tympan_lint::how_str(path.how))
}

/// Returns the number and the role of a message, with the attributes if there are any.
fn heading(message: &MessageVersion) -> String {
    let mut text = format!("{} {}", message.index + 1, message.role.as_str());
    if let Some(metadata) = &message.metadata {
        let attributes = metadata.iter().map(|(name, value)| format!("{name}={}", shown(value)));
        let _ = write!(text, "[{}]", attributes.collect::<Vec<_>>().join(", "));
    }
    visible_line(&text)
}

fn writer(kind: WriterKind) -> Writer {
    match kind {
        WriterKind::Author => Writer::Author,
        WriterKind::Trusted => Writer::Trusted,
        WriterKind::Untrusted => Writer::Untrusted,
    }
}

fn by(writer: &TextWriter) -> String {
    let names = writer.inputs.join("`, `");
    match writer.kind {
        WriterKind::Author => "the author".to_owned(),
        kind => format!("the {} input `{names}`", kind.as_str()),
    }
}

fn tokens(before: &ModelTokens, after: &ModelTokens) -> String {
    let (old, new) = (before.count.total(), after.count.total());
    let is_exact = before.count.is_exact && after.count.is_exact;
    let sign = if new < old { '-' } else { '+' };
    let mut text = format!("{old} → {new} ({sign}{})", new.abs_diff(old));
    text += if is_exact { "" } else { ", an estimate" };
    if let (Some(old), Some(new)) = (before.cost, after.cost) {
        let [old, new] = [old, new].map(|cost| prices::shown(cost * 1000.0));
        let _ = write!(text, "; {old} → {new} for the input of 1,000 calls");
    }
    text
}

fn found(finding: &Finding, source: &SourceFile) -> String {
    let line = finding.span.map(|span| format!("line {}: ", source.line_column(span.start).line)).unwrap_or_default();
    let severity = if finding.severity == Severity::Error { "error" } else { "warning" };
    format!("{severity} {}: {line}{}", finding.rule.code, finding.message)
}

/// A part of a line that is from one piece.
struct Fragment<'p> {
    piece: &'p Piece,
    text: &'p str,
}

impl Fragment<'_> {
    fn is_changed(&self) -> bool {
        self.piece.change != Change::Equal
    }
}

/// Splits pieces into lines. A line that was removed or added as a whole ends a line as well.
fn lines(pieces: &[Piece]) -> Vec<Vec<Fragment<'_>>> {
    let mut lines = vec![Vec::new()];
    for piece in pieces {
        for part in piece.text.split_inclusive('\n') {
            let (text, ends) = part.strip_suffix('\n').map_or((part, false), |text| (text, true));
            let is_changed = piece.change != Change::Equal;
            let text = if text.is_empty() && is_changed { "↵" } else { text };
            if let Some(line) = lines.last_mut().filter(|_| !text.is_empty()) {
                line.push(Fragment { piece, text });
            }
            if ends {
                lines.push(Vec::new());
            }
        }
    }
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}
