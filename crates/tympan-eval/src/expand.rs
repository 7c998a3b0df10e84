//! Expands the cases of a file: rows of tables and combinations of a matrix.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use tympan_core::spec::test_suite::{Expectation, TestCase};
use tympan_core::{Error, Kind, Result};

use crate::case::{Case, LoadedFile};
use crate::matrix::Combinations;
use crate::rows::{Row, Rows, fill, inputs_of};

/// The cases of a file, in order. Rows are read and combinations are made when they are needed, so a file needs the same
/// memory however many cases it has.
pub struct Cases {
    loaded: Arc<LoadedFile>,
    /// The unique names of the cases in the file.
    names: Vec<String>,
    /// The index of the next case in the file.
    next: usize,
    /// The rows of the current case.
    rows: Option<OpenRows>,
    /// The combinations of the current case or row that remain.
    combinations: Option<Combinations>,
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
        let names = unique_names(&loaded.file.suite.cases);
        Self { loaded, names, next: 0, rows: None, combinations: None }
    }

    /// Returns the next case of the file or the next row, without the matrix.
    fn next_plain(&mut self) -> Option<Result<(usize, Case)>> {
        if let Some(open) = &mut self.rows {
            let declared = &self.loaded.prompt.spec().inputs;
            match open.rows.next(&open.path, declared) {
                Some(row) => {
                    open.number += 1;
                    let (index, number) = (open.case, open.number);
                    let case = row.map_err(|error| self.located(index, error));
                    let case = case.and_then(|row| self.row_case(index, number, &row));
                    if case.is_err() {
                        // The other rows most likely have the same problem.
                        self.rows = None;
                    }
                    return Some(case.map(|case| (index, case)));
                }
                None => {
                    let empty = self.rows.take().filter(|open| open.number == 0);
                    if let Some(OpenRows { case, path, .. }) = empty {
                        let message = format_args!("expected at least one row in `{}`, found none", path.display());
                        let error = Error::new(Kind::InvalidTests, message);
                        return Some(Err(self.located(case, error.with_help("add a row, or remove the case"))));
                    }
                }
            }
        }
        let index = self.next;
        let case = self.loaded.file.suite.cases.get(index)?;
        self.next += 1;
        let Some(path) = &case.rows else {
            return Some(Ok((index, Case::new(&self.loaded, self.names[index].clone(), case))));
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

    fn row_case(&self, index: usize, number: usize, row: &Row) -> Result<Case> {
        let written = &self.loaded.file.suite.cases[index];
        let mut case = Case::new(&self.loaded, format!("{}[{number}]", self.names[index]), written);
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
}

impl Iterator for Cases {
    type Item = Result<Case>;

    fn next(&mut self) -> Option<Result<Case>> {
        loop {
            if let Some(case) = self.combinations.as_mut().and_then(Iterator::next) {
                return Some(Ok(case));
            }
            let (index, case) = match self.next_plain()? {
                Ok(found) => found,
                Err(error) => return Some(Err(error)),
            };
            let Some(matrix) = &self.loaded.file.suite.cases[index].matrix else { return Some(Ok(case)) };
            match Combinations::new(case, matrix) {
                Ok(combinations) => self.combinations = Some(combinations),
                Err(reason) => return Some(Err(self.located(index, Error::new(Kind::InvalidTests, reason)))),
            }
        }
    }
}

/// Returns a unique name for each case of a file. Rows and combinations add a suffix in brackets to the names of their
/// cases, and no other case has such a name, so theirs are unique as well.
fn unique_names(cases: &[TestCase]) -> Vec<String> {
    let written: Vec<_> = (1..).zip(cases).map(|(number, case)| written_name(number, case)).collect();
    let all: HashSet<&str> = written.iter().map(String::as_str).collect();
    let with_suffix: HashSet<&str> =
        written.iter().flat_map(|name| name.match_indices('[').map(|(end, _)| &name[..end])).collect();
    let (mut counts, mut taken, mut names) = (HashMap::new(), HashSet::new(), Vec::new());
    for (case, name) in cases.iter().zip(&written) {
        let is_expanded = case.rows.is_some() || case.matrix.is_some();
        let count = counts.entry(name).or_insert(0_usize);
        loop {
            *count += 1;
            let candidate = if *count == 1 { name.clone() } else { format!("{name} ({count})") };
            // The first case with a name keeps it, unless its rows could have the name of another case.
            let is_other = *count > 1 && all.contains(&*candidate);
            let is_ambiguous = is_expanded && with_suffix.contains(&*candidate);
            if !is_other && !is_ambiguous && taken.insert(candidate.clone()) {
                names.push(candidate);
                break;
            }
        }
    }
    names
}

fn written_name(number: usize, case: &TestCase) -> String {
    case.name.clone().unwrap_or_else(|| format!("case {number}"))
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
