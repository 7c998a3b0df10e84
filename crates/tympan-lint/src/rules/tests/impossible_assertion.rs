//! Assertions about something that the prompt can never have.

use tympan_core::Kind;
use tympan_core::diagnostic::{Severity, guess, listed};
use tympan_core::format::outline::Field;
use tympan_core::spec::role::Role;
use tympan_core::spec::test_suite::{Assertion, CountRange, MessageSelector};
use tympan_core::spec::{PromptKind, ToolKind};
use tympan_core::template::flow::How;

use super::{texts, with_suggestion};
use crate::finding::{Finding, Findings, Fix};
use crate::reach::Target;
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::{SuiteContext, TestedPrompt, WrittenAssertion};

pub(crate) static RULE: Rule = Rule {
    code: "TY508",
    name: "impossible_assertion",
    group: Group::Tests,
    severity: Severity::Warning,
    fix: FixAvailability::Sometimes,
    summary: "Reports an assertion about an input, a message, a role, a tool or an error that the prompt can never have.",
    why: "Such an assertion always fails, or it always passes and tests nothing: an input with a wrong name is in no \
        message.",
    example: "# The prompt has a system message and a user message.\ncases:\n  - expect:\n      - no_origin: {input: \
        page, in: developer}",
    how_to_fix: "Correct the name, the number or the role.",
    check: None,
};

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    for written in context.assertions() {
        check_error_code(context, &written, findings);
        let Some(prompt) = &context.prompt else { continue };
        let asserted = Asserted { context, prompt, written, shape: Shape::of(context, prompt, &written) };
        asserted.check_inputs(findings);
        asserted.check_place(findings);
        asserted.check_messages(findings);
        asserted.check_tools(findings);
        asserted.check_outputs(findings);
    }
}

/// An assertion, and what it is about.
struct Asserted<'c, 't> {
    context: &'c SuiteContext<'t>,
    prompt: &'c TestedPrompt<'t>,
    written: WrittenAssertion<'c>,
    shape: Option<Shape>,
}

/// The messages that the templates of a case can write.
struct Shape {
    /// The roles, without duplicates.
    roles: Vec<Role>,
    /// The greatest number of messages. `None` if a loop may repeat them.
    most: Option<usize>,
}

impl Shape {
    /// Returns `None` if nothing is known about the messages.
    fn of(context: &SuiteContext<'_>, prompt: &TestedPrompt<'_>, written: &WrittenAssertion<'_>) -> Option<Self> {
        if prompt.prompt.kind() == PromptKind::Directive || prompt.prompt.only_role().is_err() {
            return None;
        }
        let variants = context.variants(written.case);
        let mut shape = Self { roles: Vec::new(), most: Some(0) };
        for template in prompt.prompt.templates().filter(|template| variants.contains(&template.name())) {
            let messages = prompt.reach().messages.iter().filter(|message| message.template == template.name());
            let mut count = 0;
            for message in messages {
                // A thread has messages of any role, and the text of a trusted input may contain role markers.
                let Target::Role(role) = message.target else { return None };
                if message.inputs.iter().any(|input| input.trusted && input.how != How::Decides) {
                    return None;
                }
                count += 1;
                if !shape.roles.contains(&role) {
                    shape.roles.push(role);
                }
            }
            let is_split = prompt.prompt.spec().template.is_split();
            let repeats = is_split && repeats(template.source());
            shape.most = shape.most.filter(|_| !repeats).map(|most| most.max(count));
        }
        Some(shape).filter(|shape| !shape.roles.is_empty())
    }
}

/// Returns whether a template may write a message more than once.
fn repeats(source: &str) -> bool {
    const REPEATING: [&str; 4] = ["for", "macro", "call", "set"];
    let starts = |tag: &str| REPEATING.iter().any(|word| tag.trim_start_matches(['-', '+', ' ']).starts_with(word));
    source.contains("{{#") || source.split("{%").skip(1).any(starts)
}

impl<'c> Asserted<'c, '_> {
    /// Reports inputs that the prompt does not have.
    fn check_inputs(&self, findings: &mut Findings) {
        let Some(known) = self.prompt.inputs() else { return };
        let field = self.written.field;
        let named: Vec<_> = match self.written.assertion {
            Assertion::NoOrigin(_) | Assertion::Guarded(_) | Assertion::Verbatim(_) | Assertion::Share(_) => {
                texts(field.get("input").unwrap_or(field)).collect()
            }
            Assertion::OnlyFrom(_) => field.get("inputs").into_iter().flat_map(texts).collect(),
            Assertion::Forge(_) => texts(field).filter(|_| field.text().is_none()).collect(),
            _ => return,
        };
        for (name, span) in named {
            if known.contains(&name) {
                self.check_verbatim(name, field, findings);
                continue;
            }
            let finding = Finding::new(&RULE, span, format!("the prompt has no input `{name}`"));
            findings.push(with_suggestion(self.context, finding, (name, span), known.iter().copied(), || match known
                .is_empty()
            {
                true => "the prompt has no inputs".to_owned(),
                false => format!("its inputs: {}", listed(known.iter().copied())),
            }));
        }
    }

    /// Reports an input that no template writes unchanged.
    fn check_verbatim(&self, name: &str, field: Field<'_>, findings: &mut Findings) {
        let Assertion::Verbatim(place) = self.written.assertion else { return };
        if self.shape.is_none() || place.place().is_some() {
            return;
        }
        let mut reached = self.prompt.reach().messages.iter().flat_map(|message| &message.inputs);
        if !reached.any(|input| input.input == name && input.how != How::Decides) {
            let message = format!("no message contains the input `{name}`");
            findings.push(Finding::new(&RULE, field.span, message).with_help("use it in the template, or remove this"));
        }
    }

    /// Reports a message that the prompt does not have.
    fn check_place(&self, findings: &mut Findings) {
        let place = match self.written.assertion {
            Assertion::Message(message) => message.place,
            Assertion::Tokens(tokens) => tokens.place,
            Assertion::NoOrigin(place) | Assertion::Guarded(place) | Assertion::Verbatim(place) => place.place(),
            Assertion::OnlyFrom(only) => only.place,
            Assertion::Share(share) => share.place,
            _ => None,
        };
        let (Some(shape), Some(place), Some(field)) = (&self.shape, place, self.written.field.get("in")) else {
            return;
        };
        match place {
            MessageSelector::Role(role) => self.check_role(shape, role, field, findings),
            MessageSelector::Index(index) => {
                let Some(most) = shape.most.filter(|most| index >= *most) else { return };
                let message = format!("the prompt has no message {index}: {}", count(most));
                let help = match most {
                    0 | 1 => "messages are counted from 0: write 0".to_owned(),
                    _ => format!("messages are counted from 0: write a number from 0 to {}", most - 1),
                };
                findings.push(Finding::new(&RULE, field.span, message).with_help(help));
            }
        }
    }

    fn check_role(&self, shape: &Shape, role: Role, field: Field<'_>, findings: &mut Findings) {
        if shape.roles.contains(&role) {
            return;
        }
        let message = format!("the prompt has no {} message", role.as_str());
        let known: Vec<_> = shape.roles.iter().map(|role| role.as_str()).collect();
        let finding = Finding::new(&RULE, field.span, message);
        findings.push(finding.with_help(format!("its roles: {}", listed(known.into_iter()))));
    }

    /// Reports a number or a list of messages that the prompt cannot have.
    fn check_messages(&self, findings: &mut Findings) {
        let (Some(shape), field) = (&self.shape, self.written.field) else { return };
        let least = match self.written.assertion {
            Assertion::Messages(CountRange::Exactly(exact)) => *exact,
            Assertion::Messages(CountRange::Range { min, .. }) => min.unwrap_or_default(),
            Assertion::Roles(roles) => {
                for (role, field) in roles.iter().zip(field.items()) {
                    self.check_role(shape, *role, field, findings);
                }
                roles.len()
            }
            _ => return,
        };
        if let Some(most) = shape.most.filter(|most| least > *most) {
            let message = format!("the prompt cannot have {least} messages: {}", count(most));
            findings.push(Finding::new(&RULE, field.span, message).with_help("correct the number, or the prompt"));
        }
    }

    /// Reports tools that the prompt does not declare.
    fn check_tools(&self, findings: &mut Findings) {
        let tools = &self.prompt.prompt.spec().tools;
        // Servers and documents have tools that are not known here.
        let is_known =
            tools.iter().all(|tool| matches!(tool.kind, ToolKind::Function { .. } | ToolKind::Prompty { .. }));
        if !matches!(self.written.assertion, Assertion::ToolCalls(_)) || !is_known || tools.is_empty() {
            return;
        }
        let known: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let field = self.written.field;
        let lists = field.entries().filter(|entry| entry.key != Some("max"));
        let calls = std::iter::once(field).chain(lists).flat_map(Field::items);
        let names = calls.filter_map(|call| {
            let name = call.get("name").unwrap_or(call);
            Some((name.text()?, name.span))
        });
        for (name, span) in names.filter(|(name, _)| !known.contains(name)) {
            let finding = Finding::new(&RULE, span, format!("the prompt has no tool `{name}`"));
            findings.push(with_suggestion(self.context, finding, (name, span), known.iter().copied(), || {
                format!("its tools: {}", listed(known.iter().copied()))
            }));
        }
    }

    /// Reports a check of outputs that the prompt does not declare.
    fn check_outputs(&self, findings: &mut Findings) {
        let spec = self.prompt.prompt.spec();
        if !matches!(self.written.assertion, Assertion::Result(value) if value.valid == Some(true)) {
            return;
        }
        if spec.outputs.is_empty() {
            let span = self.written.field.get("valid").map(|field| field.span);
            let finding = Finding::new(&RULE, span, "the prompt declares no outputs, so every result is valid");
            findings.push(finding.with_help("declare `outputs` in the prompt, or write a `schema` here"));
        }
    }
}

fn count(most: usize) -> String {
    format!("it has at most {most} message{}", if most == 1 { "" } else { "s" })
}

/// Reports an error code that does not exist.
fn check_error_code(context: &SuiteContext<'_>, written: &WrittenAssertion<'_>, findings: &mut Findings) {
    if !matches!(written.assertion, Assertion::Error(_)) {
        return;
    }
    let field = written.field.get("code").unwrap_or(written.field);
    let Some(code) = field.text().filter(|code| Kind::from_code(code).is_none()) else { return };
    let finding = Finding::new(&RULE, field.span, format!("there is no error with the code `{code}`"));
    findings.push(match guess(code, Kind::ALL.iter().map(|kind| kind.code())) {
        Some(near) => {
            let fix = context.exact(field.span, code).map(|span| Fix::needs_review(span, near));
            Finding { fix, ..finding.with_help(format!("did you mean `{near}`?")) }
        }
        None => finding.with_help("for example `missing_input`; the guide lists all codes"),
    });
}
