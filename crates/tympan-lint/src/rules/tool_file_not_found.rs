//! Tools whose files are missing.

use tympan_core::diagnostic::Severity;
use tympan_core::format::Resolve;
use tympan_core::format::outline::Outline;
use tympan_core::spec::ToolKind;
use tympan_core::{Error, Kind, Prompt};

use crate::context::is_reference;
use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};

pub(crate) static RULE: Rule = Rule {
    code: "TY121",
    name: "tool_file_not_found",
    group: Group::Correctness,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a tool of kind `prompty` or `openapi` whose file does not exist.",
    why: "The run fails as soon as it loads its tools.",
    example: "tools:\n  - {name: research, kind: prompty, path: ./reserach.prompty}",
    how_to_fix: "Correct the path. It is relative to the prompt file.",
    check: None,
};

/// Reports the tools of a prompt whose files do not exist. `files` reads files relative to the prompt.
pub(crate) fn check_tool_files(
    prompt: &Prompt,
    outline: &Outline<'_>,
    files: &mut dyn Resolve,
    findings: &mut Findings,
) {
    let paths = prompt.spec().tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Prompty { path, .. } => Some((tool, path.as_deref()?, "path")),
        ToolKind::OpenApi { specification, .. } => {
            let path = specification.as_ref()?.as_str()?;
            let is_address = path.starts_with("http://") || path.starts_with("https://");
            (!is_address).then_some((tool, path, "specification"))
        }
        _ => None,
    });
    for (tool, path, key) in paths.filter(|(_, path, _)| !is_reference(path)) {
        // Another error means that the file may exist, but cannot be read here.
        let is_missing = |error: Error| error.kind() == Kind::ReferencedFileNotFound;
        if !files.file(path).is_err_and(is_missing) {
            continue;
        }
        let declarations = outline.get(&["tools"]).into_iter().flat_map(|tools| tools.declarations());
        let written = declarations.filter(|(name, _)| *name == tool.name).find_map(|(_, tool)| tool.get(key));
        // What comes from elsewhere is not shown.
        if written.and_then(|path| path.text()) != Some(path) {
            continue;
        }
        let span = written.map(|path| path.span).or(tool.span);
        let message = format!("tool `{}`: file `{path}` does not exist", tool.name);
        findings.push(Finding::new(&RULE, span, message).with_help("correct the path, which is relative to this file"));
    }
}
