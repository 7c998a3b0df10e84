//! Assertions about messages, which need no model.

mod forge;
mod origin;
mod snapshot;
mod text;
mod tokens;

use tympan_core::chat::text_segment::SegmentedMessage;
use tympan_core::prompt::RenderOptions;
use tympan_core::spec::test_suite::{Assertion, CountRange, ExpectedError, MessageSelector, ValueMatch};
use tympan_core::{Error, Guard, Inputs, KindCheck, Rendered, Result, Role};
use tympan_runtime::model::tokens::Encoding;
use tympan_runtime::{RunOptions, Runtime};

use crate::case::Case;
use crate::matching::{self, Mismatch};

/// The rendered messages of a case.
pub(crate) struct Rendering {
    pub(crate) rendered: Rendered,
    pub(crate) messages: Vec<SegmentedMessage>,
}

/// What assertions about messages read.
pub(crate) struct Subject<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) case: &'a Case,
    pub(crate) rendering: &'a Rendering,
    /// Whether snapshots are written instead of compared.
    pub(crate) accept: bool,
}

/// Renders a case. The random parts of placeholders are fixed, so that results can be compared.
pub(crate) fn render(runtime: &Runtime, case: &Case, inputs: &Inputs) -> Result<Rendering> {
    let guard = Guard::default();
    let options = RenderOptions {
        variant: case.settings.variant.as_deref(),
        strict: case.settings.strict,
        lenient: case.settings.lenient,
        guard: case.settings.guard.unwrap_or_default().then_some(&guard),
        seed: case.settings.seed,
        kinds: KindCheck::Error,
        entropy: Some(&|| Ok(ENTROPY)),
        ..runtime.render_options()
    };
    let rendered = runtime.render_with(case.prompt(), inputs, &options)?;
    let messages = case.prompt().messages_with_segments(&rendered)?;
    Ok(Rendering { rendered, messages })
}

const ENTROPY: u64 = 0x7465_7374;

impl Case {
    /// Returns the options of model calls.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            provider: self.settings.provider.clone(),
            model: self.settings.model.clone(),
            ..RunOptions::default()
        }
    }

    /// Returns the vocabulary of the model.
    pub(crate) fn encoding(&self) -> Encoding {
        Encoding::of_model(self.run_options().select_model(self.prompt()).model.unwrap_or_default())
    }
}

impl Subject<'_> {
    /// Checks an assertion. An assertion about an error fails, because there was none.
    pub(crate) fn check(&self, assertion: &Assertion) -> Result<(), Mismatch> {
        match assertion {
            Assertion::Messages(range) => self.count(*range),
            Assertion::Roles(roles) => self.roles(roles),
            Assertion::Message(wanted) => self.message(wanted),
            Assertion::Tokens(range) => self.tokens(range),
            Assertion::Error(wanted) => Err(expected_error(wanted, None)),
            Assertion::Request(wanted) => self.request(wanted),
            Assertion::NoOrigin(place) => self.no_origin(place),
            Assertion::OnlyFrom(only) => self.only_from(only),
            Assertion::Guarded(place) => self.guarded(place),
            Assertion::Verbatim(place) => self.verbatim(place),
            Assertion::Share(share) => self.share(share),
            Assertion::CachePrefix(prefix) => self.cache_prefix(*prefix),
            Assertion::Forge(forge) => self.forge(forge),
            other => Err(Mismatch::new(format!("`{}` is not an assertion about messages", other.name()))),
        }
    }

    fn count(&self, range: CountRange) -> Result<(), Mismatch> {
        let count = self.rendering.messages.len();
        if range.contains(count) {
            return Ok(());
        }
        Err(Mismatch::new(format!("expected {} messages, found {count}", shown(range))))
    }

    fn roles(&self, roles: &[Role]) -> Result<(), Mismatch> {
        let found = role_names(&self.rendering.messages);
        let wanted: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
        if found == wanted {
            return Ok(());
        }
        let (wanted, found) = (wanted.join(", "), found.join(", "));
        Err(Mismatch::new(format!("expected the roles {wanted}; found {found}")).with_difference(wanted, found))
    }

    fn request(&self, wanted: &ValueMatch) -> Result<(), Mismatch> {
        let messages: Vec<_> = self.rendering.messages.iter().map(|message| message.message.clone()).collect();
        let request = self.runtime.request(self.case.prompt(), &messages, &self.case.run_options(), false);
        let request = request.map_err(|error| Mismatch::invalid(format!("the request cannot be built: {error}")))?;
        let body = serde_json::from_str(&request.body).unwrap_or_default();
        matching::check_value(&body, wanted, None)
    }

    /// Returns the messages that an assertion is about.
    fn select(&self, place: Option<MessageSelector>) -> Result<Vec<&SegmentedMessage>, Mismatch> {
        let messages = &self.rendering.messages;
        let selected: Vec<_> = match place {
            None => messages.iter().collect(),
            Some(MessageSelector::Index(index)) => messages.get(index).into_iter().collect(),
            Some(MessageSelector::Role(role)) => {
                messages.iter().filter(|message| message.message.role == role).collect()
            }
        };
        if selected.is_empty() {
            let found = role_names(messages).join(", ");
            let wanted = match place {
                Some(MessageSelector::Index(index)) => format!("a message with the number {index}"),
                Some(MessageSelector::Role(role)) => format!("a message with the role {}", role.as_str()),
                None => "a message".to_owned(),
            };
            return Err(Mismatch::invalid(format!("expected {wanted}; the roles are {found}")));
        }
        Ok(selected)
    }
}

/// Compares an error with the one that is expected.
pub(crate) fn check_error(wanted: &ExpectedError, error: &Error) -> Result<(), Mismatch> {
    let (code, contains) = match wanted {
        ExpectedError::Code(code) => (Some(code), None),
        ExpectedError::Conditions { code, contains } => (code.as_ref(), contains.as_ref()),
        _ => (None, None),
    };
    let has_code = code.is_none_or(|code| code == error.code());
    let texts = contains.map_or(&[][..], |texts| texts.as_slice());
    if has_code && texts.iter().all(|text| error.message().contains(text.as_str())) {
        return Ok(());
    }
    Err(expected_error(wanted, Some(error)))
}

fn expected_error(wanted: &ExpectedError, found: Option<&Error>) -> Mismatch {
    let wanted = match wanted {
        ExpectedError::Code(code) => format!("the error `{code}`"),
        ExpectedError::Conditions { code, contains } => {
            let code = code.as_ref().map_or_else(|| "an error".to_owned(), |code| format!("the error `{code}`"));
            let texts = contains.as_ref().map_or(&[][..], |texts| texts.as_slice());
            let texts: Vec<_> = texts.iter().map(|text| format!("`{text}`")).collect();
            if texts.is_empty() { code } else { format!("{code} with {}", texts.join(", ")) }
        }
        _ => "an error".to_owned(),
    };
    Mismatch::new(match found {
        Some(error) => format!("expected {wanted}; found `{}`: {}", error.code(), error.message()),
        None => format!("expected {wanted}; there was none"),
    })
}

fn role_names(messages: &[SegmentedMessage]) -> Vec<&'static str> {
    messages.iter().map(|message| message.message.role.as_str()).collect()
}

/// Formats a range.
pub(crate) fn shown(range: CountRange) -> String {
    match range {
        CountRange::Exactly(number) => number.to_string(),
        CountRange::Range { min: Some(min), max: Some(max) } => format!("{min} to {max}"),
        CountRange::Range { min: Some(min), max: None } => format!("at least {min}"),
        CountRange::Range { min: None, max: Some(max) } => format!("at most {max}"),
        CountRange::Range { min: None, max: None } => "any number of".to_owned(),
    }
}
