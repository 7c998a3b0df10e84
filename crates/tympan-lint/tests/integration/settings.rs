//! Settings files: what they say, and what is wrong with them.

use std::path::Path;

use tympan_core::text::source::SourceFile;
use tympan_lint::{Glob, Selector, Settings, rule};

fn parse(text: &str) -> Settings {
    Settings::parse(&SourceFile::new("tympan.toml", text)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Returns the mistakes of a file, as `line:column message (help)`.
fn errors(text: &str) -> Vec<String> {
    let source = SourceFile::new("tympan.toml", text);
    let errors = Settings::parse(&source).expect_err("there are mistakes");
    let shown = errors.iter().map(|error| {
        let at = source.line_column(error.span.start);
        format!("{}:{} {error}", at.line, at.column)
    });
    shown.collect()
}

#[test]
fn an_empty_file_changes_nothing() {
    assert_eq!(parse(""), Settings::default());
    assert_eq!(parse("[check]\n"), Settings::default());
}

#[test]
fn rules_are_chosen_per_file() {
    let settings = parse(
        "[check]\nselect = ['TY101', 'trust']\nextend-select = ['unused_variable']\nignore = ['TY303']\n\
        deny = ['warnings']\nfilters = ['shout']\n[check.per-file-ignores]\n'drafts/**' = ['TY3']\n'*.md' = ['ALL']\n",
    );
    let is_selected = |path: &str, code: &str| {
        settings.check.options(Path::new(path)).selection.is_selected(rule(code).expect("a rule"))
    };
    for code in ["TY101", "TY301", "TY201"] {
        assert!(is_selected("a.prompty", code), "{code}");
        assert!(!is_selected("deep/b.md", code), "{code}");
    }
    assert!(!is_selected("a.prompty", "TY303") && !is_selected("a.prompty", "TY102"));
    assert!(is_selected("drafts/a.prompty", "TY101") && !is_selected("drafts/a.prompty", "TY301"));
    let options = settings.check.options(Path::new("a.prompty"));
    assert_eq!((options.filters, options.selection.deny), (vec!["shout".to_owned()], vec![Selector::All]));
}

#[test]
fn every_mistake_has_a_position_and_advice() {
    let text = "selct = 1\n[check]\nselect = ['TY1', 'trst', 3]\nignore = 'TY1'\nfiltres = []\n\
        exclude = ['a[']\n[chekc]\n[fmt]\nwidth = 80\n";
    assert_eq!(
        errors(text),
        [
            "1:1 unknown key `selct` (known keys: check, fmt, policy)",
            "3:18 `select`: unknown rule or group `trst` (did you mean `trust`?)",
            "3:26 `select`: expected a string, found a number",
            "4:10 `ignore`: expected a list of strings, found a string",
            "5:1 unknown key `filtres` in `[check]` (did you mean `filters`?)",
            "6:12 `exclude`: `a[` is not a pattern: unclosed character class; missing ']'",
            "7:2 unknown key `chekc` (did you mean `check`?)",
        ]
    );
    assert_eq!(errors("[check]\nselect = [\n").len(), 1);
}

/// A project cannot allow its prompts more than its user does.
#[test]
fn what_prompts_reach_is_not_a_setting() {
    for text in [
        "allow-env = ['*']",
        "[check]\nallow_env = ['*']",
        "[check]\nallow-dirs = ['/']",
        "file-roots = ['/']",
        "endpoints = ['https://example.com']",
        "[credentials.foundry]\ncommand = ['x']",
    ] {
        let errors = errors(text);
        assert!(errors.len() == 1 && errors[0].contains("widens what prompts may reach"), "{text}: {errors:?}");
    }
}

#[test]
fn patterns_match_names_or_paths() {
    let matches = |pattern: &str, path: &str| Glob::new(pattern).expect("a pattern").matches(Path::new(path));
    for (pattern, path) in [
        ("*.md", "a/b.md"),
        ("drafts", "a/drafts/b/c.prompty"),
        ("drafts/", "drafts/b.prompty"),
        ("./a/*.md", "a/b.md"),
        ("/b.md", "b.md"),
        ("a/**/c.md", "a/x/y/c.md"),
        ("{a,b}.md", "b.md"),
    ] {
        assert!(matches(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in [("a/*.md", "a/b/c.md"), ("/b.md", "a/b.md"), ("draft", "drafts/a.md"), ("a/b", "x/a/b")] {
        assert!(!matches(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn the_narrower_choice_wins() {
    let settings = parse("[check]\nselect = ['TY1', 'TY201']\nignore = ['TY101', 'suspicious', 'TY10']\n");
    let selection = settings.check.selection();
    let is_selected = |code: &str| selection.is_selected(rule(code).expect("a rule"));
    assert!(is_selected("TY201") && is_selected("TY111"));
    assert!(!is_selected("TY101") && !is_selected("TY102") && !is_selected("TY205") && !is_selected("TY301"));
    let unknown = |text: &str| text.parse::<Selector>().expect_err("the rule does not exist").to_string();
    assert_eq!(unknown("nonsense"), "unknown rule or group `nonsense`; `tympan rule` lists all rules");
    assert_eq!(unknown("T"), "unknown rule or group `T`; `tympan rule` lists all rules");
    assert_eq!(unknown("susspicious"), "unknown rule or group `susspicious`, did you mean `suspicious`?");
    assert_eq!("ty3".parse::<Selector>().map(|selector| selector.to_string()), Ok("trust".to_owned()));
}
