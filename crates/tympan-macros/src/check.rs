//! Checks that the fields of a struct match the variables of a prompt.

use syn::{Error, Result};
use tympan_core::Prompt;
use tympan_core::diagnostic::guess_name;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::text::source::{SourceFile, Span};

use crate::attributes::{Field, GardeRule, Mistakes, Struct};
use crate::file::show;

/// Compares fields and variables, and reports every mismatch.
pub(crate) fn check(item: &Struct, prompt: &Prompt) -> Result<()> {
    let mut mistakes = Mistakes::default();
    let mut missing: Vec<_> = prompt.variables().iter().filter(|variable| is_missing(item, variable)).collect();
    for (index, field) in item.fields.iter().enumerate() {
        if item.fields[..index].iter().any(|other| other.name == field.name) {
            mistakes.push(Error::new(field.span, format!("another field is also serialized as `{}`", field.name)));
            continue;
        }
        match prompt.variables().iter().find(|variable| variable.name == field.name) {
            Some(variable) => {
                mistakes.keep(check_rule(field, variable, prompt));
            }
            None => {
                let error = extra_field(field, prompt, &missing);
                // Report one mistake only once: this field is a misspelling of that variable, so the variable is not
                // missing.
                missing.retain(|variable| Some(variable.name.as_str()) != error.meant);
                mistakes.push(error.error);
            }
        }
    }
    for variable in missing {
        mistakes.push(missing_field(item, variable, prompt));
    }
    mistakes.into_result()
}

/// Returns whether a variable needs a field and has none. A variable with a default does not need one.
fn is_missing(item: &Struct, variable: &Property) -> bool {
    variable.default.as_ref().is_none_or(|default| default.is_null())
        && !item.fields.iter().any(|field| field.name == variable.name)
}

struct ExtraField<'a> {
    error: Error,
    /// The missing variable that the field is probably a misspelling of.
    meant: Option<&'a str>,
}

fn extra_field<'a>(field: &Field, prompt: &'a Prompt, missing: &[&'a Property]) -> ExtraField<'a> {
    let name = &field.name;
    let message = format!("the prompt has no variable `{name}`");
    let meant = guess_name(name, missing.iter().map(|variable| variable.name.as_str()));
    let variable = missing.iter().find(|variable| Some(variable.name.as_str()) == meant);
    let place = variable.and_then(|variable| Some((prompt.source(), variable.span?)));
    let path = prompt.source().name();
    let declared: Vec<_> = prompt.variables().iter().map(|variable| format!("`{}`", variable.name)).collect();
    let declared = if declared.is_empty() { "no variables".to_owned() } else { declared.join(", ") };
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`? `{path}` declares {declared}"),
        None => format!("`{path}` declares {declared}; declare `{name}` there, or skip it with `#[serde(skip)]`"),
    };
    ExtraField { error: Error::new(field.span, show(&message, place, Some(&help))), meant }
}

fn missing_field(item: &Struct, variable: &Property, prompt: &Prompt) -> Error {
    let name = &variable.name;
    let message = format!("`{}` has no field for the variable `{name}`", item.name);
    let spellings = [name.clone(), format!("r#{name}")];
    let help = match spellings.iter().find(|name| syn::parse_str::<syn::Ident>(name).is_ok()) {
        Some(name) => format!("add a field, as in `{name}: {}`", type_of(variable)),
        None => format!("add a field with `#[serde(rename = \"{name}\")]`"),
    };
    Error::new(item.span, show(&message, place_of(variable, prompt), Some(&help)))
}

/// Suggests a Rust type for a variable.
fn type_of(variable: &Property) -> &'static str {
    match variable.kind {
        PropertyKind::String => "String",
        PropertyKind::Integer => "i64",
        PropertyKind::Float => "f64",
        PropertyKind::Boolean => "bool",
        PropertyKind::Array => "Vec<String>",
        _ => "serde_json::Value",
    }
}

/// Checks that a field has a garde rule if its variable requires validation.
fn check_rule(field: &Field, variable: &Property, prompt: &Prompt) -> Result<()> {
    let name = &variable.name;
    let why = match field.rule {
        _ if !variable.validation_required => return Ok(()),
        GardeRule::Some => return Ok(()),
        GardeRule::None => "has no garde rule",
        GardeRule::Skipped => "is skipped by garde",
    };
    let message = format!("the prompt requires validation of `{name}`, but the field {why}");
    let help = "add a rule, as in `#[garde(length(min = 1, max = 1000))]`";
    Err(Error::new(field.span, show(&message, place_of(variable, prompt), Some(help))))
}

fn place_of<'a>(variable: &Property, prompt: &'a Prompt) -> Option<(&'a SourceFile, Span)> {
    Some((prompt.source(), variable.span?))
}

#[cfg(test)]
mod tests {
    use syn::{DeriveInput, parse_quote};

    use super::*;
    use crate::file;

    const PROMPT: &str = "
name: ask
role: user
body: '{{ name }} {{ question }}'
variables:
  name: { type: string, trusted: true }
  question: { type: [string, array], trusted: false, validation_required: true }
";

    fn messages(prompt: &str, item: &DeriveInput) -> Vec<String> {
        let path = if prompt.starts_with("---") { "a.prompty" } else { "a.yaml" };
        let prompt = file::parse(path, prompt).expect("a prompt");
        let item = Struct::read(item).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let mistakes = check(&item, &prompt).err();
        mistakes.into_iter().flatten().map(|mistake| mistake.to_string()).collect()
    }

    #[test]
    fn agreement_is_silent() {
        let item = parse_quote! {
            #[prompt("a.yaml")]
            struct A { name: Option<String>, #[garde(ascii)] question: String, #[serde(skip)] other: u8 }
        };
        assert_eq!(messages(PROMPT, &item), [""; 0]);
    }

    #[test]
    fn a_misspelt_field_is_one_mistake() {
        let item = parse_quote! {
            #[prompt("a.yaml")]
            struct A { name: String, #[garde(ascii)] qestion: String }
        };
        let expected = "the prompt has no variable `qestion`
 --> a.yaml:7:3
  |
7 |   question: { type: [string, array], trusted: false, validation_required: true }
  |   ^^^^^^^^
 = help: did you mean `question`? `a.yaml` declares `name`, `question`";
        assert_eq!(messages(PROMPT, &item), [expected]);
    }

    #[test]
    fn every_disagreement_is_reported() {
        let item = parse_quote! {
            #[prompt("a.yaml")]
            #[garde(allow_unvalidated)]
            struct A { question: String, words: u8, #[serde(rename = "words")] number: u8 }
        };
        let messages = messages(PROMPT, &item);
        let firsts: Vec<_> = messages.iter().filter_map(|message| message.lines().next()).collect();
        let expected = [
            "the prompt requires validation of `question`, but the field has no garde rule",
            "the prompt has no variable `words`",
            "another field is also serialized as `words`",
            "`A` has no field for the variable `name`",
        ];
        assert_eq!(firsts, expected);
    }

    #[test]
    fn only_a_default_makes_up_for_a_field() {
        let prompt = "---\ninputs:\n  - {name: a, kind: string, default: x}\n  - {name: b-c, kind: string}\n---\nHi";
        let item = parse_quote! {
            #[prompt("a.prompty")]
            struct A {}
        };
        let messages = messages(prompt, &item);
        assert_eq!(messages.len(), 1);
        assert!(messages[0].starts_with("`A` has no field for the variable `b-c`\n --> a.prompty:4:"));
        assert!(messages[0].ends_with("help: add a field with `#[serde(rename = \"b-c\")]`"));
    }
}
