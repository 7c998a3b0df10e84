//! `tympan request`: exactly what a provider would get.

use std::fmt::Write as _;

use serde_json::Value as Json;
use tympan::secret::url::redacted_url;
use tympan::spec::{ConnectionKind, Secret};
use tympan::wire::{EncodeOptions, Header, HeaderValue, Target, WireRequest, target};

use super::render::{messages, options, render_in};
use crate::args::RequestArgs;
use crate::escape::visible_line;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::{json, output, prompt_file};

pub(super) fn run(args: &RequestArgs, quiet: bool) -> Result<(), Failure> {
    let options = args.model.endpoint.over(options(&args.render.prompt));
    let runtime = prompt_file::runtime(&args.render.prompt.file, options, quiet);
    let (prompt, _, rendered) = render_in(&runtime, &args.render.prompt, quiet)?;
    let in_file = |error| in_prompt(error, &prompt);
    let messages = messages(&runtime, &prompt, &rendered)?;
    let named = EncodeOptions {
        provider: args.model.provider.as_deref(),
        model: args.model.model.as_deref(),
        ..EncodeOptions::default()
    };
    let target = target(&prompt, &named).map_err(in_file)?;
    let mut request = runtime.request(&prompt, &messages, &args.model.options(), args.stream).map_err(in_file)?;
    if wants_key(&target) {
        // The key of the environment is not needed; that there would be one is shown.
        let auth = target.provider.auth;
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

/// Whether a request to this target gets a key of the environment: a server on the same machine does without.
fn wants_key(target: &Target<'_>) -> bool {
    let is_anonymous = target.connection.is_some_and(|connection| connection.kind == ConnectionKind::Anonymous);
    target.api_key.is_none() && !target.provider.is_local && !is_anonymous
}

fn body(request: &WireRequest) -> String {
    let body: Json = serde_json::from_str(&request.body).unwrap_or_default();
    json::pretty(&body)
}

/// The request as HTTP writes it, with a body for people.
fn http(request: &WireRequest) -> String {
    let mut out = format!("{} {}\n", request.method, visible_line(&redacted_url(&request.url)));
    for header in &request.headers {
        let _ = writeln!(out, "{}: {}", header.name, visible_line(&header.value.redacted()));
    }
    let _ = writeln!(out, "\n{}", body(request));
    out
}

/// The request as a command line; the key is left to the shell.
fn curl(request: &WireRequest, target: &Target<'_>) -> String {
    let mut out = format!("curl {}", quoted(&redacted_url(&request.url)));
    for header in &request.headers {
        let value = match &header.value {
            HeaderValue::Plain(value) => quoted(&format!("{}: {value}", header.name)),
            HeaderValue::Secret { prefix, .. } => {
                let variable = target.provider.key_variables.first().unwrap_or(&"API_KEY");
                format!("\"{}: {prefix}${variable}\"", header.name)
            }
        };
        let _ = write!(out, " \\\n  -H {value}");
    }
    let _ = writeln!(out, " \\\n  --data-raw {}", quoted(&body(request)));
    out
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
