//! Limits on what model calls may cost together.
//!
//! Before a request is sent, the most that it can cost is reserved. The actual cost replaces the reservation when the
//! response arrives. Requests that are sent at the same time can therefore not exceed the limit together.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio::sync::Notify;
use tympan_core::wire::catalog::{Catalog, Price};
use tympan_core::wire::response::{Delta, Response, Usage};
use tympan_core::wire::{Protocol, WireRequest};
use tympan_core::{ContentPart, Error, Kind, Message, Prompt, Result};

use crate::model::provider::{Deltas, Reply};

/// What providers add to a request with tools, at most, in tokens.
const TOOL_INSTRUCTIONS: u64 = 1_000;

/// The number of units in a US dollar. Sums of whole numbers are exact.
const UNITS: f64 = 1e12;

/// A limit on what model calls may cost together, by the prices of a catalog.
///
/// [`Runtime::with_spend_limit`](crate::Runtime::with_spend_limit) applies it. A call that could exceed the limit fails
/// with [`Kind::SpendLimit`] before anything is sent. If it only has to wait for the actual cost of other calls, it
/// waits.
///
/// The input of a call counts as one token per byte, which no tokenizer exceeds, and its output as long as the request
/// allows. A response without token counts, and a request whose response was lost, count as the most that they can cost.
///
/// ```
/// use tympan_core::wire::catalog::Catalog;
/// use tympan_runtime::model::spending::SpendLimit;
///
/// let limit = SpendLimit::new(0.5, Catalog::default());
/// assert_eq!(limit.spent(), 0.0);
/// // Without a price or a limit for the answer, nothing bounds what a call costs.
/// assert!(limit.check_model("openai", Some("gpt-4o-mini"), None).is_ok());
/// assert!(limit.check_model("openai", Some("my-model"), None).is_err());
/// ```
#[derive(Clone)]
pub struct SpendLimit {
    account: Arc<Account>,
    /// The first refusal among the calls of this scope.
    refusal: Arc<Mutex<Option<Error>>>,
}

/// What all scopes share.
struct Account {
    max: u64,
    catalog: Catalog,
    balance: Mutex<Balance>,
    /// Wakes the calls that wait for others.
    changed: Notify,
}

#[derive(Clone, Copy, Default)]
struct Balance {
    spent: u64,
    reserved: u64,
}

/// What decides about the most that a call can cost.
#[derive(Clone, Debug)]
pub(crate) struct CallSize {
    provider: String,
    model: Option<String>,
    /// The size of the input in tokens, at most.
    input_tokens: u64,
    /// Whether the input contains images or other media, whose size in tokens only the provider knows.
    has_media: bool,
    /// The length of the output that the request allows, in tokens.
    max_output_tokens: Option<u64>,
    /// The number of answers that the request asks for.
    answers: u64,
}

impl CallSize {
    /// Measures a request.
    pub(crate) fn of_request(provider: &str, model: Option<&str>, messages: &[Message], request: &WireRequest) -> Self {
        let options = BodyOptions::new(request.protocol, request.body.as_bytes());
        Self {
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            input_tokens: request.body.len() as u64 + if options.has_tools { TOOL_INSTRUCTIONS } else { 0 },
            has_media: has_media(messages),
            max_output_tokens: options.max_output_tokens,
            answers: options.answers,
        }
    }

    /// Measures a call of a custom provider.
    pub(crate) fn of_call(provider: &str, model: Option<&str>, messages: &[Message], prompt: &Prompt) -> Self {
        let bytes = |message: &Message| serde_json::to_string(message).map_or(0, |text| text.len() as u64);
        Self {
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            input_tokens: messages.iter().map(bytes).sum::<u64>() + TOOL_INSTRUCTIONS,
            has_media: has_media(messages),
            max_output_tokens: max_output_tokens(prompt),
            answers: 1,
        }
    }
}

/// Requests that are sent together, as far as their cost depends on it.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize<'b> {
    /// The name of the provider.
    pub provider: &'b str,
    /// The name of the model.
    pub model: &'b str,
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// The body of one of the requests. All have its options.
    pub body: &'b [u8],
    /// The number of requests.
    pub requests: u64,
    /// The size of all requests in bytes.
    pub bytes: u64,
    /// Whether requests may contain images or other media, whose size in tokens only the provider knows.
    pub has_media: bool,
}

/// What the options in the body of a request say about its cost.
struct BodyOptions {
    /// The length of an answer, in tokens.
    max_output_tokens: Option<u64>,
    has_tools: bool,
    /// The number of answers.
    answers: u64,
}

impl BodyOptions {
    fn new(protocol: Protocol, body: &[u8]) -> Self {
        let body: Json = serde_json::from_slice(body).unwrap_or_default();
        let number = |key: &str| body.get(key).and_then(Json::as_u64);
        let limit = ["max_completion_tokens", "max_output_tokens", "max_tokens"].into_iter().filter_map(number).max();
        Self {
            max_output_tokens: if protocol == Protocol::OpenAiEmbeddings { Some(0) } else { limit },
            has_tools: body.get("tools").is_some(),
            answers: number("n").unwrap_or(1).max(1),
        }
    }
}

fn has_media(messages: &[Message]) -> bool {
    // Images and files in the middle of a text are anchored in it.
    let is_media = |part: &ContentPart| !matches!(part, ContentPart::Text(text) if text.anchors.is_empty());
    messages.iter().any(|message| message.content.iter().any(is_media))
}

/// Returns the length of an answer that a prompt allows, in tokens.
pub fn max_output_tokens(prompt: &Prompt) -> Option<u64> {
    let limit = prompt.spec().model.as_ref()?.options.max_output_tokens?;
    u64::try_from(limit).ok()
}

impl SpendLimit {
    /// Creates a limit in US dollars.
    pub fn new(dollars: f64, catalog: Catalog) -> Self {
        let (balance, changed) = (Mutex::default(), Notify::new());
        let account = Account { max: units(dollars), catalog, balance, changed };
        Self { account: Arc::new(account), refusal: Arc::default() }
    }

    /// Returns a limit that shares its account with this one, and has a refusal of its own. After a refusal, all calls
    /// of its scope are refused, so that work that cannot be finished costs no more.
    #[must_use]
    pub fn scoped(&self) -> Self {
        Self { account: self.account.clone(), refusal: Arc::default() }
    }

    /// Returns what calls have cost so far, in US dollars.
    pub fn spent(&self) -> f64 {
        dollars(self.account.balance().spent)
    }

    /// Returns the first refusal among the calls of this scope.
    pub fn refusal(&self) -> Option<Error> {
        locked(&self.refusal).clone()
    }

    /// Checks that there is a bound on what a call of a model costs, with this limit for the length of the answer.
    ///
    /// # Errors
    /// Returns an error if the price is not known, or if nothing limits the answer.
    pub fn check_model(&self, provider: &str, model: Option<&str>, max_output_tokens: Option<u64>) -> Result<()> {
        self.terms(provider, model, max_output_tokens).map(drop)
    }

    /// Returns the most that requests can cost together at direct prices, in US dollars.
    ///
    /// # Errors
    /// Returns an error if there is no bound on it, as [`SpendLimit::check_model`] does.
    pub fn most_of_batch(&self, batch: &BatchSize<'_>) -> Result<f64> {
        let BatchSize { provider, model, requests, .. } = *batch;
        let options = BodyOptions::new(batch.protocol, batch.body);
        let (price, output) = self.terms(provider, Some(model), options.max_output_tokens)?;
        let instructions = if options.has_tools { TOOL_INSTRUCTIONS.saturating_mul(requests) } else { 0 };
        let bytes = batch.bytes.saturating_add(instructions);
        let input = match batch.has_media {
            true => bytes.max(self.context_of(model)?.saturating_mul(requests)),
            false => bytes,
        };
        let output_tokens = output.saturating_mul(options.answers).saturating_mul(requests);
        Ok(price.cost(&most_expensive(&price, input, output_tokens)))
    }

    /// Returns the context window of a model whose requests have images or files.
    fn context_of(&self, model: &str) -> Result<u64> {
        self.account.catalog.get(model).context.ok_or_else(|| {
            let help = format!("set `context` in `[models.{model:?}]` of tympan.toml");
            let what = format_args!("nothing limits the size of images and files for the model `{model}`");
            refused(what).with_help(help)
        })
    }

    /// Returns the price of a model, and the length of its answers in tokens.
    fn terms(&self, provider: &str, model: Option<&str>, max_output_tokens: Option<u64>) -> Result<(Price, u64)> {
        let name = model.unwrap_or_default();
        let data = self.account.catalog.get(name);
        let Some(price) = data.price.or_else(|| self.account.catalog.get(&format!("{provider}/{name}")).price) else {
            let help = format!("set `input` and `output` in `[models.{name:?}]` of tympan.toml");
            return Err(refused(format_args!("the price of the model `{name}` is not known")).with_help(help));
        };
        let Some(output) = max_output_tokens.or(data.max_output).or(data.context) else {
            let help =
                format!("set `maxOutputTokens` in the prompt, or `max-output` in `[models.{name:?}]` of tympan.toml");
            return Err(refused(format_args!("nothing limits the answers of the model `{name}`")).with_help(help));
        };
        Ok((price, output))
    }

    /// Returns the most that a call can cost.
    fn most(&self, size: &CallSize) -> Result<u64> {
        let (price, output) = self.terms(&size.provider, size.model.as_deref(), size.max_output_tokens)?;
        let input = match size.has_media {
            true => size.input_tokens.max(self.context_of(size.model.as_deref().unwrap_or_default())?),
            false => size.input_tokens,
        };
        let output_tokens = output.saturating_mul(size.answers);
        Ok(units(price.cost(&most_expensive(&price, input, output_tokens))))
    }

    /// Reserves the most that a call can cost. Waits for other calls if their actual cost decides.
    ///
    /// # Errors
    /// Returns an error if the call could exceed the limit, or if there is no bound on what it costs.
    pub(crate) async fn reserve(&self, size: &CallSize) -> Result<Arc<Reservation>> {
        let reserved = match self.refusal() {
            Some(refusal) => Err(refusal),
            None => match self.most(size) {
                Ok(amount) => match self.account.reserve(amount).await {
                    Ok(()) => Ok(amount),
                    Err(error) if size.max_output_tokens.is_none() => {
                        let help = "without `maxOutputTokens`, answers count as long as the model allows";
                        Err(error.with_help(help))
                    }
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            },
        };
        let amount = reserved.inspect_err(|error| {
            locked(&self.refusal).get_or_insert_with(|| error.clone());
        })?;
        let (provider, model) = (size.provider.clone(), size.model.clone());
        Ok(Arc::new(Reservation { limit: self.clone(), provider, model, amount, is_held: Mutex::new(true) }))
    }

    fn cost(&self, provider: &str, model: Option<&str>, usage: &Usage) -> Option<u64> {
        let catalog = &self.account.catalog;
        let model = model?;
        let cost = catalog.cost(model, usage).or_else(|| catalog.cost(&format!("{provider}/{model}"), usage));
        cost.map(units)
    }
}

impl fmt::Debug for SpendLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpendLimit").field("max", &dollars(self.account.max)).field("spent", &self.spent()).finish()
    }
}

impl Account {
    fn balance(&self) -> Balance {
        *locked(&self.balance)
    }

    async fn reserve(&self, amount: u64) -> Result<()> {
        loop {
            // Registered before the balance is read, so that no change is missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut balance = locked(&self.balance);
                let spent = balance.spent.saturating_add(amount);
                if spent > self.max {
                    return Err(too_expensive(amount, *balance, self.max));
                }
                if spent.saturating_add(balance.reserved) <= self.max {
                    balance.reserved += amount;
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// Replaces a reservation with what was spent.
    fn settle(&self, reserved: u64, spent: u64) {
        let mut balance = locked(&self.balance);
        balance.reserved = balance.reserved.saturating_sub(reserved);
        balance.spent = balance.spent.saturating_add(spent);
        drop(balance);
        self.changed.notify_waiters();
    }
}

/// The most that a call can cost, until its actual cost is known. A reservation that is dropped counts as spent: nobody
/// knows what the provider did.
pub(crate) struct Reservation {
    limit: SpendLimit,
    provider: String,
    model: Option<String>,
    amount: u64,
    is_held: Mutex<bool>,
}

impl Reservation {
    /// Replaces the reservation with the actual cost.
    pub(crate) fn settle(&self, usage: Option<&Usage>) {
        let cost = usage.and_then(|usage| self.limit.cost(&self.provider, self.model.as_deref(), usage));
        self.end(cost.unwrap_or(self.amount));
    }

    /// Ends the reservation of a request that failed.
    pub(crate) fn fail(&self, error: &Error) {
        self.end(if may_have_cost(error) { self.amount } else { 0 });
    }

    /// Reserves the cost of another attempt.
    ///
    /// # Errors
    /// Returns an error if the failed attempt may have cost something, and another one could exceed the limit.
    pub(crate) async fn renew(&self, failed: &Error) -> Result<()> {
        if !may_have_cost(failed) {
            return Ok(());
        }
        self.end(self.amount);
        let reserved = self.limit.account.reserve(self.amount).await;
        *locked(&self.is_held) = reserved.is_ok();
        reserved
    }

    fn end(&self, spent: u64) {
        if std::mem::take(&mut *locked(&self.is_held)) {
            self.limit.account.settle(self.amount, spent);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.end(self.amount);
    }
}

/// Returns the usage of these tokens that costs most. Input may be written to the provider's cache, which can cost more.
fn most_expensive(price: &Price, input_tokens: u64, output_tokens: u64) -> Usage {
    let cache_write_tokens = if price.cache_write > price.input { input_tokens } else { 0 };
    Usage { input_tokens, output_tokens, cache_write_tokens, ..Usage::default() }
}

/// Returns whether a provider may charge for a request that failed. It does not if it rejected the request, or if there
/// was no connection.
fn may_have_cost(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<reqwest::Error>());
    match (error.kind(), error.status()) {
        (_, Some(status)) => matches!(status, 408 | 502 | 504),
        (Kind::ConnectTimeout, _) => false,
        (Kind::Unreachable, _) => !cause.is_some_and(reqwest::Error::is_connect),
        _ => true,
    }
}

/// Wraps a reply so that its usage replaces a reservation.
pub(crate) fn settled(reply: Reply, reservation: Option<Arc<Reservation>>) -> Reply {
    let Some(reservation) = reservation else { return reply };
    match reply {
        Reply::Whole(response) => {
            reservation.settle(response.usage.as_ref());
            Reply::Whole(response)
        }
        Reply::Stream(deltas) => Reply::Stream(Box::new(Settled { deltas, reservation })),
    }
}

/// A response that is still arriving, and its reservation.
struct Settled {
    deltas: Box<dyn Deltas>,
    reservation: Arc<Reservation>,
}

impl Deltas for Settled {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Delta>>> {
        self.deltas.next()
    }

    fn finish(self: Box<Self>) -> Result<Response> {
        let response = self.deltas.finish()?;
        self.reservation.settle(response.usage.as_ref());
        Ok(response)
    }
}

fn too_expensive(amount: u64, balance: Balance, max: u64) -> Error {
    let (amount, spent, max) = (dollars(amount), dollars(balance.spent), dollars(max));
    refused(format_args!("the call could cost ${amount:.4}, and ${spent:.4} of ${max:.4} are spent"))
}

fn refused(reason: impl fmt::Display) -> Error {
    Error::new(Kind::SpendLimit, reason).permanent()
}

/// Converts US dollars to units.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn units(dollars: f64) -> u64 {
    (dollars * UNITS).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "it is for display")]
fn dollars(units: u64) -> f64 {
    units as f64 / UNITS
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
