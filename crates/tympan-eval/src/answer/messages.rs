//! The messages that a model receives, with their labels.

use tympan_core::turn::{Label, MessageLabel, message_labels};
use tympan_core::{Message, Prompt, Rendered, Result};
use tympan_runtime::Runtime;

/// The messages of a rendered prompt, as a model receives them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelMessages {
    /// The messages, with the guard's advisory among the instructions.
    pub messages: Vec<Message>,
    /// The labels of the messages, or `None` if a custom parser does not say where they came from.
    pub labels: Option<Vec<MessageLabel>>,
}

impl ModelMessages {
    /// Splits a rendered prompt into messages.
    ///
    /// # Errors
    /// Returns an error if the text cannot be split into messages.
    pub fn new(runtime: &Runtime, prompt: &Prompt, rendered: &Rendered) -> Result<Self> {
        let mut messages = runtime.parse(prompt, rendered)?;
        let labels = message_labels(prompt, rendered).ok();
        let mut labels = labels.filter(|labels| labels.len() == messages.len());
        if let Some(guard) = rendered.guard() {
            let before = messages.clone();
            guard.insert_into(&mut messages);
            let same = messages.iter().zip(&before).take_while(|(now, then)| now == then).count();
            // Without a role for it, there is no message to add.
            if let Some(labels) = labels.as_mut().filter(|_| messages.len() > before.len())
                && let Some(message) = messages.get(same)
            {
                labels.insert(same, MessageLabel::whole(message, &Label::author()));
            }
        }
        Ok(Self { messages, labels })
    }
}
