//! Imports of promptfoo's configurations: `fixtures/promptfoo` has a directory for each, with the files that are expected.
//! `UPDATE_PROMPTFOO=1` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tympan_core::diagnostic::Severity;
use tympan_core::format::NoReferences;
use tympan_core::text::source::SourceFile;
use tympan_eval::promptfoo::{Import, Level, import};
use tympan_lint::{Options, check_file};
use tympan_runtime::load::References;
use tympan_runtime::{EnvPolicy, LoadOptions};

const CONFIG: &str = "promptfooconfig.yaml";

fn directories() -> Vec<String> {
    let entries = fs::read_dir(crate::fixture("promptfoo")).expect("the fixtures are there");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert!(names.len() >= 7, "{names:?}");
    names
}

fn import_fixture(name: &str) -> Import {
    let source = SourceFile::new(CONFIG, crate::read(&format!("promptfoo/{name}/{CONFIG}")));
    let directory = crate::fixture(&format!("promptfoo/{name}"));
    let options = LoadOptions { env: EnvPolicy::Deny, ..LoadOptions::default() };
    import(&source, &mut References::new(&directory, &options)).expect("the configuration parses")
}

/// Returns the findings as people would list them.
fn findings(import: &Import) -> String {
    let line = |finding: &tympan_eval::promptfoo::ImportFinding| {
        let lines: Vec<_> = finding.lines.iter().map(usize::to_string).collect();
        let (level, item) = (finding.level.as_str(), finding.item.escape_debug());
        format!(
            "{level} {}:{} {item}\n    {}\n    {}\n",
            finding.file,
            lines.join(","),
            finding.reason.escape_debug(),
            finding.help.escape_debug()
        )
    };
    import.findings.iter().map(line).collect()
}

#[test]
fn configurations_become_the_expected_files() {
    for name in directories() {
        let import = import_fixture(&name);
        let mut files: BTreeMap<_, _> =
            import.files.iter().map(|file| (file.name.clone(), file.text.clone())).collect();
        assert_eq!(files.len(), import.files.len(), "{name}: the names are unique");
        files.insert("findings.txt".to_owned(), findings(&import));
        let directory = crate::fixture(&format!("promptfoo/{name}/expected"));
        if std::env::var_os("UPDATE_PROMPTFOO").is_some() {
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir_all(&directory).expect("the directory is created");
            for (file, text) in &files {
                fs::write(directory.join(file), text).expect("the file is written");
            }
        }
        let expected: BTreeMap<_, _> = fs::read_dir(&directory)
            .expect("the expected files are there")
            .map(|entry| entry.expect("an entry").path())
            .map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                (name, fs::read_to_string(&path).expect("the file can be read"))
            })
            .collect();
        assert_eq!(files.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
        for (file, text) in &files {
            assert_eq!(text, &expected[file], "{name}/expected/{file}");
        }
    }
}

/// Checks the files of an import as `tympan check` does. Returns the errors.
fn errors(import: &Import, directory: &Path) -> Vec<String> {
    for file in &import.files {
        fs::write(directory.join(&file.name), &file.text).expect("the file is written");
    }
    let options = LoadOptions::default();
    let mut errors = Vec::new();
    for file in &import.files {
        let source = SourceFile::new(file.name.clone(), file.text.clone());
        let checked = check_file(&source, &mut References::new(directory, &options), &Options::default());
        let found = checked.findings.iter().filter(|finding| finding.severity == Severity::Error);
        errors.extend(found.map(|finding| format!("{}: {}\n{}", file.name, finding.message, file.text)));
    }
    errors
}

#[test]
fn everything_that_is_written_passes_the_check() {
    for name in directories() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(errors(&import_fixture(&name), directory.path()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn findings_and_files_contain_no_secrets() {
    for name in ["providers", "tests", "hostile"] {
        let import = import_fixture(name);
        let texts: String = import.files.iter().map(|file| file.text.as_str()).collect();
        assert!(!texts.contains("sk-secret") && !findings(&import).contains("sk-secret"), "{name}");
    }
}

#[test]
fn front_matter_contains_no_references() {
    let import = import_fixture("hostile");
    let prompts: Vec<_> = import.files.iter().filter(|file| file.name.ends_with(".prompty")).collect();
    assert!(prompts.len() >= 3, "{prompts:?}");
    for file in prompts {
        let front_matter = file.text.split("---\n").nth(1).expect("there is front matter");
        assert!(!front_matter.contains("${"), "{front_matter}");
    }
}

fn import_text(text: &str) -> tympan_core::Result<Import> {
    import(&SourceFile::new(CONFIG, text), &mut NoReferences)
}

#[test]
fn what_is_no_configuration_is_an_error() {
    let message = |text: &str| import_text(text).expect_err("an error").to_string();
    assert!(message("a: [").contains("Invalid tests"), "{}", message("a: ["));
    assert!(message("cases: []").contains("expected a configuration of promptfoo"), "{}", message("cases: []"));
    assert!(message("- prompts").contains("expected a configuration of promptfoo"));
    assert!(message("prompts: 1\nprompts: 2").contains("prompts"));
}

#[test]
fn growth_is_bounded() {
    // Thirty lists of ten values: 10^30 combinations.
    let lists: String = (0..30).map(|n| format!("v{n}: [a, b, c, d, e, f, g, h, i, j], ")).collect();
    let text = format!(
        "prompts: ['{{{{v1}}}}']\ntests: [{{vars: {{{lists}}}, assert: [{{type: equals, value: '{{{{v2}}}}'}}]}}]"
    );
    let import = import_text(&text).expect("it parses");
    assert!(import.files.iter().all(|file| file.text.len() < 1 << 20));
    // A text that doubles in each round.
    let doubling: String = (0..40).map(|n| format!("v{n}: '{{{{v{}}}}}{{{{v{}}}}}', ", n + 1, n + 1)).collect();
    let text = format!("prompts: ['{{{{v1}}}}']\ntests: [{{vars: {{{doubling} v40: aaaaaaaaaa}}}}]");
    let import = import_text(&text).expect("it parses");
    assert!(import.files.iter().all(|file| file.text.len() < 1 << 20));
    // Many cases that each repeat a long text.
    let long = "x".repeat(200_000);
    let names: Vec<_> = (0..900).map(|n| format!("n{n}")).collect();
    let text = format!(
        "prompts: ['{{{{a}}}}{{{{b}}}}']\ntests: [{{vars: {{a: '{long}', b: [{}]}}, assert: [{{type: equals, value: '{{{{b}}}}{{{{a}}}}'}}]}}]",
        names.join(", ")
    );
    let import = import_text(&text).expect("it parses");
    assert!(!import.is_complete());
    assert!(import.files.iter().map(|file| file.text.len()).sum::<usize>() < 200 << 20);
}

#[test]
fn findings_about_the_same_are_one() {
    let text = "prompts: [a]\ntests:\n- assert: [{type: javascript}]\n- assert: [{type: javascript}]\n";
    let import = import_text(text).expect("it parses");
    let [finding] = import.findings.as_slice() else { panic!("{:?}", import.findings) };
    assert_eq!((finding.level, finding.lines.as_slice()), (Level::NotCarried, [3, 4].as_slice()));
    assert_eq!(finding.item, "assertion `javascript`");
}

/// Values in which the keys and words of configurations occur in all places.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let words = prop::sample::select(vec![
        "contains",
        "not-contains",
        "is-json",
        "regex",
        "assert-set",
        "llm-rubric",
        "file://a.csv",
        "openai:gpt-4o",
        "echo",
        "{{ a }}",
        "{{ env.X }}",
        "{% if a %}",
        "{{",
        "---",
        "user:",
        "#/tests/0",
        "- role: user",
        "[{\"role\": 1}]",
        "${env:X}",
        "a, \"b",
        "\u{1b}[0m",
        "",
        "(",
        "\\",
        "é",
        "\u{96}\u{7f}\u{feff}\u{2028}\u{ffff}",
    ]);
    let leaf = prop_oneof![
        words.prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
        "\\PC{0,8}".prop_map(serde_json::Value::from),
    ];
    let keys = prop::sample::select(vec![
        "prompts",
        "providers",
        "tests",
        "scenarios",
        "config",
        "defaultTest",
        "vars",
        "assert",
        "type",
        "value",
        "threshold",
        "options",
        "id",
        "label",
        "raw",
        "repeat",
        "weight",
        "provider",
        "providerOutput",
        "prompts",
        "$ref",
        "a",
        "description",
        "metric",
        "min",
        "max",
        "transform",
        "path",
        "evaluateOptions",
        "temperature",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|entries| {
                serde_json::Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_values_give_files_that_load(
        prompts in value(), providers in value(), tests in prop::collection::vec(value(), 0..4), defaults in value(),
    ) {
        let config = serde_json::json!({
            "prompts": prompts, "providers": providers, "tests": tests, "defaultTest": defaults,
        });
        if let Ok(import) = import_text(&config.to_string()) {
            let directory = tempfile::tempdir().expect("a directory");
            let errors = errors(&import, directory.path());
            prop_assert!(errors.is_empty(), "{}\n{errors:?}", config);
        }
    }

    #[test]
    fn broken_configurations_do_no_harm(
        name in prop::sample::select(directories()), at in any::<prop::sample::Index>(), length in 0_usize..40,
        text in "[ -~\\n]{0,6}",
    ) {
        let source = crate::read(&format!("promptfoo/{name}/{CONFIG}"));
        let start = source.floor_char_boundary(at.index(source.len()));
        let end = source.floor_char_boundary((start + length).min(source.len()));
        let broken = format!("{}{text}{}", &source[..start], &source[end..]);
        let directory = crate::fixture(&format!("promptfoo/{name}"));
        let options = LoadOptions { env: EnvPolicy::Deny, ..LoadOptions::default() };
        let _ = import(&SourceFile::new(CONFIG, broken), &mut References::new(&directory, &options));
    }
}
