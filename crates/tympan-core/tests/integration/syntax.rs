//! The syntax trees of templates: invariants for arbitrary sources, and acceptance as by minijinja.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use tympan::Kind;
use tympan::template::syntax::error::MAX_ERRORS;
use tympan::template::syntax::jinja::visit::walk;
use tympan::template::syntax::{Parsed, SyntaxError, TokenKind, parse_jinja, parse_mustache};
use tympan::template::{CompileOptions, Syntax, Template};

use crate::grammar::{Exprs, block};

fn accepts(source: &str) -> Result<(), minijinja::Error> {
    minijinja::Environment::new().template_from_str(source).map(|_| ())
}

fn messages(errors: &[SyntaxError], source: &str) -> Vec<(String, String)> {
    errors.iter().map(|error| (source[error.span.range()].to_owned(), error.message.clone())).collect()
}

/// Checks that the tokens cover the source and that every mistake has a place in it.
fn check_tokens<N>(parsed: &Parsed<N>, source: &str) -> Result<(), TestCaseError> {
    let mut end = 0;
    for token in &parsed.tokens {
        prop_assert_eq!(token.start, end, "{:?} does not continue in {:?}", token, source);
        prop_assert!(token.end > token.start && source.get(token.span().range()).is_some(), "{:?}", source);
        end = token.end;
    }
    prop_assert_eq!(end as usize, source.len());
    prop_assert!(parsed.errors.len() <= MAX_ERRORS);
    for error in &parsed.errors {
        prop_assert!(source.get(error.span.range()).is_some(), "{:?} in {:?}", error, source);
    }
    Ok(())
}

/// Checks what holds for every Mustache source. Compiling it fails with the first mistake.
fn check_mustache(source: &str) -> Result<(), TestCaseError> {
    let parsed = parse_mustache(source);
    check_tokens(&parsed, source)?;
    let options = CompileOptions { syntax: Syntax::Mustache, ..CompileOptions::default() };
    let first = Template::compile(source, options).err().map(|error| (error.kind(), error.span()));
    prop_assert_eq!(first, parsed.errors.first().map(|error| (error.kind, Some(error.span))), "{:?}", source);
    Ok(())
}

/// Checks what holds for every Jinja source.
fn check_invariants(source: &str) -> Result<(), TestCaseError> {
    let parsed = parse_jinja(source);
    check_tokens(&parsed, source)?;
    let is_edge = |offset: usize| offset == source.len() || parsed.tokens.iter().any(|t| t.start as usize == offset);
    let mut misplaced = None;
    walk(&parsed.body, &mut |node| {
        let span = node.span();
        if !is_edge(span.start) || !is_edge(span.end) || span.start > span.end {
            misplaced = Some(format!("{node:?}"));
        }
        true
    });
    prop_assert_eq!(misplaced, None, "{:?}", source);
    let compiled = Template::compile(source, CompileOptions::default());
    let is_refused = compiled.as_ref().is_err_and(|error| error.kind() != Kind::ExcludedFeature);
    prop_assert_eq!(is_refused, !parsed.errors.is_empty(), "{:?}: {:?}", source, compiled.err());
    Ok(())
}

const SCRAPS: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{{-",
    "-}}",
    "{%-",
    "-%}",
    "{%+",
    "+%}",
    "{#-",
    "-#}",
    " ",
    "\n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "a",
    "b.c",
    "1",
    "1.5",
    "1.",
    "1e5",
    "0x1f",
    "1_0",
    "1_",
    " and ",
    " or ",
    " not ",
    " in ",
    " is ",
    " if ",
    " else ",
    "is not",
    "-",
    "+",
    "*",
    "**",
    "//",
    "/",
    "~",
    "|",
    ".",
    "==",
    "!=",
    "<=",
    "=",
    ",",
    ":",
    "\"",
    "'",
    "'s'",
    "\"\\n\"",
    "'\\u00e9'",
    "'\\x'",
    "%",
    "\\",
    "é",
    "\u{a0}",
    "true",
    "None",
    "x.y|z(a)",
    "f(a=1)",
    "*l",
    "**m",
    "{% if a %}",
    "{% elif b %}",
    "{% else %}",
    "{% endif %}",
    "{% for a in b %}",
    "{% endfor %}",
    "{% for a, b in c if d recursive %}",
    "{% set x %}",
    "{% set x = 1 %}",
    "{% set a.b, c = 1, 2 %}",
    "{% endset %}",
    "{% with a = 1, (b) = 2 %}",
    "{% endwith %}",
    "{% macro f(a, b=1) %}",
    "{% endmacro %}",
    "{% call(x) f() %}",
    "{% endcall %}",
    "{% filter upper|lower %}",
    "{% endfilter %}",
    "{% autoescape false %}",
    "{% endautoescape %}",
    "{% do f() %}",
    "{% break %}",
    "{% continue %}",
    "{% raw %}",
    "{%- raw -%}",
    "{% endraw %}",
    "{%- endraw -%}",
    "{{ a }}",
    "{{ 'a' 'b' }}",
    "{{ a[1:2:3] }}",
    "{{ -a.b|c is d }}",
    "{{ {'a': {'b': 1}} }}",
    "text",
    "for",
    "set",
];

/// Parts of expressions, of which a random sequence is often valid.
const PARTS: &[&str] = &[
    "a",
    "b",
    "1",
    "'s'",
    "[1]",
    "(a)",
    "{'k': 1}",
    "a.b",
    "a.0",
    "a[0]",
    "a[1:]",
    "f(a)",
    "f(a=1, **b)",
    "a|f",
    "a is f",
    "a is not f",
    "a is f 1",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "~",
    "==",
    "<",
    "in",
    "not in",
    "and",
    "or",
    "not",
    "if",
    "else",
    "|f",
    "|f(1)",
    "is f",
    ".x",
    "[::2]",
    "()",
    ",",
    "(",
    ")",
    "true",
    "-",
];

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::default() }
}

fn compare(source: &str) -> Result<(), TestCaseError> {
    let parsed = parse_jinja(source);
    if parsed.errors.iter().any(|error| error.kind == Kind::LimitExceeded) {
        return Ok(());
    }
    let theirs = accepts(source);
    prop_assert_eq!(parsed.errors.is_empty(), theirs.is_ok(), "{:?}\n{:?}\n{:?}", source, parsed.errors, theirs);
    Ok(())
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn any_text_is_covered_by_tokens(source in any::<String>()) {
        check_invariants(&source)?;
    }

    #[test]
    fn any_mustache_is_covered_by_tokens(source in r"(\{\{|\}\}|[#^/!=&>{}.|a-c \n\r\t]|<%|%>|é|\{\{[#^/]?[ab]\}\}){0,40}") {
        check_mustache(&source)?;
    }

    #[test]
    fn any_scraps_are_covered_by_tokens(parts in prop::collection::vec(select(SCRAPS), 0..30)) {
        check_invariants(&parts.concat())?;
    }

    #[test]
    fn scraps_are_accepted_as_by_minijinja(parts in prop::collection::vec(select(SCRAPS), 0..8)) {
        compare(&parts.concat())?;
    }

    #[test]
    fn expressions_are_accepted_as_by_minijinja(parts in prop::collection::vec(select(PARTS), 1..8)) {
        compare(&format!("{{{{ {} }}}}", parts.join(" ")))?;
        compare(&format!("{{% set x = {} %}}", parts.join(" ")))?;
        compare(&format!("{{% for {} %}}{{% endfor %}}", parts.join(" ")))?;
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn templates_are_accepted_as_by_minijinja(source in block(3, &Exprs::nested(2)).strategy()) {
        compare(&source)?;
        check_invariants(&source)?;
    }
}

#[test]
fn every_mistake_is_reported() {
    for (source, expected) in [
        (
            "{{ a b }}{{ c + }}",
            vec![
                ("b", "unexpected identifier, expected end of variable block"),
                ("}}", "unexpected end of variable block"),
            ],
        ),
        ("{% if a %}x", vec![("{% if a %}", "`if` is not closed: expected `endif`")]),
        ("{% if a %}{% endfor %}", vec![("endfor", "unexpected `endfor`, expected `endif`")]),
        ("{% if a %}{% endfor %}{% endif %}", vec![("endfor", "unexpected `endfor`, expected `endif`")]),
        ("{% for x in y %}{% if x %}{% endfor %}", vec![("{% if x %}", "`if` is not closed: expected `endif`")]),
        (
            "{% endif %}{% nope %}",
            vec![("endif", "unexpected `endif`: no statement is open"), ("nope", "unknown statement nope")],
        ),
        ("{% for x in y %}{% endfr %}", vec![("endfr", "unknown statement endfr")]),
        (
            "{{ a\nb {{ c }} {{ d e }}",
            vec![
                ("a", "unexpected end of line, expected end of variable block"),
                ("e", "unexpected identifier, expected end of variable block"),
            ],
        ),
        ("{{ a {% if b %}{% endif %}", vec![("{%", "unexpected start of block, expected end of variable block")]),
        (
            "{{ f( }} {{ g[ }} {{ 'x }}",
            vec![
                ("}}", "unexpected end of variable block"),
                ("}}", "unexpected end of variable block"),
                ("'x ", "unexpected end of string"),
            ],
        ),
        ("{# a\n{# b #}", vec![]),
        (
            "{# a\n{{ b c }}",
            vec![("{#", "comment is not closed"), ("c", "unexpected identifier, expected end of variable block")],
        ),
        ("{% raw %}{{ a", vec![("{% raw %}", "`raw` is not closed: expected `endraw`")]),
        ("{% if + %}a{% else %}b{% endif %}{{ @ }}", vec![("+", "unexpected `+`"), ("@", "unexpected character")]),
    ] {
        let found = messages(&parse_jinja(source).errors, source);
        let found: Vec<_> = found.iter().map(|(text, message)| (text.as_str(), message.as_str())).collect();
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn every_mistake_in_mustache_is_reported() {
    let wrong = "expected the end of section `b`, found the end of `a`";
    for (source, expected) in [
        (
            "{{#a}}{{x y}}{{}}",
            vec![
                ("x y", "expected a name, found `x y`"),
                ("{{}}", "tag without a name"),
                ("{{#a}}", "section `a` is not closed"),
            ],
        ),
        (
            "{{#a}}{{#b}}{{/a}}{{/c}}",
            vec![("{{/a}}", wrong), ("{{/c}}", "found the end of section `c`, but no section is open")],
        ),
        ("{{#a}}{{/b}}{{/a}}", vec![("{{/b}}", "expected the end of section `a`, found the end of `b`")]),
        (
            "{{a\n{{b}}{{{c}} {{ d e }}",
            vec![
                ("a\n{{b", "expected a name, found `a\n{{b`"),
                ("{{{c}}", "tag is not closed: missing `}}}`"),
                ("d e", "expected a name, found `d e`"),
            ],
        ),
        (
            "{{=<% %>=}}<%#a%><%x\n<% y",
            vec![
                ("<%", "tag is not closed: missing `%>`"),
                ("<% ", "tag is not closed: missing `%>`"),
                ("<%#a%>", "section `a` is not closed"),
            ],
        ),
    ] {
        let found = messages(&parse_mustache(source).errors, source);
        let found: Vec<_> = found.iter().map(|(text, message)| (text.as_str(), message.as_str())).collect();
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn nodes_and_tokens_are_found_by_offset() {
    let source = "a {% if user.name|upper %}{{ x + 1 }}{% endif %}";
    let parsed = parse_jinja(source);
    let text_at = |needle: &str| {
        let node = parsed.node_at(source.find(needle).expect("it is there")).expect("a node");
        &source[node.span().range()]
    };
    assert_eq!(text_at("user"), "user");
    assert_eq!(text_at("name"), "user.name");
    assert_eq!(text_at("upper"), "user.name|upper");
    assert_eq!(text_at("+"), "x + 1");
    assert_eq!(text_at("{{"), "{{ x + 1 }}");
    assert_eq!(parsed.token_at(2).map(|token| token.kind), Some(TokenKind::BlockStart));
    assert_eq!(parsed.token_at(source.len()), None);
}

/// A quadratic algorithm would take minutes here, and recursion would overflow the stack.
#[test]
fn long_sources_take_linear_time() {
    let many = 100_000;
    for part in [
        "(",
        "[",
        "{",
        "-",
        "not ",
        "a.",
        "a|",
        "a ~ ",
        "{{",
        "{{ ",
        "{{ x\n",
        "{{ '\n",
        "{{ \\'\n",
        "{{ \"",
        "{#",
        "{# \n",
        "{%",
        "{% if a %}",
        "{% if a %}{% elif b %}",
        "{% raw %}",
        "{{ (\n",
        "{% x\n",
        "{{ x\n{{ y\n{% z\n",
        "{{ a }",
        "{% endif %}",
        "{% set x %}",
        "{{ a b }}",
        "{{#a}}",
        "{{=",
        "{{=\n",
        "{{{",
        "{{#",
        "{{/a}}",
        "{{ 'a",
        "{% else %}",
    ] {
        parse_jinja(&part.repeat(many));
        parse_mustache(&part.repeat(many));
        assert!(!parse_jinja(&format!("{{{{ {} }}}}", part.repeat(many))).errors.is_empty(), "{part}");
    }
}
