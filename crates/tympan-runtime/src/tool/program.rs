//! Programs that run once, read their input and print their output.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::net::io;
use crate::tool::ToolError;
use crate::tool::child::{self, Group};

/// The maximum number of bytes to keep of standard error.
const MAX_COMPLAINT: usize = 4096;

/// The number of bytes to read at a time.
const CHUNK: usize = 8192;

/// A program to run.
#[derive(Clone, Debug)]
pub struct ProgramRun {
    /// The program and its arguments. A relative path is relative to the directory; a name without a slash is searched
    /// in `PATH`.
    pub command: Vec<String>,
    /// The directory that it runs in.
    pub directory: PathBuf,
    /// What it reads from its standard input.
    pub input: Vec<u8>,
    /// The time limit.
    pub timeout: Duration,
    /// The maximum number of bytes that it may print to its standard output.
    pub max_output: usize,
}

/// What a program printed, and how it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramOutput {
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The end of the standard error.
    pub stderr: String,
    /// The exit status.
    pub status: ExitStatus,
}

/// Runs a program. It inherits only essential environment variables, such as `PATH` and `HOME`, and no keys. The
/// program and all its child processes are killed when it ends, when the time limit is reached and when the future is
/// dropped.
///
/// # Errors
/// Returns an error if the program cannot be started, takes too long or prints too much. An exit status other than 0 is
/// not an error.
pub async fn run_program(run: ProgramRun) -> Result<ProgramOutput, ToolError> {
    let timeout = run.timeout;
    let running = io::spawn(async move { Ok(tokio::time::timeout(timeout, perform(&run)).await) });
    match running.await? {
        Ok(output) => output,
        Err(_) => Err(format!("no result after {} s", timeout.as_secs_f64()).into()),
    }
}

async fn perform(run: &ProgramRun) -> Result<ProgramOutput, ToolError> {
    let (program, arguments) = run.command.split_first().ok_or("empty command")?;
    let mut command = child::command(&located(program, &run.directory), arguments, &[]);
    let mut child =
        command.current_dir(&run.directory).spawn().map_err(|error| format!("cannot start `{program}`: {error}"))?;
    // What the program leaves running is killed with it: nothing waits for it any more.
    let _group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // Write and read concurrently: the program may print before it has read all its input, or never read it.
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input is not an error.
            let _ = stdin.write_all(&run.input).await;
        }
        Ok(())
    };
    let ((), stdout, stderr) =
        tokio::try_join!(write, beginning(stdout, run.max_output), async { Ok(end(stderr).await) })?;
    let status = child.wait().await?;
    Ok(ProgramOutput { stdout, stderr, status })
}

/// Returns the path of a program. Platforms disagree on what a relative path is relative to.
fn located(program: &str, directory: &Path) -> String {
    let is_relative = program.contains(['/', std::path::MAIN_SEPARATOR]) && Path::new(program).is_relative();
    if is_relative { directory.join(program).to_string_lossy().into_owned() } else { program.to_owned() }
}

/// Reads everything, and fails if it is too much.
async fn beginning(source: Option<impl AsyncRead + Unpin>, most: usize) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        source.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() > most {
        return Err(format!("it printed more than {most} bytes").into());
    }
    Ok(bytes)
}

/// Reads everything, and returns the end.
async fn end(source: Option<impl AsyncRead + Unpin>) -> String {
    let (mut kept, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    if let Some(mut source) = source {
        while let Ok(read @ 1..) = source.read(&mut chunk).await {
            kept.extend_from_slice(&chunk[..read]);
            kept.drain(..kept.len().saturating_sub(MAX_COMPLAINT));
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
