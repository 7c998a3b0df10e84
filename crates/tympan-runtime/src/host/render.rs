//! Renders prompts and splits them into messages, with the options, extensions and traces of a runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::json;
use tympan_core::chat::policy::Policy;
use tympan_core::prompt::RenderOptions;
use tympan_core::prompt::inputs::IntoInputs;
use tympan_core::template::input::InputMap;
#[cfg(feature = "agent")]
use tympan_core::turn::{Label, MessageLabel, message_labels};
use tympan_core::{Error, Inputs, Kind, KindCheck, Message, Prompt, Rendered, Result};

use crate::host::custom_renderer::Job;
use crate::host::runtime::{Renderer, Runtime, RuntimeOptions, system_entropy};
use crate::trace::{Span, event, mask_messages};

impl Runtime {
    /// Fills in defaults and checks that no required input is missing.
    ///
    /// # Errors
    /// Returns an error if a required input is missing and has no default, or if the option `kinds` is
    /// [`KindCheck::Error`] and a value does not match its declaration.
    pub fn validate_inputs<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Inputs> {
        let inputs = inputs.into_inputs()?;
        check_kinds(prompt, inputs.as_map(), self.shared.options.kinds)?;
        prompt.validate_inputs(inputs)
    }

    /// Renders a prompt.
    ///
    /// # Errors
    /// Returns an error if an input is missing or invalid, if the template fails, if a limit is exceeded, if no
    /// renderer is registered for the template's format, or if the guard is on and the format has a custom renderer.
    pub fn render<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
        self.render_with(prompt, inputs, &self.render_options())
    }

    /// Renders a prompt with custom options. [`Runtime::render_options`] returns those of this runtime.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::render`] does, or if the prompt does not have the requested variant.
    pub fn render_with<'i>(
        &self,
        prompt: &Prompt,
        inputs: impl IntoInputs<'i>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        self.render_borrowed(prompt, inputs.into_inputs()?.as_map(), options)
    }

    /// Renders a prompt with custom options, from borrowed inputs that need not be JSON.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render_with`].
    pub fn render_borrowed(
        &self,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        self.render_as(&self.tracer.start("render"), prompt, inputs, options)
    }

    /// Renders a prompt and records the render in this span.
    fn render_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Rendered> {
        event::record_inputs(span, prompt, inputs);
        let rendered = self.do_render(prompt, inputs, options);
        event::record_render(span, &rendered);
        rendered
    }

    #[tracing::instrument(name = "render", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    fn do_render(&self, prompt: &Prompt, inputs: InputMap<'_>, options: &RenderOptions<'_>) -> Result<Rendered> {
        self.check_parser(prompt, options.policy)?;
        let checked;
        let options = if options.kinds == KindCheck::Off {
            options
        } else {
            check_kinds(prompt, inputs, options.kinds)?;
            // The inputs were just checked, for built-in and custom renderers alike.
            checked = RenderOptions { kinds: KindCheck::Off, ..*options };
            &checked
        };
        match self.shared.renderers.get(&prompt.spec().template.format) {
            None => prompt.render_borrowed(inputs, options),
            Some(renderer) => {
                let job = Job::new(prompt, &inputs.to_json(), options)?;
                let text = renderer.render(&job.template, &job.inputs)?;
                job.finish(text)
            }
        }
    }

    /// Returns an error if there is a policy and a custom parser, because such a parser decides about the roles itself.
    fn check_parser(&self, prompt: &Prompt, policy: Option<Policy>) -> Result<()> {
        let parser = prompt.spec().template.parser.as_str();
        if policy.is_none() || self.shared.parsers.get(parser).is_none() {
            return Ok(());
        }
        let details = format_args!("parser `{parser}` is custom, so the roles are not known");
        Err(Error::new(Kind::PolicyViolation, details).with_help("use the parser `prompty` with a policy"))
    }

    /// Renders a prompt, or prepares the job for a custom renderer. This is the synchronous part of an async render.
    fn start_render(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        options: &RenderOptions<'_>,
    ) -> Result<Started> {
        let Some(renderer) = self.shared.renderers.get(&prompt.spec().template.format) else {
            return self.render_as(span, prompt, inputs, options).map(Started::Done);
        };
        event::record_inputs(span, prompt, inputs);
        let checked = self.check_parser(prompt, options.policy);
        let job = checked.and_then(|()| check_kinds(prompt, inputs, options.kinds));
        let job = job.and_then(|()| Job::new(prompt, &inputs.to_json(), options)).inspect_err(|error| {
            let failed = Err(error.clone());
            event::record_render(span, &failed);
        })?;
        Ok(Started::Custom(renderer, Box::new(job)))
    }

    /// Splits a rendered prompt into messages.
    ///
    /// # Errors
    /// Returns an error if no parser is registered under the prompt's parser name, or if the parser fails.
    pub fn parse(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.check_parser(prompt, self.options().policy)?;
        if let Some(policy) = self.options().policy {
            // The text may have been rendered with other options.
            prompt.check_policy(rendered, policy)?;
        }
        self.parse_as(&self.tracer.start("parse"), prompt, rendered.clone())
    }

    /// Splits a rendered prompt into messages and records them in this span.
    fn parse_as(&self, span: &Span, prompt: &Prompt, rendered: Rendered) -> Result<Vec<Message>> {
        event::hide(span, prompt);
        // Masking must come before parsing, because the origin of the text is not known afterwards.
        let masked = span.masks_untrusted().then(|| mask_messages(prompt, &rendered));
        let messages = self.do_parse(prompt, rendered);
        span.outcome(&messages, |messages| match masked {
            Some(masked) => masked.unwrap_or_default(),
            None => json!(messages),
        });
        messages
    }

    #[tracing::instrument(name = "parse", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    fn do_parse(&self, prompt: &Prompt, rendered: Rendered) -> Result<Vec<Message>> {
        match self.shared.parsers.get(prompt.spec().template.parser.as_str()) {
            Some(parser) => parser.parse(prompt, &rendered),
            None => prompt.messages(rendered),
        }
    }

    /// Renders a prompt and splits it into messages, ready for a model.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::render`] or [`Runtime::parse`] does.
    pub fn prepare<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
        self.prepare_borrowed(prompt, inputs.into_inputs()?.as_map())
    }

    /// Renders a prompt and splits it into messages, from borrowed inputs that need not be JSON.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::prepare`].
    #[tracing::instrument(name = "prepare", level = "info", skip_all, fields(prompt = prompt.spec().name))]
    pub fn prepare_borrowed(&self, prompt: &Prompt, inputs: InputMap<'_>) -> Result<Vec<Message>> {
        // Most hosts do not trace and should not pay for spans.
        if !self.tracer.is_enabled() {
            let rendered = self.do_render(prompt, inputs, &self.render_options())?;
            let is_guarded = rendered.guard().is_some();
            return self.with_advisory(is_guarded, self.do_parse(prompt, rendered));
        }
        self.prepare_as(&self.tracer.start("prepare"), prompt, inputs)
    }

    /// Renders a prompt, splits it into messages, and records both stages in this span.
    pub(crate) fn prepare_as(&self, span: &Span, prompt: &Prompt, inputs: InputMap<'_>) -> Result<Vec<Message>> {
        event::record_inputs(span, prompt, inputs);
        let mut is_guarded = false;
        let prepared =
            self.render_as(&span.child("render"), prompt, inputs, &self.render_options()).and_then(|rendered| {
                is_guarded = rendered.guard().is_some();
                self.parse_as(&span.child("parse"), prompt, rendered)
            });
        let prepared = self.with_advisory(is_guarded, prepared);
        span.outcome(&prepared, |messages| json!({ "messages": messages.len() }));
        prepared
    }

    /// Adds the guard's advisory if the text is guarded. Without it, a model does not know what the markers mean.
    fn with_advisory(&self, is_guarded: bool, messages: Result<Vec<Message>>) -> Result<Vec<Message>> {
        let Some(guard) = self.options().guard.as_ref().filter(|_| is_guarded) else { return messages };
        messages.map(|mut messages| {
            guard.info().insert_into(&mut messages);
            messages
        })
    }

    /// Renders a prompt: the async variant of [`Runtime::render`]. It waits only for a custom renderer, because the
    /// limits already bound the time of a built-in one.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render`].
    pub async fn render_async<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
        // The options must not be held across the await: they are not `Send`, and the future must be.
        let rendering = self.render_with_async(prompt, inputs, &self.render_options());
        rendering.await
    }

    /// Renders a prompt with custom options: the async variant of [`Runtime::render_with`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::render_with`].
    pub fn render_with_async<'a, 'i>(
        &'a self,
        prompt: &'a Prompt,
        inputs: impl IntoInputs<'i>,
        options: &RenderOptions<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Rendered>> + Send + 'a>> {
        let span = self.tracer.start("render");
        let started =
            inputs.into_inputs().and_then(|inputs| self.start_render(&span, prompt, inputs.as_map(), options));
        Box::pin(async move { started?.finish(&span).await })
    }

    /// Splits a rendered prompt into messages: the async variant of [`Runtime::parse`]. It completes immediately.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::parse`].
    pub async fn parse_async(&self, prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        self.parse(prompt, rendered)
    }

    /// Renders a prompt and splits it into messages: the async variant of [`Runtime::prepare`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::prepare`].
    pub async fn prepare_async<'i>(&self, prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
        let inputs = inputs.into_inputs()?;
        if !self.has_renderer(prompt) {
            return self.prepare_borrowed(prompt, inputs.as_map());
        }
        self.prepare_as_async(&self.tracer.start("prepare"), prompt, inputs.as_map()).await
    }

    /// Returns whether the host has registered a renderer for the prompt's format.
    pub fn has_renderer(&self, prompt: &Prompt) -> bool {
        self.shared.renderers.get(&prompt.spec().template.format).is_some()
    }

    /// Renders a prompt as a stage of this span.
    async fn render_stage(&self, span: &Span, prompt: &Prompt, inputs: InputMap<'_>) -> Result<Rendered> {
        event::record_inputs(span, prompt, inputs);
        let stage = span.child("render");
        // The options must not be held across the await: they are not `Send`, and the future must be.
        let started = self.start_render(&stage, prompt, inputs, &self.render_options());
        match started {
            Ok(started) => started.finish(&stage).await,
            Err(error) => Err(error),
        }
    }

    /// Renders a prompt and splits it into messages in this span: the async variant of [`Runtime::prepare_as`].
    pub(crate) async fn prepare_as_async(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
    ) -> Result<Vec<Message>> {
        let rendered = self.render_stage(span, prompt, inputs).await;
        let is_guarded = rendered.as_ref().is_ok_and(|rendered| rendered.guard().is_some());
        let prepared = rendered.and_then(|rendered| self.parse_as(&span.child("parse"), prompt, rendered));
        let prepared = self.with_advisory(is_guarded, prepared);
        span.outcome(&prepared, |messages| json!({ "messages": messages.len() }));
        prepared
    }

    /// Renders a prompt and splits it into messages in this span. If `labels` is set, also returns where they came from.
    #[cfg(feature = "agent")]
    pub(crate) async fn prepare_labeled_async(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: InputMap<'_>,
        labels: bool,
    ) -> Result<(Vec<Message>, Option<LabeledMessages>)> {
        let rendered = self.render_stage(span, prompt, inputs).await;
        let is_guarded = rendered.as_ref().is_ok_and(|rendered| rendered.guard().is_some());
        let mut found = None;
        let split = rendered.and_then(|rendered| {
            found = labels.then(|| self.labels(prompt, &rendered)).flatten();
            self.parse_as(&span.child("parse"), prompt, rendered)
        });
        let labels = split.as_ref().ok().zip(found).filter(|(messages, labels)| messages.len() == labels.len());
        let labeled = labels.map(|(messages, labels)| LabeledMessages(messages.iter().cloned().zip(labels).collect()));
        let prepared = self.with_advisory(is_guarded, split);
        span.outcome(&prepared, |messages| json!({ "messages": messages.len() }));
        prepared.map(|messages| (messages, labeled))
    }

    /// Returns the labels of the messages of a rendered prompt. A custom parser does not say where they came from.
    #[cfg(feature = "agent")]
    fn labels(&self, prompt: &Prompt, rendered: &Rendered) -> Option<Vec<MessageLabel>> {
        if self.shared.parsers.get(prompt.spec().template.parser.as_str()).is_some() {
            return None;
        }
        message_labels(prompt, rendered).ok()
    }

    /// Returns the options that this runtime renders with. Randomness comes from the operating system.
    pub fn render_options(&self) -> RenderOptions<'_> {
        let RuntimeOptions {
            limits, thread_roles, lenient, strict, ref guard, kinds, strict_inputs, seed, policy, ..
        } = self.shared.options;
        RenderOptions {
            lenient,
            strict,
            limits,
            thread_roles,
            entropy: Some(&system_entropy),
            guard: guard.as_ref(),
            kinds,
            variant: None,
            strict_inputs,
            functions: Some(&self.shared.functions),
            policy,
            seed,
        }
    }
}

/// The messages of a prompt with their labels.
#[cfg(feature = "agent")]
pub(crate) struct LabeledMessages(Vec<(Message, MessageLabel)>);

#[cfg(feature = "agent")]
impl LabeledMessages {
    /// Returns the labels of these messages. Those that the prompt does not have are Tympan's own, such as the advisory
    /// of a guard.
    pub(crate) fn of(self, messages: &[Message]) -> Option<Vec<MessageLabel>> {
        let mut labeled = self.0.into_iter().peekable();
        let label = |message: &Message| match labeled.next_if(|(own, _)| own == message) {
            Some((_, label)) => label,
            None => MessageLabel::whole(message, &Label::author()),
        };
        let labels: Vec<_> = messages.iter().map(label).collect();
        // If a message was not found, nothing is known about any of them.
        labeled.next().is_none().then_some(labels)
    }
}

/// Checks the values of inputs against their declarations, as `kinds` specifies.
fn check_kinds(prompt: &Prompt, inputs: InputMap<'_>, kinds: KindCheck) -> Result<()> {
    match kinds {
        KindCheck::Off => Ok(()),
        KindCheck::Error => prompt.check_kinds(inputs),
        KindCheck::Warn => {
            for warning in prompt.kind_warnings(inputs) {
                tracing::warn!(code = warning.code, "{}", warning.message);
            }
            Ok(())
        }
    }
}

/// An async render after its synchronous part.
enum Started {
    Done(Rendered),
    Custom(Arc<dyn Renderer>, Box<Job>),
}

impl Started {
    async fn finish(self, span: &Span) -> Result<Rendered> {
        let (renderer, job) = match self {
            Self::Done(rendered) => return Ok(rendered),
            Self::Custom(renderer, job) => (renderer, job),
        };
        let text = renderer.render_async(&job.template, &job.inputs).await;
        let rendered = text.and_then(|text| job.finish(text));
        event::record_render(span, &rendered);
        rendered
    }
}
