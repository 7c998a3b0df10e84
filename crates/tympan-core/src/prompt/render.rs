//! Renders a prompt and splits the text into messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use smallvec::SmallVec;

use super::Prompt;
use super::compile::Compiled;
use super::directive_inputs as directive;
use super::inputs::IntoInputs;
use super::kinds::KindCheck;
use crate::chat::guard::Guard;
use crate::chat::message::{ContentPart, Message, RichInput, RichValue};
use crate::chat::policy::{Policy, Violation};
use crate::chat::rendered::{Inputs, Rendered, RichContent, RichPlace};
use crate::chat::scan::for_each_marker;
use crate::chat::text_segment::SegmentedMessage;
use crate::chat::thread::{self, ThreadRoles};
use crate::chat::{self, Place};
use crate::diagnostic::{Diagnostic, guess};
use crate::error::{Error, Kind, Result};
use crate::spec::role::Role;
use crate::spec::schema::{Property, PropertyKind};
use crate::spec::{CacheMode, DIRECTIVE, ONE_MESSAGE, PromptKind};
use crate::template::flow::How;
use crate::template::functions::TemplateFunctions;
use crate::template::input::{InputMap, InputRef};
use crate::template::{EvalOptions, InputValue, Limits, Output};
use crate::text::source::Span;

/// The rich inputs that a template mentions, with their indexes, in order.
type MentionedInputs = Vec<(usize, Arc<RichInput>)>;

/// A source of nonces: each call returns 64 random bits that nobody can predict.
pub type Entropy<'a> = &'a dyn Fn() -> Result<u64>;

/// Options for rendering a prompt.
#[derive(Clone, Copy, Default)]
pub struct RenderOptions<'a> {
    /// The variant of the prompt to render. `None` selects the default one.
    pub variant: Option<&'a str>,
    /// Whether undefined variables render as an empty string. `None` uses the prompt's setting.
    pub lenient: Option<bool>,
    /// Whether text that looks like a role marker is an error in every untrusted input. `None` uses the prompt's
    /// setting.
    pub strict: Option<bool>,
    /// The limits for the render.
    pub limits: Limits,
    /// The roles that messages of thread inputs may have.
    pub thread_roles: ThreadRoles,
    /// The source of nonces for rich inputs. Without it, a prompt that uses a rich input cannot be rendered.
    pub entropy: Option<Entropy<'a>>,
    /// The guard that wraps text from untrusted inputs in `<untrusted>…</untrusted>`. `None` leaves the text
    /// unchanged.
    pub guard: Option<&'a Guard>,
    /// Whether values must match the declared kinds and enums. Only [`KindCheck::Error`] affects rendering.
    pub kinds: KindCheck,
    /// Whether an optional input without a value is an error if the template uses it. In a directive, only references
    /// without a fallback count.
    pub strict_inputs: bool,
    /// The filters, tests and functions of the host, in addition to the built-in ones.
    pub functions: Option<&'a TemplateFunctions>,
    /// The roles whose messages may contain text of untrusted inputs. With `None`, all may. Only text counts: what an
    /// untrusted input decides is reported by `tympan check`.
    pub policy: Option<Policy>,
    /// The seed of the filter `random`. Equal seeds give equal choices. Without a seed, `random` is an error, so that a
    /// render depends on nothing but the prompt, the inputs and the options.
    pub seed: Option<u64>,
}

impl std::fmt::Debug for RenderOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderOptions")
            .field("variant", &self.variant)
            .field("lenient", &self.lenient)
            .field("strict", &self.strict)
            .field("limits", &self.limits)
            .field("thread_roles", &self.thread_roles)
            .field("guard", &self.guard)
            .field("kinds", &self.kinds)
            .field("strict_inputs", &self.strict_inputs)
            .field("functions", &self.functions)
            .field("policy", &self.policy)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Prompt {
    /// Fills in defaults and checks that no required input is missing. In a `.prompty` prompt, null counts as no value
    /// for an optional input.
    ///
    /// # Errors
    /// Returns an error if a required input is missing and has no default, or if an input of a directive is not
    /// declared.
    pub fn validate_inputs<'a>(&self, inputs: impl IntoInputs<'a>) -> Result<Inputs> {
        let inputs = inputs.into_inputs()?.into_json();
        let inputs = &*inputs;
        self.check_render_env(inputs.into())?;
        if self.is_directive() {
            directive::check_known(&self.spec, inputs.into())?;
        }
        let mut validated = inputs.clone();
        for input in &self.spec.inputs {
            match self.resolve(input, inputs.into()) {
                Some(value) if inputs.get(&input.name).is_none_or(Json::is_null) => {
                    validated.insert(input.name.clone(), value.to_json());
                }
                Some(_) => {}
                None => {
                    self.check_missing(input, inputs.into())?;
                    if self.is_optional(input) {
                        validated.shift_remove(&input.name);
                    }
                }
            }
        }
        Ok(validated)
    }

    /// Renders the prompt with JSON, a map, a struct, or [`inputs!`](crate::inputs); see [`IntoInputs`].
    ///
    /// ```
    /// #[derive(serde::Serialize)]
    /// struct Greeting {
    ///     name: String,
    /// }
    ///
    /// let prompt = tympan::Prompt::from_yaml(
    ///     "{name: greet, role: user, body: 'Hi {{ name }}!', variables: {name: {type: string, trusted: false}}}",
    /// )?;
    /// assert_eq!(prompt.render(&serde_json::json!({"name": "Ada"}))?.text(), "Hi Ada!");
    /// assert_eq!(prompt.render(&Greeting { name: "Ada".into() })?.text(), "Hi Ada!");
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// JSON is read in place; other inputs are copied once.
    ///
    /// # Errors
    /// Returns an error if the inputs do not serialize to a map, if an input is missing or cannot be used, if the
    /// template fails, or if a limit is exceeded.
    pub fn render<'a>(&self, inputs: impl IntoInputs<'a>) -> Result<Rendered> {
        self.render_with(inputs, &RenderOptions::default())
    }

    /// Renders the prompt with options.
    ///
    /// # Errors
    /// Returns an error if there is no such variant, if the inputs do not serialize to a map, if an input is missing or
    /// cannot be used, if the template fails, if a limit is exceeded, in strict mode, if an untrusted input contains a
    /// role marker, or, with [`KindCheck::Error`], if a value does not match its declaration.
    pub fn render_with<'a>(&self, inputs: impl IntoInputs<'a>, options: &RenderOptions<'_>) -> Result<Rendered> {
        self.render_borrowed(inputs.into_inputs()?.as_map(), options)
    }

    /// Renders the prompt with options, from inputs that are read where they are: nothing is copied. A `&JsonMap`
    /// converts [`into`](Into) such inputs, and [`template::input`](crate::template::input) has more ways to build them.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Prompt::render_with`].
    pub fn render_borrowed(&self, inputs: InputMap<'_>, options: &RenderOptions<'_>) -> Result<Rendered> {
        let arm = if options.variant.is_none() { 0 } else { self.arm_index(options.variant)? };
        if !self.unresolved_env().is_empty() {
            self.check_render_env(inputs)?;
        }
        let compiled = self.compiled(arm)?;
        if self.is_directive() {
            directive::check_known(&self.spec, inputs)?;
        }
        if options.kinds == KindCheck::Error {
            self.check_kinds(inputs)?;
        }
        let rich;
        let mut values: SmallVec<[InputValue<'_>; 16]> = SmallVec::with_capacity(compiled.table.inputs().len());
        for input in &self.spec.inputs {
            values.push(match self.resolve(input, inputs) {
                Some(given) => InputValue::Present(given),
                None => self.without_value(input, inputs)?,
            });
        }
        let undeclared = compiled.template.inputs().skip(values.len());
        if self.is_definition() {
            // The remaining names are those that the template sets on some paths only. Callers cannot set them.
            values.extend(undeclared.map(|_| InputValue::Missing));
        } else {
            let value = |name: &str| inputs.get(name).map_or(InputValue::Missing, InputValue::Present);
            values.extend(undeclared.map(|(name, _)| value(name)));
        }
        if options.strict_inputs {
            self.check_all_given(arm, compiled, &values)?;
        }
        // Most prompts have none, and must not pay for them.
        rich = if compiled.has_rich { Some(self.rich_inputs(compiled, &values, options)?) } else { None };
        for (index, input) in rich.iter().flat_map(|(mentioned, _)| mentioned) {
            values[*index] = InputValue::Rich(&**input);
        }
        let lenient = options.lenient.unwrap_or(self.spec.template.lenient);
        let eval = EvalOptions {
            lenient,
            limits: options.limits,
            mark_ends: options.guard.is_some() && compiled.table.has_untrusted(),
            functions: options.functions,
            seed: options.seed,
        };
        let output = compiled.template.render(&values, eval);
        let Output { traced, rich: places, notable, ends } = output.map_err(|error| self.locate(arm, error))?;
        let strict = options.strict.unwrap_or(self.spec.template.strict);
        let inputs = compiled.table.clone();
        // Text from trusted inputs counts as the author's, but it is not known at compile time.
        let notable = notable.filter(|_| !inputs.has_trusted());
        let rich = rich.as_ref().and_then(|(mentioned, appended)| {
            let places = places.into_iter().filter_map(|(range, index)| {
                let at = mentioned.binary_search_by_key(&index, |(index, _)| *index).ok()?;
                Some(RichPlace { range, input: mentioned[at].1.clone() })
            });
            RichContent::new(places.collect(), appended.clone())
        });
        let rendered = Rendered { traced, inputs, rich, strict, notable, guarded: None };
        rendered.check_strict()?;
        if rendered.rich.is_some() && self.spec.template.is_split() && rich_in_marker(&rendered) {
            return Err(Error::new(Kind::RichInputMisused, "the input is used in the attributes of a role marker")
                .with_help("put it on its own line below the marker"));
        }
        if let Some(policy) = options.policy {
            self.check_policy(&rendered, policy)?;
        }
        match options.guard {
            None => Ok(rendered),
            Some(guard) => guard.wrap(rendered, &ends, self.spec.template.is_split(), options.limits),
        }
    }

    /// Returns an error if a message of a rendered text contains text of an untrusted input, and the policy does not
    /// allow that for its role.
    ///
    /// # Errors
    /// Returns an error if there is such a message, or if the engine does not have the prompt's parser, so that the
    /// messages are not known.
    pub fn check_policy(&self, rendered: &Rendered, policy: Policy) -> Result<()> {
        let Some(violation) = rendered.find_violation(self.only_role()?, policy) else { return Ok(()) };
        let error = policy.violation(&violation.input, violation.role);
        let arm = self.arm_index(Some(rendered.variant())).unwrap_or_default();
        match self.place_of(arm, &violation) {
            Some(span) => Err(error.at(span).in_source(&self.source, 0)),
            None => Err(error),
        }
    }

    /// Returns the place in the file where an input is written to a message, or where it is declared.
    #[cold]
    fn place_of(&self, arm: usize, violation: &Violation) -> Option<Span> {
        let declared = self.spec.inputs.iter().find(|input| input.name == violation.input).and_then(|input| input.span);
        let analysis = self.templates().nth(arm)?;
        let Ok(template) = analysis.template() else { return declared };
        let index = template.inputs().position(|(name, _)| name == violation.input);
        let messages = analysis.messages();
        let sinks = template.full_flow().sinks.into_iter().filter(|sink| Some(sink.input) == index);
        let sinks: Vec<_> = sinks.filter(|sink| sink.how != How::Decides).map(|sink| sink.span).collect();
        let is_in_role = |span: &&Span| {
            let mut own = messages.iter().rev().filter(|message| message.start() <= span.start);
            own.next().is_some_and(|message| message.role == violation.role)
        };
        let found = sinks.iter().find(is_in_role).or(sinks.first());
        found.map(|span| analysis.locate(*span)).or(declared)
    }

    /// Returns attributes of a render for telemetry, as a flat map of strings.
    pub fn provenance_attributes(&self, rendered: &Rendered) -> BTreeMap<&'static str, String> {
        let mut attributes = BTreeMap::from([
            ("tympan.prompt.definition_hash", self.definition_hash().to_owned()),
            ("tympan.prompt.variant", rendered.variant().to_owned()),
            ("tympan.prompt.template_hash", rendered.template_hash().to_owned()),
            ("tympan.render_hash", rendered.render_hash()),
        ]);
        attributes.extend(self.name().map(|name| ("tympan.prompt.name", name.to_owned())));
        attributes.extend(self.role().map(|role| ("tympan.prompt.role", role.as_str().to_owned())));
        attributes
    }

    /// Converts rendered text to messages with the prompt's parser.
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn messages(&self, rendered: Rendered) -> Result<Vec<Message>> {
        let marks_stable = self.caches();
        Ok(match self.only_role()? {
            None => chat::split_as(rendered, marks_stable),
            Some(role) => vec![chat::whole_as(rendered, role, marks_stable)],
        })
    }

    /// Converts rendered text to messages and returns the origin of each message with it.
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn messages_with_places(&self, rendered: &Rendered) -> Result<Vec<(Message, Place)>> {
        let marks_stable = self.caches();
        Ok(match self.only_role()? {
            None => chat::split_with_places_as(rendered, marks_stable),
            Some(role) => {
                let message = chat::whole_as(rendered.clone(), role, marks_stable);
                vec![(message, Place::Text(0..rendered.text().len()))]
            }
        })
    }

    /// Converts rendered text to messages, and returns which inputs wrote which bytes of each text.
    ///
    /// ```
    /// use tympan::{Prompt, inputs};
    ///
    /// let prompt = Prompt::from_prompty("user:\nHello, {{ name }}!")?;
    /// let rendered = prompt.render(inputs! { name: "Ada" })?;
    /// let messages = prompt.messages_with_segments(&rendered)?;
    /// let json = messages[0].to_json(rendered.inputs());
    /// assert_eq!(json["content"][0]["segments"][1], serde_json::json!(
    ///     {"start": 7, "end": 10, "origins": ["name"], "trusted": false}
    /// ));
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn messages_with_segments(&self, rendered: &Rendered) -> Result<Vec<SegmentedMessage>> {
        let messages = self.messages_with_places(rendered)?.into_iter();
        Ok(messages.map(|(message, place)| SegmentedMessage::new(message, &place, rendered)).collect())
    }

    /// Returns how many bytes at the start of each message the author wrote and no input contributed to, in the order
    /// of the messages. Inputs that wrote nothing end this prefix as well, because they may write text the next time.
    /// The messages of threads have no such prefix.
    ///
    /// ```
    /// use tympan::{Prompt, inputs};
    ///
    /// let prompt = Prompt::from_prompty("system:\nBe brief.\n\nuser:\nHello, {{ name }}!")?;
    /// let rendered = prompt.render(inputs! { name: "Ada" })?;
    /// assert_eq!(prompt.stable_prefixes(&rendered)?, ["Be brief.".len(), "Hello, ".len()]);
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn stable_prefixes(&self, rendered: &Rendered) -> Result<Vec<usize>> {
        let messages = match self.only_role()? {
            None => chat::split_as(rendered.clone(), true),
            Some(role) => vec![chat::whole_as(rendered.clone(), role, true)],
        };
        let stable = |message: &Message| match message.content.first() {
            Some(ContentPart::Text(text)) => text.stable,
            _ => 0,
        };
        Ok(messages.iter().map(stable).collect())
    }

    /// Returns whether the provider should cache the stable prefix, so that messages have to record what is stable.
    fn caches(&self) -> bool {
        self.spec.model.as_ref().is_some_and(|model| model.options.cache == Some(CacheMode::Auto))
    }

    /// Returns the role of the prompt's only message, or `None` if role markers split its text.
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn only_role(&self) -> Result<Option<Role>> {
        match (self.spec.template.parser.as_str(), self.spec.role) {
            _ if self.spec.template.is_split() => Ok(None),
            (ONE_MESSAGE, Some(role)) => Ok(Some(role)),
            (DIRECTIVE, _) => Ok(Some(Role::User)),
            (other, _) => Err(Error::not_registered("parser", other).with_help(match guess(other, ["prompty"]) {
                Some(near) => format!("unknown parser `{other}`; did you mean `{near}`?"),
                None => format!("unknown parser `{other}`: write `prompty`, or register a parser for it in the host"),
            })),
        }
    }

    /// Returns the rich inputs that the template mentions and that have a value, each with a new nonce, and the threads
    /// that it does not mention, which are appended to the messages.
    fn rich_inputs(
        &self,
        compiled: &Compiled,
        values: &[InputValue<'_>],
        options: &RenderOptions<'_>,
    ) -> Result<(MentionedInputs, Vec<Arc<RichInput>>)> {
        let (mut mentioned, mut appended) = (Vec::new(), Vec::new());
        for (index, (input, value)) in self.spec.inputs.iter().zip(values).enumerate() {
            let InputValue::Present(value) = *value else { continue };
            let is_mentioned = compiled.template.mentions(index);
            if !input.kind.is_rich() || !(is_mentioned || self.is_appended(input)) {
                continue;
            }
            let value = match input.kind {
                PropertyKind::Thread => {
                    let thread = thread::parse_given(value, options.thread_roles);
                    RichValue::Thread(thread.map_err(|error| self.in_input(error, input))?)
                }
                _ => RichValue::Media(value.to_json()),
            };
            let (name, kind) = (input.name.clone(), input.kind);
            if is_mentioned {
                let nonce = new_nonce(&name, options.entropy)?;
                mentioned.push((index, Arc::new(RichInput { name, kind, nonce, value })));
            } else {
                // The text does not contain it, so it does not need a nonce.
                appended.push(Arc::new(RichInput { name, kind, nonce: String::new(), value }));
            }
        }
        Ok((mentioned, appended))
    }

    /// Returns whether an input that the template does not mention is appended to the messages.
    fn is_appended(&self, input: &Property) -> bool {
        input.kind == PropertyKind::Thread && self.spec.template.is_split()
    }

    /// Adds a warning for each thread that the template does not mention.
    pub(super) fn with_thread_warnings(mut self) -> Self {
        let inputs = self.spec.inputs.iter().enumerate();
        let is_unclear = |input: &Property| self.is_appended(input) && !is_plainly_mentioned(self.body(), &input.name);
        let threads: Vec<_> = inputs.filter(|(_, input)| is_unclear(input)).collect();
        // A template is compiled on first use, and loading should not do it without need.
        if threads.is_empty() {
            return self;
        }
        let Ok(template) = self.template() else { return self };
        let unmentioned = threads.into_iter().filter(|(index, _)| !template.mentions(*index)).map(|(_, input)| {
            let message = format!("the template does not mention the thread `{}`", input.name);
            let help = format!("its messages follow the last one; write `{{{{ {} }}}}` where they belong", input.name);
            Diagnostic::warning("unmentioned_thread", input.span, message).with_help(help)
        });
        let unmentioned: Vec<_> = unmentioned.collect();
        self.warnings.extend(unmentioned);
        self
    }

    /// Returns the value of a declared input: the caller's value or the default.
    #[inline]
    fn resolve<'a>(&'a self, input: &'a Property, inputs: InputMap<'a>) -> Option<InputRef<'a>> {
        match inputs.get(&input.name) {
            Some(value) if value.is_null() => self.resolve_null(input, value),
            Some(value) => Some(value),
            None => default(input),
        }
    }

    /// Returns the value of an input that the caller set to null. Null is a value unless the input is optional. It is
    /// never the value of a rich input.
    #[cold]
    fn resolve_null<'a>(&'a self, input: &'a Property, null: InputRef<'a>) -> Option<InputRef<'a>> {
        if self.is_optional(input) {
            return default(input);
        }
        Some(null).filter(|_| !input.kind.is_rich())
    }

    /// Returns whether a declared input can be left out. Templates of definitions and directives have their own rules
    /// for variables without a value.
    pub(super) fn is_optional(&self, input: &Property) -> bool {
        input.required != Some(true) && self.spec.kind() == PromptKind::Prompty
    }

    /// Returns how an input without a value is rendered.
    #[cold]
    fn without_value(&self, input: &Property, inputs: InputMap<'_>) -> Result<InputValue<'static>> {
        self.check_missing(input, inputs)?;
        Ok(if self.is_optional(input) { InputValue::Absent } else { InputValue::Missing })
    }

    /// Rejects a required input that has no value.
    #[cold]
    fn check_missing(&self, input: &Property, inputs: InputMap<'_>) -> Result<()> {
        match input.required {
            Some(true) if inputs.get(&input.name).is_none() => Err(self.in_input(missing(input), input)),
            _ => Ok(()),
        }
    }

    /// Rejects a declared input that the template uses and that has no value.
    #[cold]
    fn check_all_given(&self, arm: usize, compiled: &Compiled, values: &[InputValue<'_>]) -> Result<()> {
        let is_missing =
            |index: usize| !matches!(values.get(index), Some(InputValue::Present(_) | InputValue::Rich(_)));
        if self.is_directive() {
            let index_of = |name: &str| compiled.template.inputs().position(|(input, _)| input == name);
            let given = directive::check_all_given(&self.spec, |name| !index_of(name).is_none_or(is_missing));
            return given.map_err(|error| self.locate(arm, error));
        }
        let mut inputs = self.spec.inputs.iter().enumerate();
        match inputs.find(|(index, _)| is_missing(*index) && compiled.template.mentions(*index)) {
            Some((_, input)) => Err(self.in_input(missing(input), input)),
            None => Ok(()),
        }
    }

    /// Adds the position of an input's declaration to an error about the input.
    pub(super) fn in_input(&self, error: Error, input: &Property) -> Error {
        let error = if self.is_directive() { directive::with_list(error, &self.spec) } else { error };
        match input.span {
            Some(span) => error.at(span).in_source(&self.source, 0),
            None => error,
        }
    }
}

/// Returns whether a rich input is on the line of a role marker, where it would become neither text nor messages.
fn rich_in_marker(rendered: &Rendered) -> bool {
    let mut found = false;
    let rich = rendered.rich_places();
    if !rich.is_empty() {
        for_each_marker(rendered, |line, _| {
            let first = rich.partition_point(|place| place.range.end <= line.start);
            found |= rich.get(first).is_some_and(|place| place.range.start < line.end);
        });
    }
    found
}

fn default(input: &Property) -> Option<InputRef<'_>> {
    input.default.as_ref().filter(|default| !default.is_null()).map(InputRef::from)
}

/// Returns whether a template obviously interpolates an input, without compiling it.
fn is_plainly_mentioned(source: &str, name: &str) -> bool {
    let is_tag = |at: usize| {
        let (before, after) = (source[..at].trim_end_matches([' ', '-']), source[at + name.len()..].trim_start());
        before.ends_with("{{") && after.trim_start_matches('-').starts_with("}}")
    };
    // The tag may be in a comment or in raw text.
    let is_unclear = source.contains("{#") || source.contains("raw");
    !is_unclear && !name.is_empty() && source.match_indices(name).any(|(at, _)| is_tag(at))
}

fn missing(input: &Property) -> Error {
    let kind = input.kind.as_str();
    let help = match &input.description {
        Some(description) => format!("`{}` ({kind}): {description}", input.name),
        None => format!("pass a value for `{}` ({kind}), or set a default in the prompt file", input.name),
    };
    Error::new(Kind::MissingInput, &input.name).with_help(help)
}

/// Creates a nonce of the form `__PROMPTY_THREAD_<16 hex digits>_<name>__`.
fn new_nonce(name: &str, entropy: Option<Entropy<'_>>) -> Result<String> {
    let entropy = entropy.ok_or_else(|| {
        Error::new(Kind::NoEntropy, "rich inputs need a nonce").with_help("set RenderOptions::entropy")
    })?;
    Ok(format!("__PROMPTY_THREAD_{:016x}_{name}__", entropy()?))
}
