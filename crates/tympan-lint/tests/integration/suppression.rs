//! Comments that hide findings, in every format.

use tympan_core::format::NoReferences;
use tympan_core::text::source::SourceFile;
use tympan_lint::{FixMode, Options, Selection, check_file, fix_file};

/// Returns the findings of a file as `line name`.
fn found_with(name: &str, text: &str, options: &Options) -> Vec<String> {
    let source = SourceFile::new(name, text);
    let findings = check_file(&source, &mut NoReferences, options).findings;
    let shown = findings.iter().map(|finding| {
        let line = finding.span.map_or(0, |span| source.line_column(span.start).line);
        format!("{line} {}", finding.rule.name)
    });
    shown.collect()
}

fn found(name: &str, text: &str) -> Vec<String> {
    found_with(name, text, &Options::default())
}

fn fixed(name: &str, text: &str) -> String {
    let source = SourceFile::new(name, text);
    fix_file(&source, &mut NoReferences, &Options::default(), FixMode::Safe).source.text().to_owned()
}

#[test]
fn a_comment_hides_a_finding_of_its_line_or_the_next() {
    for text in [
        "---\ninputs:\n  - {name: a, kind: string}  # tympan: ignore[TY201]\n---\nuser:\nHi",
        "---\ninputs:\n  # tympan: ignore[unused_variable]\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\r\ninputs:\r\n  # tympan: ignore[ty201]\r\n  - {name: a, kind: string}\r\n---\r\nuser:\r\nHi",
        "---\n#tympan:ignore-file[suspicious]: old drafts\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ninputs:\n  # tympan: ignore[TY2]\n  # tympan: ignore[TY2]\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ninputs:\n  - {name: a, kind: string}\n---\nsystem:\nHi {{ a }} {# tympan: ignore[TY301] reviewed #}",
        "---\ninputs:\n  - {name: a, kind: string}\n---\nsystem:\n{#- tympan: ignore[TY301] -#}\nHi {{ a }}",
        "---\ntemplate: mustache\ninputs:\n  - {name: a, kind: string}\n---\nsystem:\n{{! tympan: ignore[TY301] }}\nHi {{ a }}",
        "---\ntemplate: mustache\ninputs:\n  - {name: a, kind: string}\n---\nsystem:\nHi {{ a }}{{!tympan:ignore[TY301]}}",
    ] {
        assert_eq!(found("a.prompty", text), [""; 0], "{text}");
        let without = text.replace("tympan:", "nobody:");
        assert!(!found("a.prompty", &without).is_empty(), "{text}");
    }
}

#[test]
fn definitions_have_comments_of_their_format() {
    let yaml = "name: d\nrole: user\nbody: Hello\nvariables:\n  a: {type: string, trusted: false} # tympan: ignore[unused_variable]\n";
    let toml = "name = 'd'\nrole = 'user'\nbody = 'Hello'\n[variables]\n\
        a = {type = 'string', trusted = false}# tympan: ignore[unused_variable]\n";
    let json = "{\"name\": \"d\", \"role\": \"system\", \"variables\": {\"a\": {\"type\": \"string\", \"trusted\": false}}, \
        \"body\": \"One.\\n{# tympan: ignore[TY3] #}\\nHello \\\"{{ a }}\\\"\"}";
    for (name, text) in [("a.yaml", yaml), ("a.toml", toml), ("a.json", json)] {
        let without = found(name, &text.replace("tympan:", "nobody:"));
        assert!(
            !without.is_empty() && found(name, text).len() < without.len(),
            "{name}: {:?} {without:?}",
            found(name, text)
        );
        assert!(!found(name, text).iter().any(|finding| finding.contains("suppression")), "{name}");
    }
}

#[test]
fn directives_have_comments_of_markup() {
    let directive = |comment: &str| {
        format!(
            "# Title\n\nWhat.\n\n```xml\n<directive name=\"a\" version=\"1.0.0\" extends=\"base\">{comment}\n  <metadata>\n    \
            <description>What</description>\n    <category>c</category>\n    <author>a</author>\n    <model tier=\"general\" />\n  </metadata>\n\
            </directive>\n```\n\n1. Do it.\n"
        )
    };
    let without = found("a.md", &directive(""));
    assert_eq!(without, ["6 not_applied"]);
    assert_eq!(found("a.md", &directive(" <!-- tympan: ignore[not_applied] -->")), [""; 0]);
}

/// What looks like a comment but belongs to a value hides nothing, and is not reported.
#[test]
fn text_is_not_a_comment() {
    for text in [
        "---\ndescription: \"a # tympan: ignore-file[ALL]\"\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ndescription: |\n  a\n  # tympan: ignore-file[ALL]\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ndescription: >-\n\n  # tympan: ignore-file[ALL]\n\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ndescription: 'it''s\n  # tympan: ignore-file[ALL]'\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ndescription: a#tympan:ignore-file[ALL]\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi",
        "---\ninputs:\n  - {name: a, kind: string}\n---\nuser:\n# tympan: ignore-file[ALL]\nHi",
        "---\ninputs:\n  - {name: a, kind: string}\n---\nuser:\n{% raw %}{# tympan: ignore-file[ALL] #}{% endraw %}\nHi",
        "---\ninputs:\n  - {name: a, kind: string}\n---\nuser:\n{{ '{# tympan: ignore-file[ALL] #}' }}\nHi",
        "---\ntemplate: mustache\ninputs:\n  - {name: a, kind: string}\n---\nuser:\n{# tympan: ignore-file[ALL] #}",
    ] {
        let found = found("a.prompty", text);
        assert!(found.iter().any(|finding| finding.ends_with("unused_variable")), "{text}\n{found:?}");
        assert!(!found.iter().any(|finding| finding.ends_with("suppression")), "{text}\n{found:?}");
    }
}

#[test]
fn unused_comments_are_findings_with_a_fix() {
    for (text, fixed_text) in [
        ("---\nname: a  # tympan: ignore[TY201]\n---\nuser:\nHi\n", "---\nname: a\n---\nuser:\nHi\n"),
        ("---\nname: a\n# tympan: ignore[TY201]\n---\nuser:\nHi\n", "---\nname: a\n---\nuser:\nHi\n"),
        ("---\nname: a\n---\nuser:\nHi {# tympan: ignore[TY301] #}\n", "---\nname: a\n---\nuser:\nHi \n"),
        (
            "---\ntemplate: mustache\n---\nuser:\n{{! tympan: ignore[TY301] }}\nHi\n",
            "---\ntemplate: mustache\n---\nuser:\nHi\n",
        ),
        (
            "---\ninputs:\n  - {name: a, kind: string} # tympan: ignore[TY101, TY201,TY3]\n---\nuser:\nHi\n",
            "---\ninputs:\n  - {name: a, kind: string} # tympan: ignore[TY201]\n---\nuser:\nHi\n",
        ),
    ] {
        let found = found("a.prompty", text);
        assert!(found.len() == 1 && found[0].ends_with(" unused_suppression"), "{text}\n{found:?}");
        assert_eq!(fixed("a.prompty", text), fixed_text);
    }
    // The white space control of the comment changes the text.
    let trims = "user:\nHi\n{#- tympan: ignore[TY301] #}\n";
    assert_eq!(fixed("a.prompty", trims), trims);
}

#[test]
fn rules_that_are_not_selected_make_no_comment_unused() {
    let text = "---\nname: a  # tympan: ignore[TY201]\n---\nuser:\nHi\n";
    let selection = Selection { ignore: vec!["TY201".parse().expect("a rule")], ..Selection::default() };
    let mut options = Options::default();
    options.selection = selection;
    assert_eq!(found_with("a.prompty", text, &options), [""; 0]);
}

#[test]
fn comments_that_say_nothing_are_findings() {
    for comment in ["ignore", "ignore[]", "ignore[unused_varible]", "ignore[TY999]", "ingore[TY201]", "ignore TY201"] {
        let found = found("a.prompty", &format!("---\nname: a # tympan: {comment}\n---\nuser:\nHi\n"));
        assert_eq!(found, ["2 invalid_suppression"], "{comment}");
    }
    assert_eq!(found("a.prompty", "---\nname: a # tympan: is an engine\n---\nuser:\nHi\n"), [""; 0]);
}

/// Nothing else is known about a file that does not load, so its errors are always reported.
#[test]
fn errors_that_keep_a_file_from_loading_stay() {
    let broken = "---\n# tympan: ignore-file[ALL]\nname: [\n---\nuser:\nHi\n";
    assert_eq!(found("a.prompty", broken), ["3 invalid_frontmatter"]);
    let template = "---\n# tympan: ignore-file[ALL]\nname: a\n---\nuser:\nHi {{ x\n";
    assert_eq!(found("a.prompty", template).len(), 1);
    let mut options = Options::default();
    options.selection = Selection { select: vec!["TY301".parse().expect("a rule")], ..Selection::default() };
    assert_eq!(found_with("a.prompty", broken, &options), ["3 invalid_frontmatter"]);
    assert_eq!(found_with("a.prompty", template, &options).len(), 1);
}
