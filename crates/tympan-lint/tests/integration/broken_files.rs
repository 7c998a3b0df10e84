//! Files that do not load or do not compile have all findings that can be trusted, and no others.

use tympan_core::format::NoReferences;
use tympan_core::text::source::SourceFile;
use tympan_lint::{Options, check_file};

/// The findings of a text, each as `line:column rule`.
fn found(name: &str, text: &str) -> Vec<String> {
    let source = SourceFile::new(name, text);
    let checked = check_file(&source, &mut NoReferences, &Options::default());
    let place = |finding: &tympan_lint::Finding| {
        let at = source.line_column(finding.span.expect("it has a position").start);
        format!("{}:{} {}", at.line, at.column, finding.rule.name)
    };
    checked.findings.iter().map(place).collect()
}

#[test]
fn all_mistakes_of_a_template_are_found() {
    let text = "---\ninputs: [{name: a, kind: string}]\n---\nsytem:\n{{ a + }} {{ a | uper }}\n{% if a %}x{% endfor %}\n{% set y = %}\n{% include 'x' %}\n";
    let expected = [
        "4:1 misspelt_role",
        "5:8 template_syntax",
        "5:18 unknown_filter",
        "6:15 template_syntax",
        "7:12 template_syntax",
        "8:4 excluded_feature",
    ];
    assert_eq!(found("a.prompty", text), expected);
}

#[test]
fn all_excluded_features_are_found() {
    let text = "user:\n{% include 'x' %}{% import 'y' as y %}\n{% extends 'z' %}";
    assert_eq!(found("a.prompty", text), ["2:4 excluded_feature", "2:21 excluded_feature", "3:4 excluded_feature"]);
    let text = "---\ntemplate: mustache\n---\nuser:\n{{> a}}\n{{#b}}\n{{/c}}";
    assert_eq!(found("a.prompty", text)[0], "5:1 excluded_feature");
}

#[test]
fn a_broken_front_matter_does_not_hide_the_template() {
    let text = "---\nname: [\ninputs: [{name: a}]\n---\nsytem:\nHello {{ a | uper }}{{ b }}\n\nuser: Hi\u{200b}\n";
    let expected = [
        "2:7 invalid_frontmatter",
        "5:1 misspelt_role",
        "6:14 unknown_filter",
        "8:1 text_after_role",
        "8:9 invisible_character",
    ];
    assert_eq!(found("a.prompty", text), expected);
}

#[test]
fn all_mistakes_of_a_front_matter_are_found() {
    let text = "---\nname: [a]\nmodel: {options: {temperature: hot, topK: many}}\ninputs: [{name: a, kind: strin}]\n---\nuser:\n{{ a }}\n";
    let expected = ["2:7 invalid_document", "3:32 invalid_document", "3:43 invalid_document", "4:26 invalid_document"];
    assert_eq!(found("a.prompty", text), expected);
}

/// Declarations that cannot be read must not make names in the template look undeclared or unused.
#[test]
fn mistakes_do_not_cascade() {
    for text in [
        "---\ninputs: 5\nmodel: {id: gpt-4o}\n---\nsystem:\n{{ a }} {{ b.c }}\n{% for d in e %}{{ d }}{% endfor %}\n",
        "---\n\"inputs: [{name: a}]\n---\nuser:\n{{ a }} {{ f(a) if a else b }}{{ range(3) }}\n",
        "---\ntemplate: mustache\ninputs: {\n---\nuser:\n{{#a}}{{b}}{{/a}}{{{c}}}{{! a comment }}\n",
    ] {
        let found = found("a.prompty", text);
        let expected = usize::from(text.contains("f(a)")) + 1;
        assert_eq!(found.len(), expected, "{found:?}");
    }
}

#[test]
fn definitions_have_all_findings_as_well() {
    let text = "name: a\nrole: systm\nbody: \"{{ a + }} {{ 'x' | uper }} {{ b | }}\"\nvariables: {}\n";
    let expected = ["2:7 invalid_definition", "3:15 template_syntax", "3:27 unknown_filter", "3:42 template_syntax"];
    assert_eq!(found("a.yaml", text), expected);
}
