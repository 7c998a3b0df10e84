//! Generates the code for a struct.

use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, LitStr, Result, parse_quote};

use crate::attributes::{Mistakes, Struct};
use crate::check;
use crate::file;

/// Generates the expansion of `#[derive(Inputs)]`.
pub(crate) fn expand(item: &DeriveInput) -> TokenStream {
    match checked(item) {
        Ok(embedded) => {
            let bounds = embedded.bounds();
            implementation(item, &embedded.prompt(), &embedded.render_with(), &bounds)
        }
        Err(error) => {
            // Emit a stub implementation too. Without it, every use of the struct would report a missing trait
            // implementation and hide the actual mistake.
            let prompt = quote!(::core::panic!("it did not compile"));
            let stub = implementation(item, &prompt, &TokenStream::new(), &serializes());
            let errors = error.into_compile_error();
            quote!(#errors #stub)
        }
    }
}

/// A prompt that has been checked against its struct.
struct Embedded {
    path: LitStr,
    text: String,
    needs_validation: bool,
}

fn checked(item: &DeriveInput) -> Result<Embedded> {
    let item = Struct::read(item)?;
    let path = item.path.value();
    let text = file::read(&crate_directory(), &path).map_err(|message| Error::new(item.path.span(), message))?;
    let prompt = file::parse(&path, &text).map_err(|findings| {
        let mut mistakes = Mistakes::default();
        findings.into_iter().for_each(|finding| mistakes.push(Error::new(item.path.span(), finding)));
        mistakes.into_result().expect_err("there is a finding")
    })?;
    check::check(&item, &prompt)?;
    let needs_validation = prompt.validation_required().next().is_some();
    Ok(Embedded { path: item.path, text, needs_validation })
}

/// Returns the directory that contains the `Cargo.toml` of the crate being compiled.
fn crate_directory() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default()
}

impl Embedded {
    /// Generates the body of `prompt`. It embeds the text that was checked; `include_bytes` only makes cargo track
    /// changes to the file.
    fn prompt(&self) -> TokenStream {
        let Self { path, text, .. } = self;
        quote! {
            const _: &[::core::primitive::u8] =
                ::core::include_bytes!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #path));
            static PROMPT: ::std::sync::OnceLock<::tympan::Prompt> = ::std::sync::OnceLock::new();
            PROMPT.get_or_init(|| {
                ::tympan::prompt::typed::embedded(#path, #text).expect("the prompt was sound when it was compiled in")
            })
        }
    }

    /// Generates the bounds that the struct has to satisfy.
    fn bounds(&self) -> TokenStream {
        let serializes = serializes();
        if self.needs_validation { quote!(#serializes + ::tympan::prompt::typed::Validated) } else { serializes }
    }

    /// Generates a `render_with` that overrides the provided one if the prompt requires validation.
    fn render_with(&self) -> TokenStream {
        if !self.needs_validation {
            return TokenStream::new();
        }
        quote! {
            fn render_with(
                &self,
                options: &::tympan::RenderOptions<'_>,
            ) -> ::tympan::Result<::tympan::Rendered> {
                ::tympan::prompt::typed::Validated::check_rules(self)?;
                <Self as ::tympan::TypedInputs>::prompt().render_with(::tympan::prompt::inputs::Serialized(self), options)
            }
        }
    }
}

fn serializes() -> TokenStream {
    quote!(::tympan::prompt::typed::Serialize)
}

fn implementation(
    item: &DeriveInput,
    prompt: &TokenStream,
    render_with: &TokenStream,
    bounds: &TokenStream,
) -> TokenStream {
    let name = &item.ident;
    let mut generics = item.generics.clone();
    // With type parameters, the bounds depend on the types. Without any, the compiler checks them on its own.
    if generics.type_params().next().is_some() {
        generics.make_where_clause().predicates.push(parse_quote!(Self: #bounds));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::tympan::TypedInputs for #name #type_generics #where_clause {
            fn prompt() -> &'static ::tympan::Prompt {
                #prompt
            }

            #render_with
        }
    }
}
