//! Prompts: the common representation of all formats, and how they are rendered.

pub mod analysis;
mod check;
mod compile;
pub mod composition;
pub mod definition;
pub(crate) mod directive_inputs;
pub mod inputs;
pub mod kinds;
mod prompty;
mod render;
pub mod typed;
mod unresolved_env;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use kinds::KindCheck;
pub use render::{Entropy, RenderOptions};

use compile::Compiled;

use crate::chat::rendered::ArmInfo;
use crate::diagnostic::{Diagnostic, listed};
use crate::error::{Error, Kind, Result};
use crate::json::{JsonMap, canonical_json};
use crate::secret::Secret;
use crate::secret::env_value::{EnvValue, UnresolvedEnv};
use crate::spec::role::Role;
use crate::spec::schema::Property;
use crate::spec::{DEFAULT_VARIANT, PromptKind, PromptSpec};
use crate::text::hash::sha256_hex;
use crate::text::placement::Placement;
use crate::text::source::{SourceFile, Span};
use crate::text::source_map::SourceMap;

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
    /// The references to the environment that were left unresolved while the prompt was loaded.
    unresolved_env: Vec<UnresolvedEnv>,
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
        Self {
            spec,
            source,
            arms,
            warnings,
            directory: None,
            env_values: Vec::new(),
            unresolved_env: Vec::new(),
            definition_hash: OnceLock::new(),
        }
    }

    /// Creates a prompt whose instructions were assembled from pieces of their source.
    pub(crate) fn from_source_map(
        spec: PromptSpec,
        source: SourceFile,
        source_map: SourceMap,
        warnings: Vec<Diagnostic>,
    ) -> Self {
        Self::placed(spec, source, vec![Placement::SourceMap(source_map)], warnings)
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

    /// Returns the kind of the prompt.
    pub fn kind(&self) -> PromptKind {
        self.spec.kind()
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
                .with_help(format!("known variants: {}", listed(arms.into_iter())))
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
        let present = settings.into_iter().filter(|(_, json)| !json.is_null());
        present.map(|(name, json)| (name, sha256_hex(canonical_json(json)))).collect()
    }
}
