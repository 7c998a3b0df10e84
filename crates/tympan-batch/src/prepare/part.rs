//! The files of a job, written one after the other.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tympan_core::{Error, Kind, Result};

use super::finish::{Completed, Finisher};
use super::resume::{Start, open_rejects, state_of};
use super::tokens::ExactCount;
use super::{PrepareOptions, Progress, REJECTS, Reject, cannot_write};
use crate::limits::{Limits, Target};
use crate::manifest::{Exception, JobFile, Manifest};

/// What the names of all files begin with.
pub(super) const PREFIX: &str = "requests-";

const BUFFER: usize = 1 << 20;

/// Consecutive rows, rendered.
#[derive(Default)]
pub(super) struct Piece {
    /// The lines of the rows, one after the other.
    pub(super) lines: Vec<u8>,
    /// The row of each line, and the end of the line.
    pub(super) ends: Vec<(u64, usize)>,
    /// A table of rows, instead of lines, and its first row.
    pub(super) table: Option<(u64, RecordBatch)>,
    /// The rejected rows.
    pub(super) rejects: Vec<Reject>,
    /// The index of the file that the rows come from.
    pub(super) source: usize,
    /// The row after the last.
    pub(super) end_row: u64,
}

/// Writes pieces, in order, to files of limited size.
pub(super) struct Parts {
    directory: PathBuf,
    /// Completes files; `None` after a failure.
    finisher: Option<Finisher>,
    /// The names of the files of rows, for reports.
    sources: Vec<String>,
    limits: Limits,
    target: Target,
    cache_order: bool,
    max_rejects: Option<u64>,
    /// Counts tokens, if they are limited.
    count: Option<ExactCount>,
    part: Option<Part>,
    /// The number of the next file.
    number: u64,
    /// The first row of the next file.
    first_row: u64,
    end_row: u64,
    rejects: BufWriter<File>,
    rejects_bytes: u64,
    rejected: u64,
    /// The rejected rows since the last file.
    exceptions: Vec<Rejected>,
    progress: Progress,
}

/// A rejected row, and the size of its line in the file of rejected rows.
struct Rejected {
    exception: Exception,
    bytes: u64,
}

/// A file that is being written.
pub(super) struct Part {
    path: PathBuf,
    content: Content,
    requests: u64,
    bytes: u64,
    /// An upper bound for the number of tokens.
    tokens: u64,
    /// The number of bytes whose tokens were counted, and the number of these tokens.
    counted: (u64, u64),
    /// The number of unordered lines whose tokens were counted.
    counted_lines: usize,
}

enum Content {
    Lines(BufWriter<File>),
    /// Lines that will be ordered.
    Unordered(BufWriter<File>, Vec<Vec<u8>>),
    Table(Box<ArrowWriter<File>>),
}

impl Parts {
    pub(super) fn new(
        directory: &Path,
        manifest: Manifest,
        sources: Vec<String>,
        limits: Limits,
        options: &PrepareOptions,
        start: &Start,
        model: &str,
    ) -> Result<Self> {
        Ok(Self {
            directory: directory.to_owned(),
            finisher: Some(Finisher::start(directory, manifest)),
            sources,
            limits,
            target: options.target,
            cache_order: options.cache_order,
            max_rejects: options.max_rejects,
            count: limits.tokens.map(|_| ExactCount::new(model)),
            part: None,
            number: start.files + 1,
            first_row: start.next_row,
            end_row: start.next_row,
            rejects: BufWriter::new(open_rejects(directory, start.rejects_bytes)?),
            rejects_bytes: start.rejects_bytes,
            rejected: start.rejects,
            exceptions: Vec::new(),
            progress: Progress { rows: start.next_row, rejects: start.rejects, files: start.files, bytes: 0 },
        })
    }

    /// Writes a piece, and returns how far the job is.
    pub(super) fn write(&mut self, piece: &Piece) -> Result<Progress> {
        self.write_rejects(piece)?;
        if let Some((first, table)) = &piece.table {
            self.write_table(*first, table)?;
        }
        self.write_lines(piece)?;
        self.end_row = piece.end_row;
        self.progress.rows = piece.end_row;
        self.progress.rejects = self.rejected;
        Ok(self.progress)
    }

    fn write_lines(&mut self, piece: &Piece) -> Result<()> {
        // Lines that go to the same file are written at once.
        let (mut written, mut start) = (0, 0);
        for &(row, end) in &piece.ends {
            let bytes = (end - start) as u64;
            let line = piece.lines.get(start..end).unwrap_or_default();
            let pending = piece.lines.get(written..start).unwrap_or_default();
            let tokens = match self.room_for(line)? {
                Some(tokens) => tokens,
                None => {
                    self.append(pending)?;
                    self.close(row)?;
                    written = start;
                    bytes
                }
            };
            // Lines that are ordered, or whose tokens are counted, go to the file one by one.
            let is_single = self.cache_order || self.limits.tokens.is_some();
            let part = self.part()?;
            part.requests += 1;
            part.bytes += bytes;
            part.tokens += tokens;
            if is_single {
                self.append(piece.lines.get(written..end).unwrap_or_default())?;
                written = end;
            }
            start = end;
        }
        self.append(piece.lines.get(written..start).unwrap_or_default())
    }

    /// Returns the tokens of a line, or an upper bound, if the current file has room for it.
    fn room_for(&mut self, line: &[u8]) -> Result<Option<u64>> {
        let (limits, bytes) = (self.limits, line.len() as u64);
        let Some(part) = self.part.as_mut().filter(|part| part.requests > 0) else { return Ok(Some(bytes)) };
        if part.requests >= limits.requests || part.bytes + bytes > limits.bytes {
            return Ok(None);
        }
        let (Some(most), Some(count)) = (limits.tokens, &self.count) else { return Ok(Some(bytes)) };
        if part.tokens + bytes <= most {
            return Ok(Some(bytes));
        }
        // Every token has at least one byte, so bytes are an upper bound. Only near the limit, tokens are counted.
        part.count(count).map_err(|error| cannot_write(&part.path, &error))?;
        let tokens = if part.tokens + bytes <= most { bytes } else { count.line(line) };
        Ok((part.tokens + tokens <= most).then_some(tokens))
    }

    fn write_table(&mut self, first: u64, table: &RecordBatch) -> Result<()> {
        let limits = self.limits;
        if self.part.as_ref().is_some_and(|part| part.requests >= limits.requests || part.bytes >= limits.bytes) {
            self.close(first)?;
        }
        if self.part.is_none() {
            let path = self.path();
            let file = File::create(&path).map_err(|error| cannot_write(&path, &error))?;
            let level = ZstdLevel::try_new(3).map_err(|error| Error::new(Kind::InvalidBatch, error))?;
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
            let writer = ArrowWriter::try_new(file, table.schema(), Some(properties));
            let writer = writer.map_err(|error| Error::new(Kind::InvalidRows, error))?;
            let content = Content::Table(Box::new(writer));
            self.part = Some(Part::new(path, content));
        }
        let Some(Part { content: Content::Table(writer), requests, bytes, .. }) = &mut self.part else { return Ok(()) };
        writer.write(table).map_err(|error| Error::new(Kind::InvalidRows, error))?;
        *requests += table.num_rows() as u64;
        *bytes = writer.bytes_written() as u64 + writer.in_progress_size() as u64;
        Ok(())
    }

    fn write_rejects(&mut self, piece: &Piece) -> Result<()> {
        let source = self.sources.get(piece.source).map(String::as_str).unwrap_or_default();
        for reject in &piece.rejects {
            let mut line = reject.to_json(source).to_string();
            line.push('\n');
            self.rejects.write_all(line.as_bytes()).map_err(|error| cannot_write(Path::new(REJECTS), &error))?;
            self.rejects_bytes += line.len() as u64;
            self.rejected += 1;
            let detail = reject.message.clone();
            let exception = Exception { row: reject.row, state: "rejected".to_owned(), detail };
            self.exceptions.push(Rejected { exception, bytes: line.len() as u64 });
        }
        if self.max_rejects.is_some_and(|most| self.rejected > most) {
            self.flushed_rejects()?;
            let (rejected, most) = (self.rejected, self.max_rejects.unwrap_or_default());
            let path = self.directory.join(REJECTS);
            let message = format_args!("{rejected} rows were rejected, and {most} are allowed");
            return Err(Error::new(Kind::InvalidBatch, message)
                .with_help(format!("`{}` has the rows and the reasons", path.display())));
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        let ending = if self.target == Target::Parquet { "parquet" } else { "jsonl" };
        self.directory.join(format!("{PREFIX}{:05}.{ending}.part", self.number))
    }

    /// Returns the current file of lines, and creates one if there is none.
    fn part(&mut self) -> Result<&mut Part> {
        if self.part.is_none() {
            let path = self.path();
            let file = File::create(&path).map_err(|error| cannot_write(&path, &error))?;
            let file = BufWriter::with_capacity(BUFFER, file);
            let content = if self.cache_order { Content::Unordered(file, Vec::new()) } else { Content::Lines(file) };
            self.part = Some(Part::new(path, content));
        }
        self.part.as_mut().ok_or_else(|| Error::new(Kind::InvalidBatch, "no file is open"))
    }

    fn append(&mut self, lines: &[u8]) -> Result<()> {
        let (false, Some(part)) = (lines.is_empty(), &mut self.part) else { return Ok(()) };
        match &mut part.content {
            Content::Lines(file) => file.write_all(lines).map_err(|error| cannot_write(&part.path, &error)),
            Content::Unordered(_, all) => {
                all.push(lines.to_vec());
                Ok(())
            }
            Content::Table(_) => Ok(()),
        }
    }

    /// Writes out the buffered lines of rejected rows, and returns the file.
    fn flushed_rejects(&mut self) -> Result<File> {
        let flushed = self.rejects.flush().and_then(|()| self.rejects.get_ref().try_clone());
        flushed.map_err(|error| cannot_write(&self.directory.join(REJECTS), &error))
    }

    /// Completes the current file. Its range ends before this row.
    fn close(&mut self, end_row: u64) -> Result<()> {
        let mut part = self.part.take();
        if let (Some(part), Some(count)) = (&mut part, &self.count)
            && self.limits.tokens < Some(part.tokens)
        {
            part.count(count).map_err(|error| cannot_write(&part.path, &error))?;
        }
        let name = part.as_ref().map_or_else(String::new, Part::name);
        let (requests, bytes, tokens) =
            part.as_ref().map_or((0, 0, 0), |part| (part.requests, part.bytes, part.tokens));
        let rest = self.exceptions.iter().position(|rejected| rejected.exception.row >= end_row);
        let later = self.exceptions.split_off(rest.unwrap_or(self.exceptions.len()));
        let exceptions = std::mem::replace(&mut self.exceptions, later);
        let exceptions: Vec<_> = exceptions.into_iter().map(|rejected| rejected.exception).collect();
        let rejects_file = self.flushed_rejects()?;
        let file = JobFile {
            number: self.number,
            name,
            first_row: self.first_row,
            end_row,
            requests,
            bytes,
            tokens,
            state: state_of(requests),
            attempts: 0,
            batch: None,
            upload: None,
            error: None,
        };
        let rejects = self.rejected - self.exceptions.len() as u64;
        let later = self.exceptions.iter().map(|rejected| rejected.bytes).sum::<u64>();
        let properties = [
            ("next_row", end_row.to_string()),
            ("rejects", rejects.to_string()),
            ("rejects_bytes", (self.rejects_bytes - later).to_string()),
        ];
        let completed = Completed { part, file, exceptions, rejects: rejects_file, properties };
        if self.finisher.as_ref().is_some_and(|finisher| !finisher.add(completed)) {
            // The thread ends early only if it fails.
            self.finisher.take().map(Finisher::finish).transpose()?;
        }
        self.number += 1;
        self.first_row = end_row;
        self.progress.files += 1;
        self.progress.bytes += bytes;
        Ok(())
    }

    /// Completes the job.
    pub(super) fn finish(mut self) -> Result<(Manifest, Progress)> {
        if self.part.is_some() || self.first_row < self.end_row {
            self.close(self.end_row)?;
        }
        self.flushed_rejects()?;
        let finisher = self.finisher.take().ok_or_else(|| Error::new(Kind::InvalidBatch, "the job has failed"))?;
        let manifest = finisher.finish()?;
        let rows = self.end_row.to_string();
        manifest.set(&[("rows", &rows)])?;
        Ok((manifest, self.progress))
    }
}

impl Part {
    fn new(path: PathBuf, content: Content) -> Self {
        Self { path, content, requests: 0, bytes: 0, tokens: 0, counted: (0, 0), counted_lines: 0 }
    }

    /// Counts the tokens of all lines that were not counted before.
    fn count(&mut self, count: &ExactCount) -> std::io::Result<()> {
        let (from, mut tokens) = self.counted;
        match &mut self.content {
            Content::Lines(file) => {
                file.flush()?;
                let mut saved = BufReader::with_capacity(BUFFER, File::open(&self.path)?);
                saved.seek(SeekFrom::Start(from))?;
                let mut line = Vec::new();
                while saved.read_until(b'\n', &mut line)? > 0 {
                    tokens += count.line(&line);
                    line.clear();
                }
            }
            Content::Unordered(_, lines) => {
                tokens += lines.iter().skip(self.counted_lines).map(|line| count.line(line)).sum::<u64>();
                self.counted_lines = lines.len();
            }
            Content::Table(_) => {}
        }
        self.counted = (self.bytes, tokens);
        self.tokens = tokens;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name that the file will have.
    fn name(&self) -> String {
        self.path.with_extension("").file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Writes everything to disk, and returns the size of the file.
    pub(super) fn finish(self) -> Result<u64> {
        let path = self.path;
        let written = match self.content {
            Content::Lines(file) => sync(file),
            Content::Unordered(mut file, mut lines) => {
                // What follows the identifier is compared, which begins with the model and the first message.
                lines.sort_by(|a, b| after_id(a).cmp(after_id(b)));
                lines.iter().try_for_each(|line| file.write_all(line)).and_then(|()| sync(file))
            }
            Content::Table(writer) => {
                let file = writer.into_inner().map_err(|error| Error::new(Kind::InvalidRows, error))?;
                file.sync_data().and_then(|()| Ok(file.metadata()?.len()))
            }
        };
        written.map_err(|error| cannot_write(&path, &error))
    }
}

fn sync(file: BufWriter<File>) -> std::io::Result<u64> {
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.sync_data()?;
    Ok(file.metadata()?.len())
}

/// Returns a line without the identifier of its request.
fn after_id(line: &[u8]) -> &[u8] {
    let comma = line.iter().position(|byte| *byte == b',').unwrap_or(0);
    line.get(comma..).unwrap_or_default()
}
