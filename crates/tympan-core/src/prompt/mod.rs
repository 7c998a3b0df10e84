//! Prompts: the common representation of all formats, and how they are rendered.

mod check;
pub mod composition;
pub mod definition;
pub(crate) mod directive_inputs;
pub mod serialized;
pub mod typed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::chat::guard::Guard;
use crate::chat::marker;
use crate::chat::message::{Message, Role};
use crate::chat::message::{RichInput, RichValue};
use crate::chat::rendered::{ArmInfo, InputInfo, InputTable, Inputs, Rendered, RichPlace};
use crate::chat::scan::for_each_marker;
use crate::chat::thread::{self, ThreadRoles};
use crate::chat::{self, Place};
use crate::diagnostic::{Diagnostic, listed};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::json::canonical_json;
use crate::prompt::directive_inputs as directive;
use crate::secret::env_value::EnvValue;
use crate::spec::schema::{Property, PropertyKind};
use crate::spec::{CacheMode, DEFAULT_VARIANT, DIRECTIVE, ONE_MESSAGE, PromptSpec, Secret};
use crate::template::input::{GivenMap, GivenRef};
use crate::template::{CompileOptions, EvalOptions, InputValue, Limits, Output, Syntax, Template};
use crate::text::hash::sha256_hex;
use crate::text::placement::Placement;
use crate::text::source::{SourceFile, Span};
use crate::text::source_map::Pieces;

/// A prompt: its declarations and its templates. A template is compiled on first use and then cached. If the prompt was
/// built from a definition, all of its templates have already been compiled.
#[derive(Clone, Debug)]
pub struct Prompt {
    spec: PromptSpec,
    source: SourceFile,
    /// The default template, followed by those of the variants, in order.
    arms: Vec<Arm>,
    warnings: Vec<Diagnostic>,
    /// The directory that relative paths in the prompt start from.
    directory: Option<PathBuf>,
    /// The values that were read from the environment while the prompt was loaded.
    env_values: Vec<EnvValue>,
    definition_hash: OnceLock<String>,
}

/// One template of a prompt.
#[derive(Debug)]
struct Arm {
    placement: Placement,
    compiled: OnceLock<Result<Compiled>>,
    template_hash: OnceLock<String>,
}

impl Clone for Arm {
    /// Creates an arm without the compiled template, because most clones are never rendered.
    fn clone(&self) -> Self {
        Self::new(self.placement.clone())
    }
}

impl Arm {
    fn new(placement: Placement) -> Self {
        Self { placement, compiled: OnceLock::new(), template_hash: OnceLock::new() }
    }
}

#[derive(Debug)]
struct Compiled {
    template: Template,
    table: Arc<InputTable>,
    /// Whether any declared input has a kind that is never rendered as text.
    has_rich: bool,
}

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
            .finish_non_exhaustive()
    }
}

impl Prompt {
    /// Creates a prompt whose instructions start `offset` bytes into their source.
    pub fn from_document(spec: PromptSpec, source: SourceFile, offset: usize, warnings: Vec<Diagnostic>) -> Self {
        // The positions of the variants are not known, so their spans are shifted by the same offset.
        let placements = vec![Placement::Verbatim(offset); 1 + spec.variants.len()];
        Self::placed(spec, source, placements, warnings)
    }

    /// Creates a prompt whose templates have the given positions in the source, the default one first.
    pub(crate) fn placed(
        spec: PromptSpec,
        source: SourceFile,
        placements: Vec<Placement>,
        warnings: Vec<Diagnostic>,
    ) -> Self {
        let arms = placements.into_iter().map(Arm::new).collect();
        Self { spec, source, arms, warnings, directory: None, env_values: Vec::new(), definition_hash: OnceLock::new() }
    }

    /// Creates a prompt whose instructions were assembled from pieces of their source.
    pub(crate) fn from_pieces(spec: PromptSpec, source: SourceFile, pieces: Pieces, warnings: Vec<Diagnostic>) -> Self {
        Self::placed(spec, source, vec![Placement::Pieces(pieces)], warnings)
    }

    /// Creates a prompt that does not come from a file.
    pub fn from_spec(spec: PromptSpec) -> Self {
        let source = SourceFile::new("<prompt>", spec.instructions.as_str());
        Self::from_document(spec, source, 0, Vec::new())
    }

    /// Sets the values that were read from the environment while the prompt was loaded.
    #[must_use]
    pub fn with_env_values(mut self, env_values: Vec<EnvValue>) -> Self {
        self.env_values = env_values;
        self
    }

    /// Returns the values that were read from the environment while the prompt was loaded.
    pub fn env_values(&self) -> &[EnvValue] {
        &self.env_values
    }

    /// Sets the directory that relative paths in the prompt start from.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Returns the directory that relative paths in the prompt start from, or `None` if the prompt has no file.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the values that must not appear in a trace or a recording: everything that came from the environment,
    /// and the credentials of all connections.
    pub fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.spec.credentials();
        secrets.extend(self.env_values.iter().map(|found| found.value.clone()));
        secrets
    }

    /// Returns everything that the prompt declares.
    pub fn spec(&self) -> &PromptSpec {
        &self.spec
    }

    /// Returns the text that the prompt was parsed from.
    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    /// Returns the offset of the default template in the source.
    pub fn template_offset(&self) -> usize {
        self.locate_span(0, Span::default()).start
    }

    /// Returns the warnings from loading the prompt.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns the prompt's name.
    pub fn name(&self) -> Option<&str> {
        self.spec.name.as_deref()
    }

    /// Returns the role of the whole prompt, if it declares one.
    pub fn role(&self) -> Option<Role> {
        self.spec.role
    }

    /// Returns the source of the default template.
    pub fn body(&self) -> &str {
        &self.spec.instructions
    }

    /// Returns the declared variables, in order.
    pub fn variables(&self) -> &[Property] {
        &self.spec.inputs
    }

    /// Returns the names of the variables that callers have to validate before they render.
    pub fn validation_required(&self) -> impl Iterator<Item = &str> {
        self.spec.inputs.iter().filter(|input| input.validation_required).map(|input| input.name.as_str())
    }

    /// Returns the names of the templates, in order: `default`, then the variants.
    pub fn arms(&self) -> impl Iterator<Item = &str> {
        std::iter::once(DEFAULT_VARIANT).chain(self.spec.variants.iter().map(|variant| variant.name.as_str()))
    }

    /// Returns the application's name for the type that the response should have. Tympan does not resolve it.
    pub fn output_model(&self) -> Option<&str> {
        self.spec.output_model.as_deref()
    }

    /// Returns the prompt's metadata.
    pub fn metadata(&self) -> &JsonMap {
        &self.spec.metadata
    }

    /// Returns the metadata of a variant. For the default variant, this is the prompt's metadata.
    ///
    /// # Errors
    /// Returns an error if there is no such variant.
    pub fn variant_metadata(&self, variant: &str) -> Result<&JsonMap> {
        Ok(match self.arm_index(Some(variant))? {
            0 => &self.spec.metadata,
            index => &self.spec.variants[index - 1].metadata,
        })
    }

    /// Returns the source of a variant's template. `None` selects the default one.
    ///
    /// # Errors
    /// Returns an error if there is no such variant.
    pub fn get_source(&self, variant: Option<&str>) -> Result<&str> {
        self.arm_index(variant).map(|index| self.arm_source(index))
    }

    fn arm_source(&self, index: usize) -> &str {
        match index {
            0 => &self.spec.instructions,
            _ => &self.spec.variants[index - 1].body,
        }
    }

    pub(crate) fn arm_name(&self, index: usize) -> &str {
        match index {
            0 => DEFAULT_VARIANT,
            _ => &self.spec.variants[index - 1].name,
        }
    }

    fn arm_index(&self, variant: Option<&str>) -> Result<usize> {
        let Some(name) = variant else { return Ok(0) };
        self.arms().position(|arm| arm == name).ok_or_else(|| {
            let arms: Vec<_> = self.arms().collect();
            Error::new(Kind::UnknownVariant, format_args!("`{name}`"))
                .with_help(format!("the prompt has {}", listed(arms.into_iter())))
        })
    }

    /// Returns the SHA-256 of the default template's source, in hexadecimal digits.
    pub fn template_hash(&self) -> &str {
        self.arm_hash(0)
    }

    /// Returns the SHA-256 of the source of a variant's template, in hexadecimal digits.
    ///
    /// # Errors
    /// Returns an error if there is no such variant.
    pub fn variant_hash(&self, variant: Option<&str>) -> Result<&str> {
        self.arm_index(variant).map(|index| self.arm_hash(index))
    }

    fn arm_hash(&self, index: usize) -> &str {
        self.arms[index].template_hash.get_or_init(|| sha256_hex(self.arm_source(index)))
    }

    /// Returns the description of a variant's template, for text that is rendered from it elsewhere.
    ///
    /// # Errors
    /// Returns an error if there is no such variant.
    pub fn arm_info(&self, variant: Option<&str>) -> Result<ArmInfo> {
        self.arm_index(variant).map(|index| self.info(index))
    }

    fn info(&self, index: usize) -> ArmInfo {
        ArmInfo {
            prompt: self.spec.name.clone(),
            variant: self.arm_name(index).to_owned(),
            template_hash: self.arm_hash(index).to_owned(),
        }
    }

    /// Returns the SHA-256 of everything that determines what a model sees. It does not depend on the file's format or
    /// on the order of its keys. The guide explains how it is computed.
    pub fn definition_hash(&self) -> &str {
        self.definition_hash.get_or_init(|| sha256_hex(crate::spec::canonical::canonical(&self.spec)))
    }

    /// Returns the SHA-256 hashes of everything that [`Prompt::definition_hash`] leaves out, by topic: `model`,
    /// `connection`, `options`, `tools` (with their connections and approval modes) and `other settings`. A topic that
    /// the prompt does not mention has no hash.
    ///
    /// Credentials that are written in the file are not part of any hash. References to the environment are, if the
    /// prompt was loaded without resolving them.
    pub fn settings_hashes(&self) -> Vec<(&'static str, String)> {
        let settings = crate::spec::canonical::settings(&self.spec);
        let said = settings.into_iter().filter(|(_, json)| !json.is_null());
        said.map(|(name, json)| (name, sha256_hex(canonical_json(json)))).collect()
    }

    /// Returns the compiled default template.
    ///
    /// # Errors
    /// Returns an error if the template does not parse, or if the engine does not have its syntax.
    pub fn template(&self) -> Result<&Template> {
        self.compiled(0).map(|compiled| &compiled.template)
    }

    /// Returns the compiled template of a variant.
    ///
    /// # Errors
    /// Returns an error if there is no such variant, if the template does not parse, or if the engine does not have its
    /// syntax.
    pub fn variant_template(&self, variant: Option<&str>) -> Result<&Template> {
        let index = self.arm_index(variant)?;
        self.arm_template(index)
    }

    pub(crate) fn arm_template(&self, index: usize) -> Result<&Template> {
        self.compiled(index).map(|compiled| &compiled.template)
    }

    fn compiled(&self, index: usize) -> Result<&Compiled> {
        self.arms[index].compiled.get_or_init(|| self.compile(index)).as_ref().map_err(Clone::clone)
    }

    fn compile(&self, index: usize) -> Result<Compiled> {
        let (spec, source) = (&self.spec, self.arm_source(index));
        let syntax = match spec.template.format.as_str() {
            "jinja2" => Syntax::Jinja,
            "mustache" => Syntax::Mustache,
            DIRECTIVE => Syntax::Directive(directive::steps(spec)),
            other => return Err(Error::not_registered("renderer", other)),
        };
        let declared: Vec<&str> = spec.inputs.iter().map(|input| input.name.as_str()).collect();
        let is_split = is_split(spec);
        let lines = if is_split { marker::source_lines(source) } else { Vec::new() };
        let protected: Vec<_> = lines.into_iter().map(|(range, _)| range).collect();
        let notable = is_split.then_some(marker::NOTABLE);
        let drop_last_newline = self.is_definition();
        let options = CompileOptions { syntax, declared: &declared, protected: &protected, drop_last_newline, notable };
        let template = Template::compile(source, options).map_err(|error| self.locate(index, error))?;
        let infos = template.inputs().enumerate().map(|(index, (name, _))| {
            let declaration = spec.inputs.get(index);
            InputInfo {
                name: name.to_owned(),
                trusted: declaration.is_some_and(|input| input.trusted),
                strict: declaration.is_some_and(|input| input.strict),
            }
        });
        let table = Arc::new(InputTable::new(infos.collect()).with_arm(self.info(index)));
        let has_rich = spec.inputs.iter().any(|input| input.kind.is_rich());
        Ok(Compiled { template, table, has_rich })
    }

    /// Returns whether the prompt was built from a definition. Such a prompt has one role, and its templates see only
    /// declared variables.
    pub(crate) fn is_definition(&self) -> bool {
        self.spec.role.is_some()
    }

    /// Converts the position of a template error to a position in the file.
    fn locate(&self, index: usize, error: Error) -> Error {
        let error = if directive::is_one(&self.spec) { directive::reword(error, &self.spec) } else { error };
        error.moved(|span| self.locate_span(index, span)).in_source(&self.source, 0)
    }

    /// Converts a span in a template to a span in the file.
    pub(crate) fn locate_span(&self, index: usize, span: Span) -> Span {
        self.arms[index].placement.locate(&self.source, self.arm_source(index), span)
    }

    /// Fills in defaults and checks that no required input is missing.
    ///
    /// # Errors
    /// Returns an error if a required input is missing and has no default, or if an input of a directive is not
    /// declared.
    pub fn validate_inputs(&self, inputs: &Inputs) -> Result<Inputs> {
        if directive::is_one(&self.spec) {
            directive::check_known(&self.spec, inputs.into())?;
        }
        let mut validated = inputs.clone();
        for input in &self.spec.inputs {
            match resolve(input, inputs.into()) {
                Some(value) if !inputs.contains_key(&input.name) => {
                    validated.insert(input.name.clone(), value.to_json());
                }
                Some(_) => {}
                None => self.check_missing(input, inputs.into())?,
            }
        }
        Ok(validated)
    }

    /// Renders the prompt.
    ///
    /// # Errors
    /// Returns an error if an input is missing or cannot be used, if the template fails, or if a limit is exceeded.
    pub fn render(&self, inputs: &Inputs) -> Result<Rendered> {
        self.render_with(inputs, &RenderOptions::default())
    }

    /// Renders the prompt with options.
    ///
    /// # Errors
    /// Returns an error if there is no such variant, if an input is missing or cannot be used, if the template fails,
    /// if a limit is exceeded or, in strict mode, if an untrusted input contains a role marker.
    pub fn render_with(&self, inputs: &Inputs, options: &RenderOptions<'_>) -> Result<Rendered> {
        self.render_given(inputs.into(), options)
    }

    /// Renders the prompt with options and with inputs that need not be JSON.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Prompt::render_with`].
    pub fn render_given(&self, inputs: GivenMap<'_>, options: &RenderOptions<'_>) -> Result<Rendered> {
        let arm = if options.variant.is_none() { 0 } else { self.arm_index(options.variant)? };
        let compiled = self.compiled(arm)?;
        if directive::is_one(&self.spec) {
            directive::check_known(&self.spec, inputs)?;
        }
        let rich;
        let mut values: SmallVec<[InputValue<'_>; 16]> = SmallVec::with_capacity(compiled.table.inputs().len());
        for input in &self.spec.inputs {
            values.push(match resolve(input, inputs) {
                Some(given) => InputValue::Given(given),
                None => {
                    self.check_missing(input, inputs)?;
                    InputValue::Missing
                }
            });
        }
        let undeclared = compiled.template.inputs().skip(values.len());
        if self.is_definition() {
            // The remaining names are those that the template sets on some paths only. Callers cannot set them.
            values.extend(undeclared.map(|_| InputValue::Missing));
        } else {
            let value = |name: &str| inputs.get(name).map_or(InputValue::Missing, InputValue::Given);
            values.extend(undeclared.map(|(name, _)| value(name)));
        }
        rich = if compiled.has_rich { self.rich_inputs(compiled, &values, options)? } else { Vec::new() };
        for (index, input) in &rich {
            values[*index] = InputValue::Rich(&**input);
        }
        let lenient = options.lenient.unwrap_or(self.spec.template.lenient);
        let eval = EvalOptions {
            lenient,
            limits: options.limits,
            mark_ends: options.guard.is_some() && compiled.table.has_untrusted(),
        };
        let output = compiled.template.render(&values, eval);
        let Output { traced, rich: places, notable, ends } = output.map_err(|error| self.locate(arm, error))?;
        let places = places.into_iter().filter_map(|(range, index)| {
            let at = rich.binary_search_by_key(&index, |(index, _)| *index).ok()?;
            Some(RichPlace { range, input: rich[at].1.clone() })
        });
        let strict = options.strict.unwrap_or(self.spec.template.strict);
        let inputs = compiled.table.clone();
        // Text from trusted inputs counts as the author's, but it is not known at compile time.
        let notable = notable.filter(|_| !inputs.has_trusted());
        let rendered = Rendered { traced, inputs, rich: places.collect(), strict, notable, guarded: None };
        rendered.check_strict()?;
        if is_split(&self.spec) && rich_in_marker(&rendered) {
            return Err(Error::new(Kind::RichInputMisused, "it stands in the attributes of a role marker")
                .with_help("put it on a line of its own, below the marker"));
        }
        match options.guard {
            None => Ok(rendered),
            Some(guard) => guard.wrap(rendered, &ends, is_split(&self.spec), options.limits),
        }
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
            ("prompty", _) => Ok(None),
            (ONE_MESSAGE, Some(role)) => Ok(Some(role)),
            (DIRECTIVE, _) => Ok(Some(Role::User)),
            (other, _) => Err(Error::not_registered("parser", other)),
        }
    }

    /// Returns the rich inputs that the template mentions and that have a value, each with a new nonce.
    fn rich_inputs(
        &self,
        compiled: &Compiled,
        values: &[InputValue<'_>],
        options: &RenderOptions<'_>,
    ) -> Result<Vec<(usize, Arc<RichInput>)>> {
        let mut rich = Vec::new();
        for (index, (input, value)) in self.spec.inputs.iter().zip(values).enumerate() {
            let InputValue::Given(value) = *value else { continue };
            if !input.kind.is_rich() || !compiled.template.mentions(index) {
                continue;
            }
            let value = match input.kind {
                PropertyKind::Thread => {
                    let thread = thread::parse_given(value, options.thread_roles);
                    RichValue::Thread(thread.map_err(|error| self.in_input(error, input))?)
                }
                _ => RichValue::Media(value.to_json()),
            };
            let nonce = new_nonce(&input.name, options.entropy)?;
            rich.push((index, Arc::new(RichInput { name: input.name.clone(), kind: input.kind, nonce, value })));
        }
        Ok(rich)
    }

    /// Rejects a required input that has no value.
    #[cold]
    fn check_missing(&self, input: &Property, inputs: GivenMap<'_>) -> Result<()> {
        match input.required {
            Some(true) if inputs.get(&input.name).is_none() => Err(self.in_input(missing(input), input)),
            _ => Ok(()),
        }
    }

    /// Adds the position of an input's declaration to an error about the input.
    fn in_input(&self, error: Error, input: &Property) -> Error {
        let error = if directive::is_one(&self.spec) { directive::with_list(error, &self.spec) } else { error };
        match input.span {
            Some(span) => error.at(span).in_source(&self.source, 0),
            None => error,
        }
    }
}

/// Returns whether role markers split the text into messages.
fn is_split(spec: &PromptSpec) -> bool {
    spec.template.parser == "prompty"
}

/// Returns whether a rich input is on the line of a role marker, where it would become neither text nor messages.
fn rich_in_marker(rendered: &Rendered) -> bool {
    let mut found = false;
    if !rendered.rich.is_empty() {
        for_each_marker(rendered, |line, _| {
            let first = rendered.rich.partition_point(|place| place.range.end <= line.start);
            found |= rendered.rich.get(first).is_some_and(|place| place.range.start < line.end);
        });
    }
    found
}

/// Returns the value of a declared input: the caller's value or the default.
fn resolve<'a>(input: &'a Property, inputs: GivenMap<'a>) -> Option<GivenRef<'a>> {
    match inputs.get(&input.name) {
        Some(value) => Some(value).filter(|value| !(input.kind.is_rich() && value.is_null())),
        None => input.default.as_ref().filter(|default| !default.is_null()).map(GivenRef::from),
    }
}

fn missing(input: &Property) -> Error {
    let kind = input.kind.as_str();
    let help = match &input.description {
        Some(description) => format!("`{}` ({kind}): {description}", input.name),
        None => format!("give `{}` a value ({kind}), or a default in the prompt file", input.name),
    };
    Error::new(Kind::MissingInput, &input.name).with_help(help)
}

/// Creates a nonce of the form `__PROMPTY_THREAD_<16 hex digits>_<name>__`.
fn new_nonce(name: &str, entropy: Option<Entropy<'_>>) -> Result<String> {
    let entropy = entropy.ok_or_else(|| {
        Error::new(Kind::NoEntropy, "a rich input needs a nonce").with_help("set RenderOptions::entropy")
    })?;
    Ok(format!("__PROMPTY_THREAD_{:016x}_{name}__", entropy()?))
}
