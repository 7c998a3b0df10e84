//! Checks of files that do not load: all rules whose findings do not depend on what is wrong.

use tympan_core::diagnostic::{Severity, guess_name};
use tympan_core::format::outline::{Field, Outline};
use tympan_core::format::{Document, Format, prompty};
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::spec::{PromptSpec, TemplateSpec};
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Error, Kind, Prompt};

use crate::file::{Checked, WithoutEnv, format};
use crate::finding::{Finding, Findings, Fix};
use crate::rules::tool_file_not_found::check_tool_files;
use crate::test_file::check_embedded;
use crate::{Options, check_outlined, check_templates};

const MUSTACHE: &str = "mustache";

/// The rules whose findings may be wrong if a tool cannot be read.
const ABOUT_TOOLS: [&str; 2] = ["unused_variable", "unneeded_tool"];

/// Checks a file that does not load because of an error.
pub(crate) fn check_broken(
    source: &SourceFile,
    error: &Error,
    resolve: &mut WithoutEnv<'_>,
    options: &Options,
) -> Checked {
    let mut errors = Finding::from_error(error);
    errors.iter_mut().for_each(|finding| finding.is_fatal = finding.severity == Severity::Error);
    let mut findings = Findings::default();
    let format = format(source);
    let outline = Outline::new(source, format);
    let partial = match format {
        Format::Definition(syntax) => {
            let (prompt, _) = Prompt::from_definition_as_far_as_possible(source.clone(), syntax);
            suggest_variables(source, &prompt, &mut errors);
            check_definition(&prompt, &outline, &errors, options, &mut findings);
            Some(prompt)
        }
        // A directive is checked as a whole.
        Format::Directive => None,
        _ => check_prompty(source, &outline, &errors, resolve, options, &mut findings),
    };
    // An embedded test may be about what cannot be read.
    if source.text().contains("tests") {
        check_embedded(source, format, (None, &outline), resolve, &mut findings);
    }
    findings.extend(errors);
    Checked { prompt: None, partial, suite: None, findings: findings.into_sorted() }
}

/// Adds fixes to the names that a definition does not declare.
fn suggest_variables(source: &SourceFile, prompt: &Prompt, errors: &mut [Finding]) {
    let names = || prompt.variables().iter().map(|variable| variable.name.as_str());
    for finding in errors.iter_mut().filter(|finding| finding.rule.name == Kind::UndeclaredVariable.code()) {
        let Some(span) = finding.span else { continue };
        finding.fix = guess_name(source.slice(span), names()).map(|near| Fix::needs_review(span, near));
    }
}

/// Checks a definition. Its declarations are known if all errors are in its templates.
fn check_definition(
    prompt: &Prompt,
    outline: &Outline<'_>,
    errors: &[Finding],
    options: &Options,
    findings: &mut Findings,
) {
    if errors.iter().any(|finding| finding.is_fatal && finding.rule.name == Kind::InvalidDefinition.code()) {
        // The mistakes of the templates are among the errors already.
        return check_templates(prompt, options, false, findings);
    }
    let mut found = Findings::default();
    check_outlined(prompt, outline, options, &mut found);
    // What is said about a name that is not declared would be gone with the declaration.
    let is_unclear = |finding: &Finding| errors.iter().any(|error| error.span == finding.span);
    findings.extend(found.into_sorted().into_iter().filter(|finding| !is_unclear(finding)));
}

/// Checks a `.prompty` file, and returns the part of it that can be parsed.
fn check_prompty(
    source: &SourceFile,
    outline: &Outline<'_>,
    errors: &[Finding],
    resolve: &mut WithoutEnv<'_>,
    options: &Options,
    findings: &mut Findings,
) -> Option<Prompt> {
    let (document, _) = prompty::parse_as_far_as_possible(source, resolve);
    let Document { mut spec, body, front_matter, .. } = document?;
    // If the front matter is not valid YAML, the format of the template is not known.
    let text = front_matter.map_or("", |span| source.slice(span));
    if spec.template == TemplateSpec::default() && text.contains(MUSTACHE) {
        MUSTACHE.clone_into(&mut spec.template.format);
    }
    let build = |spec: PromptSpec| Prompt::from_document(spec, source.clone(), body.start, Vec::new());
    let prompt = build(spec);
    let Some(unclear) = Unclear::new(outline, errors) else {
        // An unknown format may be a consequence of the invalid front matter.
        let is_known = prompt.template().err().is_none_or(|error| error.kind() != Kind::NotRegistered);
        check_templates(&prompt, options, is_known, findings);
        return Some(prompt);
    };
    let mut clear = prompt.spec().clone();
    clear.inputs.iter_mut().for_each(|input| unclear.forget(input));
    let clear = build(clear);
    let mut found = Findings::default();
    check_outlined(&clear, outline, options, &mut found);
    check_tool_files(&clear, outline, resolve, &mut found);
    findings.extend(found.into_sorted().into_iter().filter(|finding| !unclear.hides(finding)));
    Some(prompt)
}

/// The parts of a front matter that cannot be read.
#[derive(Default)]
struct Unclear<'o> {
    /// The names of inputs.
    inputs: Vec<&'o str>,
    /// The positions of declarations and values.
    parts: Vec<Span>,
    /// Whether any of them is a tool.
    has_tool: bool,
}

impl<'o> Unclear<'o> {
    /// Finds the parts that errors are about. Returns `None` if they may affect any finding.
    fn new(outline: &'o Outline<'_>, errors: &[Finding]) -> Option<Self> {
        let mut unclear = Self::default();
        for error in errors.iter().filter(|finding| finding.is_fatal) {
            if error.rule.name == Kind::InvalidFrontmatter.code() {
                return None;
            }
            unclear.add(outline, error.span?)?;
        }
        Some(unclear)
    }

    fn add(&mut self, outline: &'o Outline<'_>, at: Span) -> Option<()> {
        let is_about = |field: &Field<'_>| whole(*field).range().contains(&at.start);
        let field = outline.get(&[])?.entries().find(is_about)?;
        // The declarations of a JSON Schema are in another one, `properties`.
        let declared = || field.declarations().filter(|(_, field)| is_about(field)).last();
        match field.key? {
            "inputs" => {
                let (name, field) = declared()?;
                self.inputs.push(name);
                self.parts.push(whole(field));
            }
            // These decide which inputs there are, and what the template means.
            "sample" | "template" => return None,
            "tools" => {
                self.has_tool = true;
                self.parts.push(declared().map_or(whole(field), |(_, tool)| whole(tool)));
            }
            "outputs" => self.parts.push(whole(field)),
            // A key that is there twice in different cases.
            key if KEYS.iter().any(|known| *known != key && known.eq_ignore_ascii_case(key)) => return None,
            _ => self.parts.push(at),
        }
        Some(())
    }

    /// Forgets everything about an input that cannot be read, except for its name.
    fn forget(&self, input: &mut Property) {
        if self.inputs.contains(&input.name.as_str()) {
            // Nothing is known about the attributes of such an object.
            *input = Property { span: input.span, trusted: true, ..Property::new(&*input.name, PropertyKind::Object) };
        }
    }

    /// Returns whether a finding may be a consequence of an error.
    fn hides(&self, finding: &Finding) -> bool {
        let is_inside = |span: Span| self.parts.iter().any(|part| part.start <= span.start && span.end <= part.end);
        finding.span.is_some_and(is_inside) || (self.has_tool && ABOUT_TOOLS.contains(&finding.rule.name))
    }
}

/// The keys whose values decide about the findings of a template.
const KEYS: [&str; 4] = ["inputs", "sample", "template", "tools"];

/// Returns the position of a field with its key.
fn whole(field: Field<'_>) -> Span {
    Span::new(field.key_span.start.min(field.span.start), field.key_span.end.max(field.span.end))
}
