//! Downloads the results of batches, and writes the answers.

use std::fs::File;

use tympan_core::{Error, Kind, Result};
use tympan_runtime::net::client::ByteStream;

use super::join::Join;
use super::requests::Requests;
use super::{BatchJob, OnProgress, Phase, answers_name, cannot_write};
use crate::api::{RowError, RowState};
use crate::manifest::{FileState, JobFile, Submission};

/// How often an interrupted download is started.
const DOWNLOADS: u32 = 3;
/// The most bytes of results per request, besides one answer of any length.
const BYTES_PER_REQUEST: u64 = 4 << 20;

impl BatchJob<'_> {
    /// Collects the answers of all batches that have ended.
    ///
    /// Each file of requests gets a file of answers, with one line for each request, in the order of the rows. Answers
    /// to other requests are reported and left out. If a request has several different answers, the first complete one
    /// is taken.
    ///
    /// # Errors
    /// Returns an error if results cannot be downloaded completely, or if a file cannot be written. The next call
    /// continues.
    pub fn collect(&self, progress: OnProgress<'_>) -> Result<()> {
        for mut file in self.files()? {
            if file.state == FileState::Ended {
                progress(self.progress(Phase::Collect, |state| state == FileState::Collected)?);
                let submission = self.current(&file)?;
                self.collect_file(&mut file, submission)?;
            }
        }
        progress(self.progress(Phase::Collect, |state| state == FileState::Collected)?);
        Ok(())
    }

    fn collect_file(&self, file: &mut JobFile, mut submission: Submission) -> Result<()> {
        let rows = file.first_row..file.end_row;
        let requests = Requests::read(&self.request_file(&submission), &self.info.job, rows, submission.requests)?;
        let name = answers_name(file.number);
        let (answers, part) = (self.directory.join(&name), self.directory.join(format!("{name}.part")));
        let join = self.download(&requests, &submission, &name)?;
        let previous = Some(answers.as_path()).filter(|_| submission.attempt > 1);
        let (exceptions, findings) = join.finish(previous, &without_answer(&submission), &part)?;
        std::fs::rename(&part, &answers).map_err(|error| cannot_write(&answers, &error))?;
        sync_directory(&self.directory);

        submission.report = Some(serde_json::to_string(&findings).unwrap_or_default());
        file.state = FileState::Collected;
        self.manifest.save_results(file, &submission, &exceptions)
    }

    /// Downloads the results of a batch. An interrupted download is started again.
    fn download<'j>(&'j self, requests: &'j Requests, submission: &Submission, name: &str) -> Result<Join<'j>> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.download_once(requests, submission, name) {
                Err(error) if error.kind() == Kind::Truncated && tries < DOWNLOADS => {}
                other => return other,
            }
        }
    }

    fn download_once<'j>(&'j self, requests: &'j Requests, submission: &Submission, name: &str) -> Result<Join<'j>> {
        let spool = self.directory.join(format!("{name}.spool"));
        let protocol = self.downloads.protocol();
        let mut join = Join::new(spool, &self.info.job, protocol, submission.attempt, requests)?;
        let batch = submission.batch.as_deref().unwrap_or_default();
        let most_bytes = self.longest_answer.saturating_add(submission.requests.saturating_mul(BYTES_PER_REQUEST));
        for path in self.api.results(batch, submission.output.as_deref(), submission.errors.as_deref()) {
            let lines = Lines { stream: self.downloads.download(&path, most_bytes)?, longest: self.longest_answer };
            lines.read(&mut |line| match line {
                Line::Complete(line) => {
                    if !join.add(&*self.api, line)? {
                        join.findings.malformed += 1;
                        join.findings.note(format!("line {} of the results cannot be read", join.findings.lines));
                    }
                    Ok(())
                }
                // A line that was cut off cannot be read. Some servers write no line break at the end.
                Line::Last(line) => match join.add(&*self.api, line)? {
                    true => Ok(()),
                    false => Err(Error::new(Kind::Truncated, "the results end within a line")
                        .with_help("call `tympan batch collect` again")),
                },
                Line::TooLong => {
                    join.findings.lines += 1;
                    join.findings.too_long += 1;
                    let most = self.longest_answer;
                    join.findings.note(format!("line {} has more than {most} bytes", join.findings.lines));
                    Ok(())
                }
            })?;
        }
        Ok(join)
    }
}

/// Returns what became of requests that the results do not mention.
fn without_answer(submission: &Submission) -> RowError {
    let (state, message) = match submission.status.as_str() {
        "expired" => (RowState::Expired, "the batch expired before the request was answered"),
        "cancelled" => (RowState::Cancelled, "the batch was cancelled before the request was answered"),
        "failed" => (RowState::Failed, submission.error.as_deref().unwrap_or("the batch failed")),
        _ => (RowState::Missing, "the results have no answer to the request"),
    };
    RowError { state, code: None, message: message.to_owned(), status: None }
}

/// The lines of a response, as they arrive.
struct Lines {
    stream: ByteStream,
    /// The most bytes of a line.
    longest: u64,
}

enum Line<'l> {
    Complete(&'l [u8]),
    /// The last line, without a line break.
    Last(&'l [u8]),
    TooLong,
}

impl Lines {
    fn read(mut self, on_line: &mut dyn FnMut(Line<'_>) -> Result<()>) -> Result<()> {
        let (mut line, mut is_skipped) = (Vec::new(), false);
        while let Some(chunk) = self.stream.wait_next() {
            let chunk = chunk?;
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                let is_end = piece.ends_with(b"\n");
                if (line.len() + piece.len()) as u64 > self.longest && !is_skipped {
                    is_skipped = true;
                    line = Vec::new();
                    on_line(Line::TooLong)?;
                }
                match (is_skipped, is_end) {
                    (true, end) => is_skipped = !end,
                    (false, false) => line.extend_from_slice(piece),
                    (false, true) if line.is_empty() => on_line(Line::Complete(piece))?,
                    (false, true) => {
                        line.extend_from_slice(piece);
                        on_line(Line::Complete(&line))?;
                        line.clear();
                    }
                }
            }
        }
        if line.is_empty() { Ok(()) } else { on_line(Line::Last(&line)) }
    }
}

/// Makes the new name of a file durable. Not all systems can, and without it a file is only written again.
pub(super) fn sync_directory(directory: &std::path::Path) {
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
}
