//! `tympan inspect --reach`: shows which inputs can reach which messages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use serde_json::{Value as Json, json};
use tympan::file::walk::{read_found, unreadable};
use tympan::format::Format;
use tympan::text::source::SourceFile;
use tympan::{Error, Prompt, Role, RuntimeOptions};
use tympan_lint::{BoundInput, InputReach, ReachMap, ReachedMessage, Target};

use super::check::targets::{TargetKind, Targets};
use crate::args::InspectArgs;
use crate::color::styled;
use crate::escape::visible_line;
use crate::excerpt::Finding;
use crate::report::{self, Failure, finding_json};
use crate::rows::width_of;
use crate::{json, output, prompt_file};

/// The least number of columns for the last column of a table.
const MIN_PATH: usize = 16;

pub(super) fn run(args: &InspectArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let is_directory = args.file.is_dir();
    let (mut maps, mut errors) = (Vec::new(), Vec::new());
    let files = if is_directory { files_in(&args.file, &mut errors) } else { vec![args.file.clone()] };
    for path in &files {
        match map(args, path, quiet) {
            Ok((prompt, map)) => maps.push((path.display().to_string(), prompt, map)),
            Err(error) if is_directory => errors.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        let report = json!({
            "files": maps.iter().map(|(file, prompt, map)| file_json(file, prompt, map)).collect::<Json>(),
            "errors": errors.iter().map(|error| finding_json(&Finding::of_error(error))).collect::<Json>(),
        });
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        let (colors, width) = (output::looks().colors, output::stdout_width());
        output::print(&tables(&maps, is_directory, colors, width))?;
        errors.iter().for_each(report::show_error);
    }
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn map(args: &InspectArgs, path: &Path, quiet: bool) -> Result<(Prompt, ReachMap), Error> {
    let options = prompt_file::deferred(args.env.over(RuntimeOptions::default()));
    let runtime = prompt_file::runtime(path, options, true);
    let prompt = prompt_file::load_and_warn(&runtime, path, quiet || args.file.is_dir())?;
    if let Some(variant) = &args.variant {
        prompt.variant_hash(Some(variant)).map_err(|error| prompt_file::in_prompt(error, &prompt))?;
    }
    let mut map = tympan_lint::reach(&prompt).map_err(|error| prompt_file::in_prompt(error, &prompt))?;
    map.messages.retain(|message| args.variant.as_ref().is_none_or(|variant| message.template == *variant));
    Ok((prompt, map))
}

/// Returns the prompt files in a directory, as `tympan check` finds them, and adds an error for each part that cannot be
/// read.
fn files_in(directory: &Path, errors: &mut Vec<Error>) -> Vec<PathBuf> {
    let targets = Targets::collect(&[directory.to_owned()], |_| false);
    let found = targets.files.into_iter().filter_map(|target| match target.kind {
        TargetKind::Found(path) if matches!(Format::from_name(&path), Some(Format::Tests(_))) => None,
        TargetKind::Found(path) => read_found(&path).is_some().then_some(path),
        TargetKind::Unreadable(path, reason) => {
            errors.push(unreadable(&path, &reason));
            None
        }
        TargetKind::Stdin | TargetKind::Named(_) => None,
    });
    found.collect()
}

fn file_json(file: &str, prompt: &Prompt, map: &ReachMap) -> Json {
    let mut json = json!({ "file": file });
    if let (Json::Object(json), Json::Object(map)) = (&mut json, map.to_json(prompt.source())) {
        json.extend(map);
    }
    json
}

/// A cell of a table.
struct Cell {
    text: String,
    style: Style,
}

fn plain(text: impl Into<String>) -> Cell {
    Cell { text: visible_line(&text.into()), style: Style::new() }
}

fn tables(maps: &[(String, Prompt, ReachMap)], has_file: bool, colors: bool, width: Option<usize>) -> String {
    let mut rows = Vec::new();
    let mut bound = Vec::new();
    for (file, prompt, map) in maps {
        let file = || has_file.then(|| plain(file));
        let source = prompt.source();
        for message in &map.messages {
            let inputs = message.inputs.iter().map(|input| message_row(message, Some(input), source));
            let none = message.inputs.is_empty() && !has_file;
            let none = none.then(|| message_row(message, None, source));
            rows.extend(inputs.chain(none).map(|row| file().into_iter().chain(row).collect::<Vec<_>>()));
        }
        bound.extend(
            map.bindings
                .iter()
                .map(|binding| file().into_iter().chain(binding_row(binding, source)).collect::<Vec<_>>()),
        );
    }
    let heads =
        |names: &[&str]| has_file.then_some("FILE").into_iter().chain(names.iter().copied()).map(plain).collect();
    let mut out = String::new();
    if rows.is_empty() {
        out.push_str("no input reaches a message\n");
    } else {
        table(&mut out, heads(&["MESSAGE", "INPUT", "HOW", "TRUST", "PATH"]), rows, colors, width);
    }
    if !bound.is_empty() {
        out.push('\n');
        table(&mut out, heads(&["TOOL", "PARAMETER", "INPUT", "TRUST", "LINE"]), bound, colors, width);
    }
    out
}

fn message_row(message: &ReachedMessage, input: Option<&InputReach>, source: &SourceFile) -> Vec<Cell> {
    let line = |span: tympan::text::source::Span| source.line_column(span.start).line;
    let mut name = match &message.target {
        Target::Thread(name) => format!("thread {name}"),
        target => target.as_str().to_owned(),
    };
    name.extend(message.span.map(|span| format!(":{}", line(span))));
    if message.template != tympan::spec::DEFAULT_VARIANT {
        name += &format!(" ({})", message.template);
    }
    let Some(input) = input else { return ["-", "", "", ""].into_iter().fold(vec![plain(name)], with) };
    let style = style(&message.target, input.trusted);
    let mut path = String::new();
    if let Some(place) = input.places.first() {
        place.path.iter().for_each(|(span, step)| path += &format!("{step}:{} > ", line(*span)));
        path += &line(place.span).to_string();
    }
    path += if input.in_marker { " (marker)" } else { "" };
    path.extend(input.env.iter().map(|variable| format!(" (${variable})")));
    let how = tympan_lint::how_str(input.how);
    let cell = |text: &str| Cell { text: visible_line(text), style };
    vec![plain(name), cell(&input.input), plain(how), cell(trust(input.trusted)), plain(path)]
}

fn with(mut row: Vec<Cell>, text: &str) -> Vec<Cell> {
    row.push(plain(text));
    row
}

fn binding_row(binding: &BoundInput, source: &SourceFile) -> Vec<Cell> {
    let style = style(&Target::Role(Role::Tool), binding.trusted);
    let line = binding.span.map(|span| source.line_column(span.start).line.to_string()).unwrap_or_default();
    let cell = |text: &str| Cell { text: visible_line(text), style };
    vec![
        plain(&*binding.tool),
        plain(&*binding.parameter),
        cell(&binding.input),
        cell(trust(binding.trusted)),
        plain(line),
    ]
}

fn trust(trusted: bool) -> &'static str {
    if trusted { "trusted" } else { "untrusted" }
}

/// Returns the style of an input. Untrusted inputs in instructions stand out.
fn style(target: &Target, trusted: bool) -> Style {
    match target {
        _ if trusted => AnsiColor::Green.on_default(),
        Target::Role(Role::System | Role::Developer) | Target::AnyRole => AnsiColor::Red.on_default().bold(),
        _ => AnsiColor::Yellow.on_default(),
    }
}

/// Appends rows aligned in columns. The last column is shortened to the width of the terminal.
fn table(out: &mut String, head: Vec<Cell>, rows: Vec<Vec<Cell>>, colors: bool, width: Option<usize>) {
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let last = rows[0].len() - 1;
    let widths: Vec<_> = (0..last).map(|column| rows.iter().map(|row| width_of(&row[column].text)).max()).collect();
    let used: usize = widths.iter().map(|width| width.unwrap_or_default() + 2).sum();
    let room = width.map(|width| width.saturating_sub(used).max(MIN_PATH));
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            styled(&mut line, &cell.text, if colors { cell.style } else { Style::new() });
            line.push_str(&" ".repeat(width.unwrap_or_default() + 2 - width_of(&cell.text)));
        }
        line.push_str(&shortened(&row[last].text, room));
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Shortens a path at its start: its end is the place in the message.
fn shortened(text: &str, room: Option<usize>) -> String {
    let Some(room) = room.filter(|room| width_of(text) > *room) else { return text.to_owned() };
    let mut rest = text;
    while width_of(rest) >= room {
        let mut chars = rest.chars();
        chars.next();
        rest = chars.as_str();
    }
    format!("…{rest}")
}
