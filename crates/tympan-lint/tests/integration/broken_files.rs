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

/// A declaration that cannot be read says nothing about the others.
#[test]
fn a_broken_declaration_does_not_hide_the_rest() {
    let text = "\
---
model: {id: gpt-4o, provider: opanai, options: {seed: many}}
inputs:
  - {name: a, kind: strng, default: [1]}
  - {name: b, kind: integer, default: x}
  - {name: c, kind: string}
  - {name: d, kind: thred}
tools:
  - {name: f, kind: functon, bindings: [{name: p, input: c}]}
---
system:
{% for x in a %}{{ x.y }}{% endfor %} {{ b }} {{ bb }} {{ a.b }}
";
    let expected = [
        "2:31 unknown_provider",
        "2:55 invalid_document",
        "4:21 invalid_document",
        "5:39 invalid_default",
        "7:21 invalid_document",
        "9:21 unknown_kind",
        "12:50 undeclared_variable",
        "12:50 untrusted_in_system",
    ];
    assert_eq!(found("a.prompty", text), expected);
}

/// The declarations of a JSON Schema are one level deeper.
#[test]
fn a_broken_declaration_in_a_schema_is_left_out() {
    let text = "---\ninputs:\n  type: object\n  properties:\n    a: {type: strng}\n    b: {type: string}\n---\nsystem:\n\
                {{ a.x }}{{ b }}\n";
    let found = found("a.prompty", text);
    assert!(found.contains(&"9:13 untrusted_in_system".to_owned()), "{found:?}");
    assert!(!found.iter().any(|found| found.starts_with("9:4 ")), "{found:?}");
}

#[test]
fn a_missing_file_does_not_hide_the_rest() {
    let text = "---\ndescription: ${file:about.txt}\ninputs: [{name: a, kind: string}]\n---\nsystem:\n{{ a }}{{ b }}\n";
    let expected =
        ["2:14 file_outside_root", "6:4 untrusted_in_system", "6:11 undeclared_variable", "6:11 untrusted_in_system"];
    assert_eq!(found("a.prompty", text), expected);
    // A sample can declare inputs as well.
    let text = "---\nsample: ${file:sample.json}\ninputs: [{name: a, kind: string}]\n---\nsystem:\n{{ a }}{{ b }}\n";
    assert_eq!(found("a.prompty", text), ["2:9 file_outside_root"]);
}

#[test]
fn comments_also_hide_findings_in_files_that_do_not_load() {
    let text = "\
---
seed: 1
model: {options: {seed: many}}
inputs:
  - {name: a, kind: string}
  - {name: b, kind: string}  # tympan: ignore[TY201]
  - {name: c, kind: strng}  # tympan: ignore[TY004]
---
system:
{{ a }} {# tympan: ignore[TY301, TY102] #}
{{ c }}
";
    assert_eq!(found("a.prompty", text), ["2:1 unknown_key", "3:25 invalid_document", "7:21 invalid_document"]);
    let text = "\
name: a
role: system
body: |
  {{ a }}{{ b }}  {# tympan: ignore[TY301, TY308, TY101] #}
variables:
  a: {type: string, trusted: false} # tympan: ignore[TY308]
  c: {type: string, trusted: false} # tympan: ignore[TY201]
";
    assert_eq!(found("a.yaml", text), ["4:13 undeclared_variable"]);
}

/// Whatever the rule of an error is: if it keeps a file from loading, it is reported.
#[test]
fn errors_that_keep_a_file_from_loading_cannot_be_deselected() {
    let mut options = Options::default();
    options.selection.ignore = vec!["ALL".parse().expect("a selector")];
    for (name, text, rule) in [
        ("a.yaml", "{name: a, role: user, body: '{{ b }}', variables: {}}", "undeclared_variable"),
        ("a.prompty", "---\ninputs: 5\n---\nuser:\nHi\n", "invalid_document"),
        (
            "a.md",
            "# A\n\n```xml\n<directive name=\"a\" version=\"1.0.0\"><inputs><input name=\"b\" type=\"string\"/></inputs>\
             </directive>\n```\n\nUse {input:c}.\n",
            "undeclared_input",
        ),
    ] {
        let checked = check_file(&SourceFile::new(name, text), &mut NoReferences, &options);
        let found: Vec<_> = checked.findings.iter().map(|finding| finding.rule.name).collect();
        assert!(checked.prompt.is_none() && found == [rule], "{name}: {found:?}");
    }
}

#[test]
fn tags_of_another_syntax_are_explained() {
    let help = |text: &str| {
        let source = SourceFile::new("a.prompty", text);
        let checked = check_file(&source, &mut NoReferences, &Options::default());
        checked.findings[0].help.clone().unwrap_or_default()
    };
    for tag in ["{{#a}}", "{{/a}}", "{{^a}}", "{{! a }}", "{{> a}}", "{{&a}}", "{{.}}"] {
        assert!(help(tag).contains("format: mustache"), "{tag}");
    }
    for name in ["größe", "名前"] {
        assert!(help(&format!("{{{{ {name} }}}}")).contains("digits and underscores"), "{name}");
    }
    assert_eq!(help("{{ a # b }}"), "");
}

#[test]
fn definitions_have_all_findings_as_well() {
    let text = "name: a\nrole: systm\nbody: \"{{ a + }} {{ 'x' | uper }} {{ b | }}\"\nvariables: {}\n";
    let expected = ["2:7 invalid_definition", "3:15 template_syntax", "3:27 unknown_filter", "3:42 template_syntax"];
    assert_eq!(found("a.yaml", text), expected);
}
