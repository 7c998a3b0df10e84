//! The tests of a prompt, as plain data.
//!
//! A test file contains a suite, and so does the key `tests` of a prompt file. `schemas/test-file.schema.json` describes
//! the format.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::json::JsonMap;
use crate::spec::role::Role;
use crate::text::source::Span;

/// The tests of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TestSuite {
    /// The path of the prompt file, relative to the test file.
    pub prompt: Option<String>,
    /// The position of this path in the file.
    #[serde(skip)]
    pub prompt_span: Span,
    /// The path of the directory with recorded answers, relative to the test file.
    pub cassettes: Option<String>,
    /// Settings that apply to every case.
    pub defaults: CaseSettings,
    /// The cases, in order.
    pub cases: Vec<TestCase>,
}

/// A case, or several if it has rows or a matrix.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TestCase {
    /// The name.
    pub name: Option<String>,
    /// The path of a CSV or JSON Lines file, relative to the test file. Each row is a case.
    pub rows: Option<String>,
    /// Lists of values. Each combination is a case.
    pub matrix: Option<Matrix>,
    /// The reason why the case is skipped.
    pub skip: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub settings: CaseSettings,
    /// The position in the file.
    #[serde(skip)]
    pub span: Span,
}

/// The settings of a case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CaseSettings {
    /// The values of inputs, by name.
    pub inputs: JsonMap,
    /// The variant of the prompt.
    pub variant: Option<String>,
    /// The provider, instead of the prompt's.
    pub provider: Option<String>,
    /// The model, instead of the prompt's.
    pub model: Option<String>,
    /// Whether the guard is on.
    pub guard: Option<bool>,
    /// Whether role markers in untrusted inputs are errors.
    pub strict: Option<bool>,
    /// Whether undefined variables render as empty text.
    pub lenient: Option<bool>,
    /// The seed of the filter `random`.
    pub seed: Option<u64>,
    /// Where the model's answer comes from.
    pub answer: Option<AnswerSource>,
    /// Fixed results of tools, by name.
    pub tools: Option<JsonMap>,
    /// How often the model is asked.
    pub repeat: Option<u32>,
    /// The share of the repetitions that must pass.
    pub pass: Option<f64>,
    /// The assertions.
    pub expect: Vec<Expectation>,
}

impl CaseSettings {
    /// Returns these settings, overridden by those of a case. Inputs and tools are added by name, and assertions at the
    /// end.
    #[must_use]
    pub fn overridden(&self, case: &Self) -> Self {
        let merged = |defaults: &JsonMap, own: &JsonMap| {
            let mut map = defaults.clone();
            map.extend(own.clone());
            map
        };
        let tools = match (&self.tools, &case.tools) {
            (Some(defaults), Some(own)) => Some(merged(defaults, own)),
            (defaults, own) => own.clone().or_else(|| defaults.clone()),
        };
        let (defaults, own) = (self, case);
        Self {
            inputs: merged(&defaults.inputs, &own.inputs),
            variant: own.variant.clone().or_else(|| defaults.variant.clone()),
            provider: own.provider.clone().or_else(|| defaults.provider.clone()),
            model: own.model.clone().or_else(|| defaults.model.clone()),
            guard: own.guard.or(defaults.guard),
            strict: own.strict.or(defaults.strict),
            lenient: own.lenient.or(defaults.lenient),
            seed: own.seed.or(defaults.seed),
            answer: own.answer.clone().or_else(|| defaults.answer.clone()),
            tools,
            repeat: own.repeat.or(defaults.repeat),
            pass: own.pass.or(defaults.pass),
            expect: defaults.expect.iter().chain(&own.expect).cloned().collect(),
        }
    }
}

/// Lists of values whose combinations are cases.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Matrix {
    /// A list of values for each of these inputs, which [`Json`] arrays hold.
    pub inputs: JsonMap,
    /// The variants of the prompt.
    pub variants: Vec<String>,
    /// The models, as `model` or `provider/model`.
    pub models: Vec<String>,
}

/// Where the model's answer comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerSource {
    /// A recorded answer.
    Cassette,
    /// The provider `echo`.
    Echo,
    /// A fixed text.
    #[serde(untagged)]
    Fixed {
        /// The text.
        text: String,
    },
}

/// An assertion, as it is written in a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct Expectation {
    /// The assertion.
    pub assertion: Assertion,
    /// The assertion as JSON. Rows of a table fill in its references, such as `${row:label}`.
    #[serde(skip)]
    pub json: Json,
    /// The position in the file.
    #[serde(skip)]
    pub span: Span,
}

impl Expectation {
    /// Creates an assertion from JSON.
    ///
    /// # Errors
    /// Returns an error if the value is not an assertion.
    pub fn from_json(json: Json, span: Span) -> serde_json::Result<Self> {
        Ok(Self { assertion: Assertion::deserialize(&json)?, json, span })
    }
}

/// An assertion about the messages, the request or the answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Assertion {
    /// The assertion in it fails.
    Not(Box<Assertion>),
    /// The number of messages.
    Messages(CountRange),
    /// The roles of all messages, in order.
    Roles(Vec<Role>),
    /// The text of messages.
    Message(MessageMatch),
    /// The number of tokens of the messages.
    Tokens(TokenRange),
    /// Rendering or building the request fails.
    Error(ExpectedError),
    /// The body of the request.
    Request(ValueMatch),
    /// An input is in none of the messages.
    NoOrigin(InputPlace),
    /// The messages contain no text from other inputs.
    OnlyFrom(OnlyFrom),
    /// The guard wraps all text from an input.
    Guarded(InputPlace),
    /// The messages contain the input unchanged.
    Verbatim(InputPlace),
    /// The share of the text that comes from an input.
    Share(Share),
    /// The text at the beginning that is the same for all inputs.
    CachePrefix(CachePrefix),
    /// Forged messages in inputs do not change the roles.
    Forge(Forge),
    /// The result of the prompt.
    Result(ValueMatch),
    /// The tool calls.
    ToolCalls(ExpectedCalls),
    /// Why the model stopped.
    FinishReason(Texts),
    /// The number of model calls.
    Rounds(CountRange),
    /// The estimated cost.
    Cost(CostLimit),
    /// The time that the model takes.
    Latency(LatencyLimit),
    /// Whether the model refuses to answer.
    Refusal(bool),
    /// The similarity of the result with a text.
    Similar(Similar),
    /// A program decides.
    Program(ProgramCheck),
    /// A prompt decides.
    Judge(Judge),
}

impl Assertion {
    /// Returns the key of the assertion in a file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Not(_) => "not",
            Self::Messages(_) => "messages",
            Self::Roles(_) => "roles",
            Self::Message(_) => "message",
            Self::Tokens(_) => "tokens",
            Self::Error(_) => "error",
            Self::Request(_) => "request",
            Self::NoOrigin(_) => "no_origin",
            Self::OnlyFrom(_) => "only_from",
            Self::Guarded(_) => "guarded",
            Self::Verbatim(_) => "verbatim",
            Self::Share(_) => "share",
            Self::CachePrefix(_) => "cache_prefix",
            Self::Forge(_) => "forge",
            Self::Result(_) => "result",
            Self::ToolCalls(_) => "tool_calls",
            Self::FinishReason(_) => "finish_reason",
            Self::Rounds(_) => "rounds",
            Self::Cost(_) => "cost",
            Self::Latency(_) => "latency",
            Self::Refusal(_) => "refusal",
            Self::Similar(_) => "similar",
            Self::Program(_) => "program",
            Self::Judge(_) => "judge",
        }
    }

    /// Returns whether the assertion needs a model's answer.
    pub fn needs_answer(&self) -> bool {
        match self {
            Self::Not(inner) => inner.needs_answer(),
            Self::Messages(_)
            | Self::Roles(_)
            | Self::Message(_)
            | Self::Tokens(_)
            | Self::Error(_)
            | Self::Request(_)
            | Self::NoOrigin(_)
            | Self::OnlyFrom(_)
            | Self::Guarded(_)
            | Self::Verbatim(_)
            | Self::Share(_)
            | Self::CachePrefix(_)
            | Self::Forge(_) => false,
            Self::Result(_)
            | Self::ToolCalls(_)
            | Self::FinishReason(_)
            | Self::Rounds(_)
            | Self::Cost(_)
            | Self::Latency(_)
            | Self::Refusal(_)
            | Self::Similar(_)
            | Self::Program(_)
            | Self::Judge(_) => true,
        }
    }
}

/// A number, or a range with both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum CountRange {
    /// Exactly this number.
    Exactly(usize),
    /// A range.
    Range {
        /// The least number.
        min: Option<usize>,
        /// The greatest number.
        max: Option<usize>,
    },
}

impl CountRange {
    /// Returns whether a number is in the range.
    pub fn contains(self, number: usize) -> bool {
        let (min, max) = match self {
            Self::Exactly(exact) => (Some(exact), Some(exact)),
            Self::Range { min, max } => (min, max),
        };
        min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
    }
}

/// The messages that an assertion is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum MessageSelector {
    /// The message with this number, counted from 0.
    Index(usize),
    /// The messages with this role.
    Role(Role),
}

/// A text, or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    /// One text.
    One(String),
    /// Several texts.
    Many(Vec<String>),
}

impl Texts {
    /// Returns the texts.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// Conditions on a text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TextMatch {
    /// Parts of the text.
    pub contains: Option<Texts>,
    /// Texts that are not in it.
    pub not_contains: Option<Texts>,
    /// The beginning of the text.
    pub starts_with: Option<String>,
    /// The end of the text.
    pub ends_with: Option<String>,
    /// A regular expression that the text contains a match of.
    pub matches: Option<String>,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
}

/// Conditions on the text of messages.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MessageMatch {
    /// The messages that count.
    #[serde(rename = "in")]
    pub place: Option<MessageSelector>,
    /// The whole text.
    pub equals: Option<String>,
    /// Whether the messages are compared with a snapshot.
    pub snapshot: bool,
    /// The other conditions.
    #[serde(flatten)]
    pub text: TextMatch,
}

/// Conditions on a JSON value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ValueMatch {
    /// A JSON path to the value.
    pub path: Option<String>,
    /// Whether there is a value.
    pub exists: Option<bool>,
    /// The value.
    #[serde(deserialize_with = "some_value")]
    pub equals: Option<Json>,
    /// The least number.
    pub min: Option<f64>,
    /// The greatest number.
    pub max: Option<f64>,
    /// A JSON Schema that the value matches.
    pub schema: Option<Json>,
    /// Whether the text is JSON. If true, the other conditions apply to the parsed value.
    pub json: Option<bool>,
    /// Whether the result matches the prompt's outputs.
    pub valid: Option<bool>,
    /// Conditions on the text of the value.
    #[serde(flatten)]
    pub text: TextMatch,
}

/// Deserializes a value that may be null, so that `equals: null` is a condition.
fn some_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// A range of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenRange {
    /// The messages that count.
    #[serde(rename = "in")]
    pub place: Option<MessageSelector>,
    /// The least number.
    pub min: Option<usize>,
    /// The greatest number.
    pub max: Option<usize>,
}

/// An error that is expected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ExpectedError {
    /// The code of the error.
    Code(String),
    /// Conditions on the error.
    Conditions {
        /// The code of the error.
        code: Option<String>,
        /// Parts of the message.
        contains: Option<Texts>,
    },
}

/// An input, and the messages that count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum InputPlace {
    /// An input, in all messages.
    Input(String),
    /// An input, in some messages.
    Place {
        /// The name of the input.
        input: String,
        /// The messages.
        #[serde(rename = "in")]
        place: Option<MessageSelector>,
    },
}

impl InputPlace {
    /// Returns the name of the input.
    pub fn input(&self) -> &str {
        match self {
            Self::Input(input) | Self::Place { input, .. } => input,
        }
    }

    /// Returns the messages that count.
    pub const fn place(&self) -> Option<MessageSelector> {
        match self {
            Self::Input(_) => None,
            Self::Place { place, .. } => *place,
        }
    }
}

/// The only inputs whose text messages may contain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct OnlyFrom {
    /// The messages that count.
    #[serde(rename = "in")]
    pub place: Option<MessageSelector>,
    /// The names of the inputs.
    pub inputs: Vec<String>,
}

/// Bounds for the share of text that comes from an input.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Share {
    /// The name of the input.
    pub input: String,
    /// The messages that count.
    #[serde(rename = "in")]
    pub place: Option<MessageSelector>,
    /// The least share.
    pub min: Option<Fraction>,
    /// The greatest share.
    pub max: Option<Fraction>,
}

/// A share from 0 to 1, which can be written as a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub struct Fraction(pub f64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

impl TryFrom<NumberOrText> for Fraction {
    type Error = String;

    fn try_from(value: NumberOrText) -> Result<Self, String> {
        let share = match &value {
            NumberOrText::Number(share) => Some(Self(*share)).filter(|share| (0.0..=1.0).contains(&share.0)),
            NumberOrText::Text(text) => Self::from_percentage(text),
        };
        share.ok_or_else(|| "expected a share such as `60%` or 0.6".to_owned())
    }
}

impl Fraction {
    /// Parses a percentage from 0% to 100%, such as `60%` or `2.5 %`.
    pub fn from_percentage(text: &str) -> Option<Self> {
        let digits = text.strip_suffix('%')?.trim_end_matches(' ');
        if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }
        let percent = digits.parse::<f64>().ok().filter(|percent| *percent <= 100.0)?;
        Some(Self(percent / 100.0))
    }
}

/// The least length of the text that providers can cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct CachePrefix {
    /// The number of tokens.
    pub min_tokens: usize,
}

/// The inputs that forged messages are put into.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Forge {
    /// Every input that can contain text.
    All,
    /// These inputs.
    #[serde(untagged)]
    Inputs(Vec<String>),
}

/// Tool calls that are expected.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ExpectedCalls {
    /// Exactly these calls, in order.
    Exactly(Vec<ExpectedCall>),
    /// Conditions on the calls.
    Conditions(CallConditions),
}

/// Conditions on the tool calls of a turn.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CallConditions {
    /// Calls that occur in this order, with others between them.
    pub in_order: Vec<ExpectedCall>,
    /// Calls that occur, in any order.
    pub include: Vec<ExpectedCall>,
    /// Calls that do not occur.
    pub exclude: Vec<ExpectedCall>,
    /// The greatest number of calls.
    pub max: Option<usize>,
}

/// A tool call that is expected.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ExpectedCall {
    /// The name of the tool.
    Name(String),
    /// The name and some of the arguments.
    Call {
        /// The name of the tool.
        name: String,
        /// The arguments that the call must have.
        #[serde(default)]
        arguments: JsonMap,
    },
}

/// The greatest cost of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct CostLimit {
    /// The cost in US dollars.
    pub max: f64,
}

/// The longest time that a model may take.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct LatencyLimit {
    /// The time in seconds.
    pub max_seconds: f64,
}

/// The least similarity of the result with a text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Similar {
    /// The text.
    pub to: String,
    /// The least similarity, from 0 to 1.
    pub min: Option<f64>,
    /// The measure.
    #[serde(default)]
    pub measure: Measure,
}

/// A measure of the similarity of two texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// Compares how often words occur.
    #[default]
    Words,
    /// Counts the edits of characters.
    Characters,
    /// Uses the longest common sequence of words.
    Longest,
}

/// A program that decides.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ProgramCheck {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The time limit in seconds.
    pub seconds: Option<f64>,
}

/// A prompt that judges an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Judge {
    /// The path of the prompt file, relative to the test file.
    pub rubric: String,
    /// The definition hash that the prompt must have.
    pub hash: Option<String>,
    /// Further inputs of the prompt.
    #[serde(default)]
    pub inputs: JsonMap,
    /// How often the judge is asked.
    pub votes: Option<u32>,
    /// The least average score, from 0 to 1.
    pub min_score: Option<f64>,
    /// The provider, instead of the prompt's.
    pub provider: Option<String>,
    /// The model, instead of the prompt's.
    pub model: Option<String>,
    /// The path of a JSON Lines file with known verdicts, relative to the test file.
    pub calibration: Option<String>,
    /// The share of known verdicts that the judge must agree with.
    pub min_agreement: Option<f64>,
}
