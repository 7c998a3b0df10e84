//! Prompts, and what rendering them gives.

use std::sync::Arc;

use napi_derive::napi;
use serde_json::{Value as Json, json};
use tympan::definition::Overlay;
use tympan::{Prompt, Rendered, Role};

use crate::border::{finding, guarded, read, written};

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
    /// A prompt from a definition: `yaml`, `json` or `toml`.
    #[napi(factory)]
    pub fn from_definition(text: String, syntax: String) -> napi::Result<Self> {
        guarded(|| {
            let made = match syntax.as_str() {
                "yaml" => Prompt::from_yaml(&text),
                "toml" => Prompt::from_toml(&text),
                _ => Prompt::from_json(&text),
            };
            made.map(Self::from)
        })
    }

    /// A prompt that differs from this one by some fields.
    #[napi]
    pub fn derive(&self, fields: String, merge: bool) -> napi::Result<Self> {
        guarded(|| {
            let fields = read("fields", &fields)?;
            let overlay = if merge { Overlay::merge(fields) } else { Overlay::replace(fields) };
            self.prompt.derive(&overlay).map(Self::from)
        })
    }

    /// What the prompt declares, without credentials, as JSON.
    #[napi]
    pub fn describe(&self) -> napi::Result<String> {
        guarded(|| {
            let prompt = &self.prompt;
            let mut described = prompt.spec().to_json_redacted();
            described["role"] = json!(prompt.role().map(Role::as_str));
            described["body"] = json!(prompt.body());
            described["variants"] = prompt.arms().collect();
            described["validationRequired"] = prompt.validation_required().collect();
            described["warnings"] = prompt.warnings().iter().map(|one| finding(one, Some(prompt.source()))).collect();
            written(&described)
        })
    }

    /// The hash of the source of a variant's template.
    #[napi]
    pub fn template_hash(&self, variant: Option<String>) -> napi::Result<String> {
        guarded(|| self.prompt.variant_hash(variant.as_deref()).map(str::to_owned))
    }

    /// The hash of the definition.
    #[napi]
    pub fn definition_hash(&self) -> napi::Result<String> {
        guarded(|| Ok(self.prompt.definition_hash().to_owned()))
    }

    /// The source of a variant's template.
    #[napi]
    pub fn get_source(&self, variant: Option<String>) -> napi::Result<String> {
        guarded(|| self.prompt.get_source(variant.as_deref()).map(str::to_owned))
    }

    /// What analysis shows, as JSON.
    #[napi]
    pub fn check(&self) -> napi::Result<String> {
        guarded(|| {
            let findings = self.prompt.check()?;
            written(&findings.iter().map(|one| finding(one, Some(self.prompt.source()))).collect::<Vec<_>>())
        })
    }
}

/// A rendered prompt.
#[napi]
pub struct NativeRendered {
    pub(crate) rendered: Rendered,
}

#[napi]
impl NativeRendered {
    /// The text.
    #[napi]
    pub fn text(&self) -> String {
        self.rendered.text().to_owned()
    }

    /// The segments, as JSON.
    #[napi]
    pub fn segments(&self) -> napi::Result<String> {
        guarded(|| {
            let rendered = &self.rendered;
            let segment = |segment: tympan::rendered::Segment<'_>| {
                json!({
                    "text": segment.text,
                    "inputs": rendered.inputs().names(segment.origin).collect::<Vec<_>>(),
                    "trusted": rendered.is_trusted(&segment),
                })
            };
            written(&rendered.segments().map(segment).collect::<Vec<Json>>())
        })
    }

    /// The name of the prompt.
    #[napi]
    pub fn name(&self) -> Option<String> {
        self.rendered.name().map(str::to_owned)
    }

    /// The variant.
    #[napi]
    pub fn variant(&self) -> String {
        self.rendered.variant().to_owned()
    }

    /// The hash of the template's source.
    #[napi]
    pub fn template_hash(&self) -> String {
        self.rendered.template_hash().to_owned()
    }

    /// The hash of the text.
    #[napi]
    pub fn render_hash(&self) -> String {
        self.rendered.render_hash()
    }

    /// What the guard says beside the text.
    #[napi]
    pub fn advisory(&self) -> Option<String> {
        self.rendered.guard().map(|guard| guard.advisory.to_owned())
    }
}
