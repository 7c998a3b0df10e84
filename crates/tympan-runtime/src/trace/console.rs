//! A backend that prints a line when a span begins and when it ends.

use std::io::Write;

use serde_json::Value as Json;

use crate::trace::record::{SpanRecord, SpanStart};
use crate::trace::worker::{Backend, BackendError};

/// Prints a line when a span begins and when it ends.
pub struct ConsoleBackend<W>(W);

impl<W> std::fmt::Debug for ConsoleBackend<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleBackend").finish_non_exhaustive()
    }
}

impl<W: Write + Send> ConsoleBackend<W> {
    /// Creates a backend that prints to this writer, such as standard error.
    pub fn new(writer: W) -> Self {
        Self(writer)
    }
}

impl<W: Write + Send> Backend for ConsoleBackend<W> {
    fn wants_starts(&self) -> bool {
        true
    }

    fn started(&mut self, span: &SpanStart) -> Result<(), BackendError> {
        let indent = "  ".repeat(span.depth);
        Ok(writeln!(self.0, "[tympan] {indent}▶ {}", harmless(&span.name))?)
    }

    fn ended(&mut self, span: &SpanRecord) -> Result<(), BackendError> {
        let indent = "  ".repeat(span.begun.depth);
        let milliseconds = span.duration.as_secs_f64() * 1e3;
        let mut line = format!("[tympan] {indent}◀ {} ({milliseconds:.1}ms)", harmless(&span.begun.name));
        let tokens = |name: &str| span.attributes.get(name).and_then(Json::as_u64);
        if let (Some(input), Some(output)) = (tokens("gen_ai.usage.input_tokens"), tokens("gen_ai.usage.output_tokens"))
        {
            line.push_str(&format!(" {input} tokens in, {output} out"));
        }
        if let Some(error) = &span.error {
            line.push_str(&format!(" {}: {}", error.class, harmless(&error.message)));
        }
        Ok(writeln!(self.0, "{line}")?)
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        Ok(self.0.flush()?)
    }
}

/// Escapes a text for printing on one line: control characters, invisible characters, and those that change the text
/// direction.
fn harmless(text: &str) -> String {
    let is_unsafe = |char: char| {
        let turns =
            matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
        char.is_control() || turns || char == '\u{feff}'
    };
    text.chars().fold(String::with_capacity(text.len()), |mut out, char| {
        if is_unsafe(char) {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
        out
    })
}
