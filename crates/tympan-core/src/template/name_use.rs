//! The names of filters, tests and functions that a template uses, with their positions.

use crate::template::tree::{Callee, Expr, ExprKind, Function, Named, Place, Tree};
use crate::template::walk::each_expr;
use crate::text::source::Span;

/// What a name in a template refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// A filter: `{{ text | upper }}`.
    Filter,
    /// A test: `{% if n is odd %}`.
    Test,
    /// A function that the template does not define: `{{ range(3) }}`.
    Function,
}

impl NameKind {
    /// Returns the names of this kind that are built in.
    pub const fn builtin(self) -> &'static [&'static str] {
        match self {
            Self::Filter => super::names::FILTERS,
            Self::Test => super::names::TESTS,
            Self::Function => Function::NAMES,
        }
    }
}

/// A name that a template uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameUse {
    /// What the name refers to.
    pub kind: NameKind,
    /// The name.
    pub name: String,
    /// The position of the name in the template.
    pub span: Span,
}

/// Returns the filters, tests and functions that a template uses, sorted by position.
pub(crate) fn names_used(tree: &Tree, source: &str) -> Vec<NameUse> {
    let mut found = Vec::new();
    each_expr(tree, &mut |expr| {
        let (kind, name, span) = match &expr.kind {
            ExprKind::Filter(named) => (NameKind::Filter, &named.name, span_of(named, expr.place, "|", source)),
            ExprKind::Test(named) => (NameKind::Test, &named.name, span_of(named, expr.place, "is", source)),
            ExprKind::Call(call) => match &call.callee {
                Callee::Name(callee, name) if is_function(callee) => (NameKind::Function, name, callee.place.into()),
                _ => return,
            },
            _ => return,
        };
        found.push(NameUse { kind, name: name.to_string(), span });
    });
    found.sort_by_key(|name| name.span.start);
    found
}

fn is_function(callee: &Expr) -> bool {
    matches!(callee.kind, ExprKind::Function(_) | ExprKind::HostFunction)
}

/// Returns the position of the name of a filter or a test. The parser's position is that of the whole expression.
fn span_of(named: &Named, whole: Place, operator: &str, source: &str) -> Span {
    // The text of a filter block is outside of the tag, which starts with the name.
    let is_block = matches!(named.value.kind, ExprKind::Captured);
    let value_end = if is_block { whole.start } else { named.value.place.end } as usize;
    let rest = source.get(value_end..).unwrap_or_default();
    // Only closing parentheses can be between the value and the operator.
    let after_operator = if is_block { Some(0) } else { rest.find(operator).map(|at| at + operator.len()) };
    let found = after_operator.and_then(|start| Some(start + find_word(&rest[start..], &named.name)?));
    match found {
        Some(at) => Span::new(value_end + at, value_end + at + named.name.len()),
        None => whole.into(),
    }
}

/// Returns the offset of a word that is not a part of a longer one.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_part = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    let is_whole =
        |at: &usize| !is_part(text[..*at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next());
    text.match_indices(word).map(|(at, _)| at).find(is_whole)
}

#[cfg(test)]
mod tests {
    use crate::template::{CompileOptions, Template};

    #[test]
    fn names_have_exact_positions() {
        let cases: [(&str, &[(usize, &str)]); 10] = [
            ("{{ ticket | uper }}", &[(12, "uper")]),
            ("{{ a|upper|uper(1) }}", &[(5, "upper"), (11, "uper")]),
            ("{{ (upper or b) | upper }}", &[(18, "upper")]),
            ("{{ x.upper('|')|upper }}", &[(16, "upper")]),
            ("{{ f(a|trim)|upper }}", &[(3, "f"), (7, "trim"), (13, "upper")]),
            ("{% if this is not odd %}{% endif %}", &[(18, "odd")]),
            ("{% filter upper %}x{% endfilter %}", &[(10, "upper")]),
            ("{% filter upper|trim %}x{% endfilter %}", &[(10, "upper"), (16, "trim")]),
            ("é{{ 'upper|x' ~ b | uper }}", &[(21, "uper")]),
            ("{% set x | upper %}a{% endset %}{{ range(3) }}", &[(11, "upper"), (35, "range")]),
        ];
        for (source, expected) in cases {
            let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
            let names = template.names_used(source);
            let found: Vec<_> = names.iter().map(|name| (name.span.start, name.name.as_str())).collect();
            assert_eq!(found, expected, "{source}");
            assert!(names.iter().all(|name| source[name.span.range()] == *name.name), "{source}");
        }
    }
}
