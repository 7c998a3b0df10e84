//! Findings as SARIF 2.1.0, for code scanning.

use serde::Serialize;
use tympan::diagnostic::Severity;
use tympan::text::source::{SourceFile, Span};
use tympan_lint::{Finding, Fix, Group, RULES, Rule};

use super::annotations::{Fingerprints, uri_path};
use crate::commands::check::Report;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The base of relative paths: the directory in which the command ran.
const ROOT: &str = "%SRCROOT%";

#[derive(Serialize)]
pub(super) struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    invocations: [Invocation; 1],
    column_kind: &'static str,
    results: Vec<SarifResult>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
}

/// A rule of the table.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    name: &'static str,
    short_description: Message,
    full_description: Message,
    help: Help,
    default_configuration: Configuration,
    properties: Properties,
}

#[derive(Serialize)]
struct Help {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Properties {
    tags: Vec<&'static str>,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

/// A finding.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    partial_fingerprints: Fingerprint,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    code_flows: Vec<CodeFlow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<SarifFix>,
}

#[derive(Serialize)]
struct Fingerprint {
    #[serde(rename = "tympan/v1")]
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    end_line: usize,
    end_column: usize,
}

/// The path that a value takes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeFlow {
    thread_flows: [ThreadFlow; 1],
}

#[derive(Serialize)]
struct ThreadFlow {
    locations: Vec<FlowLocation>,
}

#[derive(Serialize)]
struct FlowLocation {
    location: Location,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifFix {
    description: Message,
    artifact_changes: [ArtifactChange; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactChange {
    artifact_location: ArtifactLocation,
    replacements: Vec<Replacement>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement {
    deleted_region: Region,
    inserted_content: Message,
}

/// Converts a report.
pub(super) fn log(report: &Report) -> Log {
    let mut fingerprints = Fingerprints::default();
    let results = report.findings().map(|(source, finding)| result(source, finding, &mut fingerprints));
    let driver = Driver {
        name: "tympan",
        semantic_version: env!("CARGO_PKG_VERSION"),
        rules: RULES.iter().map(|rule| descriptor(rule)).collect(),
    };
    Log {
        schema: SCHEMA,
        version: "2.1.0",
        runs: [Run {
            tool: Tool { driver },
            invocations: [Invocation { execution_successful: true }],
            column_kind: "unicodeCodePoints",
            results: results.collect(),
        }],
    }
}

fn descriptor(rule: &Rule) -> Descriptor {
    // The first sentence is the short description.
    let short = rule.summary.split_inclusive(". ").next().unwrap_or(rule.summary).trim_end();
    let tags = match rule.group {
        Group::Trust => vec![rule.group.as_str(), "security"],
        group => vec![group.as_str()],
    };
    Descriptor {
        id: rule.code,
        name: rule.name,
        short_description: message(short),
        full_description: message(format!("{} {}", rule.summary, rule.why)),
        help: Help { text: rule.how_to_fix.to_owned(), markdown: rule.page() },
        default_configuration: Configuration { level: level(rule.severity) },
        properties: Properties { tags },
    }
}

fn result(source: &SourceFile, finding: &Finding, fingerprints: &mut Fingerprints) -> SarifResult {
    let text = match &finding.help {
        Some(help) => format!("{} ({help})", finding.message),
        None => finding.message.clone(),
    };
    let related = finding.related.iter().enumerate();
    let related = related
        .map(|(index, (span, note))| Location { id: Some(index + 1), ..location(source, Some(*span), Some(note)) });
    let is_path = finding.rule.group == Group::Trust && !finding.related.is_empty();
    SarifResult {
        rule_id: finding.rule.code,
        rule_index: RULES.iter().position(|rule| *rule == finding.rule).unwrap_or_default(),
        level: level(finding.severity),
        message: message(text),
        locations: [location(source, finding.span, None)],
        partial_fingerprints: Fingerprint { value: fingerprints.of(source, finding) },
        related_locations: related.collect(),
        code_flows: is_path.then(|| code_flow(source, finding)).into_iter().collect(),
        fixes: finding.fix.iter().map(|fix| sarif_fix(source, finding, fix)).collect(),
    }
}

fn code_flow(source: &SourceFile, finding: &Finding) -> CodeFlow {
    let steps =
        finding.related.iter().map(|(span, note)| FlowLocation { location: location(source, Some(*span), Some(note)) });
    CodeFlow { thread_flows: [ThreadFlow { locations: steps.collect() }] }
}

fn sarif_fix(source: &SourceFile, finding: &Finding, fix: &Fix) -> SarifFix {
    let review = if fix.safe { "" } else { " (needs a review)" };
    let text = finding.help.as_deref().unwrap_or("fix the problem");
    let replacements = fix.edits.iter().map(|(span, text)| Replacement {
        deleted_region: region(source, *span),
        inserted_content: message(text.as_str()),
    });
    let change = ArtifactChange { artifact_location: artifact(source.name()), replacements: replacements.collect() };
    SarifFix { description: message(format!("{text}{review}")), artifact_changes: [change] }
}

fn location(source: &SourceFile, span: Option<Span>, note: Option<&str>) -> Location {
    let region = span.map(|span| region(source, span));
    let physical_location = PhysicalLocation { artifact_location: artifact(source.name()), region };
    Location { id: None, physical_location, message: note.map(message) }
}

fn region(source: &SourceFile, span: Span) -> Region {
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    Region { start_line: start.line, start_column: start.column, end_line: end.line, end_column: end.column }
}

/// Returns the URI of a file. Absolute paths have no base.
fn artifact(name: &str) -> ArtifactLocation {
    let path = uri_path(name);
    let is_absolute = std::path::Path::new(name).is_absolute();
    let mut uri = String::from(if is_absolute { "file://" } else { "" });
    if is_absolute && !path.starts_with('/') {
        uri.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    ArtifactLocation { uri, uri_base_id: (!is_absolute).then_some(ROOT) }
}

fn message(text: impl Into<String>) -> Message {
    Message { text: text.into() }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}
