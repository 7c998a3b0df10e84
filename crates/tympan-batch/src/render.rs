//! Renders the rows of a table.

use std::fmt;

use arrow::array::RecordBatch;
use bumpalo::Bump;
use tympan_core::chat::text_segment::SegmentedMessage;
use tympan_core::template::input::InputMap;
use tympan_core::{Guard, KindCheck, Message, Prompt, Rendered, Result};
use tympan_runtime::Runtime;

use crate::columns::{Bindings, BoundBatch};

/// The size of an arena, in bytes, at which it is emptied between two rows. Emptying it for each small row costs more.
const ARENA_BYTES: usize = 64 << 10;

/// Renders rows as messages of one prompt.
#[derive(Clone)]
pub struct RowRenderer<'a> {
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    variant: Option<&'a str>,
    settings: Settings<'a>,
    bindings: Bindings,
}

impl fmt::Debug for RowRenderer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowRenderer")
            .field("variant", &self.variant)
            .field("bindings", &self.bindings)
            .finish_non_exhaustive()
    }
}

/// What takes precedence over the options of the runtime.
#[derive(Clone, Copy, Default)]
pub(crate) struct Settings<'a> {
    /// The guard; `Some(None)` turns it off.
    pub(crate) guard: Option<Option<&'a Guard>>,
    /// Whether values must match the kinds of their inputs.
    pub(crate) kinds: Option<KindCheck>,
}

/// A rendered row.
#[derive(Debug)]
#[non_exhaustive]
pub struct RenderedRow {
    /// The text, with the origin of every byte.
    pub rendered: Rendered,
    /// The messages.
    pub messages: Vec<Message>,
}

impl<'a> RowRenderer<'a> {
    /// Creates a renderer. The options of the runtime apply: the guard, the check of kinds, the policy.
    ///
    /// # Errors
    /// Returns an error if the prompt does not have the variant.
    pub fn new(runtime: &'a Runtime, prompt: &'a Prompt, variant: Option<&'a str>, bindings: Bindings) -> Result<Self> {
        prompt.get_source(variant)?;
        Ok(Self { runtime, prompt, variant, settings: Settings::default(), bindings })
    }

    /// Returns the renderer with settings that take precedence over the options of the runtime.
    #[must_use]
    pub(crate) fn with_settings(mut self, settings: Settings<'a>) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the prompt.
    pub fn prompt(&self) -> &'a Prompt {
        self.prompt
    }

    /// Returns which column each input comes from.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Renders the messages of one row.
    ///
    /// # Errors
    /// Returns an error if rendering fails.
    pub fn messages(&self, inputs: InputMap<'_>) -> Result<Vec<Message>> {
        match (self.variant, self.settings) {
            (None, Settings { guard: None, kinds: None }) => self.runtime.prepare_borrowed(self.prompt, inputs),
            _ => self.row(inputs).map(|row| row.messages),
        }
    }

    /// Renders one row, and returns its text as well.
    ///
    /// # Errors
    /// Returns an error if rendering fails.
    pub fn row(&self, inputs: InputMap<'_>) -> Result<RenderedRow> {
        let mut options = self.runtime.render_options();
        options.variant = self.variant;
        options.guard = self.settings.guard.unwrap_or(options.guard);
        options.kinds = self.settings.kinds.unwrap_or(options.kinds);
        let rendered = self.runtime.render_borrowed(self.prompt, inputs, &options)?;
        let mut messages = self.runtime.parse(self.prompt, &rendered)?;
        if let Some(guard) = options.guard.filter(|_| rendered.guard().is_some()) {
            guard.info().insert_into(&mut messages);
        }
        Ok(RenderedRow { rendered, messages })
    }

    /// Returns which inputs wrote which bytes of the messages of a row.
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn segments(&self, row: &RenderedRow) -> Result<Vec<SegmentedMessage>> {
        self.prompt.messages_with_segments(&row.rendered)
    }

    /// Resolves the columns of a table.
    pub(crate) fn bind<'b>(&'b self, batch: &'b RecordBatch) -> Result<BoundBatch<'b>> {
        self.bindings.of_batch(batch)
    }
}

/// The memory of a row's inputs.
#[derive(Default)]
pub(crate) struct Arena(Bump);

impl Arena {
    /// Returns memory for the next row.
    pub(crate) fn next(&mut self) -> &Bump {
        if self.0.allocated_bytes() > ARENA_BYTES {
            self.0.reset();
        }
        &self.0
    }
}
