//! Warnings about a prompt that renders, but may not do what its author wants.

use std::collections::BTreeSet;

use crate::chat::message::Role;
use crate::diagnostic::{Diagnostic, listed};
use crate::error::Result;
use crate::prompt::Prompt;
use crate::prompt::definition::field;
use crate::spec::DEFAULT_VARIANT;
use crate::spec::schema::Property;
use crate::template::flow::{Flow, Sink};
use crate::text::source::Span;

/// The metadata key that declares that the author has considered the guard.
const GUARD: &str = "guard";

/// The maximum number of variants reported for each variable that they do not use.
const MAX_VARIANTS: usize = 10;

/// How inputs flow through a template, and which of them reach the output.
struct Reached {
    flow: Flow,
    inputs: BTreeSet<usize>,
}

impl Reached {
    fn new(flow: Flow) -> Self {
        let inputs = flow.sinks.iter().map(|sink| sink.input).collect();
        Self { flow, inputs }
    }
}

impl Prompt {
    /// Checks the prompt and returns warnings: untrusted variables without a declared guard, unused variables, and
    /// untrusted text in a system message. The warnings are sorted by position.
    ///
    /// # Errors
    /// Returns an error if a template does not compile.
    pub fn check(&self) -> Result<Vec<Diagnostic>> {
        let arms = (0..self.arms().count()).map(|index| self.arm_template(index).map(|template| template.flow()));
        let arms = arms.collect::<Result<Vec<_>>>()?;
        let mut findings = Vec::new();
        let arms: Vec<_> = arms.into_iter().map(Reached::new).collect();
        for (index, variable) in self.variables().iter().enumerate() {
            self.check_use(index, variable, &arms, &mut findings);
            self.check_guard(index, variable, &arms, &mut findings);
        }
        if self.role() == Some(Role::System) {
            self.check_system(&arms, &mut findings);
        }
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        Ok(findings)
    }

    /// Reports a variable that no template uses, or that only some variants use.
    fn check_use(&self, index: usize, variable: &Property, arms: &[Reached], findings: &mut Vec<Diagnostic>) {
        let name = &variable.name;
        let without: Vec<_> = (0..arms.len()).filter(|arm| !arms[*arm].flow.uses.contains_key(&index)).collect();
        if without.len() == arms.len() {
            let message = format!("unused variable `{name}`");
            let finding = Diagnostic::warning("unused_variable", variable.span, message);
            findings.push(finding.with_help("use it in a template, or remove it"));
            return;
        }
        for arm in without.into_iter().take(MAX_VARIANTS) {
            let arm_name = self.arm_name(arm);
            let span = self.locate_span(arm, Span::default());
            let message = format!("variant `{arm_name}` does not use `{name}`, but other variants do");
            let finding = Diagnostic::warning("variable_unused_in_variant", span, message);
            findings.push(finding.with_help(format!("if it is needed, use it in `{}`", field(arm_name))));
        }
    }

    /// Reports an untrusted variable in a template whose metadata does not mention a guard.
    fn check_guard(&self, index: usize, variable: &Property, arms: &[Reached], findings: &mut Vec<Diagnostic>) {
        if variable.trusted || !self.is_definition() || self.metadata().contains_key(GUARD) {
            return;
        }
        let bare = arms.iter().enumerate().filter(|(arm, reached)| {
            let is_declared = *arm > 0 && self.spec().variants[arm - 1].metadata.contains_key(GUARD);
            reached.inputs.contains(&index) && !is_declared
        });
        let bare: Vec<_> = bare.map(|(arm, _)| self.arm_name(arm)).collect();
        if bare.is_empty() {
            return;
        }
        let bare = listed(bare.into_iter());
        let message =
            format!("untrusted variable `{}` is rendered without a declared guard (in {bare})", variable.name);
        let help = "add a `guard` key to the metadata and render with the guard; if the values are trusted, set \
            `trusted: true`";
        findings.push(Diagnostic::warning("untrusted_without_guard", variable.span, message).with_help(help));
    }

    /// Reports untrusted text in a system message, which the model takes for the application's own instructions.
    fn check_system(&self, arms: &[Reached], findings: &mut Vec<Diagnostic>) {
        for (arm, Reached { flow, .. }) in arms.iter().enumerate() {
            let untrusted = |sink: &&Sink| self.variables().get(sink.input).is_some_and(|variable| !variable.trusted);
            for sink in flow.sinks.iter().filter(untrusted) {
                let name = &self.variables()[sink.input].name;
                let at = self.locate_span(arm, sink.place.into());
                let line = self.source().line_column(at.start).line;
                let path: Vec<_> = sink.path.iter().map(|step| format!("`{step}`")).collect();
                let path = if path.is_empty() { String::new() } else { format!(" through {}", path.join(", ")) };
                let arm = self.arm_name(arm);
                let of = if arm == DEFAULT_VARIANT { String::new() } else { format!(" of variant `{arm}`") };
                let message = format!(
                    "untrusted variable `{name}` reaches the system message{of} at line \
                    {line}{path}"
                );
                let finding = Diagnostic::warning("untrusted_in_system", at, message);
                findings.push(finding.with_help("move it to a prompt with the user role, or render with the guard"));
            }
        }
        let mut seen = BTreeSet::new();
        findings.retain(|finding| {
            seen.insert((finding.code, finding.span.map(|span| span.start), finding.message.clone()))
        });
    }
}
