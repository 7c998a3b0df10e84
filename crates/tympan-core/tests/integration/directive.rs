//! Properties of directives that hold for any steps and inputs.

use proptest::prelude::*;
use serde_json::json;
use tympan::directive::{INSTRUCTION, load};
use tympan::text::source::SourceFile;
use tympan::{Error, Inputs, Prompt, Rendered, Role, chat};

/// Parts of steps: text, references, and text that only looks like a reference.
const STEPS: &[&str] = &[
    "text",
    "\n",
    "system:",
    "{input:a}",
    "{input:b?}",
    "{input:b:fall back}",
    "{input:c|x}",
    "${inputs.a}",
    "${inputs.z}",
    "{input:a !",
    "}",
    "{",
    "{input: ",
    "{{ a }}",
    "{% raw %}",
    "</directive>",
    "é",
];

fn prompt(steps: &str) -> Result<Prompt, Error> {
    let text = format!(
        "```xml\n<directive name=\"d\"><inputs><input name=\"a\"/><input name=\"b\"/><input name=\"c\"/></inputs>\
         </directive>\n```\n{steps}"
    );
    load(SourceFile::new("d.md", text), INSTRUCTION)
}

/// Inserts values by hand, in one pass from left to right. A reference without a fallback and a value stays.
fn by_hand(steps: &str, inputs: &Inputs) -> String {
    const FORMS: [(&str, &str, &str); 5] = [
        ("{input:a}", "a", "{input:a}"),
        ("${inputs.a}", "a", "${inputs.a}"),
        ("{input:b?}", "b", ""),
        ("{input:b:fall back}", "b", "fall back"),
        ("{input:c|x}", "c", "x"),
    ];
    let (mut out, mut rest) = (String::new(), steps);
    while let Some(char) = rest.chars().next() {
        match FORMS.iter().find(|(form, ..)| rest.starts_with(form)) {
            Some((form, name, fallback)) => {
                out += inputs.get(*name).and_then(|value| value.as_str()).unwrap_or(fallback);
                rest = &rest[form.len()..];
            }
            None => {
                out.push(char);
                rest = &rest[char.len_utf8()..];
            }
        }
    }
    out
}

fn check(steps: &str, inputs: &Inputs, rendered: Result<Rendered, Error>) -> Result<(), TestCaseError> {
    let expected = by_hand(steps.trim(), inputs);
    let rendered = rendered.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let body = if steps.trim().is_empty() { String::new() } else { format!("{expected}\n\n") };
    let expected = format!("{INSTRUCTION}\n\n<directive name=\"d\">\n\n{body}</directive>");
    prop_assert_eq!(rendered.text(), &expected);
    // Every byte of an input has that input as its origin, and no other byte has.
    let names: Vec<(&str, Vec<String>)> = rendered
        .segments()
        .filter(|segment| !rendered.is_trusted(segment))
        .map(|segment| (segment.text, rendered.inputs().names(segment.origin).map(str::to_owned).collect()))
        .collect();
    for (text, names) in names {
        prop_assert_eq!(names.len(), 1);
        prop_assert_eq!(inputs[&names[0]].as_str(), Some(text));
    }
    let message = chat::whole(rendered, Role::User);
    prop_assert_eq!(message.to_text(), expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn values_are_put_in_once_and_stay_what_they_are(
        parts in prop::collection::vec(prop::sample::select(STEPS), 0..12),
        a in prop::option::of(r"(\{input:[abc]\}|system:|\n|[}{:|?é]){0,5}"),
        b in prop::option::of(r"(\{input:[abc]\?\}|user:|\n|[}{:|?]){0,5}"),
    ) {
        let steps = parts.concat();
        // Parts may combine to references to undeclared inputs.
        let Ok(prompt) = prompt(&steps) else { return Ok(()) };
        let given = [("a", a), ("b", b)];
        let inputs: Inputs = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))).collect();
        check(&steps, &inputs, prompt.render(&inputs))?;
    }

    /// No text makes the parser panic, and every finding has a position in the text.
    #[test]
    fn any_text_is_read(
        parts in prop::collection::vec(prop::sample::select(&[
            "```xml\n", "```\n", "````\n", "---\n", "<directive>", "<directive name=\"a\" version='1'>", "</directive>",
            "<metadata>", "</metadata>", "<inputs>", "<input name=\"é\"/>", "</inputs>", "<template>", "</template>",
            "<![CDATA[", "]]>", "<!--", "-->", "<!DOCTYPE a>", "&amp;", "&x;", "<", ">", "\"", "\n", "é", "name: a\n",
            "inputs:\n", "  - name: b\n", "permissions: [x, '*']\n", "```yaml\n", "{input:b}", "{input:", "<!-- rye:signed:a:b:c:d -->\n",
            "hooks: [{}]\n", "\u{feff}", "\r\n", "<a xmlns=\"b\"/>", "outputs: {a: 1}\n",
        ][..]), 0..14),
    ) {
        let text = parts.concat();
        let source = SourceFile::new("any.md", text.as_str());
        let (directive, findings) = tympan::format::directive::parse(&source);
        prop_assert_eq!(directive.is_none(), findings.iter().any(|finding| finding.is_error()));
        for finding in findings {
            let span = finding.span.expect("every finding has a place");
            prop_assert!(text.get(span.range()).is_some(), "{:?}", finding);
        }
        let _ = tympan::directive::signature::verify(&text, &[]);
    }
}
