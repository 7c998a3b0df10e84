//! No template, input or front matter overflows the smallest stack that the engine supports.

use serde_json::{Value, json};
use tympan::format::{ReferencedFile, Resolve, prompty};
use tympan::template::Syntax;
use tympan::text::source::SourceFile;
use tympan::{Error, Kind};

use crate::small_stack::{on_small_stack, render};

/// The longest template for which this is guaranteed.
const LONGEST: usize = 1 << 20;

/// Bodies with the maximum depth of the parser, called with the maximum depth of the evaluator.
#[test]
fn calls_in_deep_bodies_are_limited() {
    let wrappers = [
        ("{% if true %}", "{% endif %}"),
        ("{% for x in [1] %}", "{% endfor %}"),
        ("{% with %}", "{% endwith %}"),
        ("{% filter upper %}", "{% endfilter %}"),
        ("{% set x %}", "{% endset %}{{ x }}"),
        ("{% autoescape true %}", "{% endautoescape %}"),
    ];
    for depth in [5, 20, 40, 60, 80, 90, 95] {
        for (open, close) in wrappers {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            let from_deep = format!("{{% macro f() %}}{{{{ f() }}}}{{% endmacro %}}{open}{{{{ f() }}}}{close}");
            survives(Syntax::Jinja, from_deep, json!({}));
            survives(
                Syntax::Jinja,
                format!("{{% macro f() %}}{open}{{{{ f() }}}}{close}{{% endmacro %}}{{{{ f() }}}}"),
                json!({}),
            );
            survives(
                Syntax::Jinja,
                format!("{{% for y in [1] recursive %}}{open}{{{{ loop([1]) }}}}{close}{{% endfor %}}"),
                json!({}),
            );
        }
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("not ", ""),
            ("1 + ", ""),
            ("", " | upper"),
            ("{'a': ", "}"),
            ("f(", ")"),
            ("1 if t else ", ""),
            ("x[", "]"),
        ] {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            survives(
                Syntax::Jinja,
                format!("{{% macro f(x) %}}{{{{ {open} f(1) {close} }}}}{{% endmacro %}}{{{{ f(1) }}}}"),
                json!({}),
            );
        }
    }
}

/// Compiles and renders a template, with any outcome.
fn survives(syntax: Syntax, template: String, inputs: Value) {
    assert!(template.len() <= LONGEST + 4096);
    on_small_stack(move || {
        if let Err(error) = render(syntax, &template, &inputs) {
            assert!(!error.message().is_empty());
        }
    });
}

/// Tests templates with a repeated part: repeated a few times, as often as is allowed, slightly more often, and as
/// often as fits.
fn repeated(syntax: Syntax, [start, open, middle, close, end]: [&str; 5]) {
    let most = (LONGEST - start.len() - middle.len() - end.len()) / (open.len() + close.len()).max(1);
    let inputs = json!({"x": "v", "a": {"a": 1}, "l": [1], "t": true});
    for times in [2, 24, 32, 47, 48, 49, 90, 97, 98, 99, 100, 101, 1000, most] {
        let (open, close) = (open.repeat(times), close.repeat(times));
        survives(syntax, format!("{start}{open}{middle}{close}{end}"), inputs.clone());
        if times > 1000 {
            survives(syntax, format!("{start}{open}{middle}"), inputs.clone());
            survives(syntax, format!("{start}{open}"), inputs.clone());
        }
    }
}

/// Expressions by their repeated parts: start, opening, middle, closing, end.
const EXPRESSIONS: &[[&str; 5]] = &[
    ["{{ ", "1 + ", "1", "", " }}"],
    ["{{ ", "1 ~ ", "1", "", " }}"],
    ["{{ ", "1 - ", "1", "", " }}"],
    ["{{ ", "1 * ", "1", "", " }}"],
    ["{{ ", "1 // ", "1", "", " }}"],
    ["{{ ", "1 ** ", "1", "", " }}"],
    ["{{ ", "1 == ", "1", "", " }}"],
    ["{{ ", "1 < ", "1", "", " }}"],
    ["{{ ", "1 in ", "[1]", "", " }}"],
    ["{{ ", "1 not in ", "[1]", "", " }}"],
    ["{{ ", "t and ", "t", "", " }}"],
    ["{{ ", "nope or ", "t", "", " }}"],
    ["{{ ", "not ", "t", "", " }}"],
    ["{{ ", "-", "1", "", " }}"],
    ["{{ ", "- ", "1", "", " }}"],
    ["{{ ", "+", "1", "", " }}"],
    ["{{ ", "1 if t else ", "1", "", " }}"],
    ["{{ ", "1 if nope else ", "1", "", " }}"],
    ["{{ ", "", "t", " if t", " }}"],
    ["{{ ", "", "t", " if t else 1", " }}"],
    ["{{ ", "(", "1", ")", " }}"],
    ["{{ ", "[", "1", "]", " }}"],
    ["{{ ", "(", "1", ",)", " }}"],
    ["{{ ", "{'a': ", "1", "}", " }}"],
    ["{{ ", "{", "1", ": 1}", " }}"],
    ["{{ ", "", "a", ".a", " }}"],
    ["{{ ", "", "a", "['a']", " }}"],
    ["{{ ", "", "l", "[0]", " }}"],
    ["{{ ", "", "l", "[0:]", " }}"],
    ["{{ ", "l[", "0", "]", " }}"],
    ["{{ ", "l[", "0", ":]", " }}"],
    ["{{ ", "", "x", " | upper", " }}"],
    ["{{ ", "", "x", " | default(1)", " }}"],
    ["{{ ", "", "x", " | replace('a', 'b')", " }}"],
    ["{{ ", "x | default(", "1", ")", " }}"],
    ["{{ ", "", "x", " is defined", " }}"],
    ["{{ ", "1 is eq(", "1", ")", " }}"],
    ["{{ ", "1 is eq ", "1", "", " }}"],
    ["{{ ", "", "x", ".upper()", " }}"],
    ["{{ ", "x.join(", "l", ")", " }}"],
    ["{{ ", "", "x", "()", " }}"],
    ["{{ ", "dict(a=", "1", ")", " }}"],
    ["{{ ", "range(", "1", ")", " }}"],
    ["{{ ", "namespace(a=", "1", ")", " }}"],
    ["{{ ", "dict(**", "{}", ")", " }}"],
    ["{{ ", "range(*", "[1]", ")", " }}"],
    ["{{ [", "1, ", "1", "", "] }}"],
    ["{{ {", "'a': 1, ", "'b': 2", "", "} }}"],
    ["{{ dict(", "a=1, ", "b=1", "", ") }}"],
    ["{{ '", "\\n", "a", "", "' }}"],
    ["{{ ", "'a' ", "'b'", "", " }}"],
    ["{{ ", "9", "9", "", " }}"],
    ["{{ ", "[(", "1", ",)]", " }}"],
    ["{{ ", "not (", "t", ")", " }}"],
    ["{{ ", "-(", "1", ")", " }}"],
    ["{{ ", "(1 if t else ", "1", ")", " }}"],
    ["{{ ", "(1, ", "1", ")", " }}"],
    ["{{ ", "[1, ", "1", "]", " }}"],
    ["{{ ", "{'b': 1, 'a': ", "1", "}", " }}"],
    ["{{ ", "(x | replace('a', ", "'b'", "))", " }}"],
];

#[test]
fn no_expression_overflows_the_stack() {
    for parts in EXPRESSIONS.iter().copied() {
        repeated(Syntax::Jinja, parts);
    }
}

/// Statements by their repeated parts.
const STATEMENTS: &[[&str; 5]] = &[
    ["", "{% if t %}", "x", "{% endif %}", ""],
    ["", "{% if nope %}{% else %}", "x", "{% endif %}", ""],
    ["{% if nope %}", "{% elif nope %}", "x", "", "{% endif %}"],
    ["{% if nope %}", "{% elif t %}", "x", "", "{% else %}{% endif %}"],
    ["", "{% if nope %}{% elif t %}", "x", "{% endif %}", ""],
    ["", "{% for i in l %}", "{{ i }}", "{% endfor %}", ""],
    ["", "{% for i in [] %}{% else %}", "x", "{% endfor %}", ""],
    ["", "{% for i in l if i %}", "x", "{% endfor %}", ""],
    ["", "{% for i in l recursive %}", "{{ loop.depth }}", "{% endfor %}", ""],
    ["", "{% with y = 1 %}", "x", "{% endwith %}", ""],
    ["", "{% set y %}", "x", "{% endset %}{{ y }}", ""],
    ["", "{% set y = 1 %}", "{{ y }}", "", ""],
    ["", "{% set y, z = 1, 2 %}", "{{ y }}", "", ""],
    ["{% set ", "(y, ", "z", ")", " = 1 %}"],
    ["{% for ", "(y, ", "z", ")", " in l %}{% endfor %}"],
    ["", "{% filter upper %}", "x", "{% endfilter %}", ""],
    ["{% filter ", "upper | ", "upper", "", " %}x{% endfilter %}"],
    ["", "{% autoescape true %}", "<", "{% endautoescape %}", ""],
    ["", "{% macro f() %}", "x", "{% endmacro %}{{ f() }}", ""],
    ["", "{% macro f() %}", "x", "{% endmacro %}", "{{ f() }}"],
    ["{% macro f(", "a, ", "b", "", ") %}{% endmacro %}{{ f() }}"],
    ["{% macro f() %}{{ caller() }}{% endmacro %}", "{% call f() %}", "x", "{% endcall %}", ""],
    ["{% macro f() %}{{ caller() }}{% endmacro %}", "{% call(a) f() %}", "x", "{% endcall %}", ""],
    ["", "{% raw %}{{ x }}{% endraw %}", "", "", ""],
    ["", "{# {# #}", "", "", ""],
    ["", "{{ x }}", "", "", ""],
    ["", "{%- if t -%} \n", "x", "\n {%- endif -%}", ""],
    ["", "{% block b %}", "x", "{% endblock %}", ""],
    ["", "{", "", "", ""],
    ["", "{%", "", "", ""],
    ["", "{{", "", "", ""],
    [
        "",
        "{% if t %}{% for i in l %}{% with y = i %}{% set z %}",
        "x",
        "{% endset %}{{ z }}{% endwith %}{% endfor %}{% endif %}",
        "",
    ],
];

#[test]
fn no_statement_overflows_the_stack() {
    for parts in STATEMENTS.iter().copied() {
        repeated(Syntax::Jinja, parts);
    }
}

/// Nested statements and the expressions inside count together.
#[test]
fn no_mixture_overflows_the_stack() {
    for statements in [10, 30, 48, 60, 90] {
        for expressions in [10, 30, 48, 60, 90] {
            for (open, close) in [
                ("(", ")"),
                ("[", "]"),
                ("not ", ""),
                ("{'a': ", "}"),
                ("dict(a=", ")"),
                ("1 + ", ""),
                ("1 if t else ", ""),
            ] {
                let expression = format!("{}1{}", open.repeat(expressions), close.repeat(expressions));
                let template = "{% for i in l %}".repeat(statements)
                    + "{{ "
                    + &expression
                    + " }}"
                    + &"{% endfor %}".repeat(statements);
                survives(Syntax::Jinja, template, json!({"l": [1], "t": true}));
            }
        }
    }
}

#[test]
fn no_mustache_template_overflows_the_stack() {
    for parts in [
        ["", "{{#a}}", "{{a}}", "{{/a}}", ""],
        ["", "{{^nope}}", "x", "{{/nope}}", ""],
        ["", "{{#l}}{{#a}}", "{{.}}", "{{/a}}{{/l}}", ""],
        ["{{", "a.", "a", "", "}}"],
        ["", "{{{", "x", "}}}", ""],
        ["", "{{=<% %>=}}<%={{ }}=%>", "{{x}}", "", ""],
        ["", "{{! x }}\n", "", "", ""],
        ["", "{{", "", "", ""],
        ["", "{{#", "", "", ""],
    ] {
        repeated(Syntax::Mustache, parts);
    }
}

/// Returns JSON with this nesting depth.
fn deep(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!(1), |inner, _| wrap(inner))
}

#[test]
fn no_nested_input_overflows_the_stack() {
    let templates = [
        "{{ x }}",
        "{{ x == y }}",
        "{{ x < y }}",
        "{{ x | tojson }}",
        "{{ x | pprint }}",
        "{{ [x, y] | sort | length }}",
        "{{ x | string }}",
        "{{ x in [y] }}",
        "{{ x ~ y }}",
        "{{ [x] | join }}",
        "{{ [x, y] | unique | list }}",
        "{{ {'a': x} }}",
        "{{ [[[x]]] }}",
        "{{ '%s' | format(x) }}",
        "{{ x | length }}",
        "{{ x | list }}",
        "{{ x | upper }}",
        "{% autoescape 'json' %}{{ x }}{% endautoescape %}",
        "{{ '{}'.format(x) }}",
        "{{ x | urlencode }}",
        "{% for i in x recursive %}{{ loop(i) }}{% endfor %}",
        "{{ {x: 1}[y] }}",
        "{{ [x] | max }}",
        "{{ [x].count(y) }}",
        "{{ x is in([y]) }}",
        "{{ [x, y] | groupby(0) }}",
    ];
    for depth in [10, 90, 99, 100, 101, 120] {
        for template in templates {
            on_small_stack(move || {
                let lists = json!({"x": deep(depth, |inner| json!([inner])), "y": deep(depth, |inner| json!([inner]))});
                let maps = json!({"x": deep(depth, |inner| json!({"a": inner})), "y": deep(depth, |inner| json!({"a": inner}))});
                for inputs in [lists, maps] {
                    if let Err(error) = render(Syntax::Jinja, template, &inputs) {
                        assert!(
                            matches!(error.kind(), Kind::LimitExceeded | Kind::InvalidOperation),
                            "{template}: {error:?}"
                        );
                    }
                }
            });
        }
    }
}

/// A host without files and variables.
struct Nothing;

impl Resolve for Nothing {
    fn env(&mut self, _: &str) -> tympan::Result<Option<String>> {
        Ok(None)
    }

    fn file(&mut self, path: &str) -> tympan::Result<ReferencedFile> {
        Err(Error::new(Kind::ReferencedFileNotFound, path))
    }
}

/// Front matter by its repeated parts: start, opening, middle, closing.
const FRONT_MATTER: &[(&str, &str, &str, &str)] = &[
    ("x: ", "[", "1", "]"),
    ("x: ", "{a: ", "1", "}"),
    ("x: ", "[{a: ", "1", "}]"),
    ("x:\n", "- ", "1", ""),
    ("inputs:\n  a:\n    kind: object\n    default: ", "{a: ", "1", "}"),
    ("inputs:\n  a:\n    items: ", "{kind: array, items: ", "{}", "}"),
    ("outputs:\n  a: ", "{kind: object, properties: {a: ", "{}", "}}"),
    ("tools:\n  - name: a\n    kind: function\n    parameters: ", "{a: ", "1", "}"),
    ("metadata: ", "{a: ", "1", "}"),
    ("x: ", "&a [*a, ", "1", "]"),
    ("x: ", "!!", "1", ""),
    ("x: ", "\"${env:", "a", "}\""),
    ("x: ", "? ", "1", ""),
    ("", "a:\n ", "1", ""),
];

#[test]
fn no_front_matter_overflows_the_stack() {
    for (start, open, middle, close) in FRONT_MATTER {
        let most = (LONGEST - 64) / (open.len() + close.len());
        for times in [10, 60, 100, 130, 1000, most] {
            let text = format!("---\n{start}{}{middle}{}\n---\nuser:\nhi\n", open.repeat(times), close.repeat(times));
            on_small_stack(move || {
                let source = SourceFile::new("deep.prompty", text);
                let (document, diagnostics) = prompty::parse(&source, &mut Nothing);
                assert!(document.is_some() || !diagnostics.is_empty());
            });
        }
    }
}
