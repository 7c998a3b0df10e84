//! Comparisons of two versions of a prompt.

use serde_json::json;
use tympan_core::format::NoReferences;
use tympan_core::text::source::SourceFile;
use tympan_core::wire::catalog::Catalog;
use tympan_core::{Inputs, Prompt, RenderOptions};
use tympan_eval::comparison::{Change, Comparison, PromptVersion, WriterKind, compare};
use tympan_lint::{Options, check_file};
use tympan_runtime::Runtime;

/// Returns a version of a prompt, rendered with its examples.
fn version(text: &str) -> PromptVersion {
    let name = if text.contains("\nbody:") { "a.yaml" } else { "a.prompty" };
    let runtime = Runtime::default();
    let prompt = runtime.load_str(text, name, ".").expect("it loads");
    let findings = check_file(&SourceFile::new(name, text), &mut NoReferences, &Options::default()).findings;
    let examples = prompt.spec().inputs.iter().filter_map(|input| Some((input.name.clone(), input.example.clone()?)));
    let examples: Inputs = examples.collect();
    let renders = prompt.arms().filter_map(|arm| {
        let options = RenderOptions { variant: Some(arm), ..runtime.render_options() };
        Some((arm.to_owned(), runtime.render_with(&prompt, &examples, &options).ok()?))
    });
    let renders = renders.collect();
    PromptVersion { written: prompt.clone(), prompt, renders, findings }
}

fn compared(before: &str, after: &str) -> Comparison {
    compare(&version(before), &version(after), &Catalog::default()).expect("they can be compared")
}

/// Returns a prompt with declarations and a template.
fn prompty(declarations: &str, template: &str) -> String {
    format!("---\nname: a\n{declarations}\n---\n{template}")
}

fn messages(compared: &Comparison) -> Vec<String> {
    let shown = compared.variants[0].messages.iter().map(|message| {
        let role =
            |message: Option<&tympan_eval::comparison::MessageVersion>| message.map_or("-", |one| one.role.as_str());
        let pieces = message.pieces.iter().map(|piece| match piece.change {
            Change::Equal => piece.text.clone(),
            Change::Removed => format!("[-{}-]", piece.text),
            Change::Added => format!("{{+{}+}}", piece.text),
            Change::Rewritten => format!("{{~{}~}}", piece.text),
        });
        format!("{}>{} {}", role(message.before.as_ref()), role(message.after.as_ref()), pieces.collect::<String>())
    });
    shown.collect()
}

fn paths(compared: &Comparison) -> Vec<String> {
    compared.definition.iter().map(|change| change.path.join(".")).collect()
}

#[test]
fn a_prompt_equals_itself() {
    let text = prompty(
        "inputs: [{name: photo, kind: image, example: a.png}, {name: x, kind: string, example: y}]",
        "system:\nBe brief.\n\nuser:\n{{ photo }} {{ x }}",
    );
    let compared = compared(&text, &text);
    assert!(compared.is_equal(), "{compared:?}");
    assert_eq!(messages(&compared), ["system>system Be brief.", "user>user [image photo] y"]);
}

#[test]
fn the_layout_of_a_file_does_not_matter() {
    let before = prompty("inputs:\n  - {name: x, kind: string, example: y}", "user:\n{{ x }}");
    let after = prompty("inputs:\n  x:\n    example:   y\n    kind: string", "user:\n{{ x }}");
    assert!(compared(&before, &after).is_equal());
}

#[test]
fn declarations_are_compared_by_name() {
    let before = prompty(
        "model: {id: gpt-4o, options: {temperature: 0.2}}\n\
         inputs: [{name: a, kind: string}, {name: b, kind: string, default: x}, {name: c, kind: string}]",
        "user:\n{{ a }}{{ b }}{{ c }}",
    );
    let after = prompty(
        "model: {id: gpt-4o-mini, options: {temperature: 0.2, maxOutputTokens: 9}}\n\
         inputs: [{name: d, kind: string}, {name: a, kind: integer}, {name: b, kind: string, trusted: true}]\n\
         tools: [{name: t, kind: function, parameters: [{name: q, kind: string}]}]",
        "user:\n{{ a }}{{ b }}{{ d }}",
    );
    let compared = compared(&before, &after);
    assert_eq!(
        paths(&compared),
        [
            "model.id",
            "model.options.maxOutputTokens",
            "inputs.a.kind",
            "inputs.b.default",
            "inputs.b.trusted",
            "inputs.c",
            "inputs.d",
            "tools.t",
        ]
    );
    let first = &compared.definition[0];
    assert_eq!((&first.before, &first.after), (&Some(json!("gpt-4o")), &Some(json!("gpt-4o-mini"))));
    assert_eq!(compared.newly_trusted, ["b"]);
    let hashes: Vec<_> = compared.hashes.iter().map(|hash| (hash.name.as_str(), hash.is_template)).collect();
    assert_eq!(hashes, [("definition", false), ("default", true)]);
}

#[test]
fn the_order_of_declarations_is_a_change() {
    let one = "{name: a, kind: function, parameters: []}";
    let two = "{name: b, kind: function, parameters: []}";
    let before = prompty(&format!("tools: [{one}, {two}]"), "user:\nHi");
    let after = prompty(&format!("tools: [{two}, {one}]"), "user:\nHi");
    assert_eq!(paths(&compared(&before, &after)), ["tools"]);
}

/// The most important line of a comparison.
#[test]
fn an_input_that_newly_reaches_the_system_message_is_a_warning() {
    let inputs =
        "inputs: [{name: page, kind: string, example: p}, {name: tone, kind: string, example: t, trusted: true}]";
    let warnings = |before: &str, after: &str| {
        let compared = compared(&prompty(inputs, before), &prompty(inputs, after));
        compared.warnings.iter().map(|warning| warning.message()).collect::<Vec<_>>()
    };
    let plain = "system:\nBe kind.\n\nuser:\n{{ page }}";
    assert_eq!(warnings(plain, plain), [] as [&str; 0]);
    assert_eq!(
        warnings(plain, "system:\nBe {{ tone }}. {{ page }}\n\nuser:\n{{ page }}"),
        [
            "the untrusted input `page` newly reaches the system message as text",
            "the trusted input `tone` newly reaches the system message as text",
        ]
    );
    let decides = "system:\n{% if page %}Be kind.{% endif %}\n\nuser:\n{{ page }}";
    assert_eq!(warnings(plain, decides), ["the untrusted input `page` newly reaches the system message by deciding"]);
    assert_eq!(
        warnings(decides, "system:\n{{ page }}\n\nuser:\n{{ page }}"),
        ["the untrusted input `page` now reaches the system message as text, and before by deciding"]
    );
    // Less influence is not a warning, but a change.
    let compared = compared(&prompty(inputs, decides), &prompty(inputs, plain));
    assert!(compared.warnings.is_empty());
    assert_eq!(compared.reach.len(), 1);
    assert!(compared.reach[0].after.is_none());
}

#[test]
fn an_input_that_is_no_longer_trusted_is_a_warning() {
    let text = |trusted: bool| {
        prompty(
            &format!("inputs: [{{name: tone, kind: string, example: t, trusted: {trusted}}}]"),
            "system:\n{{ tone }}\n\nuser:\nHi",
        )
    };
    let compared = compared(&text(true), &text(false));
    assert_eq!(
        compared.warnings[0].message(),
        "the input `tone`, which reaches the system message as text, is no longer trusted"
    );
    assert_eq!(messages(&compared), ["system>system {~t~}", "user>user Hi"]);
}

#[test]
fn a_new_variant_with_known_inputs_is_not_a_warning() {
    let text = |variants: &str| {
        format!(
            "name: a\nrole: system\nbody: 'Be {{{{ tone }}}}'\nvariables: {{tone: {{type: string, trusted: true}}}}\n{variants}"
        )
    };
    let compared = compared(&text(""), &text("variants: {b: {body: 'Stay {{ tone }}'}}\n"));
    assert!(compared.warnings.is_empty(), "{:?}", compared.warnings);
    assert_eq!(compared.reach.len(), 1);
    assert_eq!(compared.reach[0].template, "b");
    assert!(!compared.is_equal());
}

#[test]
fn messages_are_paired_by_role() {
    let before = "system:\nBe brief.\n\nuser:\nHi\n\nassistant:\nHello\n\nuser:\nBye";
    let after = "system:\nBe very brief.\n\nuser:\nHi\n\nuser:\nBye";
    assert_eq!(
        messages(&compared(before, after)),
        ["system>system Be {+very +}brief.", "user>user Hi", "assistant>- [-Hello-]", "user>user Bye"]
    );
    let added = messages(&compared("user:\nHi", "system:\nBe brief.\n\nuser:\nHi"));
    assert_eq!(added, ["->system {+Be brief.+}", "user>user Hi"]);
}

#[test]
fn text_with_another_writer_is_a_change() {
    let inputs = "inputs: [{name: n, kind: string, example: Ada}]";
    let compared = compared(&prompty(inputs, "user:\nI am Ada."), &prompty(inputs, "user:\nI am {{ n }}."));
    assert_eq!(messages(&compared), ["user>user I am {~Ada~}."]);
    let piece = &compared.variants[0].messages[0].pieces[1];
    assert_eq!((piece.writer.kind, &piece.writer.inputs[..]), (WriterKind::Untrusted, &["n".to_owned()][..]));
    assert_eq!(piece.before.as_ref().map(|writer| writer.kind), Some(WriterKind::Author));
    // Another name for the same text is not a change of the messages.
    let renamed = prompty("inputs: [{name: m, kind: string, example: Ada}]", "user:\nI am {{ m }}.");
    let renamed = self::compared(&prompty(inputs, "user:\nI am {{ n }}."), &renamed);
    assert!(renamed.variants[0].is_equal() && !renamed.is_equal());
}

#[test]
fn a_template_can_change_without_changing_the_messages() {
    let compared = compared("user:\nHi{% if x is defined %}!{% endif %}", "user:\nHi{% if x is defined %}?{% endif %}");
    assert!(compared.variants[0].is_equal());
    assert!(!compared.is_equal() && compared.hashes.iter().any(|hash| hash.is_template));
}

#[test]
fn findings_are_new_or_fixed() {
    let before = prompty("inputs: [{name: a, kind: string, example: x}, {name: b, kind: string}]", "user:\n{{ a }}");
    let after = prompty(
        "# a comment\ninputs: [{name: a, kind: string, example: x}, {name: c, kind: string}]",
        "system:\n{{ a }}",
    );
    let compared = compared(&before, &after);
    let names =
        |findings: &[tympan_lint::Finding]| findings.iter().map(|finding| finding.rule.name).collect::<Vec<_>>();
    assert_eq!(names(&compared.new_findings), ["unused_variable", "untrusted_in_system"]);
    assert_eq!(names(&compared.fixed_findings), ["unused_variable"]);
    // A finding about the same input is the same one, even if its line changed.
    let longer = self::compared(&after, &after.replace("system:\n{{ a }}", "system:\nHello, {{ a }}"));
    assert_eq!((longer.new_findings.len(), longer.fixed_findings.len()), (0, 0));
    // And so is a finding on a line that did not change.
    let moved = before.replace("name: a\n", "name: a\ndescription: d\n");
    let moved = self::compared(&before, &moved);
    assert_eq!((moved.new_findings.len(), moved.fixed_findings.len()), (0, 0));
}

#[test]
fn tokens_and_costs_are_those_of_each_model() {
    let text = |model: &str, words: &str| prompty(&format!("model: {{id: {model}}}"), &format!("user:\n{words}"));
    let compared = compared(&text("gpt-4o", "one two"), &text("claude-sonnet-4-5", "one two three"));
    let [before, after] = [&compared.variants[0].before, &compared.variants[0].after];
    assert_eq!(after.count.total() - before.count.total(), 1);
    assert!(before.count.is_exact && !after.count.is_exact);
    assert!(before.cost.is_some() && before.cost < after.cost);
}

#[test]
fn variants_are_compared_one_by_one() {
    let text = |body: &str| format!("name: a\nrole: user\nbody: Hello\nvariants: {{b: {{body: '{body}'}}}}\n");
    let compared = compared(&text("one two"), &text("one three"));
    let found: Vec<_> = compared.variants.iter().map(|one| (one.variant.as_str(), one.is_equal())).collect();
    assert_eq!(found, [("default", true), ("b", false)]);
}

#[test]
fn the_report_for_programs_has_everything() {
    let inputs = "inputs: [{name: n, kind: string, example: Ada}]";
    let (before, after) = (
        version(&prompty(inputs, "user:\nI am {{ n }}.")),
        version(&prompty(inputs, "system:\n{{ n }}\n\nuser:\nI am {{ n }}!")),
    );
    let compared = compare(&before, &after, &Catalog::default()).expect("they can be compared");
    let json = compared.to_json(&before, &after);
    assert_eq!(json["equal"], false);
    assert_eq!((&json["warnings"][0]["target"], &json["warnings"][0]["input"]), (&json!("system"), &json!("n")));
    let messages = &json["variants"][0]["messages"];
    assert_eq!(messages[0]["before"], json!(null));
    assert_eq!(
        messages[0]["pieces"],
        json!([{"change": "added", "text": "Ada", "writer": {"kind": "untrusted", "inputs": ["n"]}}])
    );
    assert_eq!(messages[1]["pieces"][2]["change"], "removed");
    assert_eq!(json["findings"]["new"][0]["line"], 6);
}

/// Prompts without anything in common, and without anything at all.
#[test]
fn odd_prompts_can_be_compared() {
    let texts = ["", "user:\n", "{{ x", "---\nname: a\n---\n", "user:\n{% for %}"];
    for before in texts {
        for after in texts {
            let load = |text: &str| {
                let prompt = Prompt::from_prompty(text).expect("it loads");
                let renders = prompt.render(tympan_core::inputs! {}).map(|rendered| ("default".to_owned(), rendered));
                let findings = check_file(prompt.source(), &mut NoReferences, &Options::default()).findings;
                PromptVersion { written: prompt.clone(), prompt, renders: renders.into_iter().collect(), findings }
            };
            let compared = compare(&load(before), &load(after), &Catalog::default()).expect("they can be compared");
            assert_eq!(compared.is_equal(), before == after, "{before:?} {after:?}");
        }
    }
}
