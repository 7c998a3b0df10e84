//! Settings files: what they say, and what is wrong with them.

use std::path::Path;

use tympan_core::text::source::SourceFile;
use tympan_core::turn::{Decision, PolicyMode, ToolPolicy};
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
fn the_baseline_is_below_the_directory() {
    for path in ["known.json", "./a/b.json", "..a/b..json"] {
        assert_eq!(parse(&format!("[check]\nbaseline = '{path}'\n")).check.baseline.as_deref(), Some(path));
    }
    for path in ["../a.json", "a/../../b.json", "/tmp/a.json"] {
        let errors = errors(&format!("[check]\nbaseline = '{path}'\n"));
        assert!(errors.len() == 1 && errors[0].starts_with("2:12 `baseline`: expected a path below"), "{errors:?}");
    }
}

#[test]
fn every_mistake_has_a_position_and_advice() {
    let text = "selct = 1\n[check]\nselect = ['TY1', 'trst', 3]\nignore = 'TY1'\nfiltres = []\n\
        exclude = ['a[']\n[chekc]\n[fmt]\nwidth = 80\n";
    assert_eq!(
        errors(text),
        [
            "1:1 unknown key `selct` (known keys: check, policy, models)",
            "3:18 `select`: unknown rule or group `trst` (did you mean `trust`?)",
            "3:26 `select`: expected a string, found a number",
            "4:10 `ignore`: expected a list of strings, found a string",
            "5:1 unknown key `filtres` in `[check]` (did you mean `filters`?)",
            "6:12 `exclude`: `a[` is not a pattern: unclosed character class; missing ']'",
            "7:2 unknown key `chekc` (did you mean `check`?)",
            "8:2 `tympan fmt` has no settings (remove it: there is one layout; `exclude` in `[check]` also applies to `tympan \
             fmt`)",
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

/// A project can tighten the policy for tools, and not loosen it.
#[test]
fn a_project_tightens_the_policy_for_tools() {
    let text = "[policy.tools]\nmode = 'strict'\nvalues = 'deny'\nextraction_bits = 4\nuntrusted.write = 'deny'\n\
        exceptions = [{tool = 'find', decision = 'ask'}, {tool = 'send', parameter = 'to', decision = 'deny'}]\n";
    let policy = parse(text).policy.tools.expect("it has the section");
    let (ours, loose) = (ToolPolicy::default(), ToolPolicy { extraction_bits: 99, ..ToolPolicy::default() });
    let tightened = ours.tightened(&policy);
    assert_eq!((tightened.mode, tightened.values, tightened.extraction_bits), (PolicyMode::Strict, Decision::Deny, 4));
    assert_eq!((tightened.untrusted.write, tightened.untrusted.external), (Decision::Deny, Decision::Ask));
    assert_eq!((tightened.untrusted.read, tightened.confidential), (Decision::Allow, ours.confidential));
    assert_eq!((tightened.exceptions.len(), tightened.restrictions.len()), (0, 2));
    // What it does not mention stays as the user has it.
    let mut allows = loose.clone();
    allows.untrusted.external = Decision::Allow;
    let policy = parse("[policy.tools]\nuntrusted.write = 'deny'\n").policy.tools.expect("it has the section");
    let tightened = allows.tightened(&policy);
    assert_eq!((tightened.untrusted.external, tightened.untrusted.write), (Decision::Allow, Decision::Deny));
    assert_eq!((tightened.mode, tightened.extraction_bits), (PolicyMode::Default, 99));
    assert_eq!(parse("[policy.tools]\n").options(Path::new("a.prompty")).tool_policy, ours);
    for (setting, complaint) in [
        (
            "mode = 'off'",
            "`mode = \"off\"` loosens the policy for tools, so a project cannot set it (pass `--tool-policy off`",
        ),
        ("mode = 'lax'", "`mode`: expected `strict` or `default`, found `lax`"),
        ("untrusted.write = 'allow'", "`write = \"allow\"` loosens the policy"),
        ("untrusted.send = 'ask'", "unknown key `send` in `[policy.tools.untrusted]`"),
        ("confidential = 'deny'", "`confidential`: expected a table, found a string"),
        ("values = 'allow'", "`values = \"allow\"` loosens the policy"),
        ("values = 1", "`values`: expected `ask` or `deny`, found a number"),
        ("destinations = ['a@b.c']", "`destinations` loosens the policy for tools"),
        ("trusted_values = ['a']", "`trusted_values` loosens the policy for tools"),
        ("extraction_bits = 17", "`extraction_bits = 17` (the default is 16) loosens"),
        ("extraction_bits = -1", "`extraction_bits`: expected a number from 0 to 16"),
        ("exceptions = [{tool = 'a', decision = 'allow'}]", "`decision = \"allow\"` loosens"),
        ("exceptions = [{tool = 'a'}]", "missing `decision` in `[[policy.tools.exceptions]]`"),
        ("exceptions = [{decision = 'ask'}]", "missing `tool` in `[[policy.tools.exceptions]]`"),
        ("modes = 'strict'", "unknown key `modes` in `[policy.tools]` (did you mean `mode`?)"),
    ] {
        let errors = errors(&format!("[policy.tools]\n{setting}\n"));
        assert!(errors.len() == 1 && errors[0].contains(complaint), "{setting}: {errors:?}");
    }
    let source = SourceFile::new("tympan.toml", "[check]\nselct = []\n[policy.tools]\nmode = 'strict'\n");
    let read = Settings::parse_tool_policy(&source).expect("other sections are not read");
    assert_eq!(read.map(|policy| policy.mode), Some(PolicyMode::Strict));
    let source = SourceFile::new("tympan.toml", "[policy.tools]\nmode = 'off'\n");
    assert_eq!(Settings::parse_tool_policy(&source).expect_err("it loosens").len(), 1);
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

/// A project adds models and overrides what is built in.
#[test]
fn models_have_prices_and_contexts() {
    let text = "[models]\n\"acme/big\" = { input = 3, output = 12.5, cached-input = 0.3, context = 1_000_000 }\n\
        [models.gpt-4o]\ncontext = 0x10000\nmax-output = 16_384\n";
    let settings = parse(text);
    let big = settings.models.get("acme/big");
    let price = big.price.expect("it has a price");
    assert_eq!((price.input, price.output, price.cached_input, price.cache_write), (3.0, 12.5, 0.3, 3.0));
    assert_eq!((big.context, big.max_output), (Some(1_000_000), None));
    let known = settings.models.get("openai/gpt-4o");
    assert_eq!((known.context, known.max_output), (Some(65_536), Some(16_384)));
    assert!(known.price.is_some());
    assert_eq!(settings.options(Path::new("a.prompty")).catalog, settings.models);
    let source = SourceFile::new("tympan.toml", format!("{text}[chekc]\n"));
    assert_eq!(Settings::parse_models(&source), Ok(settings.models), "mistakes elsewhere do not matter");
}

#[test]
fn mistakes_in_models_have_a_position_and_advice() {
    for (text, complaint) in [
        ("[models]\nbig = 3", "2:7 `big`: expected a table, found a number"),
        ("models = []", "1:10 `models`: expected a table, found a list"),
        (
            "[models.big]\ninptu = 1\noutput = 1",
            "2:1 unknown key `inptu` in `[models.\"big\"]` (did you mean `input`?)",
        ),
        ("[models.big]\ninput = '1'", "2:9 `input`: expected a price in US dollars per million tokens, found a string"),
        (
            "[models.big]\ninput = -1\noutput = 1",
            "2:9 `input`: expected a price in US dollars per million tokens, found `-1`",
        ),
        (
            "[models.big]\ninput = 1\noutput = inf",
            "3:10 `output`: expected a price in US dollars per million tokens, found `inf`",
        ),
        ("[models.big]\ncontext = 0", "2:11 `context`: expected a positive number of tokens, found `0`"),
        ("[models.big]\ncontext = 1.5", "2:11 `context`: expected a positive number of tokens, found `1.5`"),
        (
            "[models.big]\ninput = 1",
            "1:9 missing `output` in `[models.\"big\"]` (set both `input` and `output`, in US dollars per million \
             tokens, for `big`)",
        ),
        ("[models.big]\ncached-input = 1", "1:9 missing `input` in `[models.\"big\"]`"),
        ("[models.'']\ninput = 1", "1:9 `models`: the name of a model is empty"),
    ] {
        let found = errors(text);
        assert!(found[0].starts_with(complaint), "{text}: {found:?}");
        let source = SourceFile::new("tympan.toml", text);
        assert!(Settings::parse_models(&source).is_err(), "{text}");
    }
}
