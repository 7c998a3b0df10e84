//! The cost of rendering: every filter, method, function and operator is charged for what it does, the charge grows no
//! faster than its operands, and the memory usage does not exceed the charge.
//!
//! Work is counted in the engine's own steps and bytes, which are found by trying limits. So the result is the same on
//! every machine.

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use tympan::prompt::RenderOptions;
use tympan::spec::PromptSpec;
use tympan::template::Limits;
use tympan::{Inputs, Kind, Prompt};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Operations on a text `v`. `w` is another text, similar or not, and `c` is a few characters.
const ON_TEXT: &[&str] = &[
    "v | upper",
    "v | lower",
    "v | capitalize",
    "v | title",
    "v | trim",
    "v | trim(w)",
    "v | replace('a', 'bc')",
    "v | replace(c, w[:9])",
    "v | replace(w, c)",
    "v | indent",
    "v | indent(2, true, true)",
    "v | reverse",
    "v | string",
    "v | e",
    "v | safe",
    "v | urlencode",
    "v | tojson",
    "v | pprint",
    "v | length",
    "v | first",
    "v | last",
    "v | list",
    "v | split",
    "v | split('a')",
    "v | split(c, 3)",
    "v | lines",
    "v | join('-')",
    "v | join(c)",
    "v | default(w)",
    "v | int(0)",
    "v | float(0)",
    "v | bool",
    "v | unique",
    "v | sort",
    "v | max",
    "v | batch(7)",
    "v | slice(7)",
    "v | format(w)",
    "v | select('eq', 'a')",
    "v | map('upper')",
    "v | groupby(0)",
    "v | zip(w)",
    "v | chain(w)",
    "v | attr('x')",
    "v | length | abs",
    "v | length | round",
    "v | dictsort",
    "v | items",
    "v | count",
    "v | d(w)",
    "v | escape",
    "v | reject('eq', 'a')",
    "v | selectattr('a')",
    "v | rejectattr('a')",
    "v | min",
    "v | sum",
    "v | truncate(99)",
    "v | truncate(99, true, w[:9], 0)",
    "v | truncate(9999)",
    "v | wordwrap",
    "v | wordwrap(2, true, c)",
    "v | wordwrap(5, false)",
    "v | center(99)",
    "v | wordcount",
    "v | striptags",
    "('<b>' ~ v ~ '</b>&amp;<!-- ' ~ w ~ '-->') | striptags",
    "v | replace('a', '<!-- <b>&amp;') | striptags",
    "{'k': v, 'l': w} | xmlattr",
    "v | filesizeformat",
    "v | random",
    "v.upper()",
    "v.lower()",
    "v.strip()",
    "v.strip(w)",
    "v.lstrip(c)",
    "v.rstrip(w)",
    "v.replace('a', 'bc', 5)",
    "v.split()",
    "v.split('a')",
    "v.split(w)",
    "v.splitlines()",
    "v.splitlines(true)",
    "v.count('a')",
    "v.count(w)",
    "v.find(w)",
    "v.rfind('b')",
    "v.startswith(w)",
    "v.endswith(w)",
    "v.isalpha()",
    "v.isspace()",
    "v.islower()",
    "v.title()",
    "v.capitalize()",
    "v.join([c, w, c])",
    "'{}{}'.format(v, w)",
    "'%s%s' | format(v, w)",
    "v ~ w",
    "v + w",
    "v * 3",
    "v[1:]",
    "v[::-1]",
    "v[:5]",
    "v[3]",
    "v == w",
    "v < w",
    "v in w",
    "v is eq(w)",
    "v is startingwith(w)",
    "v is endingwith(w)",
    "v is lower",
    "v is string",
    "v is in([w, v])",
    "v or w",
    "v and w",
    "not v",
    "[v, w] | sort",
    "[v, w] | unique | list",
    "[v, w] | min",
    "{v: w, w: v} | items | list",
    "{v: 1}[w]",
    "{v: 1}.get(w, v)",
    "dict(**{v: w})",
    "namespace(**{v: w})",
    "[v, w] | join(c)",
    "[[v], [w]]",
    "{'k': v} | tojson",
    "[v, w] | select | list",
    "[{'k': v}, {'k': w}] | groupby('k')",
    "(v, w) == (w, v)",
];

/// Operations on a list `l` of the given size. `m` is a map with as many keys.
const ON_LISTS: &[&str] = &[
    "l | length",
    "l | join",
    "l | join(', ')",
    "l | first",
    "l | last",
    "l | list",
    "l | reverse",
    "l | sort",
    "l | sort(reverse=true)",
    "l | min",
    "l | max",
    "l | unique | list",
    "l | groupby(0)",
    "l | batch(3)",
    "l | slice(3)",
    "l | map('upper') | list",
    "l | map('replace', 'a', 'b') | join",
    "l | select('ne', 'q') | list",
    "l | reject('eq', 'q') | list",
    "l | sum(start='')",
    "l | chain(l) | list",
    "l | zip(l) | list",
    "l | tojson",
    "l | pprint",
    "l | string",
    "l[1:]",
    "l[::-1]",
    "l + l",
    "l * 2",
    "l == l",
    "l < l",
    "'q' in l",
    "l.count('q')",
    "m | items | list",
    "m | dictsort",
    "m.keys() | list",
    "m.values() | join",
    "m.items() | list",
    "m | length",
    "m | list",
    "m | tojson",
    "m | string",
    "dict(m) | length",
    "dict(**m) | length",
    "dict(m, **m) | length",
    "namespace(**m)",
    "m | chain(m) | length",
    "m == dict(**m)",
    "m.get('k3')",
    "dict(**m).k3",
    "dict(**m).get('k3', 1)",
    "m | max",
    "m | join",
    "[m, m] | sort",
    "range(l | length) | sum",
    "range(l | length) | list",
    "o | map(attribute='k') | list",
    "o | sort(attribute='k')",
    "o | sort(attribute='k,n') | list",
    "o | selectattr('n') | list",
    "o | groupby('n') | list",
    "[l, l, l] | sum(start=[])",
    "(l | batch(1)) | sum(start=[])",
    "o | rejectattr('n', 'eq', 1) | list",
    "o | sum(attribute='n')",
    "o | unique(attribute='k') | list",
    "o | join(attribute='k')",
];

/// Statements over the list `l` or the text `v`.
const STATEMENTS: &[&str] = &[
    "{% for x in l %}{{ x }}{% endfor %}",
    "{% for x in l if x %}{{ loop.index }}{{ loop.length }}{{ loop.previtem | default('') }}{% endfor %}",
    "{% filter indent %}{% for x in l %}{{ x }}\n{% endfor %}{% endfilter %}",
    "{% filter trim %}{% for x in l %}{{ x }} {% endfor %}{% endfilter %}",
    "{% filter upper | replace('A', 'b') %}{% for x in l %}{{ x }}{% endfor %}{% endfilter %}",
    "{% set s %}{% for x in l %}{{ x }}\n{% endfor %}{% endset %}{{ s }}{{ s | length }}{{ s.splitlines() | length }}",
    "{% macro f(x) %}{% set y = x %}{{ y }}{% endmacro %}{% for x in l %}{{ f(x) }}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "{% for k in m %}{{ m[k] }}{% endfor %}",
    "{% set d = dict(**m) %}{% for k in m %}{{ d[k] }}{% endfor %}",
    "{% for x in l %}{% for y in [1, 2] %}{{ loop.cycle(x, y) }}{{ loop.changed(x) }}{% endfor %}{% endfor %}",
    "user:\n{% for x in l %}{{ x }}\nassistant:\n{% endfor %}",
    "{{ l | join('\n') }}{{ v or l }}{{ nope | default(v) }}",
    "{% autoescape true %}{{ v }}{{ l }}{% endautoescape %}",
];

/// How the text `v` is built from the input `x`, and the values of `x` and `w` for a size.
struct Shape {
    name: &'static str,
    set: &'static str,
    x: fn(usize) -> String,
    w: fn(usize) -> String,
}

const SHAPES: &[Shape] = &[
    Shape { name: "long", set: "{% set v = x %}", x: |n| "ab \n".repeat(n), w: |n| "ab \n".repeat(n) },
    Shape {
        name: "many pieces",
        set: "{% set v %}{% for i in l %}a{{ i }}\n{% endfor %}{% endset %}",
        x: |_| String::new(),
        w: |n| "ak0\n".repeat(n),
    },
    Shape {
        name: "empty pieces",
        set: "{% set v %}{% for i in l %}a{{ x }}{% endfor %}{% endset %}",
        x: |_| String::new(),
        w: |n| "a".repeat(n),
    },
    Shape { name: "unequal", set: "{% set v = x %}", x: |n| "é".repeat(n), w: |_| "é\n".to_owned() },
];

fn inputs(shape: &Shape, n: usize) -> Inputs {
    let list: Vec<Value> = (0..n).map(|i| json!(format!("k{}", i * 7919 % n.max(1)))).collect();
    let map: serde_json::Map<_, _> = (0..n).map(|i| (format!("k{i}"), json!(i))).collect();
    let objects: Vec<Value> = (0..n).map(|i| json!({"k": format!("k{}", i % 50), "n": i % 7})).collect();
    let inputs = json!({"x": (shape.x)(n), "w": (shape.w)(n), "c": "a,b", "l": list, "m": map, "o": objects});
    inputs.as_object().cloned().expect("a map")
}

fn prompt(template: &str) -> Prompt {
    let mut spec = PromptSpec { instructions: template.to_owned(), ..PromptSpec::default() };
    spec.template.lenient = true;
    Prompt::from_spec(spec)
}

/// Returns whether a render stays within the limits. A render that fails for another reason does too.
fn fits(prompt: &Prompt, inputs: &Inputs, limits: Limits) -> bool {
    let result = prompt.render_with(inputs, &RenderOptions { limits, ..RenderOptions::default() });
    !result.is_err_and(|error| error.kind() == Kind::LimitExceeded)
}

const PLENTY: Limits =
    Limits { steps: 1 << 40, output_bytes: 1 << 40, operation_bytes: 1 << 40, total_bytes: 1 << 40, call_depth: 40 };

/// Returns the smallest limit within which a render stays.
fn least(fits: impl Fn(u64) -> bool) -> u64 {
    let mut high = 64;
    while !fits(high) {
        high *= 2;
    }
    let mut low = high / 2;
    // A precision of three per cent is sufficient.
    while high - low > 1 + high / 32 {
        let middle = low.midpoint(high);
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

fn steps(prompt: &Prompt, inputs: &Inputs) -> u64 {
    least(|steps| fits(prompt, inputs, Limits { steps, ..PLENTY }))
}

fn bytes(prompt: &Prompt, inputs: &Inputs) -> u64 {
    let limit = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    least(|bytes| fits(prompt, inputs, Limits { total_bytes: limit(bytes), ..PLENTY }))
}

/// Returns the templates, each with the shape of its operands.
fn rows() -> Vec<(String, &'static Shape)> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        rows.extend(ON_TEXT.iter().map(|row| (format!("{}{{% set r = {row} %}}{{{{ r }}}}", shape.set), shape)));
    }
    rows.extend(ON_LISTS.iter().map(|row| (format!("{{% set r = {row} %}}{{{{ r }}}}"), &SHAPES[0])));
    rows.extend(STATEMENTS.iter().map(|row| (format!("{}{row}", SHAPES[0].set), &SHAPES[0])));
    rows
}

/// Returns the names that the engine suggests for an unknown name.
fn known(template: &str) -> Vec<String> {
    let error = prompt(template).render(Inputs::new()).expect_err("there is no such name");
    let help = error.help().expect("it says what there is").to_owned();
    let names = help.trim_start_matches("available: ").trim_end_matches("; the application can register more");
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_filter_has_a_row() {
    let rows: String = rows().into_iter().map(|(template, _)| template + "\n").collect();
    let names = known("{{ 1 | qqqqqqqqqq }}");
    let is_missing = |name: &&String| {
        let forms = [format!("| {name} "), format!("| {name}("), format!("| {name}|"), format!("('{name}'")];
        !forms.iter().any(|form| rows.contains(form))
    };
    let missing: Vec<_> = names.iter().filter(is_missing).collect();
    assert!(names.len() > 40 && missing.is_empty(), "{missing:?}");
}

#[test]
fn charges_grow_no_faster_than_what_they_are_for() {
    const N: usize = 256;
    let mut complaints = Vec::new();
    let rows = rows();
    for (template, shape) in &rows {
        let prompt = prompt(template);
        let charge = |n: usize| {
            let inputs = inputs(shape, n);
            (steps(&prompt, &inputs), bytes(&prompt, &inputs))
        };
        let (one, two, four) = (charge(N), charge(2 * N), charge(4 * N));
        // From 256 to 1024, n log n grows by a factor of 5, and a square by 16.
        let is_fine = |one: u64, two: u64, four: u64| two <= 5 * one / 2 + 500 && four <= 6 * one + 1000;
        if !is_fine(one.0, two.0, four.0) || !is_fine(one.1, two.1, four.1) {
            complaints.push(format!("{template:?}, {}: {one:?} {two:?} {four:?}", shape.name));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(rows.len() > 400, "{} rows", rows.len());
}

#[test]
fn memory_does_not_exceed_what_was_charged() {
    const N: usize = 1024;
    let mut complaints = Vec::new();
    for (template, shape) in rows() {
        let prompt = prompt(&template);
        let inputs = inputs(shape, N);
        assert!(fits(&prompt, &inputs, PLENTY), "{template} is compiled");
        let charged = bytes(&prompt, &inputs) + 16 * steps(&prompt, &inputs);
        ALLOCATED.reset_peak_usage();
        let before = ALLOCATED.current_usage();
        assert!(fits(&prompt, &inputs, PLENTY), "{template} renders");
        let used = (ALLOCATED.peak_usage() - before) as u64;
        // Buffers grow by doubling, and the output has a separate budget.
        if used > 4 * charged + (256 << 10) {
            complaints.push(format!("{template:?}, {}: {used} bytes, charged {charged}", shape.name));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
