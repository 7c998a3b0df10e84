//! Expands the cases of a file: rows of tables and combinations of a matrix.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use tympan_core::spec::test_suite::{Expectation, Matrix, TestCase};
use tympan_core::{Error, Kind, Result};

use crate::case::{Case, LoadedFile};
use crate::rows::{Row, Rows, fill, inputs_of};

/// The maximum number of combinations of a matrix.
const MAX_COMBINATIONS: usize = 100_000;

/// The cases of a file, in order. Rows are read when they are needed.
pub struct Cases {
    loaded: Arc<LoadedFile>,
    /// The index of the next case in the file.
    next: usize,
    /// The rows of the current case.
    rows: Option<OpenRows>,
    /// The combinations of the current case or row that remain.
    combinations: Vec<Case>,
    /// How often each name was used, for names that are unique.
    names: HashMap<String, usize>,
}

struct OpenRows {
    case: usize,
    path: PathBuf,
    rows: Rows,
    number: usize,
}

impl Cases {
    /// Creates the cases of a file.
    pub fn new(loaded: Arc<LoadedFile>) -> Self {
        Self { loaded, next: 0, rows: None, combinations: Vec::new(), names: HashMap::new() }
    }

    /// Returns the next case of the file or the next row, without the matrix.
    fn next_plain(&mut self) -> Option<Result<(usize, Case)>> {
        if let Some(open) = &mut self.rows {
            let declared = &self.loaded.prompt.spec().inputs;
            match open.rows.next(&open.path, declared) {
                Some(row) => {
                    open.number += 1;
                    let (index, number) = (open.case, open.number);
                    let case = row.and_then(|row| self.row_case(index, number, &row));
                    if case.is_err() {
                        // The other rows most likely have the same problem.
                        self.rows = None;
                    }
                    return Some(case.map(|case| (index, case)));
                }
                None => self.rows = None,
            }
        }
        let index = self.next;
        let case = self.loaded.file.suite.cases.get(index)?;
        self.next += 1;
        let Some(path) = &case.rows else {
            return Some(Ok((index, Case::new(&self.loaded, self.name(index), case))));
        };
        let opened = self.loaded.file.resolve(path).and_then(|path| Ok((Rows::open(&path)?, path)));
        match opened {
            Ok((rows, path)) => {
                self.rows = Some(OpenRows { case: index, path, rows, number: 0 });
                self.next_plain()
            }
            Err(error) => Some(Err(self.located(index, error))),
        }
    }

    /// Returns the name of a case in the file.
    fn name(&self, index: usize) -> String {
        let name = self.loaded.file.suite.cases[index].name.clone();
        name.unwrap_or_else(|| format!("case {}", index + 1))
    }

    fn row_case(&self, index: usize, number: usize, row: &Row) -> Result<Case> {
        let written = &self.loaded.file.suite.cases[index];
        let mut case = Case::new(&self.loaded, format!("{}[{number}]", self.name(index)), written);
        let mut inputs = Json::Object(case.settings.inputs);
        let filled = fill(&mut inputs, row).and_then(|()| fill_all(&mut case.settings.expect, row));
        filled.map_err(|reason| self.located(index, Error::new(Kind::InvalidTests, reason)))?;
        let Json::Object(mut inputs) = inputs else { unreachable!("filling keeps maps") };
        inputs.extend(inputs_of(row, &self.loaded.prompt.spec().inputs));
        case.settings.inputs = inputs;
        Ok(case)
    }

    /// Adds the position of a case to an error.
    fn located(&self, index: usize, error: Error) -> Error {
        let file = &self.loaded.file;
        error.at(file.suite.cases[index].span).in_source(&file.source, 0)
    }

    /// Makes the name of a case unique.
    fn unique(&mut self, mut case: Case) -> Case {
        // Rows have numbers, so counting their names would only cost memory.
        if self.rows.is_none() {
            let count = self.names.entry(case.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                case.name = format!("{} ({count})", case.name);
            }
        }
        case
    }
}

impl Iterator for Cases {
    type Item = Result<Case>;

    fn next(&mut self) -> Option<Result<Case>> {
        loop {
            if let Some(case) = self.combinations.pop() {
                return Some(Ok(self.unique(case)));
            }
            let (index, case) = match self.next_plain()? {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            let written: &TestCase = &self.loaded.file.suite.cases[index];
            match &written.matrix {
                None => return Some(Ok(self.unique(case))),
                Some(matrix) => match combinations(&case, matrix) {
                    Ok(combined) => {
                        self.combinations = combined;
                        self.combinations.reverse();
                    }
                    Err(reason) => {
                        let error = Error::new(Kind::InvalidTests, reason);
                        return Some(Err(self.located(index, error)));
                    }
                },
            }
        }
    }
}

fn fill_all(expectations: &mut [Expectation], row: &Row) -> Result<(), String> {
    for expectation in expectations {
        let mut json = expectation.json.clone();
        fill(&mut json, row)?;
        if json != expectation.json {
            *expectation = Expectation::from_json(json, expectation.span).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Returns a case for each combination of values.
fn combinations(case: &Case, matrix: &Matrix) -> Result<Vec<Case>, String> {
    let lists = matrix.inputs.values().filter_map(Json::as_array).map(Vec::len);
    let lists = lists.chain([matrix.variants.len().max(1), matrix.models.len().max(1)]);
    let count = lists.fold(1_usize, usize::saturating_mul);
    if count > MAX_COMBINATIONS {
        return Err(format!("the matrix has {count} combinations; the maximum is {MAX_COMBINATIONS}"));
    }
    let mut combined = vec![(case.clone(), Vec::<String>::new())];
    for (name, values) in &matrix.inputs {
        combined = product(&combined, values.as_array().map_or(&[], Vec::as_slice), |case, value| {
            case.settings.inputs.insert(name.clone(), value.clone());
            format!("{name}={}", label(value))
        });
    }
    if !matrix.variants.is_empty() {
        combined = product(&combined, &matrix.variants, |case, variant| {
            case.settings.variant = Some(variant.clone());
            variant.clone()
        });
    }
    if !matrix.models.is_empty() {
        combined = product(&combined, &matrix.models, |case, model| {
            match model.split_once('/') {
                Some((provider, model)) => {
                    (case.settings.provider, case.settings.model) = (Some(provider.to_owned()), Some(model.to_owned()));
                }
                None => case.settings.model = Some(model.clone()),
            }
            model.clone()
        });
    }
    let named = combined.into_iter().map(|(mut case, labels)| {
        case.name = format!("{}[{}]", case.name, labels.join(", "));
        case
    });
    Ok(named.collect())
}

fn product<T>(
    cases: &[(Case, Vec<String>)],
    values: &[T],
    apply: impl Fn(&mut Case, &T) -> String,
) -> Vec<(Case, Vec<String>)> {
    let combine = |(case, labels): &(Case, Vec<String>), value: &T| {
        let (mut case, mut labels) = (case.clone(), labels.clone());
        labels.push(apply(&mut case, value));
        (case, labels)
    };
    cases
        .iter()
        .flat_map(|case| values.iter().map(move |value| (case, value)))
        .map(|(case, value)| combine(case, value))
        .collect()
}

/// The greatest length of a value in a name, in characters.
const MAX_LABEL: usize = 24;

fn label(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let short: String = text.chars().take(MAX_LABEL).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
