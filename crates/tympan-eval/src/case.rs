//! Cases: the settings of one test, with all defaults filled in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tympan_core::json::canonical_json;
use tympan_core::spec::test_suite::{AnswerSource, Assertion, CaseSettings, Judge, MessageSelector, TestCase};
use tympan_core::text::hash::sha256_hex;
use tympan_core::{Inputs, Prompt};
use tympan_runtime::file::read;

use crate::file::TestFile;
use crate::result::CaseResult;

/// The maximum size of a rubric and of a calibration set, in bytes.
const MAX_JUDGE_FILE: u64 = 16 << 20;

/// A test file together with its prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedFile {
    /// The test file.
    pub file: TestFile,
    /// The prompt.
    pub prompt: Arc<Prompt>,
    /// A hash of the prompt: what a model sees, and the settings.
    pub prompt_hash: String,
}

impl LoadedFile {
    /// Combines a test file with its prompt.
    pub fn new(file: TestFile, prompt: Arc<Prompt>) -> Self {
        let settings = prompt.settings_hashes().into_iter().map(|(name, hash)| json!([name, hash]));
        let all = json!([prompt.definition_hash(), settings.collect::<Vec<_>>()]);
        Self { file, prompt, prompt_hash: sha256_hex(canonical_json(all)) }
    }
}

/// One test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// The test file and the prompt.
    pub loaded: Arc<LoadedFile>,
    /// The name.
    pub name: String,
    /// The line in the test file, counted from 1.
    pub line: usize,
    /// The reason why the case is skipped.
    pub skip: Option<String>,
    /// The settings, with the defaults of the file. The assertions of the case follow those of the defaults.
    pub settings: CaseSettings,
}

impl Case {
    /// Fills in the defaults of a file.
    pub(crate) fn new(loaded: &Arc<LoadedFile>, name: String, case: &TestCase) -> Self {
        let settings = loaded.file.suite.defaults.overridden(&case.settings);
        Self {
            loaded: loaded.clone(),
            name,
            line: loaded.file.line(case.span.start),
            skip: case.skip.clone(),
            settings,
        }
    }

    /// Returns the prompt.
    pub fn prompt(&self) -> &Prompt {
        &self.loaded.prompt
    }

    /// Returns the inputs.
    pub fn inputs(&self) -> &Inputs {
        &self.settings.inputs
    }

    /// Returns how often the model is asked.
    pub fn repeat(&self) -> u32 {
        self.settings.repeat.unwrap_or(1)
    }

    /// Returns the share of the repetitions that must pass.
    pub fn pass(&self) -> f64 {
        self.settings.pass.unwrap_or(1.0)
    }

    /// Returns the name of the case, unique among all cases of a run.
    pub fn id(&self) -> String {
        format!("{}::{}", self.loaded.file.path.display(), self.name)
    }

    /// Returns whether the case needs a model's answer.
    pub fn needs_answer(&self) -> bool {
        self.settings.expect.iter().any(|expectation| expectation.assertion.needs_answer())
    }

    /// Returns the judges of the case, in the order of its assertions.
    pub fn judges(&self) -> impl Iterator<Item = &Judge> {
        self.settings.expect.iter().filter_map(|expectation| {
            let mut assertion = &expectation.assertion;
            while let Assertion::Not(inner) = assertion {
                assertion = inner;
            }
            match assertion {
                Assertion::Judge(judge) => Some(judge),
                _ => None,
            }
        })
    }

    /// Returns a hash of what decides about the result: the prompt, the case, and the files of its judges.
    pub fn hash(&self) -> String {
        let settings = &self.settings;
        let answer = match &settings.answer {
            Some(AnswerSource::Fixed { text }) => json!({ "text": text }),
            Some(AnswerSource::Echo) => json!("echo"),
            _ => Json::Null,
        };
        let expect: Vec<_> = settings.expect.iter().map(|expectation| &expectation.json).collect();
        let all = json!({
            "prompt": self.loaded.prompt_hash,
            "inputs": settings.inputs,
            "variant": settings.variant,
            "provider": settings.provider,
            "model": settings.model,
            "guard": settings.guard,
            "strict": settings.strict,
            "lenient": settings.lenient,
            "seed": settings.seed,
            "answer": answer,
            "tools": settings.tools,
            "repeat": self.repeat(),
            "pass": self.pass(),
            "expect": expect,
            "judges": self.judges().map(|judge| self.judge_hashes(judge)).collect::<Json>(),
        });
        sha256_hex(canonical_json(all))
    }

    /// Returns hashes of the files that decide about a judge. A file that cannot be read has none.
    fn judge_hashes(&self, judge: &Judge) -> Json {
        let files = [Some(&judge.rubric), judge.calibration.as_ref()].into_iter().flatten();
        let hash = |path: &String| {
            let path = self.loaded.file.resolve(path).ok()?;
            let text = read::open(&path).and_then(|file| read::text(file, MAX_JUDGE_FILE)).ok()?;
            Some(sha256_hex(text))
        };
        files.map(|path| json!(hash(path))).collect()
    }

    /// Returns a result without a verdict.
    pub(crate) fn result(&self) -> CaseResult {
        CaseResult {
            id: self.id(),
            file: self.loaded.file.path.display().to_string(),
            line: self.line,
            name: self.name.clone(),
            prompt: self.loaded.file.prompt.display().to_string(),
            variant: self.settings.variant.clone(),
            hash: self.hash(),
            required: self.pass(),
            ..CaseResult::default()
        }
    }

    /// Returns the path of a snapshot of this case. The messages of each place have a snapshot of their own.
    pub fn snapshot_path(&self, place: Option<MessageSelector>) -> PathBuf {
        let file = &self.loaded.file;
        let place = match place {
            None => String::new(),
            Some(MessageSelector::Role(role)) => format!(".{}", role.as_str()),
            Some(MessageSelector::Index(index)) => format!(".{index}"),
        };
        let name = format!("{}{place}.txt", slug(&self.name));
        // Messages name files without `./`.
        let directory = Some(file.directory()).filter(|directory| *directory != Path::new("."));
        directory.unwrap_or(Path::new("")).join("snapshots").join(file.stem()).join(name)
    }
}

/// The greatest length of a file name that is made from a name.
const MAX_SLUG: usize = 60;

/// Makes a file name from a name. Names that differ only in other characters get different file names.
fn slug(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' };
    let words: String = name.chars().map(plain).collect();
    let words: Vec<_> = words.split('-').filter(|word| !word.is_empty()).collect();
    let mut slug = words.join("-");
    // Other names could become the same.
    let is_exact = slug.replace('-', " ") == name && slug.len() <= MAX_SLUG;
    slug.truncate(MAX_SLUG);
    if is_exact { slug } else { format!("{slug}-{}", &sha256_hex(name)[..8]) }
}
