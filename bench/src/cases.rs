//! Cases of `tympan test` that need no model: how many of them one core runs in a second.

use crate::Result;
use crate::data::Workload;
use crate::measure::{Effort, Timing, time};
use crate::row::{Entry, Operation};
use serde_json::json;
use std::convert::Infallible;
use std::fmt::Write;
use tympan::Runtime;
use tympan_eval::Verdict;
use tympan_eval::runner::{Job, Runner, RunnerOptions, jobs};

/// The rows of the table, each of which is a case.
const ROWS: u32 = 200;

/// What most suites assert: the shape of the conversation, a text, who wrote it, and its length.
const TESTS: &str = r#"
cases:
  - name: letters
    rows: rows.jsonl
    expect:
      - roles: [system, user, assistant, user]
      - message: { in: assistant, contains: "How good to hear from you" }
      - no_origin: { input: question, in: system }
      - tokens: { max: 400 }
"#;

/// The results.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// The time to read, run and decide [`ROWS`] cases.
    pub all: Timing,
}

impl Cases {
    /// Measures them, on one thread.
    pub fn measure(effort: Effort) -> Result<Cases> {
        let row = Entry::new("tympan", "test", run).row(&Workload::named("w1")?)?;
        Ok(Cases { all: time(&[row], effort, || {}).remove(0) })
    }

    /// Returns the number of cases that one core runs in a second.
    pub fn per_second(&self) -> f64 {
        f64::from(ROWS) * 1e9 / self.all.ns
    }
}

/// Runs a test file with a table, as `tympan test -j 1` does. Every row has another question.
fn run(workload: &Workload) -> Result<Operation> {
    let directory = tempfile::tempdir()?;
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
    let mut rows = String::new();
    for row in 0..ROWS {
        let mut inputs = workload.inputs.clone();
        inputs.insert("question".to_owned(), json!(format!("{} ({row})", inputs["question"].as_str().unwrap_or(""))));
        let _ = writeln!(rows, "{}", serde_json::Value::Object(inputs));
    }
    write("w1.prompty", &workload.prompty)?;
    write("rows.jsonl", &rows)?;
    write("w1.test.yaml", TESTS)?;
    let runner = Runner::new(Runtime::default(), RunnerOptions::default());
    let loaded = runner.load(&directory.path().join("w1.test.yaml"))?.ok_or("the test file has no tests")?;
    let run_all = move || {
        // The directory must exist for as long as the rows are read from it.
        let _ = directory.path();
        let passed = jobs(&loaded).filter(|job| match job {
            Job::Case(case) => runner.run_case(case).verdict == Verdict::Passed,
            Job::Finished(_) => false,
        });
        passed.count()
    };
    if run_all() != ROWS as usize {
        return Err("not all cases pass".into());
    }
    Ok(Operation::new(move || Ok::<_, Infallible>(run_all()), |_| None).unwrap_or_else(|never| match never {}))
}
