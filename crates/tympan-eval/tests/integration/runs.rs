//! Runs the cases of a test file: renders them, obtains their answers, and checks assertions about answers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value as Json;
use tympan_core::format::test_file;
use tympan_core::spec::test_suite::{CaseSettings, TestSuite};
use tympan_core::text::source::SourceFile;
use tympan_core::wire::response::Usage;
use tympan_core::{Inputs, Prompt};
use tympan_eval::answer::check::{AnsweredCase, CheckOptions, check_answer};
use tympan_eval::answer::{Answer, AnswerMode, AnswerOptions, ModelMessages, Obtained, Price, Question, obtain};
use tympan_eval::judge::Judges;
use tympan_eval::{Check, CheckStatus};
use tympan_runtime::net::io;
use tympan_runtime::{LoadOptions, Runtime, RuntimeOptions};

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/eval/answers")
}

/// Returns the price of `gpt-4o-mini`, and of no other model.
pub(crate) fn price() -> Price {
    #[expect(clippy::cast_precision_loss, reason = "there are few tokens")]
    let cost = |usage: &Usage| (usage.input_tokens as f64 * 0.15 + usage.output_tokens as f64 * 0.6) / 1e6;
    Arc::new(move |model, usage| (model == "gpt-4o-mini").then(|| cost(usage)))
}

/// Returns a runtime without an environment.
pub(crate) fn runtime() -> Runtime {
    runtime_with(|_| ())
}

pub(crate) fn runtime_with(change: impl FnOnce(&mut RuntimeOptions)) -> Runtime {
    let load = LoadOptions { env_vars: Some(Default::default()), ..LoadOptions::default() };
    let mut options = RuntimeOptions { load, ..RuntimeOptions::default() };
    change(&mut options);
    Runtime::new(options)
}

/// Parses the settings of a case.
pub(crate) fn settings(case: Json) -> CaseSettings {
    serde_json::from_value(case).expect("settings")
}

/// A prompt that was rendered.
pub(crate) struct Asked {
    pub(crate) runtime: Runtime,
    pub(crate) prompt: Prompt,
    pub(crate) inputs: Inputs,
    pub(crate) messages: ModelMessages,
    pub(crate) settings: CaseSettings,
    pub(crate) cassettes: PathBuf,
    /// The directory of the test file.
    pub(crate) directory: PathBuf,
}

impl Asked {
    pub(crate) fn new(runtime: &Runtime, prompt: Prompt, settings: CaseSettings, cassettes: &Path) -> Self {
        let (runtime, cassettes) = (runtime.clone(), cassettes.to_owned());
        let rendered = runtime.render(&prompt, &settings.inputs).expect("it renders");
        let messages = ModelMessages::new(&runtime, &prompt, &rendered).expect("it splits");
        let directory = fixtures();
        Self { runtime, prompt, inputs: settings.inputs.clone(), messages, settings, cassettes, directory }
    }

    pub(crate) fn question(&self, repetition: u32) -> Question<'_> {
        Question {
            runtime: &self.runtime,
            prompt: &self.prompt,
            inputs: &self.inputs,
            messages: &self.messages.messages,
            labels: self.messages.labels.as_deref(),
            guard: self.runtime.options().guard.as_ref(),
            settings: &self.settings,
            cassettes: &self.cassettes,
            repetition,
        }
    }

    pub(crate) fn obtain(&self, mode: AnswerMode, repetition: u32) -> Obtained {
        let (question, options) = (self.question(repetition), AnswerOptions::new(mode, Some(price())));
        // A runner obtains answers on several threads.
        let future: Pin<Box<dyn Future<Output = Obtained> + Send>> = Box::pin(obtain(&question, &options));
        io::wait(future)
    }

    pub(crate) fn answer(&self, mode: AnswerMode) -> Answer {
        match self.obtain(mode, 1) {
            Obtained::Answered(answer) => answer,
            other => panic!("expected an answer, found {other:?}"),
        }
    }

    /// Checks all assertions about an answer, in the order of the file.
    pub(crate) fn check(&self, answer: &Answer, judges: &Judges, mode: AnswerMode, allow_programs: bool) -> Vec<Check> {
        let question = self.question(1);
        let case = AnsweredCase { name: "case", directory: &self.directory, question: &question, answer };
        let options = CheckOptions { mode, allow_programs, judges };
        let check = |line, assertion| io::wait(check_answer(assertion, line, &case, &options));
        self.settings.expect.iter().enumerate().map(|(line, expected)| check(line, &expected.assertion)).collect()
    }
}

/// Parses a test file.
pub(crate) fn suite(path: &Path) -> TestSuite {
    let text = std::fs::read_to_string(path).expect("it can be read");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let syntax = test_file::syntax_of_name(&name).expect("a test file");
    let (suite, findings) = test_file::parse(&SourceFile::new(&*name, text), syntax);
    suite.unwrap_or_else(|| panic!("{name}: {findings:?}"))
}

/// Fills in the defaults of a file.
fn over(case: &CaseSettings, defaults: &CaseSettings) -> CaseSettings {
    let mut settings = case.clone();
    let mut inputs = defaults.inputs.clone();
    inputs.extend(settings.inputs);
    settings.inputs = inputs;
    settings.answer = settings.answer.or_else(|| defaults.answer.clone());
    settings.tools = settings.tools.or_else(|| defaults.tools.clone());
    settings
}

/// Runs all cases of a file. Returns their verdicts by name, and everything that was found.
pub(crate) fn run(file: &str) -> (Vec<(String, &'static str)>, String) {
    let directory = fixtures();
    let suite = suite(&directory.join(file));
    let (runtime, judges) = (runtime(), Judges::new(Some(price())));
    let cassettes = directory.join("cassettes");
    let (mut verdicts, mut report) = (Vec::new(), String::new());
    for case in &suite.cases {
        let name = case.name.clone().unwrap_or_default();
        let prompt = runtime.load(directory.join(suite.prompt.as_deref().expect("a prompt"))).expect("it loads");
        let asked = Asked::new(&runtime, prompt, over(&case.settings, &suite.defaults), &cassettes);
        let mut verdict = "passes";
        let mut note = |report: &mut String, found: &'static str, message: &str| {
            let is_worse = verdict == "passes" || found == "fails" && verdict == "not run";
            verdict = if is_worse { found } else { verdict };
            let message = message.replace(&directory.display().to_string(), "DIRECTORY");
            writeln!(report, "{name}\n  {message}").expect("it is written");
        };
        for repetition in 1..=asked.settings.repeat.unwrap_or(1) {
            match asked.obtain(AnswerMode::Replay, repetition) {
                Obtained::Answered(answer) => {
                    for check in asked.check(&answer, &judges, AnswerMode::Replay, true) {
                        let message = check.message.as_deref().unwrap_or_default();
                        match check.status {
                            CheckStatus::Passed => {}
                            CheckStatus::Failed => note(&mut report, "fails", message),
                            CheckStatus::NotRun => note(&mut report, "not run", message),
                        }
                        if let Some(score) = check.score {
                            writeln!(report, "{name}\n  score {score:.3}").expect("it is written");
                        }
                    }
                }
                Obtained::Missing(reason) => note(&mut report, "not run", &reason),
                Obtained::Failed(error) => {
                    let help = error.help().map_or_else(String::new, |help| format!(" (help: {help})"));
                    note(&mut report, "fails", &format!("{}{help}", error.message()));
                }
            }
        }
        verdicts.push((name, verdict));
    }
    (verdicts, report)
}
