//! `tympan request`: shows the exact request that would be sent to the provider.

use std::fmt::Write as _;

use serde_json::Value as Json;
use tympan::Runtime;
use tympan::secret::url::redacted_url;
use tympan::spec::{Connection, ConnectionKind, Secret};
use tympan::wire::compatible::Auth;
use tympan::wire::{EncodeOptions, Header, HeaderValue, Target, WireRequest, target};

use super::render::{messages, options, render_in};
use crate::args::RequestArgs;
use crate::escape::visible_line;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::{config, json, output, prompt_file};

pub(super) fn run(args: &RequestArgs, quiet: bool) -> Result<(), Failure> {
    let options = args.model.endpoint.over(options(&args.render.prompt)?);
    let runtime = prompt_file::runtime(&args.render.prompt.file, options, quiet);
    config::register_credentials(&runtime, args.model.credentials.credential_command.as_deref())?;
    let (prompt, _, rendered) = render_in(&runtime, &args.render.prompt, quiet)?;
    let in_file = |error| in_prompt(error, &prompt);
    let messages = messages(&runtime, &prompt, &rendered)?.messages;
    let named = EncodeOptions {
        provider: args.model.provider.as_deref(),
        model: args.model.model.as_deref(),
        ..EncodeOptions::default()
    };
    let target = target(&prompt, &named).map_err(in_file)?;
    let mut request = runtime.request(&prompt, &messages, &args.model.options(), args.stream).map_err(in_file)?;
    let has_token = target.connection.is_some_and(|connection| is_keyless(&runtime, connection));
    if has_token || target.needs_key() {
        // The key itself is not needed. A placeholder shows that the request would have one.
        let auth = if has_token { Auth::Bearer } else { target.provider.auth };
        let value = HeaderValue::Secret { prefix: auth.prefix(), secret: Secret::new("key") };
        request.headers.push(Header { name: auth.header().to_owned(), value });
    }
    let text = if args.render.json {
        body(&request) + "\n"
    } else if args.curl {
        curl(&request, &target)
    } else {
        http(&request)
    };
    Ok(output::print(&text)?)
}

/// Returns whether a request with this connection carries an access token.
fn is_keyless(runtime: &Runtime, connection: &Connection) -> bool {
    let is_registered = |kind: &str| runtime.get_credential_provider(kind).is_some();
    match connection.kind {
        ConnectionKind::Key | ConnectionKind::Reference => false,
        ConnectionKind::Anonymous => is_registered(connection.kind.as_str()),
        _ => connection.api_key.is_none() && (is_registered(connection.kind.as_str()) || is_registered("*")),
    }
}

fn body(request: &WireRequest) -> String {
    let body: Json = serde_json::from_str(&request.body).unwrap_or_default();
    json::pretty(&body)
}

/// Formats the request as HTTP, with a readable body.
fn http(request: &WireRequest) -> String {
    let mut out = format!("{} {}\n", request.method, visible_line(&redacted_url(&request.url)));
    for header in &request.headers {
        let _ = writeln!(out, "{}: {}", header.name, visible_line(&header.value.redacted()));
    }
    let _ = writeln!(out, "\n{}", body(request));
    out
}

/// Formats the request as a curl command. The shell fills in the key.
fn curl(request: &WireRequest, target: &Target<'_>) -> String {
    let mut out = format!("curl {}", quoted(&redacted_url(&request.url)));
    for header in &request.headers {
        let value = match &header.value {
            HeaderValue::Plain(value) => quoted(&format!("{}: {value}", header.name)),
            HeaderValue::Secret { prefix, .. } => {
                let is_token = header.name != target.provider.auth.header();
                let variable = target.provider.key_variables.first().filter(|_| !is_token).unwrap_or(&"ACCESS_TOKEN");
                format!("\"{}: {prefix}${variable}\"", header.name)
            }
        };
        let _ = write!(out, " \\\n  -H {value}");
    }
    let _ = writeln!(out, " \\\n  --data-raw {}", quoted(&body(request)));
    out
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
