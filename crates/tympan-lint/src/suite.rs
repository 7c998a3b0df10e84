//! What rules about tests read: a suite with the position of every key and value, and the prompt that it tests.

use std::cell::OnceCell;
use std::collections::HashSet;

use tympan_core::Prompt;
use tympan_core::format::outline::Field;
use tympan_core::spec::schema::Property;
use tympan_core::spec::test_suite::{Assertion, CaseSettings, Expectation, TestCase, TestSuite};
use tympan_core::spec::{BindingValue, DEFAULT_VARIANT, PromptKind};
use tympan_core::text::source::{SourceFile, Span};

use crate::reach::{ReachMap, reach_as_far_as_possible};

/// A suite, prepared for the rules.
pub(crate) struct SuiteContext<'t> {
    pub(crate) source: &'t SourceFile,
    pub(crate) suite: &'t TestSuite,
    /// The suite as it is written: a map, or a list of cases.
    pub(crate) root: Field<'t>,
    pub(crate) cases: Vec<CaseContext<'t>>,
    /// The prompt, if it loads.
    pub(crate) prompt: Option<TestedPrompt<'t>>,
}

/// A case, and what is known about it.
pub(crate) struct CaseContext<'t> {
    pub(crate) case: &'t TestCase,
    /// The case as it is written.
    pub(crate) field: Field<'t>,
    /// The columns of its rows. `None` if they are not known.
    pub(crate) columns: Option<Vec<String>>,
}

/// The prompt that a suite tests.
pub(crate) struct TestedPrompt<'t> {
    pub(crate) prompt: &'t Prompt,
    inputs: Option<Vec<&'t str>>,
    reach: OnceCell<ReachMap>,
}

/// The settings of a case or of all cases, as they are written.
#[derive(Clone, Copy)]
pub(crate) struct WrittenSettings<'t> {
    pub(crate) settings: &'t CaseSettings,
    pub(crate) field: Field<'t>,
    /// The case, unless these are the defaults.
    pub(crate) case: Option<&'t CaseContext<'t>>,
}

/// An assertion, as it is written. What `not` contains is an assertion of its own.
#[derive(Clone, Copy)]
pub(crate) struct WrittenAssertion<'t> {
    pub(crate) assertion: &'t Assertion,
    /// The value of the assertion's key.
    pub(crate) field: Field<'t>,
    /// The case, unless the assertion applies to all cases.
    pub(crate) case: Option<&'t CaseContext<'t>>,
}

impl<'t> SuiteContext<'t> {
    pub(crate) fn new(
        source: &'t SourceFile,
        suite: &'t TestSuite,
        root: Field<'t>,
        prompt: Option<&'t Prompt>,
    ) -> Self {
        let written = root.get("cases").unwrap_or(root).items();
        let cases = suite.cases.iter().zip(written).map(|(case, field)| CaseContext { case, field, columns: None });
        let prompt = prompt.map(TestedPrompt::new);
        Self { source, suite, root, cases: cases.collect(), prompt }
    }

    /// Returns the settings of all cases, and those of each case.
    pub(crate) fn settings(&'t self) -> impl Iterator<Item = WrittenSettings<'t>> {
        let defaults = self.root.get("defaults");
        let defaults = defaults.map(|field| WrittenSettings { settings: &self.suite.defaults, field, case: None });
        let cases = self.cases.iter().map(|case| WrittenSettings {
            settings: &case.case.settings,
            field: case.field,
            case: Some(case),
        });
        defaults.into_iter().chain(cases)
    }

    /// Returns all assertions.
    pub(crate) fn assertions(&'t self) -> impl Iterator<Item = WrittenAssertion<'t>> {
        self.settings().flat_map(|written| {
            let fields = written.field.get("expect").into_iter().flat_map(Field::items);
            let expected = written.settings.expect.iter().zip(fields);
            expected.filter_map(move |(expectation, field)| of_expectation(expectation, field, written.case))
        })
    }

    /// Returns the assertions about a case, including those about all cases.
    pub(crate) fn expected(&self, case: &'t TestCase) -> impl Iterator<Item = &'t Assertion> {
        let all = self.suite.defaults.expect.iter().chain(&case.settings.expect);
        all.map(|expectation| &expectation.assertion)
    }

    /// Returns whether an error is expected, so that the inputs of a case may be wrong on purpose.
    pub(crate) fn expects_error(&self, case: &'t TestCase) -> bool {
        self.expected(case).any(|assertion| matches!(assertion, Assertion::Error(_)))
    }

    /// Returns the variants that a case renders. Without a case, those of all cases.
    pub(crate) fn variants(&self, case: Option<&'t CaseContext<'t>>) -> Vec<&'t str> {
        let of = |case: &'t TestCase| -> Vec<&'t str> {
            let listed = case.matrix.iter().flat_map(|matrix| &matrix.variants);
            let listed: Vec<_> = listed.map(String::as_str).collect();
            let own = case.settings.variant.as_deref().or(self.suite.defaults.variant.as_deref());
            if listed.is_empty() { vec![own.unwrap_or(DEFAULT_VARIANT)] } else { listed }
        };
        match case {
            Some(case) => of(case.case),
            None => self.suite.cases.iter().flat_map(of).collect(),
        }
    }

    /// Returns the position of a name without its quotes. `None` if it is written in another way.
    pub(crate) fn exact(&self, span: Span, name: &str) -> Option<Span> {
        let text = self.source.slice(span);
        let inner = text.strip_prefix(['"', '\'']).and_then(|text| text.strip_suffix(['"', '\'']));
        match inner {
            Some(inner) if inner == name => Some(Span::new(span.start + 1, span.end - 1)),
            _ => (text == name).then_some(span),
        }
    }
}

fn of_expectation<'t>(
    expectation: &'t Expectation,
    field: Field<'t>,
    case: Option<&'t CaseContext<'t>>,
) -> Option<WrittenAssertion<'t>> {
    let field = field.get(expectation.assertion.name())?;
    match &expectation.assertion {
        Assertion::Not(inner) => Some(WrittenAssertion { assertion: inner, field: field.get(inner.name())?, case }),
        assertion => Some(WrittenAssertion { assertion, field, case }),
    }
}

impl<'t> TestedPrompt<'t> {
    fn new(prompt: &'t Prompt) -> Self {
        Self { prompt, inputs: known_inputs(prompt), reach: OnceCell::new() }
    }

    /// Returns the names that a case can have values for. `None` if not all of them are known.
    pub(crate) fn inputs(&self) -> Option<&[&'t str]> {
        self.inputs.as_deref()
    }

    /// Returns the declaration of an input.
    pub(crate) fn input(&self, name: &str) -> Option<&'t Property> {
        self.prompt.variables().iter().find(|input| input.name == name)
    }

    /// Returns which inputs can reach which messages.
    pub(crate) fn reach(&self) -> &ReachMap {
        self.reach.get_or_init(|| reach_as_far_as_possible(self.prompt))
    }
}

/// Returns the names that a prompt declares or reads. `None` if not all of them are known.
fn known_inputs(prompt: &Prompt) -> Option<Vec<&str>> {
    let declared = prompt.variables().iter().map(|input| input.name.as_str());
    let mut names: Vec<_> = declared.filter(|name| !name.is_empty()).collect();
    if prompt.kind() == PromptKind::Directive {
        return (!names.is_empty()).then_some(names);
    }
    for template in prompt.templates() {
        names.extend(template.template().ok()?.inputs().map(|(name, _)| name));
    }
    let bindings = prompt.spec().tools.iter().flat_map(|tool| &tool.bindings);
    names.extend(bindings.filter_map(|binding| match &binding.value {
        BindingValue::Input(name) => Some(name.as_str()),
        _ => None,
    }));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    Some(names)
}

/// Returns the columns of a CSV or JSON Lines file. `None` if they are not known.
pub fn table_columns(path: &str, text: &str) -> Option<Vec<String>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !path.to_ascii_lowercase().ends_with(".csv") {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let row: tympan_core::JsonMap = serde_json::from_str(first).ok()?;
        return Some(row.into_iter().map(|(name, _)| name).collect());
    }
    let header = text.lines().next()?;
    // A name with a comma or a line break in it is not the name of an input.
    (!header.contains("\"\"") && header.matches('"').count() % 2 == 0)
        .then(|| header.split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect())
}
