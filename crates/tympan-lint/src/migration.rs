//! Fixes that convert older `.prompty` files to the current format.
//!
//! A key that is only renamed has a fix of its own. What moves to another place is changed together: each topic has a function
//! that returns its edits. The result is only offered if it loads as the same prompt.

use std::borrow::Cow;

use serde_json::{Map as JsonMap, Value as Json};
use tympan_core::Prompt;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Resolve, frontmatter};
use tympan_core::spec::schema::Property;
use tympan_core::text::source::{SourceFile, Span};

use crate::file::written_tests;
use crate::finding::{Finding, Fix};
use crate::yaml::{push_entry, push_text};

/// The name of the rule about older files.
const LEGACY_KEY: &str = "legacy_key";

/// The keys that older files have at the top level and that now belong to the metadata.
const OLD_METADATA: [&str; 3] = ["authors", "tags", "version"];

/// The keys of a model's ID in the options of older files.
const OLD_IDS: [&str; 6] = ["azure_deployment", "deployment_name", "deployment", "model", "model_id", "model_name"];

/// An edit: the span to replace, and its replacement.
type Edit = (Span, String);

/// Adds a fix to the findings about keys that have moved. `files` reads the files that the prompt refers to.
pub(crate) fn add_fixes(prompt: &Prompt, outline: &Outline<'_>, files: &mut impl Resolve, findings: &mut [Finding]) {
    let is_moved = |finding: &&Finding| finding.rule.name == LEGACY_KEY && finding.fix.is_none();
    if !findings.iter().any(|finding| is_moved(&finding)) {
        return;
    }
    let references = References::new(prompt, files);
    let edits = references.and_then(|references| moves(prompt, outline, &references, findings)).unwrap_or_default();
    let is_certain = is_certain(prompt, &edits, findings);
    if edits.is_empty() || !(is_certain || is_same_prompt(prompt, &edits, findings, files)) {
        // In `options`, unlike in `parameters`, unknown options are not sent to the provider.
        let parameters = findings.iter_mut().filter(|finding| finding.message.starts_with("`model.parameters`"));
        parameters.for_each(|finding| finding.fix = None);
        return;
    }
    // A key that is renamed in a part that moves would be renamed twice.
    let overlaps = |fix: &Fix| fix.edits.iter().any(|(span, _)| edits.iter().any(|(edit, _)| is_inside(*span, *edit)));
    for finding in findings.iter_mut().filter(|finding| finding.rule.name == LEGACY_KEY) {
        if finding.fix.as_ref().is_none_or(overlaps) {
            finding.fix = Some(Fix { edits: edits.clone(), safe: true });
        }
    }
}

fn is_inside(span: Span, edit: Span) -> bool {
    edit.start < span.end && span.start < edit.end
}

/// The prompt with its references as they are written, also those that have a default value.
struct References<'p> {
    prompt: Cow<'p, Prompt>,
    /// The references, in the order of their placeholders.
    written: Vec<&'p str>,
}

impl<'p> References<'p> {
    /// Loads the prompt with a placeholder for each reference that has a default. A variable that is not set is left as it
    /// is, but a default would become part of the file.
    fn new(prompt: &'p Prompt, files: &mut impl Resolve) -> Option<Self> {
        let text = prompt.source().text();
        let front_matter = frontmatter::split(text).ok()?.front_matter?;
        let (mut replaced, mut written, mut end) = (String::new(), Vec::new(), 0);
        for (at, _) in text[..front_matter.end].match_indices("${") {
            let Some(length) = text[at..front_matter.end].find('}') else { break };
            let reference = &text[at..=at + length];
            let is_env = reference.get(2..6).is_some_and(|start| start.eq_ignore_ascii_case("env:"));
            if !is_env || !reference[6..].contains(':') || reference.contains('\n') {
                continue;
            }
            replaced.push_str(&text[end..at]);
            replaced.push_str(&placeholder(written.len()));
            written.push(reference);
            end = at + reference.len();
        }
        if written.is_empty() {
            return Some(Self { prompt: Cow::Borrowed(prompt), written });
        }
        replaced.push_str(&text[end..]);
        let source = SourceFile::new(prompt.source().name(), replaced);
        Some(Self { prompt: Cow::Owned(Prompt::from_prompty_source(source, files).ok()?), written })
    }

    /// Replaces the placeholders in a value with the references.
    fn restored(&self, json: &Json) -> Json {
        match json {
            Json::String(text) => {
                let index = (0..self.written.len()).find(|index| *text == placeholder(*index));
                index.map_or_else(|| json.clone(), |index| self.written[index].into())
            }
            Json::Array(items) => items.iter().map(|item| self.restored(item)).collect(),
            Json::Object(map) => {
                Json::Object(map.iter().map(|(key, value)| (key.clone(), self.restored(value))).collect())
            }
            _ => json.clone(),
        }
    }
}

/// Returns a reference to a variable that nobody has set.
fn placeholder(index: usize) -> String {
    format!("${{env:TYMPAN_REFERENCE_{index}}}")
}

/// Returns the edits that move what older files have elsewhere, or `None` if the front matter is written in a way that
/// cannot be edited.
fn moves(
    prompt: &Prompt,
    outline: &Outline<'_>,
    references: &References<'_>,
    findings: &[Finding],
) -> Option<Vec<Edit>> {
    let file = FrontMatter::new(prompt, references, outline)?;
    let spans: Vec<Span> = findings
        .iter()
        .filter(|finding| finding.rule.name == LEGACY_KEY && finding.fix.is_none())
        .filter_map(|finding| finding.span)
        .collect();
    let has_moved = |key: &str| {
        file.entry(key).is_some_and(|entry| spans.iter().any(|span| entry.region.range().contains(&span.start)))
    };
    let mut edits = Vec::new();
    if OLD_METADATA.iter().any(|key| file.entry(key).is_some()) {
        edits.extend(file.metadata()?);
    }
    if has_moved("sample") {
        edits.extend(file.examples()?);
    }
    if has_moved("model") || has_moved("tools") {
        let json = references.restored(&references.prompt.spec().to_json());
        let mut tools = String::new();
        if json.get("tools").is_some() {
            push_entry(&mut tools, 0, "tools", &json["tools"]);
        }
        if has_moved("model") {
            let mut text = String::new();
            push_entry(&mut text, 0, "model", &current_model(json["model"].clone()));
            if file.entry("tools").is_none() {
                text.push_str(&tools);
            }
            edits.push(file.replace("model", &text)?);
        }
        if has_moved("tools") {
            edits.push(file.replace("tools", &tools)?);
        }
    }
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    Some(edits)
}

/// Removes what older files say about a model and has no effect any more.
fn current_model(mut model: Json) -> Json {
    if let Some(model) = model.as_object_mut() {
        model.shift_remove("response");
    }
    if let Some(options) = model.get_mut("options").and_then(Json::as_object_mut) {
        OLD_IDS.iter().for_each(|key| drop(options.shift_remove(*key)));
    }
    if model.get("options").is_some_and(|options| *options == Json::Object(JsonMap::new())) {
        model.as_object_mut().and_then(|model| model.shift_remove("options"));
    }
    model
}

/// Returns whether edits only indent the lines of keys that now belong to the metadata. That is always the same prompt, unless
/// an alias comes before its anchor afterwards.
fn is_certain(prompt: &Prompt, edits: &[Edit], findings: &[Finding]) -> bool {
    let mut moved = findings.iter().filter(|finding| finding.rule.name == LEGACY_KEY && finding.fix.is_none());
    let end = edits.iter().map(|(span, _)| span.end).max().unwrap_or_default();
    moved.all(|finding| finding.message.ends_with("at the top level is deprecated"))
        && !prompt.source().text()[..end].contains(['&', '*', '{'])
}

/// Returns whether a file with these edits, and with the fixes for renamed keys, is a prompt of the current format that
/// does the same.
fn is_same_prompt(prompt: &Prompt, edits: &[Edit], findings: &[Finding], files: &mut impl Resolve) -> bool {
    let mut all = edits.to_vec();
    let renamed = findings.iter().filter(|finding| finding.rule.name == LEGACY_KEY);
    let is_free = |span: Span| !edits.iter().any(|(edit, _)| is_inside(span, *edit));
    let fixes = renamed.filter_map(|finding| finding.fix.as_ref()).flat_map(|fix| fix.edits.iter().cloned());
    all.extend(fixes.filter(|(span, _)| is_free(*span)));
    all.sort_by_key(|(span, _)| (span.start, span.end));
    let mut text = prompt.source().text().to_owned();
    for (span, replacement) in all.iter().rev() {
        text.replace_range(span.range(), replacement);
    }
    let source = SourceFile::new(prompt.source().name(), text);
    let Ok(fixed) = Prompt::from_prompty_source(source, files) else { return false };
    let is_old = |code: &str| code == LEGACY_KEY;
    let current = |prompt: &Prompt| {
        let mut json = prompt.spec().to_json();
        json["model"] = current_model(json["model"].take());
        json
    };
    fixed.definition_hash() == prompt.definition_hash()
        && current(&fixed) == current(prompt)
        && written_tests(&fixed) == written_tests(prompt)
        && !fixed.warnings().iter().any(|warning| is_old(warning.code))
}

/// A front matter in block style.
struct FrontMatter<'p> {
    references: &'p References<'p>,
    text: &'p str,
    entries: Vec<TopLevel<'p>>,
}

/// A key at the top level.
#[derive(Clone, Copy)]
struct TopLevel<'p> {
    field: Field<'p>,
    /// The lines of the key and its value.
    region: Span,
}

impl<'p> FrontMatter<'p> {
    fn new(prompt: &'p Prompt, references: &'p References<'p>, outline: &'p Outline<'p>) -> Option<Self> {
        let text = prompt.source().text();
        let whole = frontmatter::split(text).ok()?.front_matter?;
        let fields: Vec<_> = outline.get(&[])?.entries().collect();
        let mut entries = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let start = field.key_span.start;
            // Keys of the top level are at the beginnings of lines. Anything else is in braces, or merged.
            if start < whole.start || !(start == 0 || text.as_bytes()[start - 1] == b'\n') {
                return None;
            }
            let next = fields.get(index + 1).map_or(whole.end, |next| next.key_span.start);
            let region = Span::new(start, end_of_value(text, start, next)?);
            entries.push(TopLevel { field: *field, region });
        }
        Some(Self { references, text, entries })
    }

    fn entry(&self, key: &str) -> Option<TopLevel<'p>> {
        self.entries.iter().find(|entry| entry.field.key == Some(key)).copied()
    }

    fn lines(&self, entry: TopLevel<'p>) -> &'p str {
        &self.text[entry.region.range()]
    }

    /// Replaces an entry. Its comments stay, before the entry.
    fn replace(&self, key: &str, text: &str) -> Option<Edit> {
        let entry = self.entry(key)?;
        Some((entry.region, self.comments(entry) + text))
    }

    /// Returns the comments of an entry, one on each line.
    fn comments(&self, entry: TopLevel<'p>) -> String {
        self.lines(entry).lines().filter_map(comment).map(|comment| format!("{comment}\n")).collect()
    }

    /// Moves the old keys to the metadata.
    fn metadata(&self) -> Option<Vec<Edit>> {
        let old: Vec<_> = OLD_METADATA.iter().filter_map(|key| self.entry(key)).collect();
        let known = self.entry("metadata");
        let is_known = |entry: &TopLevel<'p>| {
            let key = entry.field.key.unwrap_or_default();
            known.is_some_and(|metadata| metadata.field.get(key).is_some())
        };
        let moved: Vec<_> = old.iter().filter(|entry| !is_known(entry)).copied().collect();
        let indented = |indent: usize| {
            let lines = moved.iter().flat_map(|entry| self.lines(*entry).lines());
            lines
                .map(|line| if line.trim().is_empty() { "\n".to_owned() } else { format!("{:indent$}{line}\n", "") })
                .collect::<String>()
        };
        let mut edits: Vec<Edit> = old.iter().map(|entry| (entry.region, String::new())).collect();
        let first = known.and_then(|metadata| metadata.field.entries().next());
        match (known, first) {
            (None, _) => edits[0].1 = format!("metadata:\n{}", indented(2)),
            (Some(metadata), Some(first)) if self.column(first.key_span.start).is_some() => {
                let indent = self.column(first.key_span.start)?;
                edits.push((Span::new(metadata.region.end, metadata.region.end), indented(indent)));
            }
            // Metadata in braces, or without entries.
            (Some(_), _) => {
                let mut text = String::new();
                let metadata = Json::Object(self.references.prompt.metadata().clone());
                push_entry(&mut text, 0, "metadata", &self.references.restored(&metadata));
                let comments: String = moved.iter().map(|entry| self.comments(*entry)).collect();
                let (region, text) = self.replace("metadata", &text)?;
                edits.push((region, comments + &text));
            }
        }
        Some(edits)
    }

    /// Returns the column of an offset, if there is only white space before it on its line.
    fn column(&self, offset: usize) -> Option<usize> {
        let line = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let before = &self.text[line..offset];
        before.bytes().all(|byte| byte == b' ').then_some(before.len())
    }

    /// Moves the samples to the inputs, as examples.
    fn examples(&self) -> Option<Vec<Edit>> {
        let sample = self.entry("sample")?;
        let inputs = self
            .entry("inputs")
            .filter(|inputs| inputs.field.entries().next().is_some() || inputs.field.items().next().is_some());
        let mut properties = self.references.prompt.spec().inputs.clone();
        if properties.iter().any(|property| property.schema.is_some()) {
            return None;
        }
        for value in properties.iter_mut().flat_map(|property| [&mut property.default, &mut property.example]) {
            *value = value.as_ref().map(|value| self.references.restored(value));
        }
        let mut edits = Vec::new();
        let mut added = Vec::new();
        for property in properties.iter().filter(|property| property.example.is_some()) {
            match inputs.and_then(|inputs| declaration(inputs.field, &property.name)) {
                Some(declared) => edits.extend(self.example(declared, property)?),
                None => added.push(property),
            }
        }
        let Some(inputs) = inputs else {
            let mut text = "inputs:\n".to_owned();
            added.iter().for_each(|property| push_declaration(&mut text, 2, property, false));
            // An empty `inputs` would be there twice.
            edits.extend(self.entry("inputs").map(|inputs| (inputs.region, String::new())));
            edits.push((sample.region, text));
            return Some(edits);
        };
        edits.push((sample.region, String::new()));
        if !added.is_empty() {
            edits.push(self.added(inputs, &added)?);
        }
        Some(edits)
    }

    /// Adds declarations to the end of the inputs.
    fn added(&self, inputs: TopLevel<'p>, added: &[&Property]) -> Option<Edit> {
        let is_list = inputs.field.items().next().is_some();
        if self.text[inputs.field.span.start..].starts_with(['{', '[']) {
            let mut text = String::new();
            for property in added {
                let declaration = flow(property, is_list);
                text.push_str(", ");
                if !is_list {
                    push_text(&mut text, &property.name);
                    text.push_str(": ");
                }
                text.push_str(&declaration);
            }
            let at = last_of(self.text, inputs.field.span.start)?;
            return Some((Span::new(at, at), text));
        }
        let mut text = String::new();
        let first = inputs.field.items().chain(inputs.field.entries()).next()?;
        let line = self.text[..first.key_span.start].rfind('\n').map_or(0, |at| at + 1);
        let indent = self.text[line..].bytes().take_while(|byte| *byte == b' ').count();
        added.iter().for_each(|property| push_declaration(&mut text, indent, property, is_list));
        Some((Span::new(inputs.region.end, inputs.region.end), text))
    }

    /// Adds the example of an input to its declaration.
    fn example(&self, declared: Field<'p>, property: &Property) -> Option<Option<Edit>> {
        let has = |keys: &[&str]| keys.iter().any(|key| declared.get(key).is_some());
        if has(&["example", "sample"]) {
            return Some(None);
        }
        let example = property.example.as_ref()?.to_string();
        let is_default = property.default.is_some() && !has(&["default"]);
        let is_map = declared.entries().next().is_some() && !is_default;
        if !is_map {
            // A default value, a name or nothing becomes a declaration.
            let is_item = declared.key.is_none();
            let text = flow(property, is_item);
            let is_null = declared.text().is_none() && property.default.is_none();
            let colon = is_null.then(|| self.text[declared.key_span.end..].find(':')).flatten();
            return Some(Some(match colon {
                Some(colon) => {
                    let at = declared.key_span.end + colon + 1;
                    (Span::new(at, at.max(declared.span.end)), format!(" {text}"))
                }
                None => (declared.span, text),
            }));
        }
        // The kind must not be inferred from the example.
        let kind = if has(&["kind", "type", "default"]) { None } else { Some(property.kind.as_str()) };
        let first = declared.entries().next()?;
        if self.text[declared.span.start..].starts_with('{') {
            let at = last_of(self.text, declared.span.start)?;
            let kind = kind.map(|kind| format!(", kind: {kind}")).unwrap_or_default();
            return Some(Some((Span::new(at, at), format!("{kind}, example: {example}"))));
        }
        let is_line = |field: &Field<'_>| {
            let written = &self.text[field.span.range()];
            !written.is_empty() && !written.contains('\n') && !written.starts_with(['|', '>'])
        };
        let last = declared.entries().filter(is_line).last()?;
        let line = self.text[..first.key_span.start].rfind('\n').map_or(0, |at| at + 1);
        let indent = first.key_span.start - line;
        let rest = self.text[last.span.end..].lines().next().unwrap_or_default();
        let at = last.span.end + rest.len();
        let kind = kind.map(|kind| format!("\n{:indent$}kind: {kind}", "")).unwrap_or_default();
        Some(Some((Span::new(at, at), format!("{kind}\n{:indent$}example: {example}", ""))))
    }
}

/// Returns the end of the last entry in the braces or brackets that open at an offset.
fn last_of(text: &str, open: usize) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, char) in text[open..].char_indices() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') if depth == 1 => {
                let inside = text[open..open + at].trim_end();
                return Some(open + inside.strip_suffix(',').unwrap_or(inside).len());
            }
            (None, '}' | ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the comment on a line of YAML.
fn comment(line: &str) -> Option<&str> {
    let is_quoted = |before: &str| ['"', '\''].iter().any(|quote| before.matches(*quote).count() % 2 == 1);
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    let starts =
        |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace) && !is_quoted(&line[..*at]);
    marks.find(starts).map(|at| line[at..].trim_end())
}

/// Returns the declaration of an input.
fn declaration<'p>(inputs: Field<'p>, name: &str) -> Option<Field<'p>> {
    let entry = inputs.entries().find(|entry| entry.key == Some(name));
    let is_item = |item: &Field<'_>| item.get("name").unwrap_or(*item).text() == Some(name);
    entry.or_else(|| inputs.items().find(is_item))
}

/// Writes a declaration in braces.
fn flow(property: &Property, with_name: bool) -> String {
    let mut parts = Vec::new();
    if with_name {
        let mut name = "name: ".to_owned();
        name.push_str(&Json::from(property.name.as_str()).to_string());
        parts.push(name);
    }
    parts.push(format!("kind: {}", property.kind.as_str()));
    parts.extend(property.default.as_ref().map(|default| format!("default: {default}")));
    parts.extend(property.example.as_ref().map(|example| format!("example: {example}")));
    format!("{{{}}}", parts.join(", "))
}

fn push_declaration(text: &mut String, indent: usize, property: &Property, is_item: bool) {
    text.extend(std::iter::repeat_n(' ', indent));
    if is_item {
        text.push_str("- ");
    } else {
        push_text(text, &property.name);
        text.push_str(": ");
    }
    text.push_str(&flow(property, is_item));
    text.push('\n');
}

/// Returns the end of the value that starts on the line at `start`. Blank lines and comments before the next key belong to the
/// key.
fn end_of_value(text: &str, start: usize, next: usize) -> Option<usize> {
    let mut end = text[start..].find('\n').map(|length| start + length + 1)?;
    let mut at = end;
    while at < next {
        let after = text[at..next].find('\n').map_or(next, |length| at + length + 1);
        let line = &text[at..after];
        let is_free = line.trim().is_empty() || line.starts_with('#');
        at = after;
        if !is_free {
            end = after;
        }
    }
    Some(end)
}
