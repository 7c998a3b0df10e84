//! `tympan trace`: shows a trace as a tree, with times, tokens and cost.

use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::{Value as Json, json};
use tympan::trace::spans::{span_model, span_usage};
use tympan::wire::catalog::Catalog;
use tympan::wire::response::Usage;
use tympan::{Error, Kind, Result};

use crate::args::TraceArgs;
use crate::color::{HEADING, styled};
use crate::escape::visible_line;
use crate::project::Project;
use crate::prompt_file::{is_stdin, read_stdin};
use crate::report::Failure;
use crate::rows::width_of;
use crate::{json, output, prices};

/// The maximum depth of a trace. No real program nests spans deeper.
const MAX_DEPTH: usize = 100;

/// The maximum number of bytes of a span's name that are shown.
const MAX_NAME: usize = 200;
/// The maximum size of a trace in bytes. A trace contains all messages of a run.
const MAX_BYTES: u64 = 64 << 20;

pub(super) fn run(args: &TraceArgs) -> Result<(), Failure> {
    let catalog = Project::catalog()?;
    let traces = args.files.iter().map(|path| File::read(path, &catalog)).collect::<Result<Vec<_>>>()?;
    if args.json {
        let list: Json = traces.iter().map(File::to_json).collect();
        return Ok(output::print(&(json::pretty(&list) + "\n"))?);
    }
    let colors = output::looks().colors;
    let shown: Vec<_> = traces.iter().map(|trace| trace.show(colors)).collect();
    Ok(output::print_lines(&shown.join("\n"))?)
}

/// A trace file.
struct File {
    name: String,
    runtime: String,
    version: String,
    start: String,
    root: Frame,
}

/// A span and its descendants.
struct Frame {
    name: String,
    milliseconds: f64,
    model: Option<String>,
    /// The usage of this span and its descendants.
    usage: Usage,
    cost: Cost,
    error: Option<String>,
    frames: Vec<Frame>,
}

/// The cost of a span and its descendants, as far as prices are known.
#[derive(Clone, Copy, Default)]
struct Cost {
    dollars: f64,
    is_priced: bool,
    /// Whether part of the usage has no known price.
    has_unknown: bool,
}

impl File {
    fn read(path: &Path, catalog: &Catalog) -> Result<Self> {
        let name = path.display().to_string();
        let invalid = |reason: &str| {
            Error::new(Kind::InvalidTrace, format_args!("{name}: {reason}"))
                .with_help("`tympan trace` reads the `.tracy` files that Tympan and Prompty runtimes write")
        };
        let text = if is_stdin(path) { read_stdin() } else { super::sign::read(path, MAX_BYTES) };
        let text = text.map_err(|error| match error.kind() {
            Kind::FileNotFound => Error::new(Kind::InvalidTrace, format_args!("{name}: file not found")),
            _ => error,
        })?;
        let file: Json = serde_json::from_str(&text)
            .map_err(|error| invalid(&format!("invalid JSON at line {}, column {}", error.line(), error.column())))?;
        if !file["trace"].is_object() {
            return Err(invalid("missing object `trace`"));
        }
        let text = |value: &Json| value.as_str().unwrap_or("unknown").to_owned();
        let root = Frame::read(&file["trace"], 0, catalog).ok_or_else(|| invalid("nested too deeply"))?;
        let start = text(&file["trace"]["__time"]["start"]);
        Ok(Self { runtime: text(&file["runtime"]), version: text(&file["version"]), start, root, name })
    }

    fn show(&self, colors: bool) -> String {
        let mut lines = Vec::new();
        self.root.lines("", "", &mut lines);
        let width = lines.iter().map(|line| width_of(&line.label)).max().unwrap_or(0);
        let file = visible_line(&self.name);
        let about = [&self.start, &self.runtime, &self.version].map(|text| visible_line(text)).join("  ");
        let mut out = String::new();
        styled(&mut out, &file, if colors { HEADING } else { Style::new() });
        out.push_str(&format!("  {about}\n"));
        for line in lines {
            let gap = " ".repeat(width - width_of(&line.label));
            out.push_str(&format!("{}{gap}  {}", line.label, line.details));
            if let Some(error) = line.error {
                let style = if colors { AnsiColor::Red.on_default() } else { Style::new() };
                styled(&mut out, &format!("  {error}"), style);
            }
            out.push('\n');
        }
        out
    }

    fn to_json(&self) -> Json {
        json!({
            "file": self.name,
            "runtime": self.runtime,
            "version": self.version,
            "start": self.start,
            "trace": self.root.to_json(),
        })
    }
}

/// A line of the tree.
struct Line<'f> {
    label: String,
    details: String,
    error: Option<&'f str>,
}

impl Frame {
    fn read(json: &Json, depth: usize, catalog: &Catalog) -> Option<Self> {
        if depth > MAX_DEPTH {
            return None;
        }
        let below = json["__frames"].as_array().into_iter().flatten();
        let frames = below.map(|frame| Self::read(frame, depth + 1, catalog)).collect::<Option<Vec<_>>>()?;
        let model = span_model(json).map(ToOwned::to_owned);
        let own = span_usage(json);
        let mut cost = Cost::of(model.as_deref(), &own, catalog);
        let mut usage = own;
        for frame in &frames {
            add(&mut usage, &frame.usage);
            cost.add(frame.cost);
        }
        let result = &json["result"];
        let error = result["exception"].as_str().map(|class| {
            let message = result["message"].as_str().unwrap_or_default();
            visible_line(&format!("{class}: {message}"))
        });
        Some(Self {
            name: json["name"].as_str().unwrap_or("unnamed").to_owned(),
            milliseconds: json["__time"]["duration"].as_f64().unwrap_or(0.0),
            model,
            usage,
            cost,
            error,
            frames,
        })
    }

    fn lines<'f>(&'f self, first: &str, rest: &str, lines: &mut Vec<Line<'f>>) {
        let mut details = format!("{:>10}", shown_time(self.milliseconds));
        if !is_unused(&self.usage) {
            details.push_str(&format!("  {} in, {} out", self.usage.input_tokens, self.usage.output_tokens));
            details.push_str(&self.cost.shown());
        }
        if let Some(model) = &self.model {
            details.push_str(&format!("  {}", visible_line(model)));
        }
        lines.push(Line {
            label: format!("{first}{}", visible_line(shortened(&self.name))),
            details,
            error: self.error.as_deref(),
        });
        let last = self.frames.len().saturating_sub(1);
        for (index, frame) in self.frames.iter().enumerate() {
            let (branch, below) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            frame.lines(&format!("{rest}{branch}"), &format!("{rest}{below}"), lines);
        }
    }

    fn to_json(&self) -> Json {
        json!({
            "name": self.name,
            "milliseconds": self.milliseconds,
            "model": self.model,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cost_usd": self.cost.is_priced.then_some(self.cost.dollars),
            "error": self.error,
            "frames": self.frames.iter().map(Self::to_json).collect::<Json>(),
        })
    }
}

impl Cost {
    fn of(model: Option<&str>, usage: &Usage, catalog: &Catalog) -> Self {
        if is_unused(usage) {
            return Self::default();
        }
        match model.and_then(|model| catalog.cost(model, usage)) {
            Some(dollars) => Self { dollars, is_priced: true, has_unknown: false },
            None => Self { has_unknown: true, ..Self::default() },
        }
    }

    fn add(&mut self, other: Self) {
        self.dollars += other.dollars;
        self.is_priced |= other.is_priced;
        self.has_unknown |= other.has_unknown;
    }

    fn shown(self) -> String {
        match self {
            Self { is_priced: false, .. } => String::new(),
            Self { has_unknown: true, dollars, .. } => format!("  at least {}", prices::shown(dollars)),
            Self { dollars, .. } => format!("  {}", prices::shown(dollars)),
        }
    }
}

fn shown_time(milliseconds: f64) -> String {
    if milliseconds >= 1000.0 { format!("{:.2} s", milliseconds / 1e3) } else { format!("{milliseconds:.1} ms") }
}

/// Shortens a name for display. All lines are padded to the longest name.
fn shortened(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME)]
}

/// Returns whether no tokens were used.
fn is_unused(usage: &Usage) -> bool {
    usage.input_tokens == 0 && usage.output_tokens == 0
}

fn add(total: &mut Usage, other: &Usage) {
    total.input_tokens = total.input_tokens.saturating_add(other.input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(other.output_tokens);
}
