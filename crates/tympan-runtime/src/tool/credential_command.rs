//! Credential providers that are programs, such as `az account get-access-token`.

use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tympan_core::spec::Secret;
use tympan_core::{Error, Kind, Redactor, Result};

use crate::file::time::UtcTime;
use crate::model::token::{AccessToken, CredentialProvider, TokenRequest};
use crate::net::io;
use crate::tool::child::Group;

/// The default time limit.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes that the program may print. Tokens have a few thousand.
const MAX_OUTPUT: u64 = 64 << 10;
/// The maximum number of bytes of standard error in an error message.
const MAX_COMPLAINT: u64 = 2048;

/// A credential provider that runs a program, which prints an access token.
///
/// The program prints the token itself, or JSON with the token under `accessToken`, `access_token` or `token`, and its
/// expiry under `expires_on`, `expiresOn`, `expires_in` or a similar name, as `az`, `azd`, `gcloud` and OAuth servers
/// write it. The token is reused until shortly before its expiry, or for a minute if the output has none.
///
/// The program runs without a shell, in the user's home directory, and with the environment of this process. It is
/// killed with all its child processes when it exceeds its time limit of 30 seconds, unless another is set.
///
/// ```
/// use tympan_runtime::{CredentialCommand, Runtime};
///
/// let words = ["az", "account", "get-access-token", "--resource", "https://cognitiveservices.azure.com"];
/// let command = CredentialCommand::new(words.map(String::from).to_vec(), None)?;
/// Runtime::default().register_credential_provider("foundry", command);
/// # Ok::<(), tympan_runtime::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CredentialCommand(Arc<Launch>);

#[derive(Debug)]
struct Launch {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
}

impl CredentialCommand {
    /// Creates a provider that runs this program with these arguments.
    ///
    /// # Errors
    /// Returns an error if the command is empty, or if the program is a relative path: it would depend on the current
    /// directory, which may be that of a prompt. A name without a slash is searched in `PATH`.
    pub fn new(command: Vec<String>, timeout: Option<Duration>) -> Result<Self> {
        let invalid = |reason: &str| Error::new(Kind::InvalidInput, format_args!("credential command: {reason}"));
        let mut words = command.into_iter();
        let program =
            words.next().filter(|program| !program.trim().is_empty()).ok_or_else(|| invalid("it is empty"))?;
        let path = Path::new(&program);
        let is_name = matches!(path.components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
        if path.is_relative() && (!is_name || program.contains(['/', '\\'])) {
            return Err(invalid("expected the name of a program in PATH or an absolute path, found a relative path"));
        }
        let timeout = timeout.unwrap_or(TIMEOUT);
        Ok(Self(Arc::new(Launch { program, arguments: words.collect(), timeout })))
    }
}

impl CredentialProvider for CredentialCommand {
    fn token<'a>(&'a self, _request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
        let launch = self.0.clone();
        Box::pin(io::spawn(async move {
            let output = match tokio::time::timeout(launch.timeout, launch.output()).await {
                Ok(output) => output?,
                Err(_) => return Err(launch.failed(format_args!("no token within {:?}", launch.timeout))),
            };
            parse(&output, SystemTime::now()).map_err(|reason| launch.failed(reason))
        }))
    }
}

impl Launch {
    /// Returns an error that names the program, but no arguments: they may be secrets.
    fn failed(&self, reason: impl std::fmt::Display) -> Error {
        Error::new(Kind::CredentialFailed, format_args!("`{}`: {reason}", self.program)).permanent()
    }

    async fn output(&self) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command.as_std_mut(), 0);
        let mut child = command.spawn().map_err(|error| self.failed(format_args!("cannot start it: {error}")))?;
        let group = Group::of(&child);
        let (mut out, complaint) = (child.stdout.take(), child.stderr.take());
        let out = async move { read(&mut out, MAX_OUTPUT + 1).await };
        let (out, complaint) = tokio::join!(out, read_beginning(complaint, MAX_COMPLAINT));
        if out.len() as u64 > MAX_OUTPUT {
            return Err(self.failed(format_args!("it printed more than {MAX_OUTPUT} bytes")));
        }
        let status = child.wait().await.map_err(|error| self.failed(error))?;
        group.leave();
        if !status.success() {
            // Words on the command line may be secrets, and programs quote them.
            let mut redactor = Redactor::default();
            self.arguments.iter().filter(|word| !word.starts_with('-')).for_each(|word| redactor.register(word));
            let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
            return Err(self.failed(format_args!("{status}: {}", redactor.text(&complaint))));
        }
        String::from_utf8(out).map_err(|_| self.failed("its output is not valid UTF-8"))
    }
}

/// Returns the directory that the program runs in. It is never the current one: some programs load code or settings
/// from there, and it may be the directory of a prompt.
fn home() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let is_usable = |path: &PathBuf| path.is_absolute() && path.is_dir();
    set("HOME").filter(is_usable).or_else(|| set("USERPROFILE").filter(is_usable)).unwrap_or_else(|| "/".into())
}

/// Reads at most `most` bytes.
async fn read(source: &mut Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        let _ = source.take(most).read_to_end(&mut bytes).await;
    }
    bytes
}

/// Reads everything and returns the beginning. A program that cannot write all its warnings may fail.
async fn read_beginning(mut source: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let bytes = read(&mut source, most).await;
    if let Some(mut source) = source {
        let _ = tokio::io::copy(&mut source, &mut tokio::io::sink()).await;
    }
    bytes
}

/// Parses the output of a program: a token, or JSON that contains it. Errors never quote the output.
fn parse(output: &str, now: SystemTime) -> Result<AccessToken, &'static str> {
    let text = output.trim();
    if text.starts_with(['{', '[', '"']) {
        let json: Json = serde_json::from_str(text).map_err(|_| "its output is neither a token nor JSON")?;
        return of_json(&json, now).ok_or("its output is JSON without `accessToken`, `access_token` or `token`");
    }
    match text {
        "" => Err("it printed nothing"),
        _ if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(AccessToken::new(text)),
        _ => Err("its output is more than one word; expected a token or JSON"),
    }
}

fn of_json(json: &Json, now: SystemTime) -> Option<AccessToken> {
    if let Json::String(token) = json {
        return is_token(token).then(|| AccessToken::new(token));
    }
    let map = json.as_object()?;
    let found = ["accessToken", "access_token", "token"].iter().find_map(|key| map.get(*key)?.as_str());
    let Some(token) = found else {
        // As `gcloud config config-helper` and the credential plugins of Kubernetes nest it.
        return ["credential", "status"].iter().find_map(|key| of_json(map.get(*key)?, now));
    };
    let until = |key: &&str| remaining(map.get(*key)?, now);
    let expiries = ["expires_on", "expiresOn", "expires_at", "expiresAt", "token_expiry", "expirationTimestamp"];
    let lifetime = ["expires_in", "expiresIn"].iter().find_map(|key| seconds(map.get(*key)?));
    let expires_in = expiries.iter().find_map(until).or(lifetime);
    is_token(token).then(|| AccessToken { token: Secret::new(token), expires_in })
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns a number of seconds, which some programs write as text.
fn seconds(value: &Json) -> Option<Duration> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    Duration::try_from_secs_f64(number).ok()
}

/// Returns the time until an expiry: seconds since the Unix epoch, or a time with its zone. Times without a zone are
/// ignored: `az` writes local time there, and the seconds under another key.
fn remaining(value: &Json, now: SystemTime) -> Option<Duration> {
    let end = match seconds(value) {
        Some(since) => UNIX_EPOCH.checked_add(since)?,
        None => UtcTime::parse(value.as_str()?)?,
    };
    Some(end.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-02-22T02:41:03Z.
    const NOW: u64 = 1_771_728_063;

    fn parsed(output: &str) -> Result<(String, Option<u64>), &'static str> {
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        parse(output, now).map(|token| (token.token.expose().to_owned(), token.expires_in.map(|time| time.as_secs())))
    }

    #[test]
    fn tokens_are_found_in_what_programs_print() {
        let cases = [
            ("ya29.token\n", None),
            ("\"ya29.token\"\n", None),
            (r#"{"token": "ya29.token"}"#, None),
            (
                r#"{"accessToken": "ya29.token", "expiresOn": "2026-02-22 03:41:03.000000", "expires_on": 1771731663,
                    "subscription": "s", "tenant": "t", "tokenType": "Bearer"}"#,
                Some(3600),
            ),
            // Local time.
            (r#"{"accessToken": "ya29.token", "expiresOn": "2026-02-22 03:41:03.000000"}"#, None),
            (r#"{"token": "ya29.token", "expiresOn": "2026-02-22T03:41:03Z"}"#, Some(3600)),
            (r#"{"access_token": "ya29.token", "expires_in": "3599", "token_type": "Bearer"}"#, Some(3599)),
            (r#"{"access_token": "ya29.token", "expires_on": "1771731663"}"#, Some(3600)),
            (r#"{"credential": {"access_token": "ya29.token", "token_expiry": "2026-02-22T03:41:03Z"}}"#, Some(3600)),
            (r#"{"status": {"token": "ya29.token", "expirationTimestamp": "2026-02-22T04:41:03+01:00"}}"#, Some(3600)),
            // In the past.
            (r#"{"token": "ya29.token", "expiresOn": "2026-02-22T01:41:03Z"}"#, Some(0)),
        ];
        for (output, expires_in) in cases {
            assert_eq!(parsed(output), Ok(("ya29.token".to_owned(), expires_in)), "{output}");
        }
    }

    #[test]
    fn what_is_not_a_token_is_not_quoted() {
        for output in ["", "two words", "{\"accessToken\": ", "{}", "[\"hidden\"]", "{\"token\": \"a\\nb\"}", "\"\""] {
            let reason = parsed(output).expect_err(output);
            assert!(!reason.contains("hidden") && !reason.contains("two words"), "{reason}");
        }
    }

    #[test]
    fn programs_are_named_or_absolute() {
        let of = |program: &str| CredentialCommand::new(vec![program.to_owned()], None);
        for program in ["", " ", "./token", "bin/token", "../token", "..", "."] {
            assert!(of(program).is_err(), "{program}");
        }
        assert!(of("az").is_ok() && of("/usr/bin/az").is_ok());
        assert!(CredentialCommand::new(Vec::new(), None).is_err());
    }
}
