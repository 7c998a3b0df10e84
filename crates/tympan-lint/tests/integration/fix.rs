//! Fixes of whole files.

use std::path::{Path, PathBuf};

use tympan_core::diagnostic::Severity;
use tympan_core::format::{Format, NoReferences};
use tympan_core::text::source::SourceFile;
use tympan_lint::{FixMode, Fixed, Options, check_file, fix_file};

use crate::fixtures::{read, root};

fn fix(name: &str, text: &str, mode: FixMode) -> Fixed {
    fix_file(&SourceFile::new(name, text), &mut NoReferences, &Options::default(), mode)
}

/// All keys of version 1 have one fix, which converts the whole front matter.
#[test]
fn a_fix_of_several_findings_counts_for_each() {
    let text =
        "---\nauthors: [a]\nmodel:\n  api: chat\n  parameters: {max_tokens: 9}\nsample: {q: hi}\n---\nuser:\n{{ q }}\n";
    let source = SourceFile::new("old.prompty", text);
    let before = check_file(&source, &mut NoReferences, &Options::default());
    let fixed = fix_file(&source, &mut NoReferences, &Options::default(), FixMode::Safe);
    assert_eq!((fixed.fixed.len(), before.findings.len(), fixed.checked.findings.len()), (5, 5, 0));
}

#[test]
fn fixes_are_applied_until_nothing_is_left() {
    let text = "---\nmodel:\n  id: gpt-4o\n  api: chat\ninputs:\n  a:\n    type: string\n---\nuser:\n{{ a | uper }}\n";
    let safe = fix("a.prompty", text, FixMode::Safe);
    assert_eq!(safe.source.text(), text.replace("api:", "apiType:").replace("type: s", "kind: s"));
    assert_eq!(safe.fixed.len(), 2);
    let all = fix("a.prompty", text, FixMode::Unsafe);
    assert_eq!(all.source.text(), safe.source.text().replace("uper", "upper"));
    assert!(all.checked.findings.is_empty(), "{:?}", all.checked.findings);
}

#[test]
fn line_ends_and_the_byte_order_mark_stay() {
    let text = "\u{feff}---\r\nmodel:\r\n  id: gpt-4o\r\n  api: chat\r\n---\r\nuser:\r\nHi\r\n";
    let fixed = fix("a.prompty", text, FixMode::Safe);
    assert_eq!(fixed.source.text(), text.replace("api:", "apiType:"));
}

/// Files from Windows get the same fixes as others.
#[test]
fn fixes_do_not_depend_on_line_ends() {
    let mut changed = 0;
    for path in files().into_iter().filter(|path| !path.ends_with("not_utf8.prompty")) {
        let name = path.display().to_string();
        let text = read(&path).text().replace("\r\n", "\n");
        if text.contains('\r') || text.starts_with('\u{feff}') {
            continue;
        }
        for mode in [FixMode::Safe, FixMode::Unsafe] {
            let expected = fix(&name, &text, mode).source.text().to_owned();
            let windows = fix(&name, &format!("\u{feff}{}", text.replace('\n', "\r\n")), mode);
            assert_eq!(windows.source.text(), format!("\u{feff}{}", expected.replace('\n', "\r\n")), "{name}");
            changed += usize::from(expected != text);
        }
    }
    assert!(changed > 60, "{changed}");
}

/// The prompt files of the fixtures.
fn files() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["lint", "load", "definition", "directive", "cli/prompts", "cli/definitions"]
        .map(|name| root().join(name))
        .into();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            let is_prompt = |path: &Path| {
                path.extension().is_some_and(|extension| extension != "expected") && Format::from_name(path).is_some()
            };
            if path.is_dir() {
                folders.push(path);
            } else if is_prompt(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Checks that fixes do no harm. Returns the number of fixes.
fn check_harmless(source: &SourceFile) -> usize {
    let before = check_file(source, &mut NoReferences, &Options::default());
    let errors = |findings: &[tympan_lint::Finding]| findings.iter().filter(|f| f.severity == Severity::Error).count();
    for mode in [FixMode::Safe, FixMode::Unsafe] {
        let fixed = fix_file(source, &mut NoReferences, &Options::default(), mode);
        let text = fixed.source.text();
        let context = || format!("{}\n{}\n--\n{text}", source.name(), source.text());
        assert!(fixed.checked.prompt.is_some() || before.prompt.is_none(), "does not load: {}", context());
        assert!(errors(&fixed.checked.findings) <= errors(&before.findings), "more errors: {}", context());
        let again = fix_file(&fixed.source, &mut NoReferences, &Options::default(), mode);
        assert_eq!(again.source.text(), text, "not finished: {}", source.name());
        if mode == FixMode::Unsafe {
            return fixed.fixed.len();
        }
    }
    0
}

#[test]
fn fixes_never_make_a_file_fail_to_load() {
    let mut count = 0;
    for path in files() {
        #[expect(clippy::disallowed_methods, reason = "a test reads fixtures")]
        if std::fs::read_to_string(&path).is_ok() {
            count += check_harmless(&read(&path));
        }
    }
    assert!(count > 50, "only {count} fixes");
}

/// The same for files with random mistakes.
#[test]
fn fixes_of_broken_files_do_no_harm() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % (limit.max(1) as u64)).unwrap_or_default()
    };
    const PARTS: [&str; 12] = [
        "{{ x | uper }}",
        "# tympan: ignore[TY101]\n",
        "{# tympan: ignore[TY301] #}",
        "---\n",
        "  api: chat\n",
        "sytem:\n",
        "\r\n",
        ": ",
        "- ",
        "\"",
        "{% if a %}",
        "type: string",
    ];
    for path in files() {
        #[expect(clippy::disallowed_methods, reason = "a test reads fixtures")]
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for _ in 0..4 {
            let mut text = text.clone();
            for _ in 0..=below(3) {
                let at = text.floor_char_boundary(below(text.len() + 1));
                let end = text.floor_char_boundary((at + below(8)).min(text.len())).max(at);
                text.replace_range(at..end, PARTS[below(PARTS.len())]);
            }
            check_harmless(&SourceFile::new(path.display().to_string(), text));
        }
    }
}
