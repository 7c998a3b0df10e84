//! The engine's error type.

#[cfg(feature = "wire")]
use std::any::Any;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::text::source::{LineColumn, SourceFile, Span};

/// A `Result` whose error type is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error. Bindings map it to an exception type of their language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A file does not exist.
    FileNotFound,
    /// The prompt or its inputs are invalid.
    Value,
    /// A provider cannot be reached, or its response breaks off.
    Connection,
    /// Something went wrong at run time.
    Runtime,
    /// Nothing is registered under a name.
    Invoker,
}

impl Class {
    /// Returns the name that the Prompty specification uses for this class.
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

/// Declares all error kinds in one table: name, code, class and message pattern.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $code:literal $class:ident $pattern:literal,)*) => {
        /// The kind of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// Every kind, in the order of the pipeline's stages.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the short, stable code that programs can match on.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns the kind with the given code.
            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.code() == code)
            }

            /// Returns the class of the kind.
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// Returns the message pattern, in which `{}` is the placeholder for the details.
            pub const fn pattern(self) -> &'static str {
                match self { $(Self::$name => $pattern,)* }
            }
        }
    };
}

kinds! {
    /// The prompt file does not exist.
    FileNotFound "file_not_found" FileNotFound "Prompty file not found: {}",
    /// The prompt file cannot be read as text.
    UnreadableFile "unreadable_file" Value "Cannot read the file: {}",
    /// The front matter is not valid YAML, or is not closed.
    InvalidFrontmatter "invalid_frontmatter" Value "Invalid frontmatter YAML: {}",
    /// A field of the prompt has the wrong shape.
    InvalidDocument "invalid_document" Value "Invalid prompt: {}",
    /// A prompt definition does not parse or has the wrong shape.
    InvalidDefinition "invalid_definition" Value "Invalid prompt definition: {}",
    /// A test file, or the tests of a prompt file, do not parse or have the wrong shape.
    InvalidTests "invalid_tests" Value "Invalid tests: {}",
    /// The rows of a batch cannot be read, or their columns do not match the inputs of the prompt.
    InvalidRows "invalid_rows" Value "Invalid rows: {}",
    /// The directory of a batch job cannot be used as requested.
    InvalidBatch "invalid_batch" Value "Invalid batch: {}",
    /// A template in a prompt definition uses a variable that is not declared.
    UndeclaredVariable "undeclared_variable" Value "Undeclared variable: {}",
    /// A variable is declared with `validation_required`, and nothing validates it.
    ValidationUncovered "validation_uncovered" Value "Missing validation: {}",
    /// `${env:NAME}` names a variable that is not set.
    EnvNotSet "env_not_set" Value "Environment variable '{}' not set",
    /// `${env:NAME}` names a variable that the host does not allow.
    EnvNotAllowed "env_not_allowed" Value "Environment variable '{}' is not allowed",
    /// `${file:path}` names a file that does not exist.
    ReferencedFileNotFound "referenced_file_not_found" FileNotFound "Referenced file not found: {}",
    /// `${file:path}` points outside the prompt's directory and the host's allowed roots.
    FileOutsideRoot "file_outside_root" Value "Referenced file is outside the allowed directories: {}",
    /// `${file:path}` names something other than a regular file with an acceptable size and content.
    InvalidReferencedFile "invalid_referenced_file" Value "Cannot use referenced file: {}",
    /// The prompt has no variant with this name.
    UnknownVariant "unknown_variant" Value "Unknown variant: {}",
    /// A loader has no prompt of this name.
    UnknownPrompt "unknown_prompt" Value "Unknown prompt: {}",
    /// A part of a directive is missing or has the wrong shape.
    InvalidDirective "invalid_directive" Value "Invalid directive: {}",
    /// The metadata of a directive is not XML that Tympan can parse.
    InvalidXml "invalid_xml" Value "Invalid XML: {}",
    /// Two inputs or two outputs of a directive, or two tools of a turn, have the same name.
    DuplicateName "duplicate_name" Value "Duplicate name: {}",
    /// The steps of a directive refer to an input that is not declared.
    UndeclaredInput "undeclared_input" Value "Undeclared input: {}",
    /// A required input has no value and no default.
    MissingInput "missing_input" Value "Missing required input: {}",
    /// A directive received an input that it does not declare.
    UnknownInput "unknown_input" Value "Unknown input: {}",
    /// The value of an input does not match its declaration.
    InvalidInput "invalid_input" Value "Invalid input: {}",
    /// The value of a thread input is not a list of messages.
    InvalidThread "invalid_thread" Value "Invalid thread: {}",
    /// A template does not parse.
    TemplateSyntax "template_syntax" Value "Template syntax error: {}",
    /// A template uses a feature that prompts do not support.
    ExcludedFeature "excluded_feature" Value "Excluded template feature: {}",
    /// A template uses a variable that has no value.
    UndefinedVariable "undefined_variable" Value "Undefined template variable: {}",
    /// A template uses a filter that does not exist.
    UnknownFilter "unknown_filter" Value "Unknown filter: {}",
    /// A template uses a test that does not exist.
    UnknownTest "unknown_test" Value "Unknown test: {}",
    /// A template calls a function or method that does not exist.
    UnknownFunction "unknown_function" Value "Unknown function: {}",
    /// A template performs an operation that a value does not support.
    InvalidOperation "invalid_operation" Value "Invalid operation: {}",
    /// A thread, image, file or audio input is used as if it were plain text.
    RichInputMisused "rich_input_misused" Value "Invalid use of a rich input: {}",
    /// Rendering exceeded its budget.
    LimitExceeded "limit_exceeded" Value "Limit exceeded: {}",
    /// A rich input needs a nonce, but the host provides no source of randomness.
    NoEntropy "no_entropy" Runtime "No source of randomness: {}",
    /// Strict mode found a role marker that the author did not write.
    NonceMismatch "nonce_mismatch" Value "Role marker nonce mismatch (possible injection){}",
    /// The advisory of a guard does not explain what the guard does.
    InvalidAdvisory "invalid_advisory" Value "Invalid advisory: {}",
    /// The guard is enabled, but the origin of the text is not known.
    CannotGuard "cannot_guard" Value "Cannot use the guard: {}",
    /// Text of an untrusted input is in a message whose role the policy does not allow.
    PolicyViolation "policy_violation" Value "Policy violation: {}",
    /// The result that a model returned from a directive does not match the declared outputs.
    InvalidReturn "invalid_return" Value "Invalid result: {}",
    /// A signature is missing, does not match the file, or was made with a key that is not trusted.
    InvalidSignature "invalid_signature" Value "Signature rejected: {}",
    /// A key file cannot be used.
    InvalidKey "invalid_key" Value "Invalid key: {}",
    /// The prompt uses an API type that its provider does not support.
    UnsupportedApi "unsupported_api" Value "Unsupported API type: {}",
    /// The request cannot be built: no model, a rich input that the provider does not accept, a header with a line
    /// break, …
    InvalidRequest "invalid_request" Value "Cannot build the request: {}",
    /// The provider requires an API key, and none is configured.
    MissingKey "missing_key" Value "Missing API key: {}",
    /// A credential provider did not return an access token.
    CredentialFailed "credential_failed" Runtime "Cannot get an access token: {}",
    /// A key from the environment would be sent to an address that the host has not named.
    UntrustedEndpoint "untrusted_endpoint" Value "Untrusted endpoint: {}",
    /// The provider cannot be reached.
    Unreachable "unreachable" Connection "Cannot reach the provider: {}",
    /// The connection was not established in time.
    ConnectTimeout "connect_timeout" Connection "Connection timed out: {}",
    /// The response did not start in time.
    FirstByteTimeout "first_byte_timeout" Connection "Response timed out: {}",
    /// The response stalled before it was complete.
    IdleTimeout "idle_timeout" Connection "Response stalled: {}",
    /// The request as a whole took too long.
    TotalTimeout "total_timeout" Connection "Request timed out: {}",
    /// The provider redirected the request to an address that must not receive the credentials.
    RedirectRefused "redirect_refused" Connection "Redirect refused: {}",
    /// The provider is overloaded or failing, even after retries.
    ProviderUnavailable "provider_unavailable" Connection "Provider unavailable: {}",
    /// The provider returned an error.
    Provider "provider" Runtime "The provider returned an error: {}",
    /// The response has a content type that the protocol does not allow, such as a web page.
    ContentType "content_type" Value "Unexpected content type: {}",
    /// The response is larger than the host allows.
    ResponseTooLarge "response_too_large" Runtime "Response too large: {}",
    /// The response does not have the shape that its protocol requires.
    UnexpectedResponse "unexpected_response" Value "Unexpected response format: {}",
    /// A stream contains something that its protocol does not allow.
    StreamParse "stream_parse" Value "Cannot parse the stream: {}",
    /// A stream ended before the response was complete.
    Truncated "truncated" Connection "Stream ended early: {}",
    /// The model refused to answer.
    Refused "refused" Value "Model refused: {}",
    /// A result cannot be converted to the type that the caller expects.
    InvalidResult "invalid_result" Value "Cannot decode the result: {}",
    /// The caller cancelled the operation.
    Cancelled "cancelled" Runtime "Cancelled: {}",
    /// A tool did not finish in time.
    ToolTimeout "tool_timeout" Runtime "Tool timed out: {}",
    /// The model called a tool that is not declared.
    ToolNotRegistered "tool_not_registered" Value "Tool not registered: {}",
    /// A tool cannot be set up: its server, its description or its prompt file is not available.
    ToolUnavailable "tool_unavailable" Runtime "Tool unavailable: {}",
    /// The implementation of a tool does not match the prompt's declaration.
    ToolMismatch "tool_mismatch" Value "Tool does not match its declaration: {}",
    /// A server offers different tools from those that were approved.
    ToolsChanged "tools_changed" Value "Tools changed: {}",
    /// A tool would call an address that the host does not allow.
    BlockedDestination "blocked_destination" Value "Blocked destination: {}",
    /// Prompts call each other as tools too deeply.
    ToolRecursion "tool_recursion" Runtime "Prompt tools are nested too deeply: {}",
    /// The model called more tools at once than the host allows.
    TooManyToolCalls "too_many_tool_calls" Runtime "Too many tool calls: {}",
    /// The model kept calling tools until the iteration limit was reached.
    MaxIterations "max_iterations" Runtime "Agent loop exceeded {} iterations",
    /// A turn exceeded its limit on model calls, tokens, cost or time.
    TurnLimit "turn_limit" Runtime "Turn limit exceeded: {}",
    /// A model call could cost more than the host allows.
    SpendLimit "spend_limit" Runtime "Spend limit reached: {}",
    /// A guardrail of the host denied a request or a response.
    Guardrail "guardrail" Runtime "Denied by guardrail: {}",
    /// The model could not be called, even after retries.
    LlmCallFailed "llm_call_failed" Runtime "LLM call failed after {}",
    /// A turn received something that it had not requested.
    NotAsked "not_asked" Value "Unexpected call on the turn: {}",
    /// A journal cannot be read or written, or it is damaged.
    InvalidJournal "invalid_journal" Value "Journal error: {}",
    /// Another process is writing to the journal.
    JournalBusy "journal_busy" Runtime "Journal in use: {}",
    /// A journal was written for a different prompt, or with different tools or options.
    JournalMismatch "journal_mismatch" Value "Journal mismatch: {}",
    /// A cassette does not contain the request.
    UnknownExchange "unknown_exchange" Value "No recorded exchange: {}",
    /// A cassette cannot be read or written.
    InvalidCassette "invalid_cassette" Value "Cassette error: {}",
    /// A bug in Tympan, or the system has no threads left.
    Internal "internal" Runtime "Internal error: {}",
    /// A trace cannot be read, or a trace backend cannot be started.
    InvalidTrace "invalid_trace" Value "Trace error: {}",
    /// Nothing is registered for a kind of renderer, parser and so on.
    NotRegistered "not_registered" Invoker "No {}",
}

/// An error: what went wrong, where, and how to fix it.
///
/// The value of an input never appears in its text.
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
    /// Creates an error whose message is the kind's pattern filled in with the details.
    pub fn new(kind: Kind, details: impl fmt::Display) -> Self {
        Self::with_message(kind, kind.pattern().replacen("{}", &details.to_string(), 1))
    }

    /// Creates an error with a complete message.
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

    /// Creates the error for a key under which no renderer, parser or other component is registered.
    pub fn not_registered(component: &str, key: &str) -> Self {
        Self::new(Kind::NotRegistered, format_args!("{component} registered for key: {key}"))
    }

    /// Converts a diagnostic to an error. The diagnostic's code determines the kind.
    ///
    /// The kind is [`Kind::InvalidDocument`] if the code does not belong to any kind.
    pub fn from_diagnostic(diagnostic: Diagnostic) -> Self {
        let Diagnostic { code, span, message, help, .. } = diagnostic;
        let mut error = Self::with_message(Kind::from_code(code).unwrap_or(Kind::InvalidDocument), message);
        error.0.help = help;
        error.0.span = span;
        error
    }

    /// Creates an error from the findings about a source that could not be parsed. The first error among them becomes
    /// the error, and the rest become [`Error::others`]. `kind` is used if none of them is an error.
    pub fn from_parser(mut findings: Vec<Diagnostic>, source: &SourceFile, kind: Kind) -> Self {
        let first = findings.iter().position(Diagnostic::is_error).map(|at| findings.remove(at));
        let first = first.map_or_else(|| Self::new(kind, "cannot parse the file"), Self::from_diagnostic);
        first.in_source(source, 0).with_others(findings)
    }

    /// Creates an error from the findings about a source. The first one by position becomes the error, and the rest
    /// become [`Error::others`].
    pub fn from_findings(mut findings: Vec<Diagnostic>, source: &SourceFile) -> Self {
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        let mut findings = findings.into_iter();
        let first = findings.next().map(Self::from_diagnostic);
        let first = first.unwrap_or_else(|| Self::new(Kind::InvalidDocument, "cannot parse the file"));
        first.in_source(source, 0).with_others(findings.collect())
    }

    /// Adds advice on how to fix the error.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Sets the position of the error unless it already has one: the innermost position is the most precise.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.0.span.get_or_insert(span);
        self
    }

    /// Sets the source that the span points into, and shifts the span by `offset` bytes.
    ///
    /// Does nothing if the error already has a source.
    #[must_use]
    pub fn in_source(mut self, source: &SourceFile, offset: usize) -> Self {
        if self.0.source.is_none() {
            self.0.span = self.0.span.map(|span| span.shifted(offset));
            self.0.source = Some(source.clone());
        }
        self
    }

    /// Maps the span of the error, unless the error already has a source.
    #[must_use]
    pub(crate) fn moved(mut self, place: impl FnOnce(Span) -> Span) -> Self {
        if self.0.source.is_none() {
            self.0.span = self.0.span.map(place);
        }
        self
    }

    /// Adds the other findings that were made together with this error.
    #[must_use]
    pub fn with_others(mut self, others: Vec<Diagnostic>) -> Self {
        self.0.others = others;
        self
    }

    /// Marks the error as permanent: a retry would fail again.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.is_permanent = true;
        self
    }

    /// Returns whether the error is known to be permanent, so that a retry would fail again.
    pub fn is_permanent(&self) -> bool {
        self.0.is_permanent
    }

    /// Adds the part of the response that arrived before the error.
    #[must_use]
    pub fn with_partial_text(mut self, text: impl Into<String>) -> Self {
        self.0.partial_text = Some(text.into());
        self
    }

    /// Maps the message and the help text.
    pub(crate) fn map_words(mut self, map: impl Fn(&str) -> String) -> Self {
        for words in [Some(&mut self.0.message), self.0.help.as_mut()].into_iter().flatten() {
            *words = map(words);
        }
        self
    }

    /// Returns the part of the response that arrived before the error.
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

    /// Returns the kind of the error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the short, stable code of the error's kind.
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// Returns the class of the error's kind.
    pub fn class(&self) -> Class {
        self.0.kind.class()
    }

    /// Returns the message, without the position.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the advice on how to fix the error.
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// Returns the position, as byte offsets into [`Error::source_file`].
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// Returns the source that the error points into.
    pub fn source_file(&self) -> Option<&SourceFile> {
        self.0.source.as_ref()
    }

    /// Returns the position as line and column, both counted from 1.
    pub fn line_column(&self) -> Option<LineColumn> {
        Some(self.0.source.as_ref()?.line_column(self.0.span?.start))
    }

    /// Returns the other findings that were made together with this error.
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
