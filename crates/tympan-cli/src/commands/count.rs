//! `tympan count`: counts the tokens of a prompt and estimates its price.

use anstyle::Style;
use serde_json::{Value as Json, json};
use tympan::RunOptions;
use tympan::model::tokens::{Encoding, MEDIA_TOKENS};
use tympan::wire::catalog::{ModelData, PRICES_DATE};
use tympan_eval::TokenCount;
use tympan_eval::token_count::share;

use super::render::render;
use crate::args::CountArgs;
use crate::color::{Writer, styled};
use crate::escape::visible_line;
use crate::output::Looks;
use crate::project::Project;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::rows::width_of;
use crate::{json, output, prices};

/// The most columns of a name.
const MAX_NAME: usize = 32;

/// The fewest columns of a name, without its end.
const MIN_NAME: usize = 8;

/// What every row starts with: names of models and inputs are not at the left edge.
const INDENT: &str = "  ";

/// The columns between two cells.
const GAP: usize = 2;

/// The most columns of a bar, and the fewest that are worth showing.
const BAR: std::ops::RangeInclusive<usize> = 6..=24;

/// The calls of the second price.
const CALLS: f64 = 1000.0;

pub(super) fn run(args: &CountArgs, quiet: bool) -> Result<(), Failure> {
    let catalog = Project::catalog()?;
    let (prompt, rendered) = render(&args.render.prompt, quiet)?;
    let options = RunOptions::default();
    let own = options.select_model(&prompt).model.map(str::to_owned);
    let models = if args.models.is_empty() { vec![own] } else { args.models.iter().cloned().map(Some).collect() };
    let counted = models.into_iter().map(|model| {
        let name = model.as_deref().unwrap_or_default();
        let count = TokenCount::of(&prompt, &rendered, name).map_err(|error| in_prompt(error, &prompt))?;
        Ok(Counted { count, data: catalog.get(name), model })
    });
    let counted = counted.collect::<Result<Vec<_>, tympan::Error>>()?;
    if args.render.json {
        let report = json!({
            "file": prompt.source().name(),
            "variant": rendered.variant(),
            "models": counted.iter().map(Counted::to_json).collect::<Json>(),
            "prices_date": PRICES_DATE,
        });
        return Ok(output::print(&(json::pretty(&report) + "\n"))?);
    }
    Ok(output::print_lines(&show(&counted, output::looks(), output::stdout_width()))?)
}

/// The tokens of the prompt for a model.
struct Counted {
    /// The name of the model, or `None` if the prompt has none.
    model: Option<String>,
    count: TokenCount,
    data: ModelData,
}

impl Counted {
    fn name(&self) -> String {
        self.model.as_deref().map_or_else(|| "no model".to_owned(), |model| shortened(model, MAX_NAME))
    }

    /// Returns the price of a call in US dollars.
    fn cost(&self) -> Option<f64> {
        self.data.price.map(|price| self.count.cost(&price))
    }

    fn context_share(&self) -> Option<f64> {
        self.count.context_share(&self.data)
    }

    fn to_json(&self) -> Json {
        self.count.to_json_for(self.model.as_deref(), &self.data)
    }

    /// Returns the cells of the model's row.
    fn cells(&self) -> Vec<String> {
        let unknown = || "unknown".to_owned();
        let price = |calls: f64| self.cost().map_or_else(unknown, |cost| prices::shown(cost * calls));
        let context = self.context_share().zip(self.data.context);
        vec![
            self.name(),
            grouped(self.count.total()),
            if self.count.is_exact { "exact" } else { "estimate" }.to_owned(),
            context.map_or_else(unknown, |(share, context)| format!("{} of {}", percent(share), grouped(context))),
            price(1.0),
            price(CALLS),
        ]
    }
}

/// The heads of the columns of `Counted::cells`.
const HEADS: [&str; 6] = ["MODEL", "TOKENS", "COUNT", "CONTEXT", "1 CALL", "1,000 CALLS"];

fn show(counted: &[Counted], looks: Looks, width: Option<usize>) -> String {
    let mut out = String::new();
    // The parts have about the same shares for all models.
    if let Some(first) = counted.first() {
        out.push_str("messages:\n");
        messages(&first.count).show(&mut out, looks, width);
        out.push_str("\nwriters:\n");
        writers(&first.count).show(&mut out, looks, width);
        out.push('\n');
    }
    out.push_str("models:\n");
    models(&mut out, counted, width);
    out.push('\n');
    notes(counted).iter().for_each(|note| wrapped(&mut out, note, width));
    out
}

fn messages(count: &TokenCount) -> Shares {
    let mut shares = Shares::new("ROLE", count.total());
    for (index, message) in count.messages.iter().enumerate() {
        let name = format!("{} {}", index + 1, message.role.as_str());
        shares.add(&name, "", message.total(), Style::new());
    }
    shares.add_definitions(count);
    shares
}

fn writers(count: &TokenCount) -> Shares {
    let mut shares = Shares::new("WRITER", count.total());
    for part in count.writers() {
        let (name, trust, writer) = match (&part.inputs[..], part.trusted) {
            ([], _) => ("author".to_owned(), "", Writer::Author),
            (inputs, true) => (inputs.join(" + "), " (trusted)", Writer::Trusted),
            (inputs, false) => (inputs.join(" + "), " (untrusted)", Writer::Untrusted),
        };
        shares.add(&name, trust, part.tokens, writer.style());
    }
    shares.add("roles", "", count.overhead(), Style::new());
    shares.add_definitions(count);
    shares
}

/// A table of tokens with their shares.
struct Shares {
    head: &'static str,
    total: usize,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    /// The end of the name, which is shown even if the name is too long.
    end: &'static str,
    tokens: usize,
    style: Style,
}

impl Row {
    /// Returns the name in at most this many columns, if its end fits.
    fn name(&self, columns: usize) -> String {
        shortened(&self.name, columns.saturating_sub(self.end.len()).max(MIN_NAME)) + self.end
    }
}

impl Shares {
    fn new(head: &'static str, total: usize) -> Self {
        Self { head, total, rows: Vec::new() }
    }

    fn add(&mut self, name: &str, end: &'static str, tokens: usize, style: Style) {
        self.rows.push(Row { name: name.to_owned(), end, tokens, style });
    }

    /// Adds what a request contains besides messages.
    fn add_definitions(&mut self, count: &TokenCount) {
        for (name, tokens) in [("tools", count.tools), ("outputs", count.outputs)] {
            if tokens > 0 {
                self.add(name, "", tokens, Style::new());
            }
        }
    }

    fn show(&self, out: &mut String, looks: Looks, width: Option<usize>) {
        let numbers = grouped(self.total).len().max("TOKENS".len());
        let used = INDENT.len() + numbers + "SHARE".len() + 2 * GAP;
        // Some terminals draw an ellipsis in two columns.
        let columns = width.map_or(MAX_NAME, |width| width.saturating_sub(used + 1).min(MAX_NAME));
        let rows: Vec<_> = self.rows.iter().map(|row| (row.name(columns), row)).collect();
        let names = rows.iter().map(|(name, _)| width_of(name)).chain([self.head.len()]).max().unwrap_or_default();
        let bar = width.map_or(*BAR.end(), |width| bar_columns(width.saturating_sub(names + used + GAP)));
        out.push_str(&format!("{INDENT}{}{}  {:>numbers$}  SHARE\n", self.head, pad(self.head, names), "TOKENS"));
        for (name, Row { tokens, style, .. }) in &rows {
            let style = if looks.colors { *style } else { Style::new() };
            out.push_str(INDENT);
            styled(out, name, style);
            let part = share(*tokens, self.total);
            out.push_str(&format!("{}  {:>numbers$}  {:>5}", pad(name, names), grouped(*tokens), whole_percent(part)));
            let bar = drawn(part, bar);
            if !bar.is_empty() {
                out.push_str("  ");
                styled(out, &bar, style);
            }
            out.push('\n');
        }
        out.push_str(&format!("{INDENT}total{}  {:>numbers$}\n", pad("total", names), grouped(self.total)));
    }
}

/// Appends the table of models. If it does not fit, each model has its own lines.
fn models(out: &mut String, counted: &[Counted], width: Option<usize>) {
    let heads = HEADS.iter().map(|head| (*head).to_owned()).collect();
    let rows: Vec<Vec<_>> = std::iter::once(heads).chain(counted.iter().map(Counted::cells)).collect();
    let widest = |column: usize| rows.iter().map(|row| width_of(&row[column])).max().unwrap_or_default();
    let widths: Vec<_> = (0..HEADS.len()).map(widest).collect();
    let used = INDENT.len() + widths.iter().sum::<usize>() + GAP * (HEADS.len() - 1);
    if width.is_some_and(|width| used > width) {
        return model_blocks(out, &rows);
    }
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 2 => format!("{cell}{}", pad(cell, *width)),
            _ => format!("{}{cell}", pad(cell, *width)),
        });
        out.push_str(INDENT);
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
}

fn model_blocks(out: &mut String, rows: &[Vec<String>]) {
    let Some((heads, rows)) = rows.split_first() else { return };
    let widest = heads.iter().map(String::len).max().unwrap_or_default();
    for (index, row) in rows.iter().enumerate() {
        out.push_str(if index > 0 { "\n" } else { "" });
        for (head, cell) in heads.iter().zip(row) {
            out.push_str(&format!("{INDENT}{head}{}  {cell}\n", pad(head, widest)));
        }
    }
}

/// Returns what people need to know about the numbers.
fn notes(counted: &[Counted]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(Counted { count, .. }) = counted.first() {
        notes.push(match (count.cacheable, count.total()) {
            (0, _) => "cacheable prefix: none, because the prompt begins with an input".to_owned(),
            (tokens, total) => {
                let share = whole_percent(share(tokens, total));
                format!("cacheable prefix: {} tokens ({share}) before the first input", grouped(tokens))
            }
        });
        let estimated = [("tools", count.tools), ("outputs", count.outputs)];
        let names = estimated.iter().filter(|(_, tokens)| *tokens > 0).map(|(name, _)| *name);
        let names = std::iter::once("roles").chain(names).collect::<Vec<_>>().join(", ");
        notes.push(format!("estimated, because providers do not publish how they write them: {names}"));
        if count.media > 0 {
            let each = grouped(MEDIA_TOKENS);
            notes.push(format!("counted as {each} tokens each: images, audio and files"));
        }
    }
    let has_name = |counted: &&Counted| counted.model.is_some();
    let is_too_long = |counted: &&Counted| counted.context_share().is_some_and(|share| share > 1.0);
    let too_long: Vec<_> = counted.iter().filter(is_too_long).map(Counted::name).collect();
    if !too_long.is_empty() {
        notes.push(format!("longer than the context window: {}", too_long.join(", ")));
    }
    let is_known = |model: &String| Encoding::of_known_model(model).is_some();
    let estimated = counted.iter().filter(|counted| counted.model.as_ref().is_some_and(|model| !is_known(model)));
    let estimated: Vec<_> = estimated.map(Counted::name).collect();
    if !estimated.is_empty() {
        let names = estimated.join(", ");
        notes.push(format!("estimated with another vocabulary, which can be off by a tenth or more: {names}"));
    }
    if counted.iter().any(|counted| counted.model.is_none()) {
        notes.push("no model: the prompt does not name one; pass `--model`".to_owned());
    }
    let unknown = |counted: &&Counted| counted.data.price.is_none() || counted.data.context.is_none();
    let unknown: Vec<_> = counted.iter().filter(has_name).filter(unknown).map(Counted::name).collect();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        notes.push(format!("unknown prices and context windows can be added to `[models]` in `tympan.toml`: {names}"));
    }
    if counted.iter().any(|counted| counted.data.price.is_some()) {
        notes.push(format!("prices: of the input, from price lists of {PRICES_DATE} and `[models]` in `tympan.toml`"));
    }
    notes
}

/// Appends a note. Its words are wrapped to the width of the terminal, and further rows are indented.
fn wrapped(out: &mut String, note: &str, width: Option<usize>) {
    let mut column = 0;
    for (index, word) in note.split(' ').enumerate() {
        let columns = width_of(word);
        if index > 0 && width.is_some_and(|width| column + 1 + columns > width) {
            out.push_str("\n  ");
            column = 2;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += columns;
    }
    out.push('\n');
}

/// Returns the spaces that fill up a cell.
fn pad(cell: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(width_of(cell)))
}

/// Makes a text safe to print, and shortens it to a number of columns.
fn shortened(text: &str, columns: usize) -> String {
    let text = visible_line(text);
    if width_of(&text) <= columns {
        return text;
    }
    let mut short = String::new();
    for char in text.chars() {
        if width_of(&short) + width_of(char.encode_utf8(&mut [0; 4])) >= columns {
            break;
        }
        short.push(char);
    }
    short + "…"
}

/// Formats a number with separators: `128,000`.
pub(super) fn grouped(number: impl ToString) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a share as a whole number of percent.
fn whole_percent(share: f64) -> String {
    match share {
        0.0 => "0%".to_owned(),
        share if share < 0.005 => "<1%".to_owned(),
        share => format!("{:.0}%", share * 100.0),
    }
}

/// Formats a share in percent. Small shares get more digits.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0%".to_owned(),
        percent if percent < 0.01 => "<0.01%".to_owned(),
        percent if percent < 1.0 => format!("{percent:.2}%"),
        percent if percent < 10.0 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// Returns the number of columns for a bar. Some terminals draw blocks in two columns each.
fn bar_columns(room: usize) -> usize {
    let blocks = room / 2;
    if blocks < *BAR.start() { 0 } else { blocks.min(*BAR.end()) }
}

/// Draws a bar of at most this many columns, with eighths of a column.
fn drawn(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_precision_loss, reason = "a bar is short")]
    let eighths = (share.clamp(0.0, 1.0) * (columns * 8) as f64).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is clamped")]
    let eighths = eighths as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let texts = [0, 12, 999, 1000, 128_000, 1_047_576].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "128,000", "1,047,576"]);
        let shares = [0.0, 0.000_01, 0.000_5, 0.042, 0.5, 1.2].map(percent);
        assert_eq!(shares, ["0%", "<0.01%", "0.05%", "4.2%", "50%", "120%"]);
        assert_eq!([0.0, 0.001, 0.256, 1.0].map(whole_percent), ["0%", "<1%", "26%", "100%"]);
    }

    #[test]
    fn bars_have_eighths_of_a_column() {
        assert_eq!([0.0, 1.0 / 32.0, 0.5, 1.0, 7.0].map(|share| drawn(share, 4)), ["", "▏", "██", "████", "████"]);
        assert_eq!(drawn(0.5, 0), "");
    }

    #[test]
    fn long_names_are_shortened_and_safe() {
        assert_eq!(shortened("日本語日本語", 5), "日本…");
        assert_eq!(shortened("a\u{1b}[2J", 32), r"a\u{1b}[2J");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
