//! Limits: for any template, rendering ends with a result or a typed error, on a small stack.

use serde_json::{Value, json};
use tympan::prompt::RenderOptions;
use tympan::spec::PromptSpec;
use tympan::template::{Limits, Syntax};
use tympan::{Inputs, Kind, Prompt};

use crate::small_stack::{map, on_small_stack, render};

#[track_caller]
fn assert_limited(template: &str, inputs: Value) {
    let owned = template.to_owned();
    let outcome = on_small_stack(move || render(Syntax::Jinja, &owned, &inputs));
    let error = outcome.map(|text| text.len()).expect_err(template);
    assert_eq!(error.kind(), Kind::LimitExceeded, "{template}: {error:?}");
}

/// Fails with lower limits than the default ones, so that the test is faster.
#[track_caller]
fn assert_limited_by(limits: Limits, template: &str, inputs: &Value) {
    let prompt = Prompt::from_spec(PromptSpec { instructions: template.to_owned(), ..PromptSpec::default() });
    let outcome = prompt.render_with(map(inputs), &RenderOptions { limits, ..RenderOptions::default() });
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
        "{{ 'x' | center(n) }}",
        "{{ s | wordwrap(1, true, s) | length }}",
        "{{ s | wordwrap(9999, true, s) | length }}",
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
        "{% for i in range(99999) %}{% set x = s | truncate(99999) %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | wordwrap %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | wordcount %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | striptags %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = s | center(9) %}{% endfor %}",
        "{% for i in range(99999) %}{% set x = {'k': s} | xmlattr %}{% endfor %}",
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

/// Containers that share their elements are small in memory, but large when printed.
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
    // Operations that need only part of a value do not traverse all of it.
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

#[test]
fn the_host_sets_the_limits() {
    let spec =
        PromptSpec { instructions: "{% for i in range(9) %}{{ 'x' * 9 }}{% endfor %}".into(), ..PromptSpec::default() };
    let prompt = Prompt::from_spec(spec);
    let outcome = |limits| prompt.render_with(Inputs::new(), &RenderOptions { limits, ..RenderOptions::default() });
    let default = Limits::default();
    assert_eq!(outcome(default).map(|rendered| rendered.text().len()).ok(), Some(81));
    for (limits, what) in [
        (Limits { steps: 10, ..default }, "steps"),
        (Limits { output_bytes: 80, ..default }, "bytes of output"),
        (Limits { operation_bytes: 8, ..default }, "bytes in one operation"),
        (Limits { total_bytes: 200, ..default }, "bytes in all operations"),
    ] {
        let error = outcome(limits).expect_err(what);
        assert_eq!(error.kind(), Kind::LimitExceeded);
        assert!(error.message().ends_with(what), "{error}");
        assert!(error.help().is_some_and(|help| help.contains("application")));
        assert!(error.line_column().is_some() || what == "steps" || what == "bytes of output", "{error:?}");
    }
}
