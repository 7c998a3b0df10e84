//! For any text, parsing does not panic, and positions are inside the text.

use proptest::prelude::*;
use tympan::format::{ReferencedFile, Resolve, prompty};
use tympan::text::source::SourceFile;

/// A host on which every file and variable exists, and nothing is secret.
struct Echo;

impl Resolve for Echo {
    fn env(&mut self, name: &str) -> tympan::Result<Option<String>> {
        Ok((!name.starts_with('N')).then(|| "${env:SECOND}".to_owned()))
    }

    fn file(&mut self, path: &str) -> tympan::Result<ReferencedFile> {
        Ok(ReferencedFile { text: path.to_owned() })
    }
}

fn check(text: String) -> Result<(), TestCaseError> {
    let source = SourceFile::new("generated.prompty", text);
    let (document, diagnostics) = prompty::parse(&source, &mut Echo);
    prop_assert_eq!(document.is_none(), diagnostics.iter().any(|diagnostic| diagnostic.is_error()));
    for diagnostic in &diagnostics {
        let span = diagnostic.span.expect("every finding has a place");
        prop_assert!(source.text().get(span.range()).is_some(), "{:?} {:?}", diagnostic, source.text());
    }
    if let Some(document) = document {
        prop_assert_eq!(source.slice(document.body), &document.spec.instructions);
        let _ = (document.spec.to_json_redacted(), format!("{document:?}"));
    }
    Ok(())
}

/// Returns typical pieces of prompt files, so that random texts are more than noise.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "---\n",
        "+++\n",
        "...\n",
        "name: ",
        "model: ",
        "inputs:\n",
        "  - ",
        "  ",
        "kind: ",
        "type: ",
        "string\n",
        "tools:\n",
        "sample: ",
        "template: ",
        "configuration:\n",
        "parameters:\n",
        "options: ",
        "${env:A}",
        "${env:N:b}",
        "${file:x.json}",
        "${",
        "}",
        "{",
        "[",
        "]",
        ",",
        ": ",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "<<: ",
        "|\n",
        ">-\n",
        "\"",
        "'",
        "#",
        "\n",
        "\r\n",
        "\t",
        "é",
        "\u{feff}",
        "1",
        "-1.5",
        ".nan",
        "~",
        "system:\n",
        "? ",
        "properties: ",
        "required: ",
        "connection: ",
    ];
    prop_oneof![9 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,3}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_front_matter_is_read_or_refused(pieces in proptest::collection::vec(piece(), 0..40)) {
        check(format!("---\n{}\n---\nBody\n", pieces.concat()))?;
    }

    #[test]
    fn any_text_is_read_or_refused(pieces in proptest::collection::vec(piece(), 0..20)) {
        check(pieces.concat())?;
    }
}
