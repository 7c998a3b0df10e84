//! Budgets: whatever a template asks for, a render ends, in a result or in a typed error, and on a
//! small stack.

use serde_json::{Value, json};
use tympan::format::{ReferencedFile, Resolve, prompty};
use tympan::prompt::RenderOptions;
use tympan::source::SourceFile;
use tympan::spec::PromptSpec;
use tympan::template::{CompileOptions, Limits, Syntax, Template};
use tympan::{Error, Inputs, Kind, Prompt};

/// The smallest stack that the engine promises to be content with.
const STACK: usize = 512 << 10;

/// The longest template that it promises this for.
const LONGEST: usize = 1 << 20;

fn map(inputs: &Value) -> Inputs {
    inputs.as_object().cloned().unwrap_or_default()
}

fn render(syntax: Syntax, template: &str, inputs: &Value) -> tympan::Result<String> {
    let template = Template::compile(template, CompileOptions { syntax, ..CompileOptions::default() })?;
    Ok(template.render_json(&map(inputs), false)?.as_str().to_owned())
}

/// Does something on a small stack. A stack that overflows takes the test down with it.
fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread can be started");
    thread.join().expect("nothing panics")
}

#[track_caller]
fn assert_limited(template: &str, inputs: Value) {
    let owned = template.to_owned();
    let outcome = on_small_stack(move || render(Syntax::Jinja, &owned, &inputs));
    let error = outcome.map(|text| text.len()).expect_err(template);
    assert_eq!(error.kind(), Kind::LimitExceeded, "{template}: {error:?}");
}

/// Fails where a host allows less than the default: so that there is less to wait for.
#[track_caller]
fn assert_limited_by(limits: Limits, template: &str, inputs: &Value) {
    let prompt = Prompt::from_spec(PromptSpec { instructions: template.to_owned(), ..PromptSpec::default() });
    let outcome = prompt.render_with(&map(inputs), &RenderOptions { limits, ..RenderOptions::default() });
    let error = outcome.map(|rendered| rendered.text().len()).expect_err(template);
    assert_eq!(error.kind(), Kind::LimitExceeded, "{template}: {error:?}");
}

#[test]
fn steps_are_limited() {
    assert_limited("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", json!({}));
    assert_limited(
        "{% for a in l %}{% for b in l %}{% for c in l %}{{ c }}{% endfor %}{% endfor %}{% endfor %}",
        json!({"l": vec![0; 999]}),
    );
    assert_limited("{% for a in range(99999) %}{% if s in s %}{% endif %}{% endfor %}", json!({"s": "x".repeat(9999)}));
    assert_limited(
        "{% for a in range(9999) %}{% set x = l | sort | unique | list %}{% endfor %}",
        json!({"l": vec![1; 999]}),
    );
    assert_limited(
        "{% for a in range(9999) %}{{ l == k }}{% endfor %}",
        json!({"l": vec![1; 9999], "k": vec![1; 9999]}),
    );
    assert_limited(
        "{% for a in range(99999) %}{{ m[s] is defined }}{{ s | length }}{% endfor %}",
        json!({"m": {}, "s": "é".repeat(99_999)}),
    );
    assert_limited(
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(35) }}",
        json!({}),
    );
}

#[test]
fn one_operation_is_limited() {
    let large = json!({"s": "x".repeat(1 << 20), "l": vec!["y"; 99_999], "n": 99_999_999});
    for template in [
        "{{ s * 99 }}",
        "{{ 'x' * 99999999999 }}",
        "{{ 'x' * n }}",
        "{{ [1] * n }}",
        "{{ l * 9999 }}",
        "{{ l | join(s) | length }}",
        "{{ s.join(l) | length }}",
        "{{ s | replace('x', s) | length }}",
        "{{ s.replace('', s) | length }}",
        "{{ 'a\nb' | indent(n) }}",
        "{{ ('\n' * 99999) | indent(9999) | length }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ '%*d' | format(n, 1) }}",
        "{{ '%.999999999f' | format(1.5) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '{:0999999999}'.format(1) }}",
        "{{ '{:.999999999f}'.format(1.5) }}",
        "{{ '{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}'.format(s) }}",
        "{{ '%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s%(a)s' | format(a=s) }}",
        "{{ range(999999999) | list }}",
        "{{ range(0, 9999999999, 2) | length }}",
        "{{ [1] | batch(n, 'x') }}",
        "{{ [1] | slice(n) }}",
        "{{ [1] | tojson(indent=n) }}",
        "{{ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s ~ s }}",
    ] {
        assert_limited(template, large.clone());
    }
}

#[test]
fn all_operations_together_are_limited() {
    let large = json!({"s": "x".repeat(1 << 18)});
    let limits = Limits { total_bytes: 4 << 20, steps: 100_000, ..Limits::default() };
    assert_limited("{% for i in range(99999) %}{% set x = s | upper %}{% endfor %}", large.clone());
    for template in [
        "{% for i in range(99999) %}{% set x = s | upper %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s ~ 'a' %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | tojson %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | urlencode %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = '{}'.format(s) %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s.split('x') %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s[1:] %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | reverse %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | capitalize %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | title %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | e %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | list %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s.splitlines(true) %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = [s] | string %}{% endfor %}",
        "{% for i in range(99999) %}{% if [s] | string %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{% if [s] in s %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{% if s is startingwith(s) %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{% set x %}{{ s }}{% endset %}{% endfor %}",
        "{% macro f() %}{{ s }}{% endmacro %}{% for i in range(99999) %}{% set x = f() %}{% endfor %}",
        "{% set ns = namespace(t='a') %}{% for i in range(99999) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99999) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99999) %}{% set ns.l = ns.l + [i] %}{% endfor %}",
        "{% set ns = namespace(d={}) %}{% for i in range(99999) %}{% set ns.d = dict(ns.d, **{'k' ~ i: i}) %}{% endfor %}",
        "{% set ns = namespace(t=s) %}{% for i in range(99999) %}{% set ns.t = ns.t | replace('x', 'yy') %}{% endfor %}",
    ] {
        assert_limited_by(limits, template, &large);
    }
}

/// Containers that hold others many times are small in memory, and not when they are printed.
#[test]
fn printing_shared_values_is_limited() {
    let doubled = "{% set ns = namespace(a=[1]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}";
    let mapped =
        "{% set ns = namespace(a={}) %}{% for i in range(90) %}{% set ns.a = {1: ns.a, 2: ns.a} %}{% endfor %}";
    let printed = [
        "{{ ns.a }}",
        "{{ ns.a | tojson }}",
        "{{ ns.a | pprint }}",
        "{{ ns.a | string }}",
        "{{ ns.a | upper }}",
        "{{ ns.a | title }}",
        "{{ ns.a | urlencode }}",
        "{{ [ns.a] | join }}",
        "{{ [ns.a] | join | upper }}",
        "{{ [1, 2] | join(ns.a) }}",
        "{{ [{'x': ns.a}] | join(attribute='x') }}",
        "{{ ns.a ~ 'x' }}",
        "{{ ns.a in 'x' }}",
        "{{ ns.a is startingwith('x') }}",
        "{{ 'x' is endingwith(ns.a) }}",
        "{{ 'x' | replace(ns.a, 'y') }}",
        "{{ '%s' | format(ns.a) }}",
        "{{ '{}'.format(ns.a) }}",
        "{{ '{x}'.format(x=ns.a) }}",
        "{% autoescape true %}{{ ns.a }}{% endautoescape %}",
        "{% autoescape 'json' %}{{ ns.a }}{% endautoescape %}",
        "{% macro f() %}{% endmacro %}{{ f(**{ns.a: 1}) }}",
    ];
    // What only asks for something does not look at all there is.
    for asked in
        ["{{ ns.a | length }}", "{{ ns.a is sequence }}", "{{ ns.a[0] is defined }}", "{{ ns.a | list | count }}"]
    {
        let text = render(Syntax::Jinja, &format!("{doubled}{asked}"), &json!({})).expect(asked);
        assert!(!text.is_empty());
    }
    for made in [doubled, mapped] {
        for print in printed {
            assert_limited(&format!("{made}{print}"), json!({}));
        }
    }
    assert_limited("{{ ['x' * 1000000] * 1000 }}", json!({}));
    assert_limited("{{ ([x] * 10000) | tojson }}", json!({"x": vec![1; 10_000]}));
    assert_limited("{{ '{0}' * 10000 }}{{ ('{0}' * 10000).format(x) }}", json!({"x": vec![1; 10_000]}));
    assert_limited("{{ x | tojson(indent=1000000000) }}", json!({"x": [1]}));
    assert_limited("{{ x | tojson(1000000000) }}", json!({"x": [1]}));
    assert_limited(
        "{% for i in range(100000) %}{{ x is startingwith('y') }}{% endfor %}",
        json!({"x": [vec![1; 10_000]]}),
    );
}

#[test]
fn output_is_limited() {
    let large = json!({"s": "x".repeat(1 << 20), "l": vec!["x".repeat(1 << 10); 999]});
    for template in [
        "{% for i in range(99) %}{{ s }}{% endfor %}",
        "{% for i in range(99) %}{{ l }}{% endfor %}",
        "{% for i in range(99) %}{{ l | join(',') }}{% endfor %}",
        "{% for i in range(99) %}{{ l | join(s) }}{% endfor %}",
        "{% autoescape true %}{% for i in range(99) %}{{ s }}{% endfor %}{% endautoescape %}",
        "{% macro f() %}{{ s }}{% endmacro %}{% for i in range(99) %}{{ f() }}{% endfor %}",
        "{% filter upper %}{% for i in range(99) %}{{ s }}{% endfor %}{% endfilter %}",
    ] {
        assert_limited(template, large.clone());
    }
    let mustache = render(Syntax::Mustache, "{{#l}}{{#l}}{{.}}{{/l}}{{/l}}", &large);
    assert_eq!(mustache.expect_err("it is too long").kind(), Kind::LimitExceeded);
}

#[test]
fn nested_values_are_limited() {
    assert_limited(
        "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
        json!({}),
    );
    assert_limited(
        "{% set ns = namespace(l={}) %}{% for i in range(9999) %}{% set ns.l = {'a': ns.l} %}{% endfor %}{{ ns.l }}",
        json!({}),
    );
    assert_limited(
        "{% set ns = namespace(l={}) %}{% for i in range(9999) %}{% set ns.l = dict(a=ns.l) %}{% endfor %}{{ ns.l == ns.l }}",
        json!({}),
    );
    assert_limited(
        "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = ns.l | batch(1) %}{% set ns.l = [ns.l] | zip([1]) | list %}{% endfor %}",
        json!({}),
    );
}

#[test]
fn nested_calls_are_limited() {
    assert_limited("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", json!({}));
    assert_limited("{% macro f() %}{{ f() | upper }}{% endmacro %}{{ f() }}", json!({}));
    assert_limited("{% macro f() %}{% set x %}{{ f() }}{% endset %}{% endmacro %}{{ f() }}", json!({}));
    assert_limited("{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}", json!({}));
    assert_limited(
        "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
        json!({}),
    );
    assert_limited("{% macro f(x=f()) %}{% endmacro %}{{ f() }}", json!({}));
    assert_limited("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", json!({}));
    assert_limited("{% for x in [1] recursive %}{{ loop([1]) | upper }}{% endfor %}", json!({}));
    assert_limited(
        "{% macro f() %}{% for x in [1] recursive %}{{ loop([1]) if loop.depth < 9 else f() }}{% endfor %}{% endmacro %}{{ f() }}",
        json!({}),
    );
}

/// Bodies as deep as the parser takes them, called as deep as the evaluator goes.
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

/// Compiles and renders, and leaves it open what comes out.
fn survives(syntax: Syntax, template: String, inputs: Value) {
    assert!(template.len() <= LONGEST + 4096);
    on_small_stack(move || {
        if let Err(error) = render(syntax, &template, &inputs) {
            assert!(!error.message().is_empty());
        }
    });
}

/// Templates made of a part that is repeated: a few times, as often as is allowed, a little more
/// often, and as often as fits.
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

/// Expressions by what is repeated in them: start, opening, middle, closing, end.
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

/// Statements by what is repeated in them.
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

/// Statements around and expressions inside count together.
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

/// JSON that is nested this deep.
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

/// A host that has nothing.
struct Nothing;

impl Resolve for Nothing {
    fn env(&mut self, _: &str) -> tympan::Result<Option<String>> {
        Ok(None)
    }

    fn file(&mut self, path: &str) -> tympan::Result<ReferencedFile> {
        Err(Error::new(Kind::ReferencedFileNotFound, path))
    }
}

/// Front matter by what is repeated in it: start, opening, middle, closing.
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

#[test]
fn the_host_sets_the_limits() {
    let spec =
        PromptSpec { instructions: "{% for i in range(9) %}{{ 'x' * 9 }}{% endfor %}".into(), ..PromptSpec::default() };
    let prompt = Prompt::from_spec(spec);
    let outcome = |limits| prompt.render_with(&Inputs::new(), &RenderOptions { limits, ..RenderOptions::default() });
    let default = Limits::default();
    assert_eq!(outcome(default).map(|rendered| rendered.text().len()).ok(), Some(81));
    for (limits, what) in [
        (Limits { steps: 10, ..default }, "steps"),
        (Limits { output_bytes: 80, ..default }, "bytes of output"),
        (Limits { operation_bytes: 8, ..default }, "bytes made by one operation"),
        (Limits { total_bytes: 200, ..default }, "bytes made by all operations"),
    ] {
        let error = outcome(limits).expect_err(what);
        assert_eq!(error.kind(), Kind::LimitExceeded);
        assert!(error.message().ends_with(what), "{error}");
        assert!(error.help().is_some_and(|help| help.contains("host")));
        assert!(error.line_column().is_some() || what == "steps" || what == "bytes of output", "{error:?}");
    }
}
