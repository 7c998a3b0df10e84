//! Any text as a prompt file: it is read, or refused with places that lie in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tympan::format::{ReferencedFile, Resolve, prompty};
use tympan::text::source::SourceFile;

/// A host on which everything exists, and says what would be resolved again.
struct Echo;

impl Resolve for Echo {
    fn env(&mut self, name: &str) -> tympan::Result<Option<String>> {
        Ok((!name.starts_with('N')).then(|| "${env:AGAIN}".to_owned()))
    }

    fn file(&mut self, path: &str) -> tympan::Result<ReferencedFile> {
        Ok(ReferencedFile { text: path.to_owned() })
    }
}

fuzz_target!(|text: &str| {
    let source = SourceFile::new("fuzzed.prompty", text);
    let (document, diagnostics) = prompty::parse(&source, &mut Echo);
    assert_eq!(document.is_none(), diagnostics.iter().any(|diagnostic| diagnostic.is_error()));
    for diagnostic in &diagnostics {
        let span = diagnostic.span.expect("every finding has a place");
        assert!(text.get(span.range()).is_some(), "{diagnostic:?}");
    }
    if let Some(document) = document {
        assert_eq!(source.slice(document.body), document.spec.instructions);
        let _ = (document.spec.to_json_redacted(), format!("{document:?}"));
    }
});
