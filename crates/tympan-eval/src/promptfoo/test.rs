//! Tests: those of the configuration, of files, of tables and of scenarios.

use super::Importer;
use super::files::{SCHEME, Unusable, ending, is_program};
use super::finding::Remark;
use super::node::{Node, Place, Value};
use super::provider::shown;
use super::table::test_of_row;

/// The maximum number of tests.
pub(super) const MAX_TESTS: usize = 5_000;

/// The maximum number of values in all tests, where the defaults count for each test.
const MAX_VALUES: usize = 1_000_000;

impl Importer<'_> {
    /// Reads all tests, each with the defaults of the configuration.
    pub(super) fn tests(&mut self, root: &Node) -> Vec<Node> {
        let mut tests = Vec::new();
        if let Some(node) = root.get("tests") {
            node.one_or_many().iter().for_each(|item| self.add_tests(item, &mut tests));
        }
        if let Some(node) = root.get("scenarios") {
            node.one_or_many().iter().for_each(|item| self.add_scenario(item, true, &mut tests));
        }
        if root.get("tests").is_none() && root.get("scenarios").is_none() {
            // promptfoo runs each prompt once.
            tests.push(Node::of_map([], root.place.clone()));
        }
        if tests.len() > MAX_TESTS {
            let reason = format!("there are {} tests, and only the first {MAX_TESTS} were read", tests.len());
            let help = "split the configuration, or let a table be the `rows` of a case";
            self.findings.not_carried(&root.place, Remark::new("`tests`", reason, help));
            tests.truncate(MAX_TESTS);
        }
        let defaults = self.default_test(root);
        self.with_defaults(&defaults, &tests)
    }

    fn default_test(&mut self, root: &Node) -> Node {
        let empty = || Node::of_map([], root.place.clone());
        let Some(node) = root.get("defaultTest") else { return empty() };
        let Some(path) = node.text() else { return self.with_vars(node) };
        match self.files.parse(path.strip_prefix(SCHEME).unwrap_or(path)) {
            Ok(defaults) => self.with_vars(&defaults),
            Err(unusable) => {
                self.refuse_file(&node.place, "`defaultTest`", unusable);
                empty()
            }
        }
    }

    /// Reads an item of the list of tests: a test, or a file with tests.
    fn add_tests(&mut self, item: &Node, tests: &mut Vec<Node>) {
        if let Some(path) = item.text() {
            let item_name = format!("tests `{}`", shown(path));
            if let Err(unusable) = self.add_test_file(path, item, tests) {
                self.refuse_file(&item.place, &item_name, unusable);
            }
            return;
        }
        let generator = item.get("path").and_then(Node::text);
        if let Some(path) = generator.filter(|_| item.get("vars").is_none() && item.get("assert").is_none()) {
            let item_name = format!("tests `{}`", shown(path));
            return self.refuse_file(&item.place, &item_name, program());
        }
        if !item.is_map() {
            let reason = format!("expected a map, or the name of a file, found {}", item.describe());
            let remark = Remark::new("test", reason, "write the test as a map with `vars` and `assert`");
            return self.findings.not_carried(&item.place, remark);
        }
        let test = self.with_vars(item);
        tests.push(test);
    }

    fn add_test_file(&mut self, path: &str, item: &Node, tests: &mut Vec<Node>) -> Result<(), Unusable> {
        let local = path.strip_prefix(SCHEME).unwrap_or(path);
        if is_program(local) {
            return Err(program());
        }
        if local.contains("://") {
            return Err(Unusable {
                reason: "it is stored in another service".to_owned(),
                help: "save the tests as a file beside the configuration, and name that".to_owned(),
                is_missing: false,
            });
        }
        match ending(local).as_str() {
            "csv" | "tsv" => self.add_table(local, tests),
            "jsonl" => {
                let source = self.files.read(local)?;
                for (number, line) in source.text().lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                    let place = Place { file: source.name().into(), line: number + 1 };
                    let parsed = Node::parse_json_line(line, &place).map_err(|reason| Unusable {
                        reason: format!("{local}, line {}: {reason}", number + 1),
                        help: "correct the line".to_owned(),
                        is_missing: false,
                    })?;
                    self.add_tests(&parsed, tests);
                }
                Ok(())
            }
            _ => {
                let parsed = self.files.parse(local)?;
                for test in parsed.one_or_many() {
                    match test.text() {
                        // A file of tests that names further files could name itself.
                        Some(_) => self.refuse_file(
                            &test.place,
                            "file in a file of tests",
                            Unusable {
                                reason: "the import reads only files that the configuration names".to_owned(),
                                help: "name the file in the configuration".to_owned(),
                                is_missing: false,
                            },
                        ),
                        None => self.add_tests(test, tests),
                    }
                }
                if parsed.is_null() {
                    let remark = Remark::new("tests", "the file is empty", "remove it from the configuration");
                    self.findings.note(&item.place, remark);
                }
                Ok(())
            }
        }
    }

    /// Reads the tests of a table.
    fn add_table(&mut self, path: &str, tests: &mut Vec<Node>) -> Result<(), Unusable> {
        let source = self.files.read(path)?;
        let broken = |error: &csv::Error| Unusable {
            reason: format!("{path}: {error}"),
            help: "correct the table".to_owned(),
            is_missing: false,
        };
        let text = source.text().strip_prefix('\u{feff}').unwrap_or(source.text());
        let delimiter = if ending(path) == "tsv" { b'\t' } else { b',' };
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
        let columns: Vec<_> =
            reader.headers().map_err(|error| broken(&error))?.iter().map(|name| name.trim().to_owned()).collect();
        let file: std::sync::Arc<str> = source.name().into();
        for (number, record) in reader.records().enumerate() {
            let record = record.map_err(|error| broken(&error))?;
            let line = record.position().map_or(1, |position| usize::try_from(position.line()).unwrap_or(usize::MAX));
            let place = Place { file: std::sync::Arc::clone(&file), line };
            let cells = columns.iter().map(String::as_str).zip(record.iter());
            tests.push(test_of_row(cells, number + 1, &place, &mut self.findings));
            if tests.len() > MAX_TESTS {
                break;
            }
        }
        Ok(())
    }

    /// Reads a scenario: tests that run with each of several sets of variables.
    fn add_scenario(&mut self, item: &Node, may_be_file: bool, tests: &mut Vec<Node>) {
        if let Some(path) = item.text().filter(|_| may_be_file) {
            match self.files.parse(path.strip_prefix(SCHEME).unwrap_or(path)) {
                Ok(list) => list.one_or_many().iter().for_each(|item| self.add_scenario(item, false, tests)),
                Err(unusable) => self.refuse_file(&item.place, &format!("scenario `{}`", shown(path)), unusable),
            }
            return;
        }
        let Some(configs) = item.get("config").filter(|_| item.is_map()) else {
            let remark =
                Remark::new("scenario", "expected a map with `config` and `tests`", "write the scenario as a map");
            return self.findings.not_carried(&item.place, remark);
        };
        let mut own = Vec::new();
        match item.get("tests") {
            Some(node) => node.one_or_many().iter().for_each(|item| self.add_tests(item, &mut own)),
            None => own.push(Node::of_map([], item.place.clone())),
        }
        for config in configs.one_or_many() {
            let config = match config.text() {
                Some(path) => match self.files.parse(path.strip_prefix(SCHEME).unwrap_or(path)) {
                    Ok(config) => config,
                    Err(unusable) => {
                        self.refuse_file(&config.place, &format!("scenario `{}`", shown(path)), unusable);
                        continue;
                    }
                },
                None => config.clone(),
            };
            for config in config.one_or_many() {
                let config = self.with_vars(config);
                for test in &own {
                    if tests.len() > MAX_TESTS {
                        return;
                    }
                    tests.push(combined(&config, test));
                }
            }
        }
    }

    /// Reads the variables of a test from the files that it names.
    fn with_vars(&mut self, test: &Node) -> Node {
        let Some(vars) = test.get("vars").filter(|vars| !vars.is_map()) else { return test.clone() };
        let mut entries = Vec::new();
        for item in vars.one_or_many() {
            let Some(path) = item.text() else { continue };
            let path = path.strip_prefix(SCHEME).unwrap_or(path);
            match self.files.parse(path) {
                Ok(map) => entries.extend(map.entries().iter().map(|entry| (entry.key.clone(), entry.value.clone()))),
                Err(unusable) => self.refuse_file(&item.place, "`vars`", unusable),
            }
        }
        let (mut whole, vars) = (test.clone(), Node::of_map(entries, vars.place.clone()));
        whole.set("vars", vars);
        whole
    }

    /// Adds the defaults to each test.
    fn with_defaults(&mut self, defaults: &Node, tests: &[Node]) -> Vec<Node> {
        let each = defaults.size();
        let (mut budget, mut whole) = (MAX_VALUES, Vec::new());
        for test in tests {
            budget = budget.saturating_sub(each + test.size());
            if budget == 0 {
                let reason = format!("the tests have more than {MAX_VALUES} values, and the rest was not read");
                self.findings.not_carried(&test.place, Remark::new("`tests`", reason, "split the configuration"));
                break;
            }
            whole.push(with_defaults(defaults, test));
        }
        whole
    }

    fn refuse_file(&mut self, place: &Place, item: &str, unusable: Unusable) {
        self.findings.not_carried(place, Remark::new(item, unusable.reason, unusable.help));
    }
}

fn program() -> Unusable {
    Unusable {
        reason: "a program makes the tests, and an import runs none".to_owned(),
        help: "let the program write a CSV or JSON Lines file, and name that".to_owned(),
        is_missing: false,
    }
}

/// Adds the defaults to a test.
fn with_defaults(defaults: &Node, test: &Node) -> Node {
    let options = merged(defaults.get("options"), test.get("options"), &test.place);
    let keeps_asserts = !options.get("disableDefaultAsserts").is_some_and(Node::is_true);
    let own = test.get("assert").map_or(&[][..], Node::items);
    let inherited = defaults.get("assert").filter(|_| keeps_asserts).map_or(&[][..], Node::items);
    let asserts = [inherited, own].concat();
    let mut whole = test.clone();
    for key in ["threshold", "prompts", "provider", "providers", "assertScoringFunction"] {
        if let (None, Some(value)) = (test.get(key), defaults.get(key)) {
            whole.set(key, value.clone());
        }
    }
    whole.set("vars", merged(defaults.get("vars"), test.get("vars"), &test.place));
    whole.set("options", options);
    whole.set("assert", Node { value: Value::List(asserts), place: test.place.clone() });
    whole
}

/// Combines the variables of a scenario with one of its tests.
fn combined(config: &Node, test: &Node) -> Node {
    let list = |node: &Node| node.get("assert").map_or(&[][..], Node::items).to_vec();
    let asserts = [list(config), list(test)].concat();
    let mut whole = merged(Some(config), Some(test), &test.place);
    for key in ["vars", "options"] {
        whole.set(key, merged(config.get(key), test.get(key), &test.place));
    }
    whole.set("assert", Node { value: Value::List(asserts), place: test.place.clone() });
    Node { place: test.place.clone(), ..whole }
}

/// Merges two maps. Keys of the second one win.
fn merged(first: Option<&Node>, second: Option<&Node>, place: &Place) -> Node {
    let mut whole = first.filter(|node| node.is_map()).cloned().unwrap_or_else(|| Node::of_map([], place.clone()));
    for entry in second.map_or(&[][..], Node::entries) {
        whole.set(&entry.key, entry.value.clone());
    }
    whole
}
