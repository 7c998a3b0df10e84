//! Findings as JSON, the same for the command and the packages.

use serde_json::{Value as Json, json};
use tympan_core::text::source::{SourceFile, Span};

use crate::finding::{Finding, Fix};

impl Finding {
    /// Converts the finding to JSON. Lines and columns are counted from 1, and columns count characters. What is not
    /// known is null.
    ///
    /// ```
    /// use tympan_core::format::NoReferences;
    /// use tympan_core::text::source::SourceFile;
    /// use tympan_lint::{Options, check_file};
    ///
    /// let source = SourceFile::new("hello.prompty", "user:\nHi {{ name");
    /// let findings = check_file(&source, &mut NoReferences, &Options::default()).findings;
    /// let json = findings[0].to_json(&source);
    /// assert_eq!((&json["rule"], &json["line"]), (&"TY008".into(), &2.into()));
    /// ```
    pub fn to_json(&self, source: &SourceFile) -> Json {
        let start = self.span.map(|span| source.line_column(span.start));
        let related = self.related.iter().map(|(span, note)| {
            let mut related = range(source, *span);
            related["message"] = json!(note);
            related
        });
        json!({
            "code": self.rule.name,
            "message": self.message,
            "file": source.name(),
            "line": start.map(|start| start.line),
            "column": start.map(|start| start.column),
            "end": self.span.map(|span| position(source, span.end)),
            "help": self.help,
            "severity": self.severity.as_str(),
            "rule": self.rule.code,
            "fix": self.fix.as_ref().map(|fix| fix_json(fix, source)),
            "related": related.collect::<Json>(),
        })
    }
}

fn fix_json(fix: &Fix, source: &SourceFile) -> Json {
    let edits = fix.edits.iter().map(|(span, text)| {
        let mut edit = range(source, *span);
        edit["text"] = json!(text);
        edit
    });
    json!({ "safe": fix.safe, "edits": edits.collect::<Json>() })
}

fn range(source: &SourceFile, span: Span) -> Json {
    let mut range = position(source, span.start);
    range["end"] = position(source, span.end);
    range
}

fn position(source: &SourceFile, offset: usize) -> Json {
    let at = source.line_column(offset);
    json!({ "line": at.line, "column": at.column })
}
