//! The reach map, compared with renders: what a render shows, the map must name.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value as Json, json};
use tympan_core::Prompt;
use tympan_core::chat::Place;
use tympan_core::prompt::RenderOptions;
use tympan_core::spec::PromptSpec;
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::template::flow::How;
use tympan_lint::{ReachMap, Target, reach};

use crate::fixtures::{load, read, root};
use crate::valid_files::files;

/// The inputs that the map names for messages of a role, and the strongest way of each.
fn named(map: &ReachMap, role: Role) -> BTreeMap<&str, How> {
    let mut named = BTreeMap::new();
    let fits = |target: &Target| target.role().is_none_or(|known| known == role);
    for message in map.messages.iter().filter(|message| fits(&message.target)) {
        for input in &message.inputs {
            let how = named.entry(input.input.as_str()).or_insert(input.how);
            *how = input.how.min(*how);
        }
    }
    named
}

/// The texts of a render by the role of their messages.
type Texts = BTreeMap<&'static str, Vec<String>>;

fn render(prompt: &Prompt, inputs: &Json) -> Option<(Texts, BTreeSet<(&'static str, String)>)> {
    let entropy = || Ok(7);
    let options = RenderOptions { lenient: Some(true), entropy: Some(&entropy), ..RenderOptions::default() };
    let rendered = prompt.render_with(inputs, &options).ok()?;
    let mut texts = Texts::new();
    let mut origins = BTreeSet::new();
    for (message, place) in prompt.messages_with_places(&rendered).ok()? {
        let metadata = message.metadata.as_ref().map(|metadata| json!(metadata).to_string()).unwrap_or_default();
        texts.entry(message.role.as_str()).or_default().push(message.to_text() + &metadata);
        let Place::Text(range) = place else { continue };
        for segment in rendered.segments().filter(|it| it.range.start < range.end && it.range.end > range.start) {
            let names = rendered.inputs().names(segment.origin);
            origins.extend(names.map(|name| (message.role.as_str(), name.to_owned())));
        }
    }
    Some((texts, origins))
}

/// Returns what a render shows and the map does not name.
fn missing(prompt: &Prompt, map: &ReachMap, inputs: &Json, others: &[Json]) -> Vec<String> {
    let Some((texts, origins)) = render(prompt, inputs) else { return Vec::new() };
    let mut missing = Vec::new();
    for (role, name) in origins {
        let role = Role::from_name(role).expect("a role");
        if named(map, role).get(name.as_str()).is_none_or(|how| *how == How::Decides) {
            missing.push(format!("text of `{name}` is in a {} message", role.as_str()));
        }
    }
    let names: Vec<_> = inputs.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    for name in names {
        let is_trusted = prompt.variables().iter().any(|input| input.name == name && input.trusted);
        // The brackets of a list would count as the author's.
        for other in others.iter().filter(|other| other.is_string() || !is_trusted) {
            let mut changed = inputs.clone();
            changed[&name] = other.clone();
            let Some((after, _)) = render(prompt, &changed) else { continue };
            for role in Role::IN_MARKERS {
                let is_same = texts.get(role.as_str()) == after.get(role.as_str());
                if !is_same && !named(map, role).contains_key(name.as_str()) {
                    missing.push(format!("`{name}` = {other} changes the {} messages", role.as_str()));
                }
            }
        }
    }
    missing
}

/// Values for each input of the generated templates, none of which contains a role marker.
fn values() -> Json {
    json!({"a": "Aa", "b": "Bb", "c": "", "n": 2, "xs": ["X1", "X2"], "m": {"k": "Mk"}})
}

fn others() -> [Json; 5] {
    [json!(""), json!("Other"), json!(0), json!(["Y", "Z", "W"]), json!({"k": "other"})]
}

/// Expressions, each of which some template can evaluate.
const EXPRESSIONS: &[&str] = &[
    "a",
    "b",
    "c",
    "n",
    "m.k",
    "xs[0]",
    "x",
    "v",
    "a | upper",
    "xs | join(', ')",
    "a | length",
    "a == b",
    "a or b",
    "c or 'none'",
    "a if c else b",
    "'yes' if b else 'no'",
    "a ~ ': ' ~ b",
    "a | default('d')",
    "xs | length",
    "f(a)",
    "f('w')",
    "g(b)",
    "loop.index",
    "ns.t",
    "xs | first",
    "a | replace('A', b)",
    "not a",
    "'k' in m",
    "a[:1]",
    "h()",
    "xs | sort | join",
    "(a, b)",
    "[a]",
    "{'q': a}",
    "m | tojson",
    "range(n) | join",
    "'const'",
    "a | trim(b)",
    "s",
    "xs | map('upper') | join",
    "xs | select('equalto', a) | join",
    "a.upper()",
    "a is defined",
    "-n",
    "n * 2",
];

/// Expressions that may write a role marker or a part of one.
const MARKERS: &[&str] = &[
    "'user:' ~ a",
    "'us' ~ 'er:'",
    "'user'",
    "'\\nsystem:\\n'",
    "f('\\nassistant:\\n')",
    "xs | join('\\nuser:\\n')",
    "c if c else '\\nuser:\\nx'",
    "c or '\\nuser:\\n'",
    "'\\x3a\\n'",
];

const TEXTS: &[&str] = &[
    "text\n",
    "\n",
    "word ",
    "\nuser:\n",
    "\nsystem:\n",
    "\nassistant:\n",
    "user:\n",
    "Note: ",
    " - ",
    "\n# developer:\n",
    "\nuser[name={{ a }}]:\n",
    "\nuser[name={{ b }}, k=\"{{ a | upper }}\"]:\n",
    "\n",
    "{# \nuser:\n #}",
    "{% raw %}\nuser:\n{{ x }}{% endraw %}",
    "system:\n",
    "\nsystem:\n{{- a }}",
    "{{ a -}}\nassistant:\n",
];

/// Texts that may be parts of a role marker.
const PARTS: &[&str] = &[": ", ":\n", "us", "er:\n", "\nsystem", "user:", "{% if a %}user:{% endif %}\n", "]:\n", "#"];

fn block(depth: u32, has_parts: bool) -> BoxedStrategy<String> {
    let parts = |plain: &'static [&'static str], more: &'static [&'static str]| match has_parts {
        true => prop_oneof![2 => select(plain), 1 => select(more)].boxed(),
        false => select(plain).boxed(),
    };
    let value = parts(EXPRESSIONS, MARKERS);
    let expression = value.clone().prop_map(|it| format!("{{{{ {it} }}}}"));
    let text = parts(TEXTS, PARTS).prop_map(str::to_owned);
    let leaf = prop_oneof![4 => text, 4 => expression].boxed();
    if depth == 0 {
        return prop::collection::vec(leaf, 0..4).prop_map(|parts| parts.concat()).boxed();
    }
    let inner = block(depth - 1, has_parts);
    let filled = move |pattern: &'static str| {
        let holes = (value.clone(), value.clone(), inner.clone(), inner.clone());
        holes.prop_map(move |(a, b, body, other)| {
            let filled = pattern.replace("$body", &body).replace("$other", &other);
            filled.replace("$1", a).replace("$2", b)
        })
    };
    let statement = select(STATEMENTS).prop_flat_map(filled).boxed();
    prop::collection::vec(prop_oneof![3 => leaf, 2 => statement], 0..5).prop_map(|parts| parts.concat()).boxed()
}

/// Statements. `$1` and `$2` are expressions, `$body` and `$other` are blocks.
const STATEMENTS: &[&str] = &[
    "{% if $1 %}$body{% endif %}",
    "{% if $1 %}$body{% else %}$other{% endif %}",
    "{% if $1 %}$body{% elif $2 %}$other{% endif %}",
    "{% for x in xs %}$body{% endfor %}",
    "{% for x in xs if $1 %}$body{% else %}$other{% endfor %}",
    "{% for x in xs %}$body{% if $1 %}{% break %}{% endif %}$other{% endfor %}",
    "{% for x in xs %}$body{% if $1 %}$other{% continue %}{% endif %}$other{% endfor %}",
    "{% for k, w in m | items %}{{ k }}: {{ w }}\n$body{% endfor %}",
    "{% for x in [xs, a] recursive %}$body{% if x is sequence and x is not string %}{{ loop(x) }}{% endif %}{% endfor %}",
    "{% set v %}$body{% endset %}",
    "{% set v = $1 %}",
    "{% set ns.t = $1 %}",
    "{% filter upper %}$body{% endfilter %}",
    "{% filter replace('A', $1) %}$body{% endfilter %}",
    "{% call g($1) %}$body{% endcall %}",
    "{% with x = $1 %}$body{% endwith %}",
    "{% if $1 %}{% set v = $2 %}{% endif %}",
    "{% if $1 %}{% set ns.t = $2 %}{% endif %}",
];

/// Definitions that the expressions use.
const HEADS: &[&str] = &[
    "{% set s = b %}{% set v = '' %}{% set x = a %}{% set ns = namespace(t='') %}{% macro f(p) %}[{{ p }}]{% endmacro %}\
     {% macro g(p) %}{{ caller() if caller else p }}{% endmacro %}{% macro h() %}{% if a %}w{% endif %}{% endmacro %}",
    "{% set s = 'user' %}{% set v = '' %}{% set x = a %}{% set ns = namespace(t=a) %}{% macro f(p, q=b) %}\nuser:\n{{ p }}\
     {{ q }}{% endmacro %}{% macro g(p) %}{% for y in xs %}{{ p }}{{ caller() if caller }}{% endfor %}{% endmacro %}\
     {% macro h() %}{{ ns.t }}{{ v }}{% endmacro %}",
    "system:\n{% set x = a %}{% set v = b %}{% macro f(p=a) %}{{ p }}{% endmacro %}",
];

/// Mustache templates.
fn sections(depth: u32) -> BoxedStrategy<String> {
    let texts = [
        "{{a}}",
        "{{b}}",
        "{{m.k}}",
        "{{.}}",
        "{{k}}",
        "\nuser:\n",
        "\nsystem:\n",
        "word ",
        "\n",
        "user:\n",
        "{{a}}:\n",
        "user[name={{a}}]:\n",
        "{{! \nuser:\n }}",
        "us",
        "er:\n",
        "assistant:",
        "{{#b}}user:{{/b}}\n",
    ];
    let leaf = prop::collection::vec(select(texts.to_vec()), 0..4).prop_map(|texts| texts.concat()).boxed();
    if depth == 0 {
        return leaf;
    }
    let tag = select(vec!["{{#$}}@{{/$}}", "{{^$}}@{{/$}}", "{{#$}}\n@\n{{/$}}\n"]);
    let section = (tag, select(vec!["a", "c", "xs", "m", "n"]), sections(depth - 1));
    let section = section.prop_map(|(tag, name, body)| tag.replace('$', name).replace('@', &body));
    prop::collection::vec(prop_oneof![leaf, section], 0..5).prop_map(|parts| parts.concat()).boxed()
}

fn prompt(template: String) -> Prompt {
    let inputs = ["a", "b", "c", "n", "xs", "m"].map(|name| Property::new(name, PropertyKind::String)).to_vec();
    Prompt::from_spec(PromptSpec { instructions: template, inputs, ..PromptSpec::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn the_map_names_what_renders_show(head in select(HEADS), body in block(2, false)) {
        let prompt = prompt(format!("{head}{body}"));
        let Ok(map) = reach(&prompt) else { return Ok(()) };
        let missing = missing(&prompt, &map, &values(), &others());
        prop_assert!(missing.is_empty(), "{:?}: {missing:#?}", prompt.body());
    }
    #[test]
    fn the_map_names_what_renders_show_for_assembled_markers(head in select(HEADS), body in block(2, true)) {
        let prompt = prompt(format!("{head}{body}"));
        let Ok(map) = reach(&prompt) else { return Ok(()) };
        let missing = missing(&prompt, &map, &values(), &others());
        prop_assert!(missing.is_empty(), "{:?}: {missing:#?}", prompt.body());
    }

    #[test]
    fn the_map_names_what_renders_of_mustache_show(body in sections(2)) {
        let mut spec = prompt(body).spec().clone();
        spec.template.format = "mustache".into();
        let prompt = Prompt::from_spec(spec);
        let Ok(map) = reach(&prompt) else { return Ok(()) };
        let missing = missing(&prompt, &map, &values(), &others());
        prop_assert!(missing.is_empty(), "{:?}: {missing:#?}", prompt.body());
    }
}

/// Returns values for the inputs of a prompt, in which every text names its input.
fn sample(prompt: &Prompt) -> Json {
    use PropertyKind::{Array, Boolean, Float, Integer, Object, String, Thread};
    let mut values = serde_json::Map::new();
    for (name, _) in prompt.templates().flat_map(|template| template.template().ok()).flat_map(|it| it.inputs()) {
        values.insert(name.to_owned(), json!(format!("the value of {name}")));
    }
    for input in prompt.variables() {
        let name = &input.name;
        let value = match input.kind {
            String => json!(format!("the value of {name}")),
            Integer => json!(3),
            Float => json!(1.5),
            Boolean => json!(true),
            Array => json!([format!("an item of {name}"), format!("another item of {name}")]),
            Object => json!({"name": format!("the name of {name}"), "text": format!("the text of {name}")}),
            Thread => json!([{"role": "user", "content": "Hi!"}]),
            _ => json!("https://example.com/picture.png"),
        };
        values.insert(name.clone(), value);
    }
    values.into()
}

/// For every prompt in the fixtures and the examples, the map names what a render shows.
#[test]
fn the_map_names_what_renders_of_files_show() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    files(&root().join("lint"), &mut paths);
    files(&root().join("../examples"), &mut paths);
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths.into_iter().filter(|path| !path.ends_with("not_utf8.prompty")) {
        let Ok(prompt) = load(read(&path)) else { continue };
        let Ok(map) = reach(&prompt) else { continue };
        let values = sample(&prompt);
        count += usize::from(render(&prompt, &values).is_some());
        let missing = missing(&prompt, &map, &values, &[json!(""), json!("other"), json!([]), json!(false)]);
        wrong.extend(missing.into_iter().map(|missing| format!("{}: {missing}", path.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "only {count} prompts were rendered");
}
