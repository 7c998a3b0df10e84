//! `tympan inspect`: shows what a prompt file declares.

use serde_json::Value as Json;
use tympan::Prompt;
use tympan::RuntimeOptions;
use tympan::chat::marker::source_roles;
use tympan::format::directive;
use tympan::spec::{DIRECTIVE, PromptKind};

use crate::args::InspectArgs;
use crate::escape::visible_line;
use crate::report::Failure;
use crate::rows::width_of;
use crate::{json, output, prompt_file};

/// The maximum number of characters shown of a message's first line or of a value.
const MAX_WIDTH: usize = 60;

pub(super) fn run(args: &InspectArgs, quiet: bool) -> Result<(), Failure> {
    let options = prompt_file::deferred(args.env.over(RuntimeOptions::default()));
    let runtime = prompt_file::runtime(&args.file, options, quiet);
    let prompt = prompt_file::load_and_warn(&runtime, &args.file, quiet)?;
    // Everything shown comes from the redacted spec, so that no credential can leak.
    let spec = prompt.spec().to_json_redacted();
    let variant = args.variant.as_deref();
    // An unknown variant is an error, even though the JSON output does not depend on the variant.
    let hash = prompt.variant_hash(variant).map_err(|error| prompt_file::in_prompt(error, &prompt))?;
    if args.json {
        return Ok(output::print(&(json::pretty(&spec) + "\n"))?);
    }
    Ok(output::print_lines(&summary(&prompt, &spec, variant, hash))?)
}

fn summary(prompt: &Prompt, spec: &Json, variant: Option<&str>, hash: &str) -> String {
    let mut out = String::new();
    line(&mut out, "name", spec["name"].as_str());
    line(&mut out, "role", spec["role"].as_str());
    line(&mut out, "variant", variant);
    line(&mut out, "description", spec["description"].as_str());
    line(&mut out, "model", model(&spec["model"]).as_deref());
    line(
        &mut out,
        "options",
        Some(&spec["model"]["options"]).filter(|options| !options.is_null()).map(compact).as_deref(),
    );
    line(&mut out, "connection", connection(&spec["model"]["connection"]).as_deref());
    line(&mut out, "template", Some(&template(prompt)));
    line(&mut out, "hash", Some(hash));
    line(&mut out, "definition", Some(prompt.definition_hash()).filter(|_| prompt.kind() == PromptKind::Definition));
    line(&mut out, "output", spec["outputModel"].as_str());
    table(&mut out, "inputs", &["NAME", "KIND", "REQUIRED", "DEFAULT", "TRUSTED"], inputs(&spec["inputs"]));
    table(&mut out, "outputs", &["NAME", "KIND", "DESCRIPTION"], described(&spec["outputs"]));
    table(&mut out, "tools", &["NAME", "KIND", "DESCRIPTION"], described(&spec["tools"]));
    let permissions = spec["metadata"]["permissions"].as_array().filter(|_| prompt.kind() == PromptKind::Directive);
    table(
        &mut out,
        "permissions",
        &["CAPABILITY"],
        permissions.into_iter().flatten().map(|it| vec![compact(it)]).collect(),
    );
    match prompt.role() {
        Some(_) => table(&mut out, "variants", &["NAME", "BEGINS"], variants(prompt)),
        None => table(&mut out, "messages", &["ROLE", "LINE", "BEGINS"], skeleton(prompt)),
    }
    out
}

/// Returns one row per template of a prompt definition, with the first line of its text.
fn variants(prompt: &Prompt) -> Vec<Vec<String>> {
    let variants = prompt.spec().variants.iter().map(|variant| variant.body.as_str());
    let bodies = std::iter::once(prompt.body()).chain(variants);
    prompt.arms().zip(bodies).map(|(arm, body)| vec![arm.to_owned(), first_line(body).to_owned()]).collect()
}

/// Returns the first line that is not blank.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn line(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.push_str(&format!("{:<12} {}\n", format!("{name}:"), visible_line(value)));
    }
}

/// Appends a heading and rows aligned in columns.
pub(super) fn table(out: &mut String, name: &str, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.iter().map(|cell| shorten(&visible_line(cell))).collect()).collect();
    let width = |column: usize| rows.iter().map(|row| width_of(&row[column])).max().unwrap_or_default();
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    out.push_str(&format!("\n{name}:\n"));
    for row in &rows {
        let pad = |width: usize, cell: &str| " ".repeat(width - width_of(cell));
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell}{}", pad(*width, cell)));
        out.push_str(&format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end()));
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_WIDTH {
        return text.to_owned();
    }
    text.chars().take(MAX_WIDTH - 1).chain(['…']).collect()
}

fn compact(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn model(model: &Json) -> Option<String> {
    let mut words: Vec<_> = model["id"].as_str().map(str::to_owned).into_iter().collect();
    words.extend(model["tier"].as_str().map(|tier| format!("tier {tier}")));
    words.extend(model["provider"].as_str().map(|provider| format!("by {provider}")));
    words.extend(model["apiType"].as_str().map(|api| format!("({api})")));
    Some(words.join(" ")).filter(|words| !words.is_empty())
}

fn connection(connection: &Json) -> Option<String> {
    let fields = connection.as_object()?.iter();
    Some(fields.map(|(key, value)| format!("{key}={}", compact(value))).collect::<Vec<_>>().join(" "))
}

fn template(prompt: &Prompt) -> String {
    let template = &prompt.spec().template;
    let mut words = vec![match prompt.role() {
        Some(_) => format!("{}, one message", template.format),
        None => format!("{}, split by {}", template.format, template.parser),
    }];
    words.extend(template.strict.then(|| "strict".to_owned()));
    words.extend(template.lenient.then(|| "undefined: lenient".to_owned()));
    words.join(", ")
}

fn inputs(inputs: &Json) -> Vec<Vec<String>> {
    let yes = |value: &Json| if value == true { "yes" } else { "no" }.to_owned();
    let row = |input: &Json| {
        vec![
            compact(&input["name"]),
            kinds(input),
            yes(&input["required"]),
            compact(&input["default"]),
            yes(&input["trusted"]),
        ]
    };
    inputs.as_array().into_iter().flatten().map(row).collect()
}

/// Returns the kinds of values that an input accepts.
fn kinds(input: &Json) -> String {
    match input["kinds"].as_array() {
        Some(kinds) => kinds.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" or "),
        None => compact(&input["kind"]),
    }
}

fn described(items: &Json) -> Vec<Vec<String>> {
    let row = |item: &Json| vec![compact(&item["name"]), compact(&item["kind"]), compact(&item["description"])];
    items.as_array().into_iter().flatten().map(row).collect()
}

/// Returns the messages in the template's source: role, line in the file, and start of the text.
fn skeleton(prompt: &Prompt) -> Vec<Vec<String>> {
    if prompt.spec().template.parser == DIRECTIVE {
        return steps(prompt);
    }
    let body = prompt.spec().instructions.as_str();
    let offset = prompt.template_offset();
    let markers: Vec<_> = source_roles(body).collect();
    let first = markers.first().map_or(body.len(), |(start, _)| *start);
    let mut rows = Vec::new();
    let mut row = |role: &str, start: usize, text: &str| {
        let line = prompt.source().line_column(offset + start).line.to_string();
        rows.push(vec![role.to_owned(), line, first_line(text).to_owned()]);
    };
    if !body[..first].trim().is_empty() {
        row("system", 0, &body[..first]);
    }
    for (index, (start, role)) in markers.iter().enumerate() {
        let end = markers.get(index + 1).map_or(body.len(), |(next, _)| *next);
        let text = body[*start..end].split_once('\n').map_or("", |(_, text)| text);
        row(role.as_str(), *start, text);
    }
    rows
}

/// Returns the single message of a directive, with the start of its steps.
fn steps(prompt: &Prompt) -> Vec<Vec<String>> {
    let source = prompt.source();
    let (Some(directive), _) = directive::parse(source) else { return Vec::new() };
    let text = source.slice(directive.body);
    let start = directive.body.end - text.trim_start().len();
    let begins = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    vec![vec!["user".to_owned(), source.line_column(start).line.to_string(), begins.to_owned()]]
}
