//! The budget of a turn, shared with all turns that its tools start.
//!
//! A tool can be a prompt that has the same tool. If each turn had limits of its own, the number of calls would
//! multiply at every level. The limits of a turn therefore apply to everything that happens within it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;
use tympan_core::turn::{Prices, TurnOptions};
use tympan_core::wire::response::{Delta, Response, Usage};
use tympan_core::{Error, Kind, Result};

use crate::model::provider::{Deltas, Reply};

/// The default number of model calls per iteration of a turn, including retries, summaries and calls made by its tools.
const CALLS_PER_ITERATION: u32 = 10;

/// The limits of a turn and how much of them has been used.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The budget of the turn whose tool started this one.
    outer: Option<Arc<Self>>,
    max_calls: u32,
    max_tools: usize,
    max_tokens: Option<u64>,
    max_cost: Option<f64>,
    prices: Prices,
    /// The time limit.
    deadline: Option<Instant>,
    used: Mutex<Used>,
}

/// The amounts used so far.
#[derive(Debug, Default)]
struct Used {
    turns: u32,
    calls: u32,
    tools: usize,
    usage: Usage,
}

impl Budget {
    /// Creates the budget of a turn, possibly nested in another.
    ///
    /// # Errors
    /// Returns an error if an enclosing budget is exhausted.
    pub(crate) fn begin(options: &TurnOptions, outer: Option<Arc<Self>>) -> Result<Arc<Self>> {
        if let Some(outer) = &outer {
            outer.charge(|used, budget| {
                // A turn makes at least one call, so the number of turns cannot exceed the number of calls.
                used.turns = used.turns.saturating_add(1);
                if used.turns > budget.max_calls { Err(budget.too_many_calls()) } else { Ok(()) }
            })?;
        }
        let tries = CALLS_PER_ITERATION.max(options.max_llm_retries.saturating_add(1));
        let max_calls = options.max_model_calls.unwrap_or(options.max_iterations.saturating_mul(tries));
        let iterations = usize::try_from(options.max_iterations).unwrap_or(usize::MAX);
        Ok(Arc::new(Self {
            outer,
            max_calls,
            max_tools: options.max_tool_calls.saturating_mul(iterations),
            max_tokens: options.max_tokens,
            max_cost: options.max_cost,
            prices: options.prices,
            deadline: options.max_time.and_then(|time| Instant::now().checked_add(time)),
            used: Mutex::default(),
        }))
    }

    /// Counts a model call.
    ///
    /// # Errors
    /// Returns an error if a limit has been reached.
    pub(crate) fn call_model(&self) -> Result<()> {
        self.charge(|used, budget| {
            budget.check(used)?;
            if used.calls >= budget.max_calls {
                return Err(budget.too_many_calls());
            }
            used.calls += 1;
            Ok(())
        })
    }

    /// Counts a tool run.
    ///
    /// # Errors
    /// Returns an error if the limit has been reached.
    pub(crate) fn run_tool(&self) -> Result<()> {
        self.charge(|used, budget| {
            if used.tools >= budget.max_tools {
                return Err(over(format_args!("{} tool calls", budget.max_tools)));
            }
            used.tools += 1;
            Ok(())
        })
    }

    /// Adds the usage of a response.
    fn add(&self, usage: &Usage) {
        let added = self.charge(|used, _| {
            let total = &mut used.usage;
            total.input_tokens = total.input_tokens.saturating_add(usage.input_tokens);
            total.output_tokens = total.output_tokens.saturating_add(usage.output_tokens);
            let both = usage.input_tokens.saturating_add(usage.output_tokens);
            total.total_tokens = total.total_tokens.saturating_add(usage.total_tokens.max(both));
            Ok(())
        });
        debug_assert!(added.is_ok());
    }

    /// Adds the usage from before a turn was resumed.
    pub(crate) fn resume(&self, calls: u32, usage: &Usage) {
        let resumed = self.charge(|used, _| {
            used.calls = used.calls.saturating_add(calls);
            Ok(())
        });
        debug_assert!(resumed.is_ok());
        self.add(usage);
    }

    /// Updates the usage of this budget and of all enclosing ones.
    fn charge(&self, change: impl Fn(&mut Used, &Self) -> Result<()>) -> Result<()> {
        let mut current = Some(self);
        while let Some(budget) = current {
            change(&mut budget.used.lock().unwrap_or_else(PoisonError::into_inner), budget)?;
            current = budget.outer.as_deref();
        }
        Ok(())
    }

    fn check(&self, used: &Used) -> Result<()> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(over("time limit"));
        }
        if let Some(max) = self.max_tokens.filter(|max| used.usage.total_tokens >= *max) {
            return Err(over(format_args!("{max} tokens")));
        }
        match self.max_cost.filter(|max| used.calls > 0 && self.prices.cost(&used.usage) >= *max) {
            Some(max) => Err(over(format_args!("a cost of {max}"))),
            None => Ok(()),
        }
    }

    fn too_many_calls(&self) -> Error {
        over(format_args!("{} model calls", self.max_calls))
    }
}

fn over(bound: impl std::fmt::Display) -> Error {
    Error::new(Kind::TurnLimit, format_args!("{bound}, including nested turns"))
        .with_help("check whether a tool keeps calling itself; TurnOptions sets the limits")
}

/// Wraps a reply so that its usage is added to a budget.
pub(crate) fn counted(reply: Reply, budget: Option<&Arc<Budget>>) -> Reply {
    let Some(budget) = budget else { return reply };
    match reply {
        Reply::Whole(response) => {
            response.usage.iter().for_each(|usage| budget.add(usage));
            Reply::Whole(response)
        }
        Reply::Stream(deltas) => Reply::Stream(Box::new(Counted { deltas, budget: budget.clone() })),
    }
}

/// A response that is still arriving, and the budget to add its usage to.
struct Counted {
    deltas: Box<dyn Deltas>,
    budget: Arc<Budget>,
}

impl Deltas for Counted {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>> {
        self.deltas.next()
    }

    fn finish(self: Box<Self>) -> Result<Response> {
        let response = self.deltas.finish()?;
        response.usage.iter().for_each(|usage| self.budget.add(usage));
        Ok(response)
    }
}
