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

/// How much is kept of what a server says about its errors: its last lines.
const KEPT_COMPLAINT: usize = 4096;

/// How many of the last lines are shown.
const SHOWN_LINES: usize = 5;

/// How many lines that are no messages a server may print between two that are. Some log where they should not.
const MAX_STRAY_LINES: usize = 1000;

/// How long a program is waited for that should end.
const GRACE: Duration = Duration::from_secs(2);

/// How long the last words of a program are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running program. It ends, at once, when this is dropped, and so does all that it has started.
pub(super) struct Program {
    _group: Group,
    child: Child,
    complaint: Complaint,
    reading: Option<JoinHandle<()>>,
}

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(command: &Command, notes: Notes) -> Result<(Self, Lines)> {
        let (program, arguments) =
            command.command.split_first().ok_or_else(|| unavailable("the command of its server is empty"))?;
        let mut starting = child::command(program, arguments, &command.variables);
        if let Some(directory) = &command.directory {
            starting.current_dir(directory);
        }
        let cannot = |reason| unavailable(format_args!("`{}` cannot be started: {reason}", shown(program)));
        let mut child = starting.spawn().map_err(cannot)?;
        let group = Group::of(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(unavailable("the pipes of its server are not there"));
        };
        let complaint = Complaint::default();
        let reading = tokio::spawn(complaint.clone().read(stderr));
        Ok((Self { _group: group, child, complaint, reading: Some(reading) }, Lines::new(stdout, stdin, notes)))
    }

    /// Ends it, and adds how it ended and what it said last to an error.
    pub(super) async fn last_words(mut self, error: Error) -> Error {
        // One that has closed its pipes is about to end, and how it ends says something.
        let ended = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        let status = ended.ok().and_then(std::io::Result::ok);
        let _ = self.child.start_kill();
        if let Some(reading) = self.reading.take() {
            let _ = tokio::time::timeout(LAST_WORDS, reading).await;
        }
        self.complaint.add_to(error, status)
    }

    /// What it said last, added to an error.
    pub(super) fn complaint(&self, error: Error) -> Error {
        self.complaint.add_to(error, None)
    }

    /// Waits until it ends, which it does when its input is closed, and does not wait for ever.
    pub(super) async fn wait(mut self) {
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }
}

/// The last of what a program says about its errors.
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
        let status = status.map(|status| format!("it ended ({status})"));
        let said = (!lines.is_empty()).then(|| format!("it said last: {lines}"));
        let further: Vec<_> = [error.help().map(str::to_owned), status, said].into_iter().flatten().collect();
        if further.is_empty() { error } else { error.with_help(further.join("; ")) }
    }
}

/// Messages over the pipes of a program: a line each.
pub(super) struct Lines {
    read: BufReader<ChildStdout>,
    /// A line whose end has not come yet. It stays here when nobody waits for the rest for a while.
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

    /// Reads on until a line is complete; whether one is.
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
