//! Parses Rye directives: Markdown with metadata in a code fence, followed by the steps for the model.
//!
//! The metadata is for the program that runs the directive. Only the name, the description and the outputs reach the
//! model, through [`build_prompt`]. Permissions, limits, the model, hooks and signatures never do.

mod build;
mod capability;
mod check;
mod document;
mod element;
mod json;
mod layout;
mod metadata;
mod property;
mod xml;

pub use build::{INSTRUCTION, Parts, RETURN_TOOL, build_prompt};
pub use capability::{ACTIONS, Capability, ITEM_TYPES};
pub use document::{Context, Cost, Directive, DirectiveModel, Hook};

pub(crate) use build::placeholder;
pub(crate) use check::{list, list_near};
#[cfg(feature = "signatures")]
pub(crate) use layout::after_signatures;
pub(crate) use property::{matches_kind, of_kind};

use serde_json::json;

use self::element::Element;
use self::layout::{Layout, Metadata, Syntax};
use super::report::{Report, error};
use super::yaml;
use crate::diagnostic::Diagnostic;
use crate::error::Kind;
use crate::spec::{DIRECTIVE, Model, PromptSpec, TemplateSpec};
use crate::text::source::{SourceFile, Span};
use crate::text::source_map::SourceMap;

/// Returns whether a text without a file name is a directive: it is signed, or it has a code fence that contains a
/// `<directive>`.
pub fn is_directive(text: &str) -> bool {
    layout::looks_like_directive(text)
}

/// Parses a directive, and reports all findings in the order of the file.
///
/// Returns a directive if and only if no finding is an error.
pub fn parse(source: &SourceFile) -> (Option<Directive>, Vec<Diagnostic>) {
    let layout = layout::layout(source.text());
    let mut report = Report::default();
    let directive = read(source, &layout, &mut report);
    let diagnostics = report.into_diagnostics();
    let has_errors = diagnostics.iter().any(Diagnostic::is_error);
    (directive.filter(|_| !has_errors), diagnostics)
}

/// Where the metadata of a directive stands, if it is in XML.
#[cfg(feature = "signatures")]
pub(crate) fn metadata_of(source: &SourceFile) -> Option<Span> {
    let metadata = layout::layout(source.text()).metadata?;
    (metadata.syntax == Syntax::Xml).then_some(metadata.content)
}

fn read(source: &SourceFile, layout: &Layout, report: &mut Report) -> Option<Directive> {
    let Some(metadata) = &layout.metadata else {
        let finding = error(Kind::InvalidDirective, Span::new(0, 0), "missing metadata");
        report.push(finding.with_help("put a `<directive>` element in a fence that starts with ```xml"));
        return None;
    };
    if !metadata.is_closed {
        let finding = error(Kind::InvalidDirective, metadata.opening, "the metadata fence is not closed");
        report.push(finding.with_help("close it with a matching fence before the steps"));
        return None;
    }
    let root = read_root(source, metadata, report)?;
    let mut directive = metadata::read(&root, report);
    directive.metadata = metadata.content;
    directive.preamble = layout.preamble;
    directive.body = layout.body;
    directive.name = directive.name.or_else(|| file_stem(source.name()));
    check::check(&directive, layout, source, report);
    Some(directive)
}

/// Returns the name of a file without its directory and extension. Rye names a directive after its file.
fn file_stem(file: &str) -> Option<String> {
    // A text that does not come from a file has a name such as `<directive>`.
    let is_file = !file.starts_with('<') && file != "-";
    let stem = std::path::Path::new(file).file_stem().filter(|_| is_file)?;
    Some(stem.to_str()?.to_owned()).filter(|stem| !stem.trim().is_empty())
}

/// Parses the metadata in either syntax into a tree.
fn read_root(source: &SourceFile, metadata: &Metadata, report: &mut Report) -> Option<Element> {
    let text = source.slice(metadata.content);
    match metadata.syntax {
        Syntax::Xml => match xml::parse(text, metadata.content.start) {
            Ok(root) if root.name == "directive" => Some(root),
            Ok(root) => {
                let message = format!("metadata: expected a `<directive>` element, found `<{}>`", root.name);
                report.push(error(Kind::InvalidDirective, root.span, message));
                None
            }
            Err(finding) => {
                report.push(finding);
                None
            }
        },
        Syntax::Yaml => {
            let (root, problems) = yaml::parse(text, metadata.content.start);
            for problem in problems {
                let finding = error(Kind::InvalidFrontmatter, problem.span, problem.message);
                report.push(match problem.help {
                    Some(help) => finding.with_help(help),
                    None => finding,
                });
            }
            let root = root?;
            let yaml::Value::Map(_) = &root.value else {
                let message = format!("metadata: expected a map, found {}", root.describe());
                report.push(error(Kind::InvalidDirective, root.span, message).with_help("write `key: value` lines"));
                return None;
            };
            Some(Element::from_yaml(root))
        }
    }
}

impl Directive {
    /// Builds the prompt for the directive. It starts with `instruction`.
    pub fn prompt_text(&self, source: &SourceFile, instruction: &str) -> String {
        self.build(source, instruction).text
    }

    fn build(&self, source: &SourceFile, instruction: &str) -> build::Built {
        let description = |output: &crate::spec::schema::Property| output.description.clone().unwrap_or_default();
        let outputs: Vec<_> = self.outputs.iter().map(|output| (&*output.name, description(output))).collect();
        let outputs: Vec<_> = outputs.iter().map(|(name, description)| (*name, description.as_str())).collect();
        build::build(&Parts {
            instruction,
            name: self.name.as_deref().unwrap_or_default(),
            description: self.description.as_deref().unwrap_or_default(),
            preamble: source.slice(self.preamble),
            body: source.slice(self.body),
            outputs: &outputs,
        })
    }

    /// Converts the directive to the common shape of all formats. Also returns where the parts of the template come
    /// from in the file.
    pub(crate) fn into_spec(self, source: &SourceFile, instruction: &str) -> (PromptSpec, SourceMap) {
        let built = self.build(source, instruction);
        let mut source_map = SourceMap::default();
        for (range, at) in built.preamble {
            source_map.push(range, self.preamble.start + at);
        }
        let (steps, at) = built.body;
        source_map.push(steps.clone(), self.body.start + at);
        let mut template =
            TemplateSpec { format: DIRECTIVE.into(), parser: DIRECTIVE.into(), ..TemplateSpec::default() };
        template.format_options.insert("steps".into(), json!([steps.start, steps.end]));
        let spec = PromptSpec {
            metadata: self.metadata_json(),
            model: self.model.map(|model| Model {
                id: model.id,
                extra: [
                    ("tier", model.tier),
                    ("fallback", model.fallback),
                    ("fallback_id", model.fallback_id),
                    ("description", model.description),
                ]
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
                .collect::<crate::json::JsonMap>()
                .into(),
                ..Model::default()
            }),
            name: self.name,
            description: self.description,
            inputs: self.inputs,
            outputs: self.outputs,
            template,
            instructions: built.text,
            ..PromptSpec::default()
        };
        (spec, source_map)
    }
}
