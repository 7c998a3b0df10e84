//! Tests of the command, in one program: linking many takes longer than running them.

mod attacks;
#[cfg(all(unix, feature = "batch"))]
mod batch;
#[cfg(all(unix, feature = "batch"))]
mod batch_job;
#[cfg(all(unix, feature = "batch"))]
mod batch_run;
#[cfg(all(unix, feature = "batch"))]
#[path = "../../../tympan-batch/tests/integration/server/mod.rs"]
mod batch_server;
#[cfg(all(unix, feature = "batch"))]
mod batch_way;
#[cfg(unix)]
mod chat;
#[cfg(target_os = "linux")]
mod chat_terminal;
#[cfg(unix)]
mod check;
#[cfg(unix)]
mod compatibility;
#[cfg(unix)]
mod console;
#[cfg(unix)]
mod credentials;
#[cfg(unix)]
mod endpoints;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod import;
#[cfg(unix)]
mod journal;
#[cfg(unix)]
mod pty;
#[cfg(unix)]
mod run;
mod server;
mod terminal;
mod test_command;
mod test_cost;
#[cfg(unix)]
mod tool_policy;
