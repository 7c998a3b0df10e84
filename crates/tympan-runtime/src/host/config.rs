//! Reads options from plain data, for hosts in other languages: maps whose keys are the names of the Rust fields.
//!
//! ```
//! use serde_json::json;
//! use tympan_runtime::host::config;
//!
//! let settings = config::turn_settings(json!({ "max_iterations": 3, "tool_timeout": 0.5 }))?;
//! assert_eq!((settings.turn.max_iterations, settings.tool_timeout.as_millis()), (3, 500));
//! let misspelt = config::turn_settings(json!({ "max_iteration": 3 })).expect_err("there is no such option");
//! assert!(misspelt.message().contains("max_iterations"));
//! # Ok::<(), tympan_runtime::Error>(())
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tympan_core::chat::policy::Policy;
use tympan_core::chat::thread::ThreadRoles;
use tympan_core::spec::Secret;
use tympan_core::spec::flow::ToolFlow;
use tympan_core::template::Limits;
use tympan_core::turn::{ContextBudget, Label, MessageLabel, Prices, ToolPolicy};
use tympan_core::wire::parse_endpoint;
use tympan_core::{Error, Guard, Kind, KindCheck, RenderOptions, Result, Role};

use crate::host::runtime::RuntimeOptions;
use crate::load::{EnvFile, EnvPolicy, LoadOptions};
use crate::model::cassette::Cassette;
use crate::model::run::RunOptions;
#[cfg(feature = "tokens")]
use crate::model::tokens::Encoding;
use crate::net::client::{HttpOptions, ProxyPolicy};
use crate::tool::ToolAddresses;
use crate::trace::TraceOptions;
use crate::turn::journal::Journal;
use crate::turn::{Compact, TurnSettings};

/// Reads the options of a runtime: `strict`, `lenient`, `strict_inputs`, `guard`, `policy`, `tool_policy`, `kinds`,
/// `limits`, `thread_roles`, `load`, `http`, `cassette`, `trace`, `tool_addresses`, `allow_endpoints`, `seed`. Times are in seconds.
///
/// # Errors
/// Returns an error if an option is unknown or has an invalid value.
pub fn runtime_options(options: Json) -> Result<RuntimeOptions> {
    let data: RuntimeData = read(options)?;
    let RuntimeData { strict, lenient, guard, limits, thread_roles, load, http, cassette, trace, .. } = data;
    let RuntimeData { tool_addresses, allow_endpoints, kinds, strict_inputs, policy, tool_policy, seed, .. } = data;
    for endpoint in &allow_endpoints {
        let invalid = |error: Error| format!("options: allow_endpoints: {}", error.message());
        parse_endpoint(endpoint).map_err(|error| Error::new(Kind::InvalidInput, invalid(error)))?;
    }
    Ok(RuntimeOptions {
        limits: limits.over(Limits::default()),
        thread_roles: thread_roles.map_or_else(ThreadRoles::default, Into::into),
        lenient,
        strict,
        strict_inputs,
        guard: guard.map(GuardData::into_guard).transpose()?.flatten(),
        kinds: kinds.map_or_else(KindCheck::default, Into::into),
        policy,
        tool_policy,
        seed,
        load: load.into_options(),
        http: http.into_options()?,
        cassette: cassette.map(Into::into),
        trace: trace.over(TraceOptions::default()),
        tool_addresses: ToolAddresses {
            allow_private: tool_addresses.allow_private,
            allow_hosts: tool_addresses.allow_hosts,
        },
        allow_endpoints,
    })
}

/// Reads the options of a model call: `provider`, `model`, `api_type`, `base_url`, `api_key`.
///
/// # Errors
/// Returns an error if an option is unknown or has an invalid value.
pub fn run_options(options: Json) -> Result<RunOptions> {
    let RunData { provider, model, api_type, base_url, api_key } = read(options)?;
    let api_key = api_key.map(Secret::new);
    Ok(RunOptions { provider, model, api_type, base_url, api_key, functions: Vec::new() })
}

/// Reads the options that a caller can set for a single render: `variant`, `guard`, `policy`, `strict`, `lenient`,
/// `kinds`, `strict_inputs`, `seed`.
///
/// # Errors
/// Returns an error if an option is unknown or has an invalid value.
pub fn render_settings(options: Json) -> Result<RenderSettings> {
    let RenderData { variant, guard, policy, strict, lenient, kinds, strict_inputs, seed } = read(options)?;
    let (guard, kinds) = (guard.map(GuardData::into_guard).transpose()?, kinds.map(Into::into));
    Ok(RenderSettings { variant, guard, policy, strict, lenient, kinds, strict_inputs, seed })
}

/// The options that a caller can set for a single render.
#[derive(Clone, Debug, Default)]
pub struct RenderSettings {
    variant: Option<String>,
    /// The guard: `None` if the caller does not set the option, and `Some(None)` if the caller turns it off.
    guard: Option<Option<Guard>>,
    policy: Option<Policy>,
    strict: Option<bool>,
    lenient: Option<bool>,
    kinds: Option<KindCheck>,
    strict_inputs: Option<bool>,
    seed: Option<u64>,
}

impl RenderSettings {
    /// Returns the options of a render, overridden by these settings. A policy applies in addition to the one of the
    /// options, so that a caller cannot allow what the runtime forbids.
    pub fn over<'a>(&'a self, options: RenderOptions<'a>) -> RenderOptions<'a> {
        RenderOptions {
            variant: self.variant.as_deref().or(options.variant),
            guard: self.guard.as_ref().map_or(options.guard, Option::as_ref),
            policy: match (self.policy, options.policy) {
                (Some(own), Some(other)) => Some(own.and(other)),
                (own, other) => own.or(other),
            },
            strict: self.strict.or(options.strict),
            lenient: self.lenient.or(options.lenient),
            kinds: self.kinds.unwrap_or(options.kinds),
            strict_inputs: self.strict_inputs.unwrap_or(options.strict_inputs),
            seed: self.seed.or(options.seed),
            ..options
        }
    }

    /// Returns the guard, if the caller sets the option; `Some(None)` turns it off.
    pub fn guard(&self) -> Option<Option<&Guard>> {
        self.guard.as_ref().map(Option::as_ref)
    }

    /// Returns whether values must match their declared kinds, if the caller sets the option.
    pub fn kinds(&self) -> Option<KindCheck> {
        self.kinds
    }
}

/// Reads the settings of a turn: its limits, `run` for the model call, `tool_timeout`, `approve_all`, `compact`,
/// `journal`, `turn_number`, `tool_policy`, `tool_flows` (what the host declares about tools, by name) and `labels` (those of
/// the messages). The host adds settings that are functions.
///
/// # Errors
/// Returns an error if an option is unknown or has an invalid value.
pub fn turn_settings(options: Json) -> Result<TurnSettings> {
    let data: TurnData = read(options)?;
    let mut settings = TurnSettings { run: run_options(data.run)?, ..TurnSettings::default() };
    let turn = &mut settings.turn;
    set(&mut turn.max_iterations, data.max_iterations);
    set(&mut turn.max_llm_retries, data.max_llm_retries);
    set(&mut turn.max_tool_calls, data.max_tool_calls);
    set(&mut turn.max_result_bytes, data.max_result_bytes);
    set(&mut turn.parallel_tool_calls, data.parallel_tool_calls);
    turn.max_model_calls = data.max_model_calls;
    turn.max_tokens = data.max_tokens;
    turn.max_cost = data.max_cost;
    turn.prices = data.prices.map(|prices| Prices { input: prices.input, output: prices.output }).unwrap_or_default();
    turn.max_time = data.max_time.map(|time| seconds("max_time", time)).transpose()?;
    turn.context_budget = data.context_budget.map(Into::into);
    turn.guard = data.guard.map(GuardData::into_guard).transpose()?.flatten();
    turn.flow.policy = data.tool_policy;
    turn.flow.tools = data.tool_flows;
    turn.flow.labels = data.labels.map(with_untrusted_sources);
    set(&mut settings.tool_timeout, data.tool_timeout.map(|time| seconds("tool_timeout", time)).transpose()?);
    set(&mut settings.approve_all, data.approve_all);
    settings.compact = data.compact.unwrap_or(false).then_some(Compact::Model);
    settings.journal = data.journal.map(Journal::at).transpose()?;
    settings.turn_number = data.turn_number;
    Ok(settings)
}

/// Fills in the untrusted sources, which labels that are written by hand often leave out.
fn with_untrusted_sources(mut labels: Vec<MessageLabel>) -> Vec<MessageLabel> {
    let fill = |label: &mut Label| {
        if !label.trusted && label.untrusted_sources.is_empty() {
            label.untrusted_sources = label.sources.clone();
        }
    };
    for part in labels.iter_mut().flat_map(|message| &mut message.parts) {
        fill(&mut part.label);
        part.ranges.iter_mut().for_each(|range| fill(&mut range.label));
    }
    labels
}

fn read<T: DeserializeOwned>(options: Json) -> Result<T> {
    let invalid = |reason: &dyn std::fmt::Display| Error::new(Kind::InvalidInput, format_args!("options: {reason}"));
    match options {
        // Null is equivalent to an empty map.
        Json::Null => read(Json::Object(Default::default())),
        Json::Object(_) => serde_json::from_value(options).map_err(|reason| invalid(&reason)),
        _ => Err(invalid(&"expected a map")),
    }
}

fn seconds(name: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        Error::new(
            Kind::InvalidInput,
            format_args!(
                "options: {name}: expected a number of seconds, \
            found {value}"
            ),
        )
    })
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RuntimeData {
    strict: Option<bool>,
    lenient: Option<bool>,
    strict_inputs: bool,
    guard: Option<GuardData>,
    limits: LimitsData,
    thread_roles: Option<ThreadRolesData>,
    load: LoadData,
    http: HttpData,
    cassette: Option<CassetteData>,
    trace: TraceData,
    tool_addresses: ToolAddressesData,
    allow_endpoints: Vec<String>,
    kinds: Option<KindCheckData>,
    policy: Option<Policy>,
    tool_policy: ToolPolicy,
    seed: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RunData {
    provider: Option<String>,
    model: Option<String>,
    api_type: Option<String>,
    base_url: Option<String>,
    api_key: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RenderData {
    variant: Option<String>,
    guard: Option<GuardData>,
    policy: Option<Policy>,
    strict: Option<bool>,
    lenient: Option<bool>,
    kinds: Option<KindCheckData>,
    strict_inputs: Option<bool>,
    seed: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TurnData {
    run: Json,
    max_iterations: Option<u32>,
    max_llm_retries: Option<u32>,
    max_model_calls: Option<u32>,
    max_tokens: Option<u64>,
    max_cost: Option<f64>,
    prices: Option<PricesData>,
    max_time: Option<f64>,
    max_tool_calls: Option<usize>,
    max_result_bytes: Option<usize>,
    parallel_tool_calls: Option<bool>,
    context_budget: Option<BudgetData>,
    guard: Option<GuardData>,
    tool_timeout: Option<f64>,
    approve_all: Option<bool>,
    compact: Option<bool>,
    journal: Option<PathBuf>,
    turn_number: Option<u32>,
    tool_policy: Option<ToolPolicy>,
    tool_flows: HashMap<String, ToolFlow>,
    labels: Option<Vec<MessageLabel>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PricesData {
    input: f64,
    output: f64,
}

/// A number of characters, or a number of tokens of a model.
#[derive(Deserialize)]
#[serde(untagged, expecting = "context_budget: expected a number of characters, or `tokens` and a `model`")]
enum BudgetData {
    Chars(usize),
    #[cfg(feature = "tokens")]
    Tokens {
        tokens: usize,
        #[serde(default)]
        model: String,
    },
}

impl From<BudgetData> for ContextBudget {
    fn from(budget: BudgetData) -> Self {
        match budget {
            BudgetData::Chars(chars) => Self::Chars(chars),
            #[cfg(feature = "tokens")]
            BudgetData::Tokens { tokens, model } => Encoding::of_model(&model).budget(tokens),
        }
    }
}

/// Whether the guard is on, its advisory, or a map of its options.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "guard: expected true, false, the text of an advisory, or a map with `advisory` and `role`"
)]
enum GuardData {
    Is(bool),
    Advisory(String),
    Options(GuardOptions),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuardOptions {
    advisory: Option<String>,
    /// The role of the message that carries the advisory; null if the caller sends it.
    #[serde(default = "system", deserialize_with = "role")]
    role: Option<Role>,
}

fn system() -> Option<Role> {
    Some(Role::System)
}

fn role<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Role>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    let expected = || serde::de::Error::custom("expected the role `system`, `developer` or `user`");
    let is_sent = |role: &Role| matches!(role, Role::System | Role::Developer | Role::User);
    name.map(|name| Role::from_name(&name).filter(is_sent).ok_or_else(expected)).transpose()
}

impl GuardData {
    fn into_guard(self) -> Result<Option<Guard>> {
        match self {
            Self::Is(is) => Ok(is.then(Guard::default)),
            Self::Advisory(advisory) => Guard::with_advisory(advisory).map(Some),
            Self::Options(GuardOptions { advisory, role }) => {
                let guard = advisory.map_or_else(|| Ok(Guard::default()), Guard::with_advisory)?;
                Ok(Some(match role {
                    Some(role) => guard.with_advisory_role(role),
                    None => guard.without_advisory_message(),
                }))
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LimitsData {
    steps: Option<u64>,
    output_bytes: Option<usize>,
    operation_bytes: Option<usize>,
    total_bytes: Option<usize>,
    call_depth: Option<usize>,
}

impl LimitsData {
    fn over(self, mut limits: Limits) -> Limits {
        set(&mut limits.steps, self.steps);
        set(&mut limits.output_bytes, self.output_bytes);
        set(&mut limits.operation_bytes, self.operation_bytes);
        set(&mut limits.total_bytes, self.total_bytes);
        set(&mut limits.call_depth, self.call_depth);
        limits
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ThreadRolesData {
    Any,
    NoInstructions,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindCheckData {
    Off,
    Warn,
    Error,
}

impl From<KindCheckData> for KindCheck {
    fn from(kinds: KindCheckData) -> Self {
        match kinds {
            KindCheckData::Off => Self::Off,
            KindCheckData::Warn => Self::Warn,
            KindCheckData::Error => Self::Error,
        }
    }
}

impl From<ThreadRolesData> for ThreadRoles {
    fn from(roles: ThreadRolesData) -> Self {
        match roles {
            ThreadRolesData::Any => Self::Any,
            ThreadRolesData::NoInstructions => Self::NoInstructions,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LoadData {
    env: Option<EnvData>,
    defer_env: bool,
    env_vars: Option<HashMap<String, String>>,
    env_files: Vec<EnvFileData>,
    env_defaults: HashMap<String, String>,
    file_roots: Vec<PathBuf>,
    max_file_bytes: Option<u64>,
    directive_instruction: Option<String>,
}

impl LoadData {
    fn into_options(self) -> LoadOptions {
        let defaults = LoadOptions::default();
        let file = |EnvFileData { name, variables }| EnvFile { name, variables };
        LoadOptions {
            env: self.env.map_or_else(EnvPolicy::default, Into::into),
            defer_env: self.defer_env,
            env_vars: self.env_vars,
            env_files: self.env_files.into_iter().map(file).collect(),
            env_defaults: self.env_defaults,
            file_roots: self.file_roots,
            max_file_bytes: self.max_file_bytes.unwrap_or(defaults.max_file_bytes),
            directive_instruction: self.directive_instruction,
        }
    }
}

/// The name and the variables of an environment file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvFileData {
    name: String,
    variables: HashMap<String, String>,
}

/// The environment variables that prompts may use: all, none, or those in a list of names.
#[derive(Deserialize)]
#[serde(untagged, expecting = "env: expected true, false, or a list of names")]
enum EnvData {
    Is(bool),
    Names(Vec<String>),
}

impl From<EnvData> for EnvPolicy {
    fn from(env: EnvData) -> Self {
        match env {
            EnvData::Is(true) => Self::AllowAll,
            EnvData::Is(false) => Self::Deny,
            EnvData::Names(names) => Self::AllowList(names),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HttpData {
    connect_timeout: Option<f64>,
    first_byte_timeout: Option<f64>,
    idle_timeout: Option<f64>,
    total_timeout: Option<f64>,
    max_retries: Option<u32>,
    max_retry_wait: Option<f64>,
    max_response_bytes: Option<u64>,
    proxy: Option<ProxyData>,
    user_agent: Option<String>,
    extra_roots: Option<String>,
}

/// Whether to use the proxy from the environment, or the URL of a proxy.
#[derive(Deserialize)]
#[serde(untagged, expecting = "proxy: expected true (use the environment), false (no proxy), or a URL")]
enum ProxyData {
    Is(bool),
    Url(String),
}

impl HttpData {
    fn into_options(self) -> Result<HttpOptions> {
        let mut options = HttpOptions { extra_roots: self.extra_roots, ..HttpOptions::default() };
        for (name, field, value) in [
            ("connect_timeout", &mut options.connect_timeout, self.connect_timeout),
            ("first_byte_timeout", &mut options.first_byte_timeout, self.first_byte_timeout),
            ("idle_timeout", &mut options.idle_timeout, self.idle_timeout),
            ("total_timeout", &mut options.total_timeout, self.total_timeout),
            ("max_retry_wait", &mut options.max_retry_wait, self.max_retry_wait),
        ] {
            set(field, value.map(|value| seconds(name, value)).transpose()?);
        }
        set(&mut options.max_retries, self.max_retries);
        set(&mut options.max_response_bytes, self.max_response_bytes);
        set(&mut options.user_agent, self.user_agent);
        set(
            &mut options.proxy,
            self.proxy.map(|proxy| match proxy {
                ProxyData::Is(true) => ProxyPolicy::FromEnvironment,
                ProxyData::Is(false) => ProxyPolicy::None,
                ProxyData::Url(url) => ProxyPolicy::Url(url),
            }),
        );
        Ok(options)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum CassetteData {
    Record(PathBuf),
    Replay(PathBuf),
}

impl From<CassetteData> for Cassette {
    fn from(cassette: CassetteData) -> Self {
        match cassette {
            CassetteData::Record(directory) => Self::Record(directory),
            CassetteData::Replay(directory) => Self::Replay(directory),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TraceData {
    mask_untrusted: Option<bool>,
    redact_values: Option<bool>,
    max_value_bytes: Option<usize>,
}

impl TraceData {
    fn over(self, mut options: TraceOptions) -> TraceOptions {
        set(&mut options.mask_untrusted, self.mask_untrusted);
        set(&mut options.redact_values, self.redact_values);
        set(&mut options.max_value_bytes, self.max_value_bytes);
        options
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolAddressesData {
    allow_private: bool,
    allow_hosts: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tympan_core::secret::env_value::ValueSource;

    #[test]
    fn nothing_is_the_default() {
        for empty in [json!(null), json!({})] {
            let options = runtime_options(empty.clone()).expect("it is empty");
            assert_eq!(format!("{options:?}"), format!("{:?}", RuntimeOptions::default()));
            let settings = turn_settings(empty).expect("it is empty");
            assert_eq!(format!("{settings:?}"), format!("{:?}", TurnSettings::default()));
        }
    }

    #[test]
    fn every_option_arrives() {
        let options = runtime_options(json!({
            "strict": true, "lenient": false, "guard": true, "kinds": "error", "limits": { "steps": 7 },
            "thread_roles": "no_instructions",
            "load": { "env": ["A_*"], "env_vars": { "A_B": "1" },
                "env_files": [{ "name": ".env", "variables": { "A_C": "2" } }], "file_roots": ["/r"], "max_file_bytes": 9 },
            "http": { "connect_timeout": 1.5, "max_retries": 0, "proxy": "http://proxy:1" },
            "cassette": { "replay": "/tapes" },
            "trace": { "mask_untrusted": true },
            "tool_addresses": { "allow_hosts": ["localhost"] },
            "allow_endpoints": ["https://proxy.example/v1"],
            "seed": 5,
        }))
        .expect("all of it is known");
        assert_eq!((options.strict, options.lenient, options.limits.steps), (Some(true), Some(false), 7));
        assert!(options.guard.is_some() && options.trace.mask_untrusted);
        assert_eq!(options.kinds, KindCheck::Error);
        assert_eq!(options.seed, Some(5));
        assert_eq!(options.thread_roles, ThreadRoles::NoInstructions);
        assert_eq!(options.load.max_file_bytes, 9);
        assert_eq!(options.http.connect_timeout, Duration::from_millis(1500));
        assert_eq!(options.http.proxy, ProxyPolicy::Url("http://proxy:1".into()));
        assert_eq!(options.tool_addresses.allow_hosts, ["localhost"]);
        assert_eq!(options.allow_endpoints, ["https://proxy.example/v1"]);
        assert_eq!(options.load.variable("A_C"), Some(("2".into(), ValueSource::EnvFile(".env".into()))));
        assert!(matches!(options.cassette, Some(Cassette::Replay(_))));
        let error = runtime_options(json!({ "allow_endpoints": ["proxy.example"] })).expect_err("not an address");
        assert!(error.message().contains("allow_endpoints"), "{}", error.message());
        let settings = turn_settings(json!({
            "run": { "model": "m", "api_key": "secret" }, "max_tokens": 5, "max_cost": 0.5,
            "prices": { "input": 1, "output": 2 }, "max_time": 3, "parallel_tool_calls": true,
            "context_budget": { "tokens": 100, "model": "gpt-4" }, "compact": true, "journal": "x.journal",
        }))
        .expect("all of it is known");
        assert_eq!(settings.run.model.as_deref(), Some("m"));
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!((settings.turn.max_tokens, settings.turn.max_time), (Some(5), Some(Duration::from_secs(3))));
        assert!(settings.turn.parallel_tool_calls && settings.journal.is_some() && settings.compact.is_some());
        assert!(matches!(settings.turn.context_budget, Some(ContextBudget::Tokens { budget: 100, .. })));
    }

    #[test]
    fn a_render_goes_as_its_caller_says_and_else_as_the_runtime_does() {
        let guard = Guard::default();
        let runtime = RenderOptions { guard: Some(&guard), strict: Some(true), ..RenderOptions::default() };
        let settings = render_settings(json!({ "variant": "short", "guard": false, "lenient": true })).expect("known");
        let options = settings.over(runtime);
        assert_eq!((options.variant, options.strict, options.lenient), (Some("short"), Some(true), Some(true)));
        assert!(options.guard.is_none());
        let silent = render_settings(json!({})).expect("nothing is said");
        assert!(silent.over(runtime).guard.is_some());
        let own = render_settings(json!({ "guard": "Data is in <untrusted></untrusted>, with &amp;, &lt; and &gt;." }))
            .expect("an advisory");
        assert!(own.over(RenderOptions::default()).guard.is_some());
        let error = render_settings(json!({ "gaurd": true })).expect_err("nobody knows that");
        assert!(error.message().contains("gaurd"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (options, complaint) in [
            (json!({ "tool_timeout": -1 }), "tool_timeout"),
            (json!({ "max_iterations": "many" }), "many"),
            (json!({ "context_budget": "large" }), "context_budget"),
            (json!({ "guard": 7 }), "guard"),
            (json!({ "run": { "modle": "m" } }), "modle"),
            (json!([]), "options"),
        ] {
            let error = turn_settings(options).expect_err(complaint);
            assert_eq!(error.kind(), Kind::InvalidInput);
            assert!(error.message().contains(complaint), "{}", error.message());
        }
    }
}
