//! The Mustache syntax.
//!
//! Supports variables (`{{x}}`, `{{{x}}}` and `{{&x}}`, which mean the same because a prompt is not HTML), sections,
//! inverted sections, dotted names, the implicit iterator, comments and delimiter changes, as in the official
//! specification. Partials, parents and blocks are excluded, because a prompt is one file. Lambdas cannot occur,
//! because inputs are JSON and JSON has no functions.
//!
//! There are two differences from the specification. A variable that is not found is an error unless the render is
//! lenient, as in the other syntaxes. And the outermost context is the list of inputs, which is not a value, so `{{.}}`
//! needs an enclosing section.
//!
//! The specification does not define which values are false, apart from `false`, null and empty lists. As in the
//! JavaScript implementation, `0` and the empty string are false too, and objects are always true.

pub mod ast;
mod build;
mod parser;
mod scan;

pub(super) use parser::parse;

use crate::error;
use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::Options;
use crate::template::tree::Tree;

type Result<T> = std::result::Result<T, SyntaxError>;

/// The maximum nesting depth of sections.
const MAX_DEPTH: usize = 100;

/// Compiles a template.
///
/// `options.protected` can be ignored: a standalone tag only removes its own line with its own line end, so lines are
/// never joined.
pub(crate) fn compile(source: &str, options: Options<'_>) -> error::Result<Tree> {
    let source = if options.drop_last_newline { without_last_newline(source) } else { source };
    let mut scanner = scan::Scanner::new(source);
    let mut builder = build::Builder::new(options);
    loop {
        let (text, tag) = scanner.next()?;
        builder.text(text);
        match tag {
            Some(tag) => builder.tag(&tag)?,
            None => return Ok(builder.finish()?),
        }
    }
}

fn without_last_newline(source: &str) -> &str {
    source.strip_suffix("\r\n").or_else(|| source.strip_suffix('\n')).unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::{Error, Kind};

    fn kind_of(source: &str) -> Option<Kind> {
        compile(source, Options::default()).err().map(|error| error.kind())
    }

    /// A quadratic algorithm would take minutes here.
    #[test]
    fn long_sources_take_linear_time() {
        let many = 200_000;
        assert_eq!(kind_of(&"{{#".repeat(many)), Some(Kind::TemplateSyntax));
        assert_eq!(kind_of(&"{{!".repeat(many)), Some(Kind::TemplateSyntax));
        assert_eq!(kind_of(&"{{=".repeat(many)), Some(Kind::TemplateSyntax));
        assert_eq!(kind_of(&"{{{".repeat(many)), Some(Kind::TemplateSyntax));
        assert_eq!(kind_of(&"{{#a}}".repeat(many)), Some(Kind::LimitExceeded));
        assert_eq!(kind_of(&format!("{{{{{}", " ".repeat(many))), Some(Kind::TemplateSyntax));
        let many = 50_000;
        assert_eq!(kind_of(&"{{!x}}".repeat(many)), None);
        assert_eq!(kind_of(&"  {{!x}}  \n".repeat(many)), None);
        assert_eq!(kind_of(&"  {{!x}}  ".repeat(many)), None);
        assert_eq!(kind_of(&"{{#a}}{{/a}}".repeat(many)), None);
        assert_eq!(kind_of(&"{{={{ }}=}}".repeat(many)), None);
        assert_eq!(kind_of(&format!("{{{{x{}}}}}", ".x".repeat(many))), None);
        let names: String = (0..many).map(|name| format!("{{{{n{name}}}}}")).collect();
        assert_eq!(kind_of(&names), None);
    }

    #[test]
    fn a_long_delimiter_costs_no_more_than_its_length() {
        let delimiter = "<".repeat(100_000);
        let source = format!("{{{{={delimiter} > =}}}}{}", "<".repeat(300_000));
        assert_eq!(kind_of(&source), Some(Kind::TemplateSyntax));
    }

    #[test]
    fn sections_nest_a_hundred_levels() {
        let nested = |depth| format!("{}{}", "{{#a}}".repeat(depth), "{{/a}}".repeat(depth));
        assert_eq!(kind_of(&nested(MAX_DEPTH)), None);
        assert_eq!(kind_of(&nested(MAX_DEPTH + 1)), Some(Kind::LimitExceeded));
    }

    #[test]
    fn declared_names_come_first() {
        let options = Options { declared: &["z", "a"], ..Options::default() };
        let tree = compile("{{b.c}}{{#a}}{{d}}{{.}}{{.e}}{{/a}}{{.f}}{{b}}", options).expect("it compiles");
        let inputs: Vec<_> = tree.inputs.iter().map(|input| (&*input.name, input.span.start)).collect();
        assert_eq!(inputs, [("z", 0), ("a", 10), ("b", 2), ("d", 15), ("f", 37)]);
        assert_eq!(tree.frame_size, 1);
    }

    #[test]
    fn one_last_newline_is_dropped_on_request() {
        for (source, literal_bytes) in [("a\n", 1), ("a\n\n", 2), ("a\r\n", 1), ("a", 1), ("a\r", 2)] {
            let options = Options { drop_last_newline: true, ..Options::default() };
            assert_eq!(compile(source, options).expect("it compiles").literal_bytes, literal_bytes, "{source:?}");
        }
    }

    #[test]
    fn rich_inputs_are_written_and_tested_but_not_looked_into() {
        use crate::chat::message::{RichInput, RichValue};
        use crate::spec::schema::PropertyKind;
        use crate::template::eval::{self, EvalOptions, InputValue};
        let render = |source: &str| {
            let tree = compile(source, Options::default()).expect("it compiles");
            let input = RichInput {
                name: "t".to_owned(),
                kind: PropertyKind::Thread,
                nonce: "<nonce>".to_owned(),
                value: RichValue::Thread(Vec::new()),
            };
            let output = eval::render(&tree, &[InputValue::Rich(&input)], EvalOptions::default())?;
            Ok::<_, Error>((output.traced.as_str().to_owned(), output.rich.len()))
        };
        assert_eq!(render("a {{t}}").expect("it renders"), ("a <nonce>".to_owned(), 1));
        assert_eq!(
            render("{{#t}}{{.}}{{t}}{{/t}}{{^t}}no{{/t}}").expect("it renders"),
            ("<nonce><nonce>".to_owned(), 2)
        );
        for source in ["{{t.x}}", "{{#t}}{{.x}}{{/t}}", "{{#t.x}}{{/t.x}}"] {
            assert_eq!(render(source).expect_err("it looks into it").kind(), Kind::RichInputMisused, "{source}");
        }
    }

    proptest! {
        #[test]
        fn no_source_panics(source in r"(\{\{|\}\}|[#^/!=&>{}.|a-c \n\r\t]|<%|%>|é){0,40}") {
            if let Err(error) = compile(&source, Options::default()) {
                let span = error.span().expect("every error has a place");
                prop_assert!(source.get(span.range()).is_some_and(|text| !text.is_empty()));
            }
        }
    }
}
