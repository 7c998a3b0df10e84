//! `tympan verify`: verifies the signatures of directives and shows what they cover.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::Error;
use tympan::directive::signature::{Form, TrustedKey, Verified, verify};
use tympan::file::keys::read_trusted_keys;
use tympan::load::DEFAULT_MAX_FILE_BYTES;
use tympan::text::source::{SourceFile, Span};

use super::sign::read;
use crate::args::VerifyArgs;
use crate::escape::visible_line;
use crate::excerpt::Finding;
use crate::prompt_file::{is_stdin, read_stdin};
use crate::report::{Failure, finding_json};
use crate::{json, output};

pub(super) fn run(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let mut trusted = Vec::new();
    for folder in &args.trust {
        trusted.extend(read_trusted_keys(folder)?);
    }
    let checked: Vec<_> = args.files.iter().map(|path| SignatureCheck::new(path, &trusted, args.whole_file)).collect();
    let is_right = checked.iter().all(|checked| checked.outcome.is_ok());
    let text = if args.json {
        json::pretty(&checked.iter().map(SignatureCheck::to_json).collect::<Json>()) + "\n"
    } else {
        checked.iter().map(SignatureCheck::show).collect::<Vec<_>>().join("\n")
    };
    if args.json { output::print(&text) } else { output::print_lines(&text) }?;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of verifying a file.
struct SignatureCheck {
    source: SourceFile,
    outcome: Result<Verified, Error>,
}

impl SignatureCheck {
    fn new(path: &Path, trusted: &[TrustedKey], whole_file: bool) -> Self {
        let (name, text) = match is_stdin(path) {
            true => ("<stdin>".to_owned(), read_stdin()),
            false => (path.display().to_string(), read(path, DEFAULT_MAX_FILE_BYTES)),
        };
        match text {
            Err(error) => Self { source: SourceFile::new(name, ""), outcome: Err(error) },
            Ok(text) => {
                let outcome = verify(&text, trusted).and_then(|verified| match verified.line.form {
                    Form::Rye if whole_file => Err(not_enough()),
                    _ => Ok(verified),
                });
                Self { source: SourceFile::new(name, text), outcome }
            }
        }
    }

    /// Returns the first and last line of a span, counted from 1. A partly covered line is listed as covered and as
    /// uncovered.
    fn lines(&self, span: Span) -> (usize, usize) {
        let inside = self.source.slice(span);
        let end = span.start + inside.trim_end().len();
        let start = span.end - inside.trim_start().len();
        (self.source.line_column(start.min(end)).line, self.source.line_column(end).line)
    }

    fn show(&self) -> String {
        let name = visible_line(self.source.name());
        let verified = match &self.outcome {
            Ok(verified) => verified,
            Err(error) => {
                let help =
                    error.help().map_or_else(String::new, |help| format!("  help:        {}\n", visible_line(help)));
                return format!("{name}: REJECTED\n  reason:      {}\n{help}", visible_line(error.message()));
            }
        };
        let line = &verified.line;
        let owner = verified.owner.as_deref().unwrap_or("unknown");
        let (form, fingerprint) = (line.form.as_str(), &line.fingerprint);
        let mut out = format!("{name}: valid {form} signature\n");
        out += &format!("  key:         {fingerprint}, owner: {}\n", visible_line(owner));
        out += &format!(
            "  time:        {}{}\n",
            visible_line(&line.timestamp),
            match line.form {
                Form::Rye => " (NOT covered)",
                Form::WholeFile => "",
            }
        );
        let (first, last) = self.lines(verified.covered);
        out += &format!("  covered:     lines {first} to {last}\n");
        for span in verified.uncovered.iter().filter(|span| !self.source.slice(**span).trim().is_empty()) {
            let (first, last) = self.lines(*span);
            out += &format!("  NOT covered: lines {first} to {last}: {}\n", self.what(*span, verified));
        }
        if line.form == Form::Rye {
            out += "  The parts that are not covered can be changed without invalidating this signature.\n";
        }
        out
    }

    /// Describes an uncovered part in the words of a directive's author.
    fn what(&self, span: Span, verified: &Verified) -> &'static str {
        if span.start < verified.covered.start {
            "the title and the description"
        } else {
            "the steps, which the model follows"
        }
    }

    fn to_json(&self) -> Json {
        match &self.outcome {
            Ok(verified) => {
                let lines = |span: &Span| {
                    let (first, last) = self.lines(*span);
                    json!({ "start": span.start, "end": span.end, "first_line": first, "last_line": last })
                };
                json!({
                    "file": self.source.name(),
                    "verified": true,
                    "form": verified.line.form.as_str(),
                    "fingerprint": verified.line.fingerprint,
                    "owner": verified.owner,
                    "timestamp": verified.line.timestamp,
                    "covered": lines(&verified.covered),
                    "uncovered": verified.uncovered.iter().map(lines).collect::<Json>(),
                })
            }
            Err(error) => {
                json!({ "file": self.source.name(), "verified": false, "error": finding_json(&Finding::of_error(error)) })
            }
        }
    }
}

fn not_enough() -> Error {
    Error::new(tympan::Kind::InvalidSignature, "it is a Rye signature, which does not cover the steps")
        .with_help("sign the file with `tympan sign --whole-file`")
}
