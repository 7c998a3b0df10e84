//! How sure a result is: intervals of pass rates, and comparisons of two runs.
//!
//! Everything in this module is a pure function over numbers. The same numbers have the same result on every machine:
//! resampling uses its own generator with a fixed seed.
//!
//! ```
//! use tympan_eval::statistics::{Confidence, Tally, unsupported};
//!
//! let interval = Tally::new(5, 5).interval(Confidence::P95);
//! assert_eq!(format!("{:.2} to {:.2}", interval.low, interval.high), "0.57 to 1.00");
//!
//! let problem = unsupported(5, 0.8, Confidence::P95).expect("5 attempts are too few");
//! assert_eq!(problem.needed, Some(16));
//! ```

mod bootstrap;
mod confidence;
mod mcnemar;
mod proportion;
mod threshold;

use serde::{Deserialize, Serialize};

pub use bootstrap::{FEWEST_DIFFERENCES, LARGE_SAMPLE, MeanChange, RESAMPLES, paired_bootstrap};
pub use confidence::Confidence;
pub use mcnemar::{McNemar, mcnemar};
pub use proportion::{Interval, Tally};
pub use threshold::{Unsupported, attempts_needed, unsupported};

/// What a comparison of two runs shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The new run is better.
    Better,
    /// The new run is worse.
    Worse,
    /// The data do not show a difference. This does not mean that there is none.
    #[default]
    NotShown,
}

impl Change {
    /// Returns the name that programs see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NotShown => "not_shown",
        }
    }
}
