//! Rules of a grammar. Property tests use the strategy of a rule, and the fuzzer generates texts from bytes.

use std::rc::Rc;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

/// A rule, which is cheap to clone.
#[derive(Clone)]
pub(crate) struct Rule(Rc<Node>);

struct Node {
    #[allow(dead_code, reason = "only the fuzzer reads it")]
    form: Form,
    strategy: BoxedStrategy<String>,
}

type Texts = &'static [&'static str];

/// What a part of a template may consist of.
pub(crate) enum Form {
    /// One of these texts.
    Text(Texts),
    /// One of these patterns, with its holes `$a`, `$b` and `$c` filled.
    Pattern(Texts, [Rule; 3]),
    /// One of these rules, each with its weight.
    Choice(Vec<(u32, Rule)>),
    /// These rules in a row.
    Sequence(Vec<Rule>),
    /// A rule several times, or not at all.
    Repeat(Rule),
    /// A tag between these delimiters, with and without white space control.
    Tag([&'static str; 2], Rule),
}

/// How often a repeated rule occurs, at most.
const REPEATS: usize = 3;

const HOLES: [&str; 3] = ["$a", "$b", "$c"];

impl From<Form> for Rule {
    fn from(form: Form) -> Self {
        let strategy = form.strategy();
        Self(Rc::new(Node { form, strategy }))
    }
}

impl Form {
    fn strategy(&self) -> BoxedStrategy<String> {
        match self {
            Self::Text(texts) => select(*texts).prop_map(str::to_owned).boxed(),
            Self::Pattern(patterns, holes) => (select(*patterns), holes.each_ref().map(Rule::strategy))
                .prop_map(|(pattern, holes)| fill(pattern, &holes))
                .boxed(),
            Self::Choice(rules) => {
                Union::new_weighted(rules.iter().map(|(weight, rule)| (*weight, rule.strategy())).collect()).boxed()
            }
            Self::Sequence(rules) => {
                let parts: Vec<_> = rules.iter().map(Rule::strategy).collect();
                parts.prop_map(|parts| parts.concat()).boxed()
            }
            Self::Repeat(rule) => {
                prop::collection::vec(rule.strategy(), 0..=REPEATS).prop_map(|parts| parts.concat()).boxed()
            }
            Self::Tag(delimiters, content) => {
                let delimiters = *delimiters;
                (content.strategy(), any::<(bool, bool)>(), 0..4u8)
                    .prop_map(move |(content, minus, rare)| tag(delimiters, &content, minus, rare == 0))
                    .boxed()
            }
        }
    }
}

impl Rule {
    /// Returns a strategy that generates and shrinks texts.
    pub(crate) fn strategy(&self) -> BoxedStrategy<String> {
        self.0.strategy.clone()
    }

    /// Generates a text. Each byte makes one choice, so a changed byte changes a part of the text. Without further bytes,
    /// every choice is the first one.
    #[allow(dead_code, reason = "only the fuzzer calls it")]
    pub(crate) fn generate(&self, bytes: &mut impl Iterator<Item = u8>) -> String {
        let mut next = |count: usize| usize::from(bytes.next().unwrap_or_default()) % count;
        match &self.0.form {
            Form::Text(texts) => texts[next(texts.len())].to_owned(),
            Form::Pattern(patterns, rules) => {
                let pattern = patterns[next(patterns.len())];
                let mut values = [const { String::new() }; 3];
                for ((hole, value), rule) in HOLES.iter().zip(&mut values).zip(rules) {
                    if pattern.contains(hole) {
                        *value = rule.generate(bytes);
                    }
                }
                fill(pattern, &values)
            }
            Form::Choice(rules) => {
                let slots = || rules.iter().flat_map(|(weight, rule)| std::iter::repeat_n(rule, *weight as usize));
                let chosen = slots().nth(next(slots().count()));
                chosen.map(|rule| rule.generate(bytes)).unwrap_or_default()
            }
            Form::Sequence(rules) => rules.iter().map(|rule| rule.generate(bytes)).collect(),
            Form::Repeat(rule) => (0..next(REPEATS + 1)).map(|_| rule.generate(bytes)).collect(),
            Form::Tag(delimiters, content) => {
                let signs = next(16);
                tag(*delimiters, &content.generate(bytes), (signs & 1 > 0, signs & 2 > 0), signs >> 2 == 0)
            }
        }
    }
}

fn fill(pattern: &str, values: &[String; 3]) -> String {
    HOLES.iter().zip(values).fold(pattern.to_owned(), |text, (hole, value)| text.replace(hole, value))
}

fn tag([open, close]: [&str; 2], content: &str, (before, after): (bool, bool), has_minus: bool) -> String {
    let minus = |wanted: bool| if wanted && has_minus { "-" } else { "" };
    format!("{open}{} {content} {}{close}", minus(before), minus(after))
}
