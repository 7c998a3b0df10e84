//! The generated code depends on nothing in the surrounding scope.
#![no_implicit_prelude]
#![deny(warnings)]

// garde's generated code does.
use ::std::ops::FnMut;
use ::std::prelude::v1::test;
use ::std::result::Result::Err;

mod core {}
mod std {}
mod tympan {}

#[derive(::serde::Serialize, ::garde::Validate, ::tympan::Inputs)]
#[prompt("tests/prompts/ask.yaml")]
struct Ask {
    #[garde(skip)]
    name: ::std::option::Option<::std::string::String>,
    #[garde(length(min = 1))]
    question: &'static str,
}

#[test]
fn generated_code_depends_on_no_name_in_scope() {
    let ask = Ask { name: ::std::option::Option::None, question: "Why?" };
    let rendered = ::tympan::TypedInputs::render(&ask);
    ::std::assert!(rendered.is_ok());
}
