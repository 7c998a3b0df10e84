//! Providers: the models of a configuration.

use serde_json::Value as Json;
use tympan_core::JsonMap;

use super::files::{SCHEME, is_program};
use super::finding::Remark;
use super::node::{Entry, Node, Place};
use super::template::is_template;
use super::{Importer, is_reference};

/// A model.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The names that filters can use: the ID and the label.
    pub(super) names: Vec<String>,
    /// Tympan's name of the provider.
    pub(super) provider: &'static str,
    pub(super) model: String,
    /// Everything else that a prompt file says about a model.
    pub(super) settings: Settings,
    /// The labels of the prompts that the model is for, or `None` for all prompts.
    pub(super) prompts: Option<Vec<String>>,
}

/// The settings of a model. Models with the same settings can share a prompt file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) is_echo: bool,
    pub(super) api_type: Option<&'static str>,
    pub(super) options: JsonMap,
    /// Options that only this provider has.
    pub(super) additional: JsonMap,
}

impl Model {
    /// Returns the name of the model in a matrix.
    pub(super) fn qualified(&self) -> String {
        match self.model.is_empty() {
            true => self.provider.to_owned(),
            false => format!("{}/{}", self.provider, self.model),
        }
    }
}

/// A kind of provider: the beginning of its IDs, and Tympan's name. The list has the words that may follow and mean the
/// same API.
struct Family {
    prefix: &'static str,
    provider: &'static str,
    /// Words that may follow the prefix, and the API that they mean.
    apis: &'static [(&'static str, Option<&'static str>)],
    /// Whether an ID without such a word names a model.
    is_optional: bool,
}

const CHAT: &[(&str, Option<&str>)] = &[("chat", None)];
const CHAT_RESPONSES: &[(&str, Option<&str>)] = &[("chat", None), ("responses", Some("responses"))];
const MESSAGES: &[(&str, Option<&str>)] = &[("messages", None)];

const FAMILIES: [Family; 12] = [
    Family { prefix: "openai", provider: "openai", apis: CHAT_RESPONSES, is_optional: true },
    Family { prefix: "anthropic", provider: "anthropic", apis: MESSAGES, is_optional: true },
    Family { prefix: "azure", provider: "azure", apis: CHAT_RESPONSES, is_optional: false },
    Family { prefix: "azureopenai", provider: "azure", apis: CHAT_RESPONSES, is_optional: false },
    Family { prefix: "ollama", provider: "ollama", apis: CHAT, is_optional: true },
    Family { prefix: "google", provider: "gemini", apis: &[], is_optional: true },
    Family { prefix: "groq", provider: "groq", apis: &[], is_optional: true },
    Family { prefix: "mistral", provider: "mistral", apis: &[], is_optional: true },
    Family { prefix: "deepseek", provider: "deepseek", apis: &[], is_optional: true },
    Family { prefix: "openrouter", provider: "openrouter", apis: &[], is_optional: true },
    Family { prefix: "togetherai", provider: "together", apis: CHAT, is_optional: true },
    Family { prefix: "xai", provider: "xai", apis: &[], is_optional: true },
];

/// Words after a prefix that mean another API, or another program.
const OTHER_APIS: [&str; 31] = [
    "agents",
    "assistant",
    "audio",
    "chatkit",
    "claude-agent-sdk",
    "claude-code",
    "codex",
    "codex-app-server",
    "codex-desktop",
    "codex-sdk",
    "completion",
    "embedding",
    "embeddings",
    "foundry-agent",
    "image",
    "imagen",
    "interactions",
    "live",
    "moderation",
    "ocr",
    "realtime",
    "responses",
    "speech",
    "transcription",
    "tts",
    "video",
    "voice",
    "chat",
    "messages",
    "rerank",
    "files",
];

/// The options that Tympan knows, by the names that providers give them.
const OPTIONS: [(&str, &str); 19] = [
    ("temperature", "temperature"),
    ("max_tokens", "maxOutputTokens"),
    ("max_completion_tokens", "maxOutputTokens"),
    ("max_output_tokens", "maxOutputTokens"),
    ("maxTokens", "maxOutputTokens"),
    ("maxOutputTokens", "maxOutputTokens"),
    ("max_tokens_to_sample", "maxOutputTokens"),
    ("top_p", "topP"),
    ("topP", "topP"),
    ("top_k", "topK"),
    ("topK", "topK"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("seed", "seed"),
    ("random_seed", "seed"),
    ("stop", "stopSequences"),
    ("stop_sequences", "stopSequences"),
    ("stopSequences", "stopSequences"),
    ("parallel_tool_calls", "allowMultipleToolCalls"),
];

/// Options of OpenAI's APIs that are sent as they are.
const SENT_AS_WRITTEN: [&str; 4] = ["response_format", "reasoning_effort", "service_tier", "verbosity"];

impl Importer<'_> {
    /// Reads the providers of a configuration.
    pub(super) fn models(&mut self, root: &Node) -> Vec<Model> {
        let Some(providers) = root.get("providers").or_else(|| root.get("targets")) else { return Vec::new() };
        let items = providers.one_or_many();
        items.iter().flat_map(|item| self.models_of(item)).collect()
    }

    /// Reads an item of the list of providers, which can be a file with several.
    fn models_of(&mut self, node: &Node) -> Vec<Model> {
        let Some(path) = node.text().and_then(|id| id.strip_prefix(SCHEME)).filter(|path| !is_program(path)) else {
            return self.model(node).into_iter().collect();
        };
        match self.files.parse(path) {
            Ok(list) => list.one_or_many().iter().filter_map(|item| self.model(item)).collect(),
            Err(unusable) => {
                self.findings.not_carried(&node.place, Remark::new("provider file", unusable.reason, unusable.help));
                Vec::new()
            }
        }
    }

    /// Reads a provider: an ID, or a map.
    pub(super) fn model(&mut self, node: &Node) -> Option<Model> {
        if let Some(id) = node.text() {
            return self.model_of_id(id, node);
        }
        if let Some(id) = node.get("id").and_then(Node::text) {
            return self.model_of_map(id, node, node);
        }
        // A map with the ID as its only key.
        if let [Entry { key, value, .. }] = node.entries()
            && key.contains(':')
        {
            let id = value.get("id").and_then(Node::text).unwrap_or(key);
            return self.model_of_map(id, value, node);
        }
        let reason =
            format!("expected an ID such as `openai:gpt-4o-mini`, or a map with an `id`, found {}", node.describe());
        self.findings.not_carried(&node.place, Remark::new("provider", reason, "write the ID of the provider as text"));
        None
    }

    fn model_of_id(&mut self, id: &str, node: &Node) -> Option<Model> {
        let place = node.place.clone();
        match parse_id(id) {
            Ok((provider, api_type, model)) => {
                let settings = Settings { api_type, is_echo: provider == "echo", ..Settings::default() };
                self.remark_defaults(provider, &model, &place);
                Some(Model { names: vec![id.to_owned()], provider, model, settings, prompts: None })
            }
            Err(reason) => {
                let help = "choose a model that Tympan can call, with `model` and `provider` in the prompt file or in `matrix`";
                self.findings.not_carried(&place, Remark::new(format!("provider `{}`", shown(id)), reason, help));
                None
            }
        }
    }

    fn model_of_map(&mut self, id: &str, map: &Node, node: &Node) -> Option<Model> {
        let mut model = self.model_of_id(id, node)?;
        model.names.extend(map.get("label").and_then(Node::text).map(str::to_owned));
        for entry in map.entries() {
            match entry.key.as_str() {
                "id" | "label" => {}
                "config" => self.options(&entry.value, &mut model),
                "prompts" => {
                    let labels = entry.value.one_or_many().iter().filter_map(Node::text);
                    model.prompts = Some(labels.map(str::to_owned).collect());
                }
                "delay" => self.findings.note(
                    &entry.place,
                    Remark::new(
                        "`delay` of a provider",
                        "Tympan does not wait between calls",
                        "limit the calls at a time with `tympan test --jobs`",
                    ),
                ),
                key => {
                    let item = format!("`{}` of a provider", shown(key));
                    let (reason, help) = match key {
                        "transform" => (
                            "it runs code that changes the answers",
                            "compare the answers as they are, or decide with a `program`",
                        ),
                        "env" => (
                            "an import does not read or write environment variables",
                            "set the variables where you run `tympan test`",
                        ),
                        _ => ("Tympan has no such setting", "remove it, or set it in the prompt file"),
                    };
                    self.findings.not_carried(&entry.place, Remark::new(item, reason, help));
                }
            }
        }
        Some(model)
    }

    /// Reads the options of a model.
    fn options(&mut self, config: &Node, model: &mut Model) {
        for entry in config.entries() {
            let value = entry.value.json();
            let name = OPTIONS.iter().find(|(key, _)| *key == entry.key).map(|(_, name)| *name);
            match name {
                Some(name) => match option_value(name, value) {
                    Some(value) => drop(model.settings.options.insert(name.to_owned(), value)),
                    None => {
                        let reason = format!("expected another type of value, found {}", entry.value.describe());
                        let item = format!("option `{}`", entry.key);
                        self.findings.not_carried(
                            &entry.place,
                            Remark::new(item, reason, "set the option under `model.options` in the prompt file"),
                        );
                    }
                },
                None if is_sent_as_written(entry, model) => {
                    drop(model.settings.additional.insert(entry.key.clone(), value))
                }
                None => self.findings.not_carried(&entry.place, refused_option(&entry.key)),
            }
        }
    }

    /// Says what promptfoo sends without being told.
    fn remark_defaults(&mut self, provider: &str, model: &str, place: &Place) {
        let remark = match provider {
            "openai" => Remark::new(
                "options of OpenAI's models",
                "promptfoo sends a temperature of 0 and a limit of 1024 tokens unless the configuration or the environment \
                 says otherwise; Tympan sends only what the prompt file states",
                "set `temperature` and `maxOutputTokens` under `model.options` if the tests depend on them",
            ),
            "azure" => Remark::new(
                format!("address of the deployment `{model}`"),
                "an import does not carry over addresses and keys",
                "set AZURE_OPENAI_ENDPOINT, or `model.connection.endpoint` in the prompt file",
            ),
            _ => return,
        };
        self.findings.note(place, remark);
    }
}

/// Splits the ID of a provider into Tympan's name of the provider, the API and the model.
fn parse_id(id: &str) -> Result<(&'static str, Option<&'static str>, String), String> {
    if is_template(id) || is_reference(id) {
        return Err("an import does not fill in templates or read environment variables".to_owned());
    }
    if id == "echo" {
        return Ok(("echo", None, String::new()));
    }
    let (prefix, rest) = id.split_once(':').unwrap_or((id, ""));
    if id.starts_with(SCHEME) || matches!(prefix, "python" | "exec" | "golang" | "ruby" | "package") {
        return Err("it is a program, and an import runs none".to_owned());
    }
    let Some(family) = FAMILIES.iter().find(|family| family.prefix == prefix) else {
        return Err("Tympan does not have this provider".to_owned());
    };
    let (word, after) = rest.split_once(':').unwrap_or((rest, ""));
    let (api_type, model) = match family.apis.iter().find(|(name, _)| *name == word) {
        Some((_, api)) => (*api, after),
        None if OTHER_APIS.contains(&word) || !family.is_optional => {
            return Err(format!("Tympan does not use the API `{}:{}` of the provider", prefix, shown(word)));
        }
        None => (None, rest),
    };
    match model.is_empty() {
        true => Err("it names no model".to_owned()),
        false => Ok((family.provider, api_type, model.to_owned())),
    }
}

/// Returns the value of an option, if it has the right type.
fn option_value(name: &str, value: Json) -> Option<Json> {
    match (name, value) {
        ("stopSequences", Json::String(text)) if !is_reference(&text) => Some(Json::from(vec![text])),
        ("stopSequences", Json::Array(items)) => {
            let are_texts = items.iter().all(|item| item.as_str().is_some_and(|text| !is_reference(text)));
            are_texts.then_some(Json::Array(items))
        }
        ("allowMultipleToolCalls", Json::Bool(value)) => Some(value.into()),
        ("stopSequences" | "allowMultipleToolCalls", _) => None,
        ("maxOutputTokens" | "topK" | "seed", Json::Number(number)) => number.is_u64().then_some(Json::Number(number)),
        (_, Json::Number(number)) => Some(Json::Number(number)),
        _ => None,
    }
}

/// Returns whether an option goes into the request as it is. Nothing in it may be a template or refer to a file.
fn is_sent_as_written(entry: &Entry, model: &Model) -> bool {
    model.provider == "openai"
        && model.settings.api_type.is_none()
        && SENT_AS_WRITTEN.contains(&entry.key.as_str())
        && is_literal(&entry.value)
}

fn is_literal(node: &Node) -> bool {
    let text = |text: &str| !is_template(text) && !is_reference(text) && !text.starts_with(SCHEME);
    node.text().is_none_or(text)
        && node.items().iter().all(is_literal)
        && node.entries().iter().all(|entry| text(&entry.key) && is_literal(&entry.value))
}

/// Explains why an option is not carried over. The value may be secret.
fn refused_option(key: &str) -> Remark {
    let lower = key.to_ascii_lowercase();
    let is_address =
        ["key", "url", "host", "endpoint", "token", "secret", "header", "organization", "proxy", "credential"]
            .iter()
            .any(|word| lower.contains(word));
    let (reason, help) = match lower.as_str() {
        "tools" | "functions" | "tool_choice" | "function_call" => (
            "an import does not carry over tools: Tympan answers the calls of a test with fixed results",
            "declare the tools in the prompt file, and give their results under `tools` in the test file",
        ),
        _ if is_address => (
            "an import does not carry over keys and addresses",
            "set the usual environment variable, or `model.connection` in the prompt file",
        ),
        _ => (
            "Tympan has no option of this name",
            "if the provider has it, write it under `model.options.additionalProperties` in the prompt file",
        ),
    };
    Remark::new(format!("option `{}`", shown(key)), reason, help)
}

/// Returns whether a filter of a test selects something with these names.
pub(super) fn selects(filter: &str, names: &[String]) -> bool {
    names.iter().any(|name| {
        filter.strip_suffix('*').is_some_and(|start| name.starts_with(start))
            || name.strip_prefix(filter).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    })
}

/// Returns a name as messages show it: short, and on one line.
pub(super) fn shown(name: &str) -> String {
    const LONGEST: usize = 60;
    let line = name.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
