//! Parses the struct and the attributes that matter to a prompt.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, LitStr, Meta, Path, Result, Token};

use crate::rename::Rule;

/// The parts of the struct that the macro needs.
pub(crate) struct Struct {
    /// The name of the struct.
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The path of the prompt, as written in the attribute.
    pub(crate) path: LitStr,
    /// The fields that serde serializes.
    pub(crate) fields: Vec<Field>,
}

/// A field that serde serializes.
pub(crate) struct Field {
    /// The name that serde writes for the field.
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) rule: GardeRule,
}

/// Whether garde validates a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GardeRule {
    /// The field has no rule that checks anything.
    None,
    /// The field is marked `skip`.
    Skipped,
    /// The field has a rule.
    Some,
}

impl Struct {
    /// Parses the struct.
    ///
    /// # Errors
    /// Returns all mistakes combined: not a struct with named fields, a missing or invalid `#[prompt]` attribute, and
    /// serde attributes that the macro does not support.
    pub(crate) fn read(item: &DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &item.data else {
            return Err(Error::new_spanned(&item.ident, NOT_A_STRUCT));
        };
        let Fields::Named(named) = &data.fields else {
            return Err(Error::new_spanned(&item.ident, NOT_A_STRUCT));
        };
        let mut mistakes = Mistakes::default();
        let path = mistakes.keep(prompt_path(item));
        let rename_all = mistakes.keep(rename_all(&item.attrs)).flatten();
        let fields = named.named.iter().filter_map(|field| mistakes.keep(read_field(field, rename_all)).flatten());
        let fields = fields.collect();
        mistakes.into_result()?;
        let path = path.ok_or_else(|| Error::new_spanned(&item.ident, NO_PROMPT))?;
        Ok(Self { name: item.ident.unraw().to_string(), span: item.ident.span(), path, fields })
    }
}

const NOT_A_STRUCT: &str =
    "expected a struct with named fields\n = help: add one field for each variable of the prompt";
const NO_PROMPT: &str = "missing `#[prompt(…)]` attribute\n = help: name the prompt file, as in \
    `#[prompt(\"prompts/greet.yaml\")]`; the path is relative to the directory of Cargo.toml";

/// All mistakes found so far, combined into one error.
#[derive(Default)]
pub(crate) struct Mistakes(Option<Error>);

impl Mistakes {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn prompt_path(item: &DeriveInput) -> Result<LitStr> {
    let mut found = item.attrs.iter().filter(|attribute| attribute.path().is_ident("prompt"));
    let attribute = found.next().ok_or_else(|| Error::new_spanned(&item.ident, NO_PROMPT))?;
    if let Some(second) = found.next() {
        return Err(Error::new_spanned(second, "expected one `#[prompt(…)]` attribute, found two"));
    }
    let path: LitStr = attribute.parse_args().map_err(|_| Error::new_spanned(attribute, NO_PROMPT))?;
    if std::path::Path::new(&path.value()).has_root() {
        return Err(Error::new_spanned(path, "expected a path relative to the directory of Cargo.toml"));
    }
    Ok(path)
}

/// Returns the `rename_all` rule of the struct.
fn rename_all(attributes: &[Attribute]) -> Result<Option<Rule>> {
    let mut rule = None;
    for_each_serde(attributes, |meta| {
        if meta.path.is_ident("rename_all") {
            rule = serialized_name(&meta)?.and_then(|name| Rule::from_name(&name));
            return Ok(());
        }
        for other in ["into", "transparent"] {
            if meta.path.is_ident(other) {
                let message = format!(
                    "`{other}` is not supported: the fields of the struct would not be what is \
                    serialized"
                );
                return Err(meta.error(message));
            }
        }
        skip_value(&meta)
    })?;
    Ok(rule)
}

/// Reads a field; returns `None` if serde skips it.
fn read_field(field: &syn::Field, rename_all: Option<Rule>) -> Result<Option<Field>> {
    let Some(ident) = &field.ident else { return Ok(None) };
    let written = ident.unraw().to_string();
    let mut name = rename_all.map_or_else(|| written.clone(), |rule| rule.apply(&written));
    let mut is_skipped = false;
    for_each_serde(&field.attrs, |meta| {
        if meta.path.is_ident("rename") {
            if let Some(renamed) = serialized_name(&meta)? {
                name = renamed;
            }
            return Ok(());
        }
        if meta.path.is_ident("flatten") {
            return Err(meta.error(
                "`flatten` is not supported: the variables of a flattened field cannot be checked\n = \
                    help: write its fields here",
            ));
        }
        is_skipped |= meta.path.is_ident("skip") || meta.path.is_ident("skip_serializing");
        skip_value(&meta)
    })?;
    let rule = garde_rule(&field.attrs);
    Ok((!is_skipped).then(|| Field { name, span: ident.span(), rule }))
}

fn for_each_serde(attributes: &[Attribute], mut read: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(&mut read)?;
    }
    Ok(())
}

/// Returns the name in `rename = "…"` or `rename(serialize = "…")`, or `None` if it applies to deserialization only.
fn serialized_name(meta: &ParseNestedMeta<'_>) -> Result<Option<String>> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse::<LitStr>().map(|name| Some(name.value()));
    }
    let mut name = None;
    meta.parse_nested_meta(|inner| {
        let value = inner.value()?.parse::<LitStr>()?.value();
        if inner.path.is_ident("serialize") {
            name = Some(value);
        }
        Ok(())
    })?;
    Ok(name)
}

/// Skips the value of an attribute that does not matter here.
fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}

/// garde options that do not check anything.
const NO_RULES: [&str; 4] = ["adapt", "code", "message", "rename"];

fn garde_rule(attributes: &[Attribute]) -> GardeRule {
    let mut found = GardeRule::None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("garde")) {
        match attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) {
            Ok(rules) if is_skip(&rules) => return GardeRule::Skipped,
            Ok(rules) if !rules.iter().any(checks) => {}
            // If the attribute does not parse, garde reports the error.
            _ => found = GardeRule::Some,
        }
    }
    found
}

fn is_skip(rules: &Punctuated<Meta, Token![,]>) -> bool {
    rules.iter().any(|rule| rule.path().is_ident("skip"))
}

fn checks(rule: &Meta) -> bool {
    let path: &Path = rule.path();
    match rule {
        // `inner` applies to the items of a list, and may contain no rule either.
        Meta::List(list) if path.is_ident("inner") => {
            let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            inner.map_or(true, |rules| !is_skip(&rules) && rules.iter().any(checks))
        }
        _ => !NO_RULES.iter().any(|name| path.is_ident(name)),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn names(item: &DeriveInput) -> Vec<String> {
        Struct::read(item).expect("a struct").fields.into_iter().map(|field| field.name).collect()
    }

    #[test]
    fn names_are_those_that_are_serialized() {
        let item = parse_quote! {
            #[prompt("a.yaml")]
            #[serde(rename_all = "camelCase", deny_unknown_fields, bound(serialize = "T: Copy"))]
            struct A<T> {
                first_name: T,
                #[serde(rename = "Kind", default = "f")]
                r#type: String,
                #[serde(rename(serialize = "out", deserialize = "in"))]
                through: String,
                #[serde(rename(deserialize = "in"), with = "w")]
                r#in: String,
                #[serde(skip)]
                no: u8,
                #[serde(default, skip_serializing)]
                neither: u8,
                #[serde(skip_serializing_if = "Option::is_none")]
                yes: Option<u8>,
            }
        };
        assert_eq!(names(&item), ["firstName", "Kind", "out", "in", "yes"]);
    }

    #[test]
    fn a_rule_of_garde_checks_something() {
        let rule = |attribute: Attribute| garde_rule(&[attribute]);
        let none: [Attribute; 5] = [
            parse_quote!(#[garde()]),
            parse_quote!(#[garde(rename("a"))]),
            parse_quote!(#[garde(inner())]),
            parse_quote!(#[garde(inner(skip))]),
            parse_quote!(#[serde(default)]),
        ];
        assert!(none.into_iter().all(|attribute| rule(attribute) == GardeRule::None));
        let some: [Attribute; 5] = [
            parse_quote!(#[garde(length(min = 1, max = 9))]),
            parse_quote!(#[garde(dive)]),
            parse_quote!(#[garde(inner(ascii))]),
            parse_quote!(#[garde(custom(|value, _| check(value)), rename("a"))]),
            parse_quote!(#[garde(if(cond = self.is_new, ascii))]),
        ];
        assert!(some.into_iter().all(|attribute| rule(attribute) == GardeRule::Some));
        assert_eq!(rule(parse_quote!(#[garde(skip)])), GardeRule::Skipped);
    }

    #[test]
    fn everything_wrong_with_a_struct_is_reported() {
        let item = parse_quote! {
            #[prompt("/a.yaml")]
            #[serde(transparent)]
            struct A {
                #[serde(flatten)]
                b: B,
            }
        };
        assert_eq!(Struct::read(&item).err().expect("three mistakes").into_iter().count(), 3);
    }
}
