//! The totals of a chat.

use tympan::TurnRun;
use tympan::wire::catalog::Catalog;
use tympan::wire::response::Usage;

use crate::prices;

/// The totals of all answered questions.
#[derive(Default)]
pub(super) struct Totals {
    /// The prices of models.
    catalog: Catalog,
    questions: u32,
    rounds: u32,
    input_tokens: u64,
    output_tokens: u64,
    /// The cost in US dollars, or `None` if a price was unknown.
    cost: Cost,
}

/// A sum of prices, as long as all of them are known.
struct Cost(Option<f64>);

impl Default for Cost {
    fn default() -> Self {
        Self(Some(0.0))
    }
}

impl Totals {
    pub(super) fn new(catalog: Catalog) -> Self {
        Self { catalog, ..Self::default() }
    }

    pub(super) fn add(&mut self, turn: &TurnRun) {
        let Usage { input_tokens, output_tokens, .. } = turn.usage;
        self.questions = self.questions.saturating_add(1);
        self.rounds = self.rounds.saturating_add(turn.rounds);
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
        let cost = turn.run.model.as_deref().and_then(|model| self.catalog.cost(model, &turn.usage));
        self.cost = Cost(self.cost.0.zip(cost).map(|(sum, cost)| sum + cost));
    }

    /// Returns the number of the next question, starting with 1.
    pub(super) fn next_question(&self) -> u32 {
        self.questions.saturating_add(1)
    }

    /// Returns whether no question was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.questions == 0
    }

    /// Formats the totals in one line.
    pub(super) fn shown(&self) -> String {
        let count = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut parts = vec![
            count(self.questions, "question"),
            count(self.rounds, "round"),
            format!("{} tokens in, {} out", self.input_tokens, self.output_tokens),
        ];
        parts.extend(self.cost.0.filter(|_| !self.is_empty()).map(prices::shown));
        parts.join(" · ")
    }
}
