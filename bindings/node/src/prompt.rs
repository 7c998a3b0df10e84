//! Prompts and rendered prompts.

use std::sync::Arc;

use napi_derive::napi;
use serde_json::{Value as Json, json};
use tympan::diagnostic::Diagnostic;
use tympan::format::definition::Syntax;
use tympan::prompt::definition::Overlay;
use tympan::spec::schema::Property;
use tympan::text::source::SourceFile;
use tympan::{JsonMap, Prompt, Rendered, Role};

use crate::border::{finding, guarded, read, rule_finding, written};
use crate::show;

/// A prompt.
#[napi]
pub struct NativePrompt {
    pub(crate) prompt: Arc<Prompt>,
}

impl From<Prompt> for NativePrompt {
    fn from(prompt: Prompt) -> Self {
        Self { prompt: Arc::new(prompt) }
    }
}

#[napi]
impl NativePrompt {
    /// Creates a prompt from a definition. The syntax is `yaml`, `json` or `toml`, or `data` for JSON that was not
    /// written as text by a person.
    #[napi(factory)]
    pub fn from_definition(text: String, syntax: String) -> napi::Result<Self> {
        guarded(|| {
            let made = match syntax.as_str() {
                "yaml" => Prompt::from_yaml(&text),
                "toml" => Prompt::from_toml(&text),
                "json" => Prompt::from_json(&text),
                _ => {
                    let data: Json = read("definition", &text)?;
                    // Positions in errors refer to the definition formatted as JSON.
                    let source = SourceFile::new("<definition>", format!("{data:#}"));
                    Prompt::from_definition_source(source, Syntax::Json)
                }
            };
            made.map(Self::from)
        })
    }

    /// Returns the names of the inputs that callers must validate before rendering.
    #[napi]
    pub fn validation_required(&self) -> Vec<String> {
        self.prompt.validation_required().map(str::to_owned).collect()
    }

    /// Returns a warning for each of these names that is not an input of the prompt.
    #[napi]
    pub fn unknown_inputs(&self, names: Vec<String>) -> Vec<String> {
        let inputs: JsonMap = names.into_iter().map(|name| (name, Json::Null)).collect();
        warnings(&self.prompt.unknown_inputs((&inputs).into()))
    }

    /// Returns a warning for each input, as JSON, whose value does not match its declaration.
    #[napi]
    pub fn kind_warnings(&self, inputs: String) -> napi::Result<Vec<String>> {
        guarded(|| Ok(warnings(&self.prompt.kind_warnings((&read::<JsonMap>("inputs", &inputs)?).into()))))
    }

    /// Creates a prompt that differs from this one in some fields.
    #[napi]
    pub fn derive(&self, fields: String, merge: bool) -> napi::Result<Self> {
        guarded(|| {
            let fields = read("fields", &fields)?;
            let overlay = if merge { Overlay::merge(fields) } else { Overlay::replace(fields) };
            self.prompt.derive(&overlay).map(Self::from)
        })
    }

    /// Returns the declarations of the prompt without credentials, as JSON.
    #[napi]
    pub fn describe(&self) -> napi::Result<String> {
        guarded(|| {
            let prompt = &self.prompt;
            written(&json!({
                "spec": prompt.spec().to_json_redacted(),
                "inputs": properties(prompt.variables()),
                "outputs": properties(&prompt.spec().outputs),
                "role": prompt.role().map(Role::as_str),
                "body": prompt.body(),
                "variants": prompt.arms().collect::<Vec<_>>(),
                "validationRequired": prompt.validation_required().collect::<Vec<_>>(),
                "outputModel": prompt.output_model(),
                "directive": prompt.directive(),
                "unresolvedEnv": prompt.unresolved_env().iter().map(|found| found.variable.as_str()).collect::<Vec<_>>(),
                "warnings": prompt.warnings().iter().map(|one| finding(one, Some(prompt.source()))).collect::<Vec<_>>(),
            }))
        })
    }

    /// Returns the custom metadata of a variant, as JSON.
    #[napi]
    pub fn variant_metadata(&self, variant: String) -> napi::Result<String> {
        guarded(|| written(self.prompt.variant_metadata(&variant)?))
    }

    /// Returns the messages of a rendered prompt, as JSON.
    #[napi]
    pub fn messages(&self, rendered: &NativeRendered) -> napi::Result<String> {
        guarded(|| show::messages(self.prompt.messages(rendered.rendered.clone())?))
    }

    /// Returns the messages of a rendered prompt with the segments of their texts, as JSON.
    #[napi]
    pub fn messages_with_segments(&self, rendered: &NativeRendered) -> napi::Result<String> {
        guarded(|| {
            let mut messages = self.prompt.messages_with_segments(&rendered.rendered)?;
            tympan::wire::inline_segmented_media(&mut messages)?;
            let inputs = rendered.rendered.inputs();
            written(&messages.iter().map(|message| message.to_json(inputs)).collect::<Vec<_>>())
        })
    }

    /// Returns attributes for telemetry that identify the prompt and the rendered text, as JSON.
    #[napi]
    pub fn provenance_attributes(&self, rendered: &NativeRendered) -> napi::Result<String> {
        guarded(|| written(&self.prompt.provenance_attributes(&rendered.rendered)))
    }

    /// Returns the hash of a variant's template source.
    #[napi]
    pub fn template_hash(&self, variant: Option<String>) -> napi::Result<String> {
        guarded(|| self.prompt.variant_hash(variant.as_deref()).map(str::to_owned))
    }

    /// Returns the hash of the definition.
    #[napi]
    pub fn definition_hash(&self) -> napi::Result<String> {
        guarded(|| Ok(self.prompt.definition_hash().to_owned()))
    }

    /// Returns the template source of a variant.
    #[napi]
    pub fn get_source(&self, variant: Option<String>) -> napi::Result<String> {
        guarded(|| self.prompt.get_source(variant.as_deref()).map(str::to_owned))
    }

    /// Checks the prompt and returns the findings, as JSON.
    #[napi]
    pub fn check(&self) -> napi::Result<String> {
        guarded(|| {
            let findings = tympan::lint::check(&self.prompt, &tympan::lint::Options::default());
            written(&findings.iter().map(|finding| rule_finding(finding, self.prompt.source())).collect::<Vec<_>>())
        })
    }

    /// Checks the JSON Schemas of tools and outputs and returns the findings, as JSON.
    #[napi]
    pub fn check_schemas(&self) -> napi::Result<String> {
        guarded(|| {
            let findings = self.prompt.check_schemas();
            written(&findings.iter().map(|one| finding(one, Some(self.prompt.source()))).collect::<Vec<_>>())
        })
    }
}

/// Converts declarations to data.
fn properties(properties: &[Property]) -> Json {
    properties.iter().map(Property::to_json_redacted).collect()
}

/// Returns the messages of warnings, with their advice.
fn warnings(findings: &[Diagnostic]) -> Vec<String> {
    let hint = |finding: &Diagnostic| finding.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    findings.iter().map(|finding| format!("{}{}", finding.message, hint(finding))).collect()
}

/// A rendered prompt.
#[napi]
pub struct NativeRendered {
    pub(crate) rendered: Rendered,
}

#[napi]
impl NativeRendered {
    /// Returns the text.
    #[napi]
    pub fn text(&self) -> String {
        self.rendered.text().to_owned()
    }

    /// Returns the segments, as JSON.
    #[napi]
    pub fn segments(&self) -> napi::Result<String> {
        guarded(|| {
            let rendered = &self.rendered;
            let segment = |segment: tympan::chat::rendered::Segment<'_>| {
                json!({
                    "text": segment.text,
                    "origins": rendered.inputs().names(segment.origin).collect::<Vec<_>>(),
                    "trusted": rendered.is_trusted(&segment),
                })
            };
            written(&rendered.segments().map(segment).collect::<Vec<Json>>())
        })
    }

    /// Returns the name of the prompt.
    #[napi]
    pub fn name(&self) -> Option<String> {
        self.rendered.name().map(str::to_owned)
    }

    /// Returns the variant.
    #[napi]
    pub fn variant(&self) -> String {
        self.rendered.variant().to_owned()
    }

    /// Returns whether the default variant was rendered.
    #[napi]
    pub fn is_default(&self) -> bool {
        self.rendered.is_default()
    }

    /// Returns the hash of the template's source.
    #[napi]
    pub fn template_hash(&self) -> String {
        self.rendered.template_hash().to_owned()
    }

    /// Returns the hash of the text.
    #[napi]
    pub fn render_hash(&self) -> String {
        self.rendered.render_hash()
    }

    /// Returns the guard's advisory for the model, if the guard was on and the prompt has an untrusted input.
    #[napi]
    pub fn advisory(&self) -> Option<String> {
        self.rendered.guard().map(|guard| guard.advisory.to_owned())
    }
}
