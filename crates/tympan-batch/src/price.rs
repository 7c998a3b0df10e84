//! The prices of answers.

use tympan_core::wire::catalog::Catalog;
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::response::Usage;

/// The price of the model that answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) provider: &'a str,
    pub(crate) model: Option<&'a str>,
    /// The share of the direct price that is paid.
    pub(crate) share: f64,
}

impl Price<'_> {
    /// Returns the cost in US dollars, if the price is known.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<f64> {
        if self.provider == ECHO {
            return Some(0.0);
        }
        let model = self.model?;
        let qualified = || self.catalog.cost(&format!("{}/{model}", self.provider), usage);
        Some(self.catalog.cost(model, usage).or_else(qualified)? * self.share)
    }
}
