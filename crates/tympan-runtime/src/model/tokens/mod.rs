//! Counts tokens without a network.
//!
//! The vocabularies of OpenAI's models are built in. Other providers do not publish the vocabularies of their current
//! models. For those, the newer of the two is a reasonable estimate if you leave a tenth of the model's context window
//! free.
//!
//! ```
//! use tympan_runtime::model::tokens::Encoding;
//!
//! assert_eq!(Encoding::of_model("gpt-4o").count("A tympan keeps the sheet in its place."), 10);
//! ```

mod tokenizer;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use tokenizer::Tokenizer;
use tympan_core::chat::message::TextPart;
use tympan_core::turn::ContextBudget;
use tympan_core::{ContentPart, Message};

/// The estimated size of an image, audio or a file, in tokens. Only the provider knows the exact number.
pub const MEDIA_TOKENS: usize = 1000;

/// The estimated overhead of a message, including its role, in tokens.
pub const MESSAGE_TOKENS: usize = 4;

/// A vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `cl100k_base`: GPT-4, GPT-3.5 and the embedding models.
    Cl100k,
    /// `o200k_base`: GPT-4o and all later models.
    O200k,
}

impl Encoding {
    /// Returns the vocabulary of a model, or the newest one if the model is unknown.
    pub fn of_model(model: &str) -> Self {
        // Some names start with the vendor: `openai/gpt-4`.
        let name = model.rsplit('/').next().unwrap_or(model);
        let is_older = is_version(name, "gpt-4") || OLDER.iter().any(|old| name.starts_with(old));
        if is_older { Self::Cl100k } else { Self::O200k }
    }

    /// Returns the vocabulary of a model, or `None` if it is not published. With another vocabulary, counts are only
    /// estimates.
    ///
    /// ```
    /// use tympan_runtime::model::tokens::Encoding;
    ///
    /// assert_eq!(Encoding::of_known_model("openai/gpt-4o-mini"), Some(Encoding::O200k));
    /// assert_eq!(Encoding::of_known_model("claude-sonnet-4-5"), None);
    /// ```
    pub fn of_known_model(model: &str) -> Option<Self> {
        let name = model.rsplit('/').next().unwrap_or(model);
        let has_number = |family: &str| {
            name.strip_prefix(family).is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
        };
        let is_known = has_number("gpt-")
            || has_number("chatgpt-")
            || OLDER.iter().any(|old| name.starts_with(old))
            || ["o1", "o3", "o4"].iter().any(|family| is_version(name, family));
        is_known.then(|| Self::of_model(model))
    }

    /// Returns the name under which the vocabulary is published.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cl100k => "cl100k_base",
            Self::O200k => "o200k_base",
        }
    }

    /// Returns the number of tokens in a text.
    pub fn count(self, text: &str) -> usize {
        self.tokenizer().count(text)
    }

    /// Returns where each token of a text ends, in bytes. A token may end inside of a character.
    ///
    /// ```
    /// use tympan_runtime::model::tokens::Encoding;
    ///
    /// assert_eq!(Encoding::O200k.token_ends("hello world"), [5, 11]);
    /// ```
    pub fn token_ends(self, text: &str) -> Vec<usize> {
        self.tokenizer().ends(text)
    }

    /// Returns the approximate number of tokens in a message. Providers add a few tokens around it.
    pub fn count_message(self, message: &Message) -> usize {
        let parts = message.content.iter().map(|part| match part {
            ContentPart::Text(text) => {
                let texts = text_ranges(text).map(|range| self.count(text.value.get(range).unwrap_or_default()));
                texts.sum::<usize>() + text.anchors.len() * MEDIA_TOKENS
            }
            _ => MEDIA_TOKENS,
        });
        let calls = message.metadata.as_ref().and_then(|metadata| metadata.get("tool_calls"));
        MESSAGE_TOKENS + parts.sum::<usize>() + calls.map_or(0, |calls| self.count(&calls.to_string()))
    }

    /// Returns a budget of this many tokens, for [`TurnOptions::context_budget`].
    ///
    /// [`TurnOptions::context_budget`]: tympan_core::turn::TurnOptions::context_budget
    pub fn budget(self, tokens: usize) -> ContextBudget {
        ContextBudget::Tokens { budget: tokens, count: Arc::new(move |message| self.count_message(message)) }
    }

    fn tokenizer(self) -> &'static Tokenizer {
        static CL100K: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::cl100k);
        static O200K: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::o200k);
        match self {
            Self::Cl100k => &CL100K,
            Self::O200k => &O200K,
        }
    }
}

/// The beginnings of the names of models with the older vocabulary, besides GPT-4.
const OLDER: [&str; 4] = ["gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada"];

fn is_version(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns the ranges of a text that the model reads as text: those between images, audio and documents, whose nonces
/// are not sent.
pub fn text_ranges(text: &TextPart) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(text.anchors.iter().map(|anchor| anchor.range.end));
    let ends = text.anchors.iter().map(|anchor| anchor.range.start).chain([text.value.len()]);
    starts.zip(ends).map(|(start, end)| start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tympan_core::Role;

    #[test]
    fn models_have_their_vocabulary() {
        for old in [
            "gpt-4",
            "gpt-4-turbo",
            "gpt-4-0613",
            "gpt-3.5-turbo",
            "gpt-35-turbo",
            "text-embedding-3-small",
            "openai/gpt-4",
        ] {
            assert_eq!(Encoding::of_model(old), Encoding::Cl100k, "{old}");
        }
        for new in ["gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-5", "o3", "claude-sonnet-4-5", "", "openai/gpt-4o"] {
            assert_eq!(Encoding::of_model(new), Encoding::O200k, "{new}");
        }
    }

    #[test]
    fn texts_count_as_the_published_encoders_count_them() {
        for (text, cl100k, o200k) in KNOWN {
            assert_eq!((Encoding::Cl100k.count(text), Encoding::O200k.count(text)), (*cl100k, *o200k), "{text}");
        }
    }

    /// The counts of tiktoken 0.14, OpenAI's own tokenizer.
    const KNOWN: &[(&str, usize, usize)] = &[
        ("hello world", 2, 2),
        ("A tympan keeps the sheet in its place.", 10, 10),
        ("", 0, 0),
        ("  leading and trailing  ", 5, 5),
        ("fn main() {\n    println!(\"hi\");\n}\n", 10, 10),
        ("Größe, naïve, Øresund, 東京は今日も晴れ", 20, 16),
        ("🦀🦀 emoji 👩‍👩‍👧", 19, 15),
        ("{\"city\":\"Oslo\",\"days\":3}", 10, 10),
        ("1234567890 3.14159", 9, 9),
        ("We'll see what they've done; it's MacOS's CamelCase", 14, 12),
        ("\t\t\n\n\n  x", 4, 4),
        ("<|endoftext|> is only text here", 11, 11),
    ];

    /// The counts are tiktoken's too. `fixtures/tokens/generate.py` writes them.
    #[test]
    fn varied_texts_count_as_the_published_encoders_count_them() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/tokens/counts.json");
        let text = std::fs::read_to_string(path).expect("the fixture exists");
        let cases: Vec<(String, usize, usize)> = serde_json::from_str(&text).expect("the fixture is JSON");
        assert!(cases.len() > 900, "{}", cases.len());
        for (text, cl100k, o200k) in &cases {
            assert_eq!((Encoding::Cl100k.count(text), Encoding::O200k.count(text)), (*cl100k, *o200k), "{text:?}");
            for (encoding, count) in [(Encoding::Cl100k, *cl100k), (Encoding::O200k, *o200k)] {
                let ends = encoding.token_ends(text);
                assert!(ends.is_sorted_by(|a, b| a < b) && ends.first() != Some(&0), "{text:?}: {ends:?}");
                assert_eq!((ends.len(), ends.last().copied().unwrap_or(0)), (count, text.len()), "{text:?}");
            }
        }
    }

    #[test]
    fn only_published_vocabularies_are_exact() {
        for known in ["gpt-4", "gpt-4o-mini", "openai/gpt-5.1", "o3", "o4-mini", "chatgpt-4o-latest", "gpt-35-turbo"] {
            assert_eq!(Encoding::of_known_model(known), Some(Encoding::of_model(known)), "{known}");
        }
        for unknown in ["claude-sonnet-4-5", "gpt-neox-20b", "gpt2", "o3x", "", "text-embedding-004", "llama-3.1"] {
            assert_eq!(Encoding::of_known_model(unknown), None, "{unknown}");
        }
    }

    /// Nonces differ from render to render, and are not sent.
    #[test]
    fn images_count_without_their_nonces() {
        let text = "---\ninputs: [{name: photo, kind: image}]\n---\nuser:\nhello {{ photo }} world";
        let prompt = tympan_core::Prompt::from_prompty(text).expect("it loads");
        let rendered = crate::Runtime::default().render(&prompt, tympan_core::inputs! { photo: "a.png" });
        let messages = prompt.messages(rendered.expect("it renders")).expect("messages");
        let words = Encoding::O200k.count("hello ") + Encoding::O200k.count(" world");
        assert_eq!(Encoding::O200k.count_message(&messages[0]), MESSAGE_TOKENS + words + MEDIA_TOKENS);
    }

    #[test]
    fn a_long_word_takes_no_longer_than_a_long_text() {
        // Tokenizers that merge pairs one at a time take quadratic time here.
        assert!(Encoding::O200k.count(&"a".repeat(1_000_000)) > 100_000);
    }

    #[test]
    fn messages_count_what_is_in_them() {
        let message = Message::text(Role::User, "hello world");
        assert_eq!(Encoding::O200k.count_message(&message), 4 + 2);
    }
}
