//! Test files of prompts, and their cases.

use std::sync::Arc;

use napi_derive::napi;
use serde::Deserialize;
use tympan::eval::{CaseResult, CollectOptions, CollectedFile, find_test_files, report};

use crate::border::{guarded, read, written};
use crate::host::Listener;
use crate::runtime::NativeRuntime;
use crate::work::{Made, Work};

/// The cases of a test file, or of a prompt file that contains tests.
#[napi]
pub struct NativeTestFile {
    file: Arc<CollectedFile>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    live: bool,
    record: bool,
    accept: bool,
    allow_programs: bool,
}

/// Returns the files that contain tests, as JSON. Directories are searched.
#[napi]
pub fn test_files(paths: Vec<String>) -> napi::Result<String> {
    guarded(|| written(&find_test_files(paths)?))
}

/// Reads a file and lists its cases. The options are JSON. Returns `None` if it is a prompt file without tests.
#[napi]
pub fn load_test_file(runtime: &NativeRuntime, path: String, options: String) -> napi::Result<Option<NativeTestFile>> {
    guarded(|| {
        let Options { live, record, accept, allow_programs } = read("options", &options)?;
        let mut options = CollectOptions::default();
        (options.live, options.record, options.accept) = (live, record, accept);
        options.allow_programs = allow_programs;
        let loaded = CollectedFile::load(path, &runtime.runtime, options)?;
        Ok(loaded.map(|file| NativeTestFile { file: Arc::new(file) }))
    })
}

/// Describes why a case did not pass. The result of the case and the description are JSON.
#[napi]
pub fn describe_case(result: String) -> napi::Result<String> {
    guarded(|| written(&report::describe(&read::<CaseResult>("result", &result)?)))
}

#[napi]
impl NativeTestFile {
    /// Returns the cases in order, as JSON.
    #[napi]
    pub fn cases(&self) -> napi::Result<String> {
        guarded(|| written(&self.file.cases()))
    }

    /// Runs the case with this index on another thread. Its result is JSON.
    #[napi]
    pub fn run(&self, index: u32, listener: Listener) -> Work {
        let file = self.file.clone();
        Work::compute(listener, move || written(&file.run(index as usize)?).map(Made::Text))
    }
}
