//! Tools that are programs. They read the arguments as JSON and print the result.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tympan_core::Redactor;
use tympan_core::spec::Secret;

use crate::tool::child::{self, Group};
use crate::tool::{Invocation, Tool, ToolError, ToolOutput};

/// The maximum number of bytes to read from standard output. The model receives fewer.
const MAX_OUTPUT: u64 = 8 << 20;
/// The maximum number of bytes to read from standard error.
const MAX_COMPLAINT: u64 = 4096;

/// Creates a tool that runs a program with fixed command-line arguments.
///
/// The program reads the arguments of the call as JSON from its standard input, and prints the result to its standard
/// output, as JSON or as text. If its exit status is not 0, the model receives its standard error. The program and all
/// its child processes are killed when the time limit is reached or the call is dropped.
///
/// The program inherits only essential environment variables, such as `PATH` and `HOME`, and no keys; see
/// [`command_with_env`] for adding variables. The environment variable `TYMPAN_IDEMPOTENCY_KEY` is unique to each call.
pub fn command(command: Vec<String>, timeout: Option<Duration>) -> Arc<dyn Tool> {
    command_with_env(command, timeout, Vec::new())
}

/// Creates a tool that runs a program, like [`command`], with additional environment variables. Their values are
/// removed from its output.
pub fn command_with_env(
    command: Vec<String>,
    timeout: Option<Duration>,
    variables: Vec<(String, Secret)>,
) -> Arc<dyn Tool> {
    let mut redactor = Redactor::new(false);
    redactor.register_all(variables.iter().map(|(_, value)| value));
    Arc::new(Program { launch: Arc::new(Launch { command, variables, redactor }), timeout })
}

struct Program {
    launch: Arc<Launch>,
    timeout: Option<Duration>,
}

/// The program to start.
struct Launch {
    command: Vec<String>,
    variables: Vec<(String, Secret)>,
    redactor: Redactor,
}

impl Tool for Program {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let launch = self.launch.clone();
        Box::pin(async move { perform(&launch, &invocation).await })
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

async fn perform(launch: &Launch, invocation: &Invocation) -> Result<ToolOutput, ToolError> {
    let Launch { command, variables, redactor } = launch;
    let (program, arguments) = command.split_first().ok_or("empty command")?;
    let mut child = child::command(program, arguments, variables)
        .env("TYMPAN_IDEMPOTENCY_KEY", &invocation.idempotency_key)
        .spawn()
        .map_err(|error| format!("cannot start `{program}`: {error}"))?;
    let group = Group::of(&child);
    let input = serde_json::to_vec(&*invocation.run.arguments)?;
    let (out, complaint) = (child.stdout.take(), child.stderr.take());
    // Write and read concurrently: the program may print before it has read all its input, or never read it.
    let ((), out, complaint) =
        tokio::join!(write(&mut child, &input), read(out, MAX_OUTPUT), read(complaint, MAX_COMPLAINT),);
    let status = child.wait().await?;
    group.leave();
    if !status.success() {
        let complaint = redactor.known_text(String::from_utf8_lossy(&complaint).into_owned());
        return Err(format!("{status}: {}", complaint.trim()).into());
    }
    let text = String::from_utf8(out).map_err(|_| "the output is not valid UTF-8")?;
    let text = redactor.known_text(text);
    Ok(match serde_json::from_str::<Json>(&text) {
        Ok(value) => value.into(),
        Err(_) => text.trim_end_matches(['\r', '\n']).into(),
    })
}

async fn write(child: &mut Child, input: &[u8]) {
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its arguments is not an error.
        let _ = stdin.write_all(input).await;
    }
}

/// Reads at most `most` bytes. The rest is read and discarded, because a full pipe would block the writer.
async fn read(source: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut source) = source {
        let _ = (&mut source).take(most).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut source, &mut tokio::io::sink()).await;
    }
    kept
}
