//! The engine's one error type.

#[cfg(feature = "wire")]
use std::any::Any;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::text::source::{LineColumn, SourceFile, Span};

/// The result of anything in Tympan that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The family an error belongs to; bindings map it to their language's own exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A file is not there.
    FileNotFound,
    /// The prompt or its inputs are at fault.
    Value,
    /// A provider could not be reached.
    Connection,
    /// Something went wrong while running.
    Runtime,
    /// Nothing is registered for a name.
    Invoker,
}

impl Class {
    /// The name that the Prompty specification uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileNotFound => "FileNotFoundError",
            Self::Value => "ValueError",
            Self::Connection => "ConnectionError",
            Self::Runtime => "RuntimeError",
            Self::Invoker => "InvokerError",
        }
    }
}

/// Declares the kinds of errors in one table: name, code, class, and how its message reads.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $code:literal $class:ident $pattern:literal,)*) => {
        /// What went wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// Every kind there is, in the order of the pipeline's stages.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// A short stable name for programs.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The kind with this code.
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.code() == code)
            }

            /// The family it belongs to.
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// How its message reads; `{}` stands for the details.
            pub const fn pattern(self) -> &'static str {
                match self { $(Self::$name => $pattern,)* }
            }
        }
    };
}

kinds! {
    /// The prompt file is not there.
    FileNotFound "file_not_found" FileNotFound "Prompty file not found: {}",
    /// The prompt file cannot be read as text.
    UnreadableFile "unreadable_file" Value "Cannot read the file: {}",
    /// The front matter is not valid YAML, or is not closed.
    InvalidFrontmatter "invalid_frontmatter" Value "Invalid frontmatter YAML: {}",
    /// A field of the prompt has the wrong shape.
    InvalidDocument "invalid_document" Value "Invalid prompt: {}",
    /// A prompt definition does not parse, or has the wrong shape.
    InvalidDefinition "invalid_definition" Value "Invalid prompt definition: {}",
    /// A template of a prompt definition uses a variable that is not declared.
    UndeclaredVariable "undeclared_variable" Value "Undeclared variable: {}",
    /// A variable says that its validation is required, and nothing validates it.
    ValidationUncovered "validation_uncovered" Value "Validation is required: {}",
    /// `${env:NAME}` names a variable that is not set.
    EnvNotSet "env_not_set" Value "Environment variable '{}' not set",
    /// `${env:NAME}` names a variable that the host does not allow.
    EnvNotAllowed "env_not_allowed" Value "Environment variable '{}' is not allowed by the host",
    /// `${file:path}` names a file that is not there.
    ReferencedFileNotFound "referenced_file_not_found" FileNotFound "Referenced file not found: {}",
    /// `${file:path}` leads outside the prompt's directory and the host's allowed roots.
    FileOutsideRoot "file_outside_root" Value "Referenced file is outside the allowed directories: {}",
    /// `${file:path}` names something that is not a regular file of acceptable size and content.
    InvalidReferencedFile "invalid_referenced_file" Value "Referenced file cannot be used: {}",
    /// A prompt has no variant of this name.
    UnknownVariant "unknown_variant" Value "Unknown variant: {}",
    /// A directive lacks a part, or has one of the wrong shape.
    InvalidDirective "invalid_directive" Value "Invalid directive: {}",
    /// The metadata of a directive is not XML that Tympan reads.
    InvalidXml "invalid_xml" Value "Invalid XML: {}",
    /// Two inputs, or two outputs, of a directive have the same name, or two tools of a turn.
    DuplicateName "duplicate_name" Value "Duplicate name: {}",
    /// A permission of a directive is no capability.
    InvalidCapability "invalid_capability" Value "Invalid capability: {}",
    /// The steps of a directive refer to an input that is not declared.
    UndeclaredInput "undeclared_input" Value "Undeclared input: {}",
    /// A required input was not given and has no default.
    MissingInput "missing_input" Value "Missing required input: {}",
    /// A directive was given an input that it does not declare.
    UnknownInput "unknown_input" Value "Unknown input: {}",
    /// An input has a value that cannot be used as what it is declared to be.
    InvalidInput "invalid_input" Value "Invalid input: {}",
    /// A thread's value is not a list of messages.
    InvalidThread "invalid_thread" Value "Invalid thread: {}",
    /// A template does not parse.
    TemplateSyntax "template_syntax" Value "Template syntax error: {}",
    /// A template uses a feature that prompts do not have.
    ExcludedFeature "excluded_feature" Value "Excluded template feature: {}",
    /// A template names a variable that has no value.
    UndefinedVariable "undefined_variable" Value "Undefined template variable: {}",
    /// A template names a filter that does not exist.
    UnknownFilter "unknown_filter" Value "Unknown filter: {}",
    /// A template names a test that does not exist.
    UnknownTest "unknown_test" Value "Unknown test: {}",
    /// A template calls a function or method that does not exist.
    UnknownFunction "unknown_function" Value "Unknown function: {}",
    /// A template does something with a value that the value cannot do.
    InvalidOperation "invalid_operation" Value "Invalid operation: {}",
    /// A thread, image, file or audio input is used as if it were text.
    RichInputMisused "rich_input_misused" Value "Rich input misused: {}",
    /// A render went past its budget.
    LimitExceeded "limit_exceeded" Value "Limit exceeded: {}",
    /// A rich input needs a nonce, and the host gave no source of randomness.
    NoEntropy "no_entropy" Runtime "No source of randomness: {}",
    /// Strict mode found a role marker that the author did not write.
    NonceMismatch "nonce_mismatch" Value "Role marker nonce mismatch (possible injection){}",
    /// A guard's advisory does not explain what the guard does.
    InvalidAdvisory "invalid_advisory" Value "Invalid advisory: {}",
    /// The guard was asked for where it is not known who wrote what.
    CannotGuard "cannot_guard" Value "The guard cannot be used: {}",
    /// What a model returned from a directive is not what the directive declares.
    InvalidReturn "invalid_return" Value "Invalid result: {}",
    /// A signature is missing, does not fit the file, or was made with a key that is not trusted.
    InvalidSignature "invalid_signature" Value "Signature refused: {}",
    /// A file of keys cannot be used.
    InvalidKey "invalid_key" Value "Invalid key: {}",
    /// A prompt asks for an interface that its provider does not have.
    UnsupportedApi "unsupported_api" Value "Unsupported API type: {}",
    /// A request cannot be made: no model, a rich input that the provider cannot take, a header with a line end, …
    InvalidRequest "invalid_request" Value "Cannot make the request: {}",
    /// No key was given, and the provider wants one.
    MissingKey "missing_key" Value "No API key: {}",
    /// A key of the environment would go to an address that the host has not named.
    UntrustedEndpoint "untrusted_endpoint" Value "Untrusted endpoint: {}",
    /// The provider cannot be reached.
    Unreachable "unreachable" Connection "Cannot reach the provider: {}",
    /// The connection was not made in time.
    ConnectTimeout "connect_timeout" Connection "No connection in time: {}",
    /// The answer did not begin in time.
    FirstByteTimeout "first_byte_timeout" Connection "No answer in time: {}",
    /// The answer stopped coming.
    IdleTimeout "idle_timeout" Connection "The answer stopped coming: {}",
    /// All together took too long.
    TotalTimeout "total_timeout" Connection "Not done in time: {}",
    /// The provider sends the request elsewhere, and the credentials must not go there.
    RedirectRefused "redirect_refused" Connection "Redirect refused: {}",
    /// The provider is overloaded or broken, also after retries.
    ProviderUnavailable "provider_unavailable" Connection "The provider is not available: {}",
    /// The provider answered with an error.
    Provider "provider" Runtime "The provider answered with an error: {}",
    /// The answer is something else than the protocol says, such as a web page.
    ContentType "content_type" Value "Unexpected content type: {}",
    /// The answer is larger than the host allows.
    ResponseTooLarge "response_too_large" Runtime "The answer is too large: {}",
    /// The answer does not have the shape that its protocol says.
    UnexpectedResponse "unexpected_response" Value "Unexpected response format: {}",
    /// A stream holds something that its protocol does not.
    StreamParse "stream_parse" Value "The stream cannot be read: {}",
    /// A stream ended before the answer did.
    Truncated "truncated" Connection "The stream ended too early: {}",
    /// The model will not answer.
    Refused "refused" Value "Model refused: {}",
    /// A result is not what the caller wants it to be.
    InvalidResult "invalid_result" Value "The result does not fit: {}",
    /// The caller stopped it.
    Cancelled "cancelled" Runtime "Cancelled: {}",
    /// A tool did not come back in time.
    ToolTimeout "tool_timeout" Runtime "Not done in time: {}",
    /// A model called a tool that was not declared.
    ToolNotRegistered "tool_not_registered" Value "Tool not registered: {}",
    /// A tool cannot be made ready: its server, its description or its prompt file cannot be had.
    ToolUnavailable "tool_unavailable" Runtime "Tool not available: {}",
    /// What runs a tool takes something else than the prompt declares.
    ToolMismatch "tool_mismatch" Value "Tool does not fit its declaration: {}",
    /// A server offers other tools than those that somebody has agreed to.
    ToolsChanged "tools_changed" Value "The tools have changed: {}",
    /// A tool would call an address that the host does not allow.
    BlockedDestination "blocked_destination" Value "Blocked destination: {}",
    /// Prompts call each other without end.
    ToolRecursion "tool_recursion" Runtime "Prompts call each other too deeply: {}",
    /// A model called more tools at once than the host allows.
    TooManyToolCalls "too_many_tool_calls" Runtime "Too many tool calls: {}",
    /// A model went on calling tools.
    MaxIterations "max_iterations" Runtime "Agent loop exceeded {} iterations",
    /// A turn used up its tokens, its money or its time.
    TurnLimit "turn_limit" Runtime "The turn went past its limit: {}",
    /// A guardrail of the host denied what was to be sent, or what was answered.
    Guardrail "guardrail" Runtime "Denied by guardrail: {}",
    /// A model could not be called, also when it was tried again.
    LlmCallFailed "llm_call_failed" Runtime "LLM call failed after {}",
    /// A turn was told something that it had not asked for.
    NotAsked "not_asked" Value "The turn did not ask for this: {}",
    /// A journal cannot be read or written, or is damaged.
    InvalidJournal "invalid_journal" Value "Journal: {}",
    /// Somebody else writes to the journal.
    JournalBusy "journal_busy" Runtime "The journal is in use: {}",
    /// A journal tells of another prompt, or of other tools, than those at hand.
    JournalMismatch "journal_mismatch" Value "The journal does not fit: {}",
    /// A cassette holds no such request.
    UnknownExchange "unknown_exchange" Value "No recorded exchange: {}",
    /// A cassette cannot be read or written.
    InvalidCassette "invalid_cassette" Value "Cassette: {}",
    /// Tympan itself is at fault, or the system has no threads left.
    Internal "internal" Runtime "Internal error: {}",
    /// A trace cannot be read, or a backend for traces cannot be started.
    InvalidTrace "invalid_trace" Value "Trace: {}",
    /// Nothing is registered for a kind of renderer, parser, …
    NotRegistered "not_registered" Invoker "No {}",
}

/// An error: what, where, and what to do about it.
///
/// No value of an input ever appears in its text.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    message: String,
    help: Option<String>,
    span: Option<Span>,
    source: Option<SourceFile>,
    others: Vec<Diagnostic>,
    partial_text: Option<String>,
    is_permanent: bool,
    status: Option<u16>,
    retry_after: Option<Duration>,
    cause: Option<Cause>,
    #[cfg(feature = "wire")]
    attached: Option<Attached>,
}

/// The error of another library that this one is about. Nothing changes it, so a panic cannot leave it half changed.
#[derive(Clone)]
struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl UnwindSafe for Cause {}
impl RefUnwindSafe for Cause {}

/// Data that a later stage adds to an error, of a type that this one does not know.
#[cfg(feature = "wire")]
type Attached = Arc<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>;

impl Error {
    /// An error whose message is the kind's pattern with these details.
    pub fn new(kind: Kind, details: impl fmt::Display) -> Self {
        Self::with_message(kind, kind.pattern().replacen("{}", &details.to_string(), 1))
    }

    /// An error whose message is all there.
    pub(crate) fn with_message(kind: Kind, message: String) -> Self {
        Self(Box::new(Inner {
            kind,
            message,
            help: None,
            span: None,
            source: None,
            others: Vec::new(),
            partial_text: None,
            is_permanent: false,
            status: None,
            retry_after: None,
            cause: None,
            #[cfg(feature = "wire")]
            attached: None,
        }))
    }

    /// No renderer, parser, … is registered for a key.
    pub fn not_registered(component: &str, key: &str) -> Self {
        Self::new(Kind::NotRegistered, format_args!("{component} registered for key: {key}"))
    }

    /// A finding as an error; its code says which kind it is.
    pub fn from_diagnostic(diagnostic: Diagnostic) -> Self {
        let Diagnostic { code, span, message, help, .. } = diagnostic;
        let mut error = Self::with_message(Kind::from_code(code).unwrap_or(Kind::InvalidDocument), message);
        error.0.help = help;
        error.0.span = span;
        error
    }

    /// The first of some findings about a source, in the order of their places; the rest are [`Error::others`].
    pub(crate) fn from_findings(mut findings: Vec<Diagnostic>, source: &SourceFile) -> Self {
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        let mut findings = findings.into_iter();
        let first = findings.next().map(Self::from_diagnostic);
        let first = first.unwrap_or_else(|| Self::new(Kind::InvalidDocument, "it cannot be read"));
        first.in_source(source, 0).with_others(findings.collect())
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Says where it happened, unless that is known already: the innermost place is the best one.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Says which source the span points into, `offset` bytes further on than it says.
    #[must_use]
    pub fn in_source(mut self, source: &SourceFile, offset: usize) -> Self {
        if self.0.source.is_none() {
            self.0.span = self.0.span.map(|span| span.shifted(offset));
            self.0.source = Some(source.clone());
        }
        self
    }

    /// Moves its place, if it has one and no source yet.
    #[must_use]
    pub(crate) fn moved(mut self, place: impl FnOnce(Span) -> Span) -> Self {
        if self.0.source.is_none() {
            self.0.span = self.0.span.map(place);
        }
        self
    }

    /// Adds findings that came up together with this one.
    #[must_use]
    pub fn with_others(mut self, others: Vec<Diagnostic>) -> Self {
        self.0.others = others;
        self
    }

    /// Says that it will happen again however often somebody tries.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.is_permanent = true;
        self
    }

    /// Whether it is known that it will happen again however often somebody tries.
    pub fn is_permanent(&self) -> bool {
        self.0.is_permanent
    }

    /// Adds what had arrived of an answer before this happened.
    #[must_use]
    pub fn with_partial_text(mut self, text: impl Into<String>) -> Self {
        self.0.partial_text = Some(text.into());
        self
    }

    /// Replaces the words of the message and of the help.
    pub(crate) fn map_words(mut self, map: impl Fn(&str) -> String) -> Self {
        for words in [Some(&mut self.0.message), self.0.help.as_mut()].into_iter().flatten() {
            *words = map(words);
        }
        self
    }

    /// What had arrived of an answer before this happened.
    pub fn partial_text(&self) -> Option<&str> {
        self.0.partial_text.as_deref()
    }

    /// Adds the HTTP status of the response that this error is about.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Returns the HTTP status of the response that this error is about, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Adds how long the server asks clients to wait before they try again.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Returns how long the server asks clients to wait before they try again, from its `Retry-After` header.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Adds the error that caused this one; [`source`](std::error::Error::source) returns it.
    ///
    /// Its text must not contain inputs or credentials.
    #[must_use]
    pub fn with_cause(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Cause(Arc::new(cause)));
        self
    }

    /// Adds data of a later stage.
    #[cfg(feature = "wire")]
    #[must_use]
    pub(crate) fn attach(mut self, what: Attached) -> Self {
        self.0.attached = Some(what);
        self
    }

    /// Returns what a later stage has added, if it is of this type.
    #[cfg(feature = "wire")]
    pub(crate) fn attached<T: Any>(&self) -> Option<&T> {
        let attached: &dyn Any = &**self.0.attached.as_ref()?;
        attached.downcast_ref()
    }

    /// What went wrong.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The short stable name of what went wrong.
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// The family it belongs to.
    pub fn class(&self) -> Class {
        self.0.kind.class()
    }

    /// What was expected and what was found, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The place, as byte offsets into [`Error::source_file`].
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// The source that the place is in.
    pub fn source_file(&self) -> Option<&SourceFile> {
        self.0.source.as_ref()
    }

    /// The place as line and column, both from 1.
    pub fn line_column(&self) -> Option<LineColumn> {
        Some(self.0.source.as_ref()?.line_column(self.0.span?.start))
    }

    /// Findings that came up together with this one.
    pub fn others(&self) -> &[Diagnostic] {
        &self.0.others
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(source) = &self.0.source {
            write!(f, " ({}", source.name())?;
            if let Some(place) = self.line_column() {
                write!(f, ":{}:{}", place.line, place.column)?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("span", &self.0.span)
            .field("help", &self.0.help)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_ref().map(|cause| &*cause.0 as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_the_specification_says() {
        let cases = [
            (Error::new(Kind::FileNotFound, "a.prompty"), "FileNotFoundError", "Prompty file not found: a.prompty"),
            (Error::new(Kind::InvalidFrontmatter, "x"), "ValueError", "Invalid frontmatter YAML: x"),
            (Error::new(Kind::EnvNotSet, "A"), "ValueError", "Environment variable 'A' not set"),
            (Error::new(Kind::ReferencedFileNotFound, "b"), "FileNotFoundError", "Referenced file not found: b"),
            (Error::new(Kind::UndefinedVariable, "q"), "ValueError", "Undefined template variable: q"),
            (Error::new(Kind::TemplateSyntax, "x"), "ValueError", "Template syntax error: x"),
            (Error::new(Kind::NonceMismatch, ""), "ValueError", "Role marker nonce mismatch (possible injection)"),
            (Error::new(Kind::MissingInput, "q"), "ValueError", "Missing required input: q"),
            (Error::not_registered("renderer", "erb"), "InvokerError", "No renderer registered for key: erb"),
        ];
        for (error, class, message) in cases {
            assert_eq!((error.class().as_str(), error.message()), (class, message));
        }
    }

    #[test]
    fn codes_are_unique() {
        let mut codes: Vec<_> = Kind::ALL.iter().map(|kind| kind.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
