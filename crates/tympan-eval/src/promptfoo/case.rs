//! Cases: tests with the values of their variables, and with what they expect.

use serde_json::Value as Json;

use super::Importer;
use super::assertion::{Expectations, Scope, threshold_problem};
use super::files::{SCHEME, ending, is_program};
use super::finding::Remark;
use super::node::{Node, Place, Value};
use super::provider::{Model, shown};
use super::template::{filled, is_template, reads_environment};

/// The maximum number of combinations that lists of variables become.
const MAX_COMBINATIONS: usize = 1_000;

/// The maximum number of cases of a configuration.
const MAX_CASES: usize = 20_000;

/// How often promptfoo fills variables into variables.
const ROUNDS: usize = 5;

/// Options of a test that change nothing that a verdict depends on.
const HARMLESS_OPTIONS: [&str; 7] = [
    "disableVarExpansion",
    "disableDefaultAsserts",
    "runSerially",
    "disableConversationVar",
    "provider",
    "rubricPrompt",
    "repeat",
];

/// A case, for every prompt.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: Option<String>,
    pub(super) variables: Vec<(String, Node)>,
    /// Variables whose values make a case each.
    pub(super) lists: Vec<(String, Vec<Node>)>,
    pub(super) expect: Vec<Json>,
    /// Whether the test has assertions, in promptfoo.
    pub(super) has_assertions: bool,
    /// Why the case does not run.
    pub(super) skip: Option<String>,
    /// A fixed answer.
    pub(super) answer: Option<String>,
    pub(super) repeat: Option<u64>,
    /// Filters for prompts and models.
    pub(super) prompts: Option<Vec<String>>,
    pub(super) models: Option<Vec<String>>,
    /// A model for this case alone.
    pub(super) model: Option<Model>,
    pub(super) place: Place,
}

impl Importer<'_> {
    /// Converts tests to cases.
    pub(super) fn cases(&mut self, tests: &[Node]) -> Vec<Case> {
        let mut cases = Vec::new();
        for test in tests {
            self.cases_of(test, &mut cases);
            if cases.len() > MAX_CASES {
                let reason = format!("there are more than {MAX_CASES} cases, and the rest was not read");
                self.findings.not_carried(&test.place, Remark::new("`tests`", reason, "split the configuration"));
                cases.truncate(MAX_CASES);
                break;
            }
        }
        cases
    }

    fn cases_of(&mut self, test: &Node, cases: &mut Vec<Case>) {
        let asserts = test.get("assert").map_or(&[][..], Node::items);
        let template = self.case_without_values(test, asserts);
        let (variables, lists, problem) = self.variables(test);
        // Values that other texts refer to must be known, so that they can be filled in.
        let is_referred_to = !lists.is_empty()
            && (asserts.iter().any(has_template) || variables.iter().any(|(_, value)| has_template(value)));
        let mut combinations = vec![variables];
        let mut remaining = Vec::new();
        for (name, values) in lists {
            match is_referred_to && combinations.len() * values.len() <= MAX_COMBINATIONS {
                true => combinations = product(&combinations, &name, &values),
                false => remaining.push((name, values)),
            }
        }
        let is_single = combinations.len() == 1;
        for (number, mut variables) in combinations.into_iter().enumerate() {
            let problem = self.fill_variables(&mut variables).or_else(|| problem.clone());
            let mut case = Case { lists: remaining.clone(), ..template.clone() };
            if !is_single {
                case.name = case.name.map(|name| format!("{name} [{}]", number + 1));
            }
            let scope = Scope { variables: &variables, options: test.get("options") };
            let expectations = self.case_expectations(test, asserts, &scope);
            case.skip = case.skip.or(problem).or(expectations.1);
            case.expect = expectations.0.carried;
            case.variables = variables;
            cases.push(case);
        }
    }

    /// Returns the case of a test without its variables and assertions.
    fn case_without_values(&mut self, test: &Node, asserts: &[Node]) -> Case {
        let texts = |key: &str| {
            test.get(key).map(|node| node.one_or_many().iter().filter_map(Node::text).map(str::to_owned).collect())
        };
        let mut case = Case {
            name: test
                .get("description")
                .and_then(Node::text)
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty()),
            variables: Vec::new(),
            lists: Vec::new(),
            expect: Vec::new(),
            has_assertions: !asserts.is_empty(),
            skip: None,
            answer: None,
            repeat: test.get("options").and_then(|options| options.get("repeat")).and_then(repetitions),
            prompts: texts("prompts"),
            models: texts("providers"),
            model: None,
            place: test.place.clone(),
        };
        if let Some(output) = test.get("providerOutput") {
            case.answer =
                Some(output.script_text().filter(|_| !output.is_list()).unwrap_or_else(|| output.json().to_string()));
        }
        case.skip = self.options_problem(test);
        if let Some(provider) = test.get("provider") {
            match self.model(provider) {
                Some(model) => case.model = Some(model),
                None => case.skip = Some("its provider was not imported".to_owned()),
            }
        }
        for entry in test.entries() {
            match entry.key.as_str() {
                "metadata" => self.findings.note(
                    &entry.place,
                    Remark::new(
                        "`metadata` of a test",
                        "Tympan's cases have none",
                        "write what matters into the names of the cases, and select them with `-k`",
                    ),
                ),
                "description" | "vars" | "assert" | "options" | "threshold" | "provider" | "providers" | "prompts"
                | "providerOutput" | "$ref" => {}
                "assertScoringFunction" => {
                    let remark = Remark::new(
                        "`assertScoringFunction`",
                        "it runs code that decides about the test",
                        super::assertion::PROGRAM,
                    );
                    self.findings.not_carried(&entry.place, remark);
                    case.skip = Some("a function decides about the test".to_owned());
                }
                key => self.findings.not_carried(
                    &entry.place,
                    Remark::new(
                        format!("`{}` of a test", shown(key)),
                        "promptfoo's reference has no such key",
                        "correct the key",
                    ),
                ),
            }
        }
        case
    }

    /// Reports the options of a test, and returns why it cannot run because of them.
    fn options_problem(&mut self, test: &Node) -> Option<String> {
        let mut problem = None;
        for entry in test.get("options").map_or(&[][..], Node::entries) {
            let key = entry.key.as_str();
            let (reason, help) = match key {
                _ if HARMLESS_OPTIONS.contains(&key) || entry.value.is_null() => continue,
                "prefix" | "suffix" => {
                    if entry.value.text().is_some_and(str::is_empty) {
                        continue;
                    }
                    (
                        "it adds text to the prompt",
                        "write the text in the prompt file, with an input if it differs between tests",
                    )
                }
                "transform" | "postprocess" => ("it runs code that changes the answers", super::assertion::PROGRAM),
                "transformVars" => ("it runs code that changes the variables", "write the values that the code makes"),
                "storeOutputAs" => {
                    ("it passes the answer to later tests", "pass a history as an input of the kind `thread`")
                }
                "factuality" => ("it belongs to an assertion that is not imported", "leave it out"),
                _ => {
                    let remark = Remark::new(
                        format!("option `{}` of a test", shown(key)),
                        "Tympan takes the options of a model from the prompt file",
                        "write a second prompt file with this option under `model.options`",
                    );
                    self.findings.not_carried(&entry.place, remark);
                    problem = Some(format!("its option `{}` was not imported", shown(key)));
                    continue;
                }
            };
            self.findings.not_carried(&entry.place, Remark::new(format!("option `{key}` of a test"), reason, help));
            problem = Some(format!("its option `{key}` was not imported"));
        }
        problem
    }

    /// Converts the assertions of a test. Returns why it cannot run if something would be missing.
    fn case_expectations(
        &mut self,
        test: &Node,
        asserts: &[Node],
        scope: &Scope<'_>,
    ) -> (Expectations, Option<String>) {
        let expectations = self.expectations(asserts, scope);
        let threshold = test.get("threshold");
        if let Some((reason, help)) = threshold_problem(threshold, asserts.len(), expectations.is_graded) {
            let place = threshold.map_or(&test.place, |node| &node.place);
            self.findings.not_carried(place, Remark::new("`threshold` of a test", reason, help));
            return (expectations, Some("its threshold was not imported".to_owned()));
        }
        let skip = match expectations.lost {
            0 => None,
            _ if expectations.carried.is_empty() => Some("its assertions were not imported".to_owned()),
            _ => None,
        };
        (expectations, skip)
    }

    /// Reads the variables of a test, and the lists among them that make a case of each item.
    #[expect(clippy::type_complexity, reason = "the parts of one result, used once")]
    fn variables(&mut self, test: &Node) -> (Vec<(String, Node)>, Vec<(String, Vec<Node>)>, Option<String>) {
        let (mut variables, mut lists, mut problem) = (Vec::new(), Vec::new(), None);
        let expands =
            !test.get("options").and_then(|options| options.get("disableVarExpansion")).is_some_and(Node::is_true);
        for entry in test.get("vars").map_or(&[][..], Node::entries) {
            let is_list = expands && entry.value.items().first().is_some_and(|first| first.text().is_some());
            let read = match is_list {
                true => entry.value.items().iter().map(|item| self.variable(item)).collect::<Result<Vec<_>, _>>(),
                false => self.variable(&entry.value).map(|value| vec![value]),
            };
            match read {
                Ok(values) if is_list => lists.push((entry.key.clone(), values)),
                Ok(values) => variables.extend(values.into_iter().map(|value| (entry.key.clone(), value))),
                Err((reason, help)) => {
                    let item = format!("variable `{}`", shown(&entry.key));
                    problem = Some(format!("{item} was not imported"));
                    self.findings.not_carried(&entry.place, Remark::new(item, reason, help));
                }
            }
        }
        (variables, lists, problem)
    }

    /// Reads the value of a variable, which can be a file.
    fn variable(&mut self, node: &Node) -> Result<Node, (String, String)> {
        let Some(text) = node.text() else {
            self.spend(node.size())?;
            return Ok(node.clone());
        };
        let Some(path) = text.strip_prefix(SCHEME) else {
            self.spend(text.len())?;
            return Ok(Node::of_text(text.strip_suffix('\n').unwrap_or(text), node.place.clone()));
        };
        if is_program(path) {
            return Err((
                "a program makes its value, and an import runs none".to_owned(),
                "write the value itself".to_owned(),
            ));
        }
        let text = match ending(path).as_str() {
            "yaml" | "yml" => self.files.parse(path).map(|parsed| parsed.json().to_string()),
            "png" | "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "svg" | "pdf" | "mp3" | "wav" | "mp4" => {
                let help =
                    "declare an input of the kind `image`, `audio` or `file`, and give its value in the test file";
                return Err((format!("`{}` is not text", shown(path)), help.to_owned()));
            }
            _ => self.files.read(path).map(|source| source.text().trim().to_owned()),
        };
        let text = text.map_err(|unusable| (unusable.reason, unusable.help))?;
        self.spend(text.len())?;
        Ok(Node::of_text(text, node.place.clone()))
    }

    /// Fills variables into the texts of variables. Returns why that is not possible.
    fn fill_variables(&mut self, variables: &mut [(String, Node)]) -> Option<String> {
        let mut problem = None;
        for index in 0..variables.len() {
            let (name, node) = &variables[index];
            let Some(text) = node.text().filter(|text| is_template(text)) else { continue };
            let (name, place, mut text) = (name.clone(), node.place.clone(), text.to_owned());
            let item = format!("variable `{}`", shown(&name));
            let mut is_filled = false;
            for _ in 0..ROUNDS {
                let Some(next) = filled(&text, variables) else { break };
                text = next;
                is_filled = !is_template(&text);
                if is_filled {
                    break;
                }
            }
            if is_filled && self.spend(text.len()).is_ok() {
                variables[index].1 = Node::of_text(text, place);
                continue;
            }
            let (reason, help) = match reads_environment(&text) {
                true => ("its value reads the environment, which an import does not", "write the value itself"),
                false => {
                    ("its value is a template with more than variables that have a value", "write the value itself")
                }
            };
            problem = Some(format!("{item} is a template"));
            self.findings.not_carried(&place, Remark::new(item, reason, help));
        }
        problem
    }
}

/// Returns how often a test runs, if that is a sensible number.
pub(super) fn repetitions(node: &Node) -> Option<u64> {
    const MOST: f64 = 10_000.0;
    let number = node.number().filter(|number| (1.0..=MOST).contains(number) && number.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    Some(number as u64)
}

/// Returns whether a text in a value is a template.
fn has_template(node: &Node) -> bool {
    match &node.value {
        Value::Text(text) => is_template(text),
        Value::List(items) => items.iter().any(has_template),
        Value::Map(entries) => entries.iter().any(|entry| entry.key == "$ref" || has_template(&entry.value)),
        _ => false,
    }
}

fn product(combinations: &[Vec<(String, Node)>], name: &str, values: &[Node]) -> Vec<Vec<(String, Node)>> {
    let with = |combination: &Vec<(String, Node)>, value: &Node| {
        let mut combination = combination.clone();
        combination.push((name.to_owned(), value.clone()));
        combination
    };
    combinations
        .iter()
        .flat_map(|combination| values.iter().map(|value| with(combination, value)).collect::<Vec<_>>())
        .collect()
}
