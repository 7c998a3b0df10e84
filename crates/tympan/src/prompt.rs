//! Prompts: what all formats become, and how they are rendered.

use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::chat::for_each_marker;
use crate::diagnostic::Diagnostic;
use crate::directive_inputs as directive;
use crate::error::{Error, Kind, Result};
use crate::guard::Guard;
use crate::hash::sha256_hex;
use crate::marker;
use crate::pieces::Pieces;
use crate::rendered::{InputInfo, InputTable, Inputs, Rendered, RichInput, RichPlace, RichValue};
use crate::schema::{Property, PropertyKind};
use crate::source::{SourceFile, Span};
use crate::spec::{DIRECTIVE, PromptSpec};
use crate::template::{CompileOptions, EvalOptions, InputValue, Limits, Notable, Output, Syntax, Template, json_get};
use crate::thread::{ThreadRoles, parse_thread};

/// A prompt: its declarations and its template, which is compiled when it is first needed and
/// then kept.
#[derive(Debug)]
pub struct Prompt {
    spec: PromptSpec,
    source: SourceFile,
    /// Where in the source the instructions begin.
    offset: usize,
    /// Where the parts of the instructions stand, if they were put together.
    pieces: Option<Pieces>,
    warnings: Vec<Diagnostic>,
    compiled: OnceLock<Result<Compiled>>,
    template_hash: OnceLock<String>,
}

#[derive(Debug)]
struct Compiled {
    template: Template,
    table: Arc<InputTable>,
    /// For each input of the template: the index of its declaration.
    declarations: Vec<Option<usize>>,
    /// Declarations that must have a value although the template does not mention them.
    has_rich: bool,
}

/// Where nonces come from: 64 random bits a call, from a source that nobody can foresee.
pub type Entropy<'a> = &'a dyn Fn() -> Result<u64>;

/// How to render a prompt.
#[derive(Clone, Copy, Default)]
pub struct RenderOptions<'a> {
    /// Whether undefined variables render as nothing; `None` leaves it to the prompt.
    pub lenient: Option<bool>,
    /// Whether text that looks like a role marker in any untrusted input is an error; `None`
    /// leaves it to the prompt.
    pub strict: Option<bool>,
    /// What the render may cost.
    pub limits: Limits,
    /// Which roles the messages of thread inputs may have.
    pub thread_roles: ThreadRoles,
    /// Where nonces for rich inputs come from. Without it a prompt that uses a rich input cannot
    /// be rendered.
    pub entropy: Option<Entropy<'a>>,
    /// Puts `<untrusted>` and `</untrusted>` around what untrusted inputs wrote; `None` leaves it
    /// as it is.
    pub guard: Option<&'a Guard>,
}

impl std::fmt::Debug for RenderOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderOptions")
            .field("lenient", &self.lenient)
            .field("strict", &self.strict)
            .field("limits", &self.limits)
            .field("thread_roles", &self.thread_roles)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl Prompt {
    /// A prompt whose instructions stand `offset` bytes into their source.
    pub fn new(spec: PromptSpec, source: SourceFile, offset: usize, warnings: Vec<Diagnostic>) -> Self {
        let (compiled, template_hash) = (OnceLock::new(), OnceLock::new());
        Self { spec, source, offset, pieces: None, warnings, compiled, template_hash }
    }

    /// A prompt whose instructions were put together from pieces of their source.
    pub(crate) fn from_pieces(spec: PromptSpec, source: SourceFile, pieces: Pieces, warnings: Vec<Diagnostic>) -> Self {
        Self { pieces: Some(pieces), ..Self::new(spec, source, 0, warnings) }
    }

    /// A prompt that has no file.
    pub fn from_spec(spec: PromptSpec) -> Self {
        let source = SourceFile::new("<prompt>", spec.instructions.as_str());
        Self::new(spec, source, 0, Vec::new())
    }

    /// Everything that the prompt declares.
    pub fn spec(&self) -> &PromptSpec {
        &self.spec
    }

    /// The text that the prompt was read from.
    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    /// Where in the source the template begins.
    pub fn template_offset(&self) -> usize {
        self.offset
    }

    /// What was worth knowing when the prompt was read.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The SHA-256 of the template's source, in hexadecimal digits.
    pub fn template_hash(&self) -> &str {
        self.template_hash.get_or_init(|| sha256_hex(&self.spec.instructions))
    }

    /// The compiled template.
    ///
    /// # Errors
    /// The template does not parse; or it is written in a syntax that the engine does not have.
    pub fn template(&self) -> Result<&Template> {
        self.compiled().map(|compiled| &compiled.template)
    }

    fn compiled(&self) -> Result<&Compiled> {
        self.compiled.get_or_init(|| self.compile()).as_ref().map_err(Clone::clone)
    }

    fn compile(&self) -> Result<Compiled> {
        let spec = &self.spec;
        let syntax = match spec.template.format.as_str() {
            "jinja2" => Syntax::Jinja,
            "mustache" => Syntax::Mustache,
            DIRECTIVE => Syntax::Directive(directive::steps(spec)),
            other => return Err(Error::not_registered("renderer", other)),
        };
        let declared: Vec<&str> = spec.inputs.iter().map(|input| input.name.as_str()).collect();
        let lines = if is_split(spec) { marker::source_lines(&spec.instructions) } else { Vec::new() };
        let protected: Vec<_> = lines.into_iter().map(|(range, _)| range).collect();
        let notable = is_split(spec).then_some(marker::candidates as Notable);
        let options =
            CompileOptions { syntax, declared: &declared, protected: &protected, drop_last_newline: false, notable };
        let template = Template::compile(&spec.instructions, options).map_err(|error| self.locate(error))?;
        let declarations = template.inputs().enumerate().map(|(index, _)| Some(index).filter(|i| *i < declared.len()));
        let declarations: Vec<_> = declarations.collect();
        let infos = template.inputs().enumerate().map(|(index, (name, _))| {
            let declaration = spec.inputs.get(index);
            InputInfo {
                name: name.to_owned(),
                trusted: declaration.is_some_and(|input| input.trusted),
                strict: declaration.is_some_and(|input| input.strict),
            }
        });
        let table = Arc::new(InputTable::new(infos.collect()));
        let has_rich = spec.inputs.iter().any(|input| input.kind.is_rich());
        Ok(Compiled { template, table, declarations, has_rich })
    }

    /// Gives an error of the template its place in the file.
    fn locate(&self, error: Error) -> Error {
        let error = if directive::is_one(&self.spec) { directive::reword(error, &self.spec) } else { error };
        match &self.pieces {
            None => error.in_source(&self.source, self.offset),
            Some(pieces) => {
                error.moved(|span| pieces.locate(span).unwrap_or(Span::new(0, 0))).in_source(&self.source, 0)
            }
        }
    }

    /// Fills in defaults and checks that nothing required is missing.
    ///
    /// # Errors
    /// A required input is missing and has no default.
    pub fn validate_inputs(&self, inputs: &Inputs) -> Result<Inputs> {
        if directive::is_one(&self.spec) {
            directive::check_known(&self.spec, inputs)?;
        }
        let mut validated = inputs.clone();
        for input in &self.spec.inputs {
            if let Some(value) = resolve(input, inputs).map_err(|error| self.in_input(error, input))?
                && !inputs.contains_key(&input.name)
            {
                validated.insert(input.name.clone(), value.clone());
            }
        }
        Ok(validated)
    }

    /// Renders the prompt.
    ///
    /// # Errors
    /// An input is missing or cannot be used, the template is at fault, or a limit is exceeded.
    pub fn render(&self, inputs: &Inputs) -> Result<Rendered> {
        self.render_with(inputs, &RenderOptions::default())
    }

    /// Renders the prompt with options.
    ///
    /// # Errors
    /// As [`Prompt::render`]; and in strict mode, if an input holds a role marker.
    pub fn render_with(&self, inputs: &Inputs, options: &RenderOptions<'_>) -> Result<Rendered> {
        let compiled = self.compiled()?;
        if directive::is_one(&self.spec) {
            directive::check_known(&self.spec, inputs)?;
        }
        let rich;
        let mut values: SmallVec<[InputValue<'_>; 16]> = SmallVec::with_capacity(compiled.declarations.len());
        for input in &self.spec.inputs {
            let value = resolve(input, inputs).map_err(|error| self.in_input(error, input))?;
            values.push(value.map_or(InputValue::Missing, InputValue::Json));
        }
        let undeclared = compiled.template.inputs().skip(values.len());
        values.extend(undeclared.map(|(name, _)| json_get(inputs, name).map_or(InputValue::Missing, InputValue::Json)));
        rich = if compiled.has_rich { self.rich_inputs(compiled, &values, options)? } else { Vec::new() };
        for (index, input) in &rich {
            values[*index] = InputValue::Rich(&input.nonce);
        }
        let lenient = options.lenient.unwrap_or(self.spec.template.lenient);
        let eval = EvalOptions { lenient, limits: options.limits, mark_ends: options.guard.is_some() };
        let output = compiled.template.render(&values, eval);
        let Output { traced, rich: places, notable, ends } = output.map_err(|error| self.locate(error))?;
        let places = places.into_iter().filter_map(|(range, index)| {
            let (_, input) = rich.iter().find(|(rich, _)| *rich == index)?;
            Some(RichPlace { range, input: input.clone() })
        });
        let strict = options.strict.unwrap_or(self.spec.template.strict);
        let inputs = compiled.table.clone();
        // Text of trusted inputs counts as the author's, but nobody knows it beforehand.
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

    /// The rich inputs that the template mentions and the caller gave, each with a new nonce.
    fn rich_inputs(
        &self,
        compiled: &Compiled,
        values: &[InputValue<'_>],
        options: &RenderOptions<'_>,
    ) -> Result<Vec<(usize, Arc<RichInput>)>> {
        let mut rich = Vec::new();
        for (index, (input, value)) in self.spec.inputs.iter().zip(values).enumerate() {
            let InputValue::Json(value) = value else { continue };
            if !input.kind.is_rich() || !compiled.template.mentions(index) {
                continue;
            }
            let value = match input.kind {
                PropertyKind::Thread => {
                    let thread = parse_thread(value, options.thread_roles);
                    RichValue::Thread(thread.map_err(|error| self.in_input(error, input))?)
                }
                _ => RichValue::Media((*value).clone()),
            };
            let nonce = new_nonce(&input.name, options.entropy)?;
            rich.push((index, Arc::new(RichInput { name: input.name.clone(), kind: input.kind, nonce, value })));
        }
        Ok(rich)
    }

    /// An error about an input, placed where the input is declared.
    fn in_input(&self, error: Error, input: &Property) -> Error {
        let error = if directive::is_one(&self.spec) { directive::with_list(error, &self.spec) } else { error };
        match input.span {
            Some(span) => error.at(span).in_source(&self.source, 0),
            None => error,
        }
    }
}

/// Whether the text is split into messages by role markers.
fn is_split(spec: &PromptSpec) -> bool {
    spec.template.parser == "prompty"
}

/// Whether a rich input stands in the line of a role marker, where it would be neither text nor messages.
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

/// The value of a declared input: what the caller gave, or its default.
fn resolve<'a>(input: &'a Property, inputs: &'a Inputs) -> Result<Option<&'a Json>> {
    if let Some(value) = json_get(inputs, &input.name) {
        let is_absent = input.kind.is_rich() && value.is_null();
        return Ok(Some(value).filter(|_| !is_absent));
    }
    match &input.default {
        Some(default) if !default.is_null() => Ok(Some(default)),
        _ if input.required == Some(true) => Err(missing(input)),
        _ => Ok(None),
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

/// `__PROMPTY_THREAD_<16 hex digits>_<name>__`
fn new_nonce(name: &str, entropy: Option<Entropy<'_>>) -> Result<String> {
    let entropy = entropy.ok_or_else(|| {
        Error::new(Kind::NoEntropy, "a rich input needs a nonce").with_help("set RenderOptions::entropy")
    })?;
    Ok(format!("__PROMPTY_THREAD_{:016x}_{name}__", entropy()?))
}
