//! Servers that are programs.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tympan_core::{Error, Result};

use crate::net::client::shown;
use crate::tool::child::{self, Group};
use crate::tool::mcp::list::unavailable;
use crate::tool::mcp::message::{self, Notes, Problem};
use crate::tool::mcp::server::Command;

/// The maximum number of bytes of standard error to keep.
const KEPT_COMPLAINT: usize = 4096;

/// The maximum number of lines of standard error to show.
const SHOWN_LINES: usize = 5;

/// The maximum number of lines between two messages that are not messages. Some servers log to standard output by
/// mistake.
const MAX_STRAY_LINES: usize = 1000;

/// How long to wait for a program to exit.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait for the final output of a program.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running program. Dropping it kills the program and all its child processes.
pub(super) struct Program {
    _group: Group,
    child: Child,
    complaint: Complaint,
    reading: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts the program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub(super) fn start(command: &Command, notes: Notes) -> Result<(Self, Lines)> {
        let (program, arguments) =
            command.command.split_first().ok_or_else(|| unavailable("the command of the MCP server is empty"))?;
        let mut starting = child::command(program, arguments, &command.variables);
        if let Some(directory) = &command.directory {
            starting.current_dir(directory);
        }
        let cannot = |reason| unavailable(format_args!("cannot start `{}`: {reason}", shown(program)));
        let mut child = starting.spawn().map_err(cannot)?;
        let group = Group::of(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(unavailable("cannot open the pipes of the MCP server"));
        };
        let complaint = Complaint::default();
        let reading = tokio::spawn(complaint.clone().read(stderr));
        Ok((Self { _group: group, child, complaint, reading: Some(reading) }, Lines::new(stdout, stdin, notes)))
    }

    /// Ends the program, and adds its exit status and its last output to an error.
    pub(super) async fn last_words(mut self, error: Error) -> Error {
        // A program that has closed its pipes is about to exit, and its status is useful.
        let ended = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        let status = ended.ok().and_then(std::io::Result::ok);
        let _ = self.child.start_kill();
        if let Some(reading) = self.reading.take() {
            let _ = tokio::time::timeout(LAST_WORDS, reading).await;
        }
        self.complaint.add_to(error, status)
    }

    /// Returns whether the program has exited.
    pub(super) fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Adds the program's last output to an error.
    pub(super) fn complaint(&self, error: Error) -> Error {
        self.complaint.add_to(error, None)
    }

    /// Waits for the program to exit, which it does when its input is closed, up to a time limit.
    pub(super) async fn wait(mut self) {
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }
}

/// The last output of a program on standard error.
#[derive(Clone, Default)]
struct Complaint(Arc<Mutex<VecDeque<u8>>>);

impl Complaint {
    async fn read(self, mut source: impl AsyncRead + Unpin) {
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = source.read(&mut piece).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&piece[..count]);
            let surplus = kept.len().saturating_sub(KEPT_COMPLAINT);
            kept.drain(..surplus);
        }
    }

    fn add_to(&self, error: Error, status: Option<ExitStatus>) -> Error {
        let kept: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<_> = text.lines().map(shown).filter(|line| !line.is_empty()).collect();
        let lines = lines[lines.len().saturating_sub(SHOWN_LINES)..].join(" | ");
        let status = status.map(|status| format!("the server exited ({status})"));
        let said = (!lines.is_empty()).then(|| format!("last output: {lines}"));
        let further: Vec<_> = [error.help().map(str::to_owned), status, said].into_iter().flatten().collect();
        if further.is_empty() { error } else { error.with_help(further.join("; ")) }
    }
}

/// A transport over the pipes of a program, with one message per line.
pub(super) struct Lines {
    read: BufReader<ChildStdout>,
    /// An incomplete line. It is kept here in case the read is cancelled.
    line: Vec<u8>,
    stray: usize,
    write: Arc<tokio::sync::Mutex<Option<ChildStdin>>>,
    notes: Notes,
}

impl Lines {
    fn new(read: ChildStdout, write: ChildStdin, notes: Notes) -> Self {
        let write = Arc::new(tokio::sync::Mutex::new(Some(write)));
        Self { read: BufReader::new(read), line: Vec::new(), stray: 0, write, notes }
    }

    /// Reads until a line is complete. Returns whether it is.
    async fn fill(&mut self) -> bool {
        loop {
            let Ok(available) = self.read.fill_buf().await else { return false };
            if available.is_empty() {
                return false;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            self.line.extend_from_slice(&available[..taken]);
            self.read.consume(taken);
            if self.line.len() > message::MAX_BYTES {
                self.notes.keep(Problem::TooLarge.into());
                return false;
            }
            if end.is_some() {
                return true;
            }
        }
    }
}

impl Transport<RoleClient> for Lines {
    type Error = std::io::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let write = write.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while self.fill().await {
            let read = message::read(&self.line);
            let is_blank = self.line.iter().all(u8::is_ascii_whitespace);
            self.line.clear();
            match read {
                Ok(message) => {
                    self.stray = 0;
                    self.notes.clear();
                    return Some(message);
                }
                Err(_) if is_blank => {}
                Err(problem) => {
                    self.notes.keep(problem.into());
                    self.stray += 1;
                    if problem == Problem::TooLarge || self.stray > MAX_STRAY_LINES {
                        return None;
                    }
                }
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}
