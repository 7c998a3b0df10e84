//! Prompts: texts and lists of messages.

use tympan_core::prompt::analysis::marker_role;
use tympan_core::spec::role::Role;

use super::Importer;
use super::files::{SCHEME, Unusable, ending, is_program};
use super::finding::Remark;
use super::node::{Node, Place};
use super::provider::shown;

/// A line that separates prompts in a file.
const SEPARATOR: &str = "---";

/// The maximum number of prompts.
const MAX_PROMPTS: usize = 1_000;

/// The endings of files that contain prompts.
const PROMPT_FILES: [&str; 8] = ["txt", "md", "j2", "json", "jsonl", "yaml", "yml", "csv"];

/// A prompt.
#[derive(Clone, Debug)]
pub(super) struct PromptText {
    /// The name of the files that are written, without their endings, unless another prompt has it as well.
    pub(super) name: String,
    /// The names that filters can use: the ID and the label.
    pub(super) names: Vec<String>,
    pub(super) label: Option<String>,
    /// The messages, each with a template.
    pub(super) messages: Vec<(Role, String)>,
    /// Whether the messages were a list, and not a text.
    pub(super) is_chat: bool,
    pub(super) place: Place,
}

/// A prompt as the configuration names it.
struct Named<'n> {
    node: &'n Node,
    id: Option<&'n str>,
    label: Option<&'n str>,
}

impl Importer<'_> {
    /// Reads the prompts of a configuration.
    pub(super) fn prompts(&mut self, root: &Node) -> Vec<PromptText> {
        let mut prompts = Vec::new();
        let Some(node) = root.get("prompts") else {
            let remark = Remark::new(
                "`prompts`",
                "the configuration has none",
                "promptfoo uses `{{prompt}}` then; so does the import",
            );
            self.findings.note(&root.place, remark);
            return vec![PromptText {
                name: "prompt".to_owned(),
                names: Vec::new(),
                label: None,
                messages: vec![(Role::User, "{{prompt}}".to_owned())],
                is_chat: false,
                place: root.place.clone(),
            }];
        };
        if node.is_map() {
            // An old form: a map from files to labels.
            for entry in node.entries() {
                let raw = Node::of_text(entry.key.clone(), entry.place.clone());
                let named = Named { node: &raw, id: None, label: entry.value.text() };
                self.prompt(&entry.key, &named, &mut prompts);
            }
        }
        for item in node.one_or_many() {
            if let Some(raw) = item.text() {
                self.prompt(raw, &Named { node: item, id: None, label: None }, &mut prompts);
            } else if !node.is_map() {
                self.prompt_of_map(item, &mut prompts);
            }
        }
        if prompts.len() > MAX_PROMPTS {
            let reason = format!("only the first {MAX_PROMPTS} prompts were read");
            self.findings.not_carried(&node.place, Remark::new("`prompts`", reason, "split the configuration"));
            prompts.truncate(MAX_PROMPTS);
        }
        prompts
    }

    fn prompt_of_map(&mut self, item: &Node, prompts: &mut Vec<PromptText>) {
        let text = |key| item.get(key).and_then(Node::text);
        let (id, label) = (text("id"), text("label").or_else(|| text("display")));
        let Some(raw) = text("raw").or(id) else {
            let reason = format!("expected a text, or a map with `raw` or `id`, found {}", item.describe());
            self.findings.not_carried(&item.place, Remark::new("prompt", reason, "write the prompt as text"));
            return;
        };
        for entry in item
            .entries()
            .iter()
            .filter(|entry| !matches!(entry.key.as_str(), "id" | "label" | "raw" | "display" | "template"))
        {
            let remark = Remark::new(
                format!("`{}` of a prompt", shown(&entry.key)),
                "the import does not know what it changes",
                "set options under `model.options` in the prompt file",
            );
            self.findings.not_carried(&entry.place, remark);
        }
        self.prompt(raw, &Named { node: item, id, label }, prompts);
    }

    /// Reads a prompt, or the prompts of a file.
    fn prompt(&mut self, raw: &str, named: &Named<'_>, prompts: &mut Vec<PromptText>) {
        let refuse = |this: &mut Self, reason: &str, help: &str| {
            let remark = Remark::new(format!("prompt `{}`", shown(raw)), reason, help);
            this.findings.not_carried(&named.node.place, remark);
        };
        let is_line = !raw.contains('\n');
        let path = raw.strip_prefix(SCHEME);
        if is_line && (raw.starts_with("exec:") || is_program(path.unwrap_or(raw)) && !raw.contains(' ')) {
            return refuse(
                self,
                "it is a program, and an import runs none",
                "write the prompt that the program makes as a template",
            );
        }
        if is_line && !raw.contains(' ') && raw.contains("://") && path.is_none() {
            return refuse(self, "it is stored in another service", "save the prompt as a text file, and name that");
        }
        let is_file = is_line && PROMPT_FILES.contains(&ending(path.unwrap_or(raw)).as_str());
        match path {
            Some(path) => match self.prompt_file(path, named, prompts) {
                Ok(()) => {}
                Err(unusable) => refuse(self, &unusable.reason, &unusable.help),
            },
            None if is_file => match self.prompt_file(raw, named, prompts) {
                Ok(()) => {}
                // promptfoo takes the name of a file that does not exist for the prompt itself.
                Err(unusable) if unusable.is_missing => self.add_prompt(raw, named, None, prompts),
                Err(unusable) => refuse(self, &unusable.reason, &unusable.help),
            },
            None => self.add_prompt(raw, named, None, prompts),
        }
    }

    /// Reads the prompts of a file.
    fn prompt_file(&mut self, path: &str, named: &Named<'_>, prompts: &mut Vec<PromptText>) -> Result<(), Unusable> {
        let kind = ending(path);
        if matches!(kind.as_str(), "yaml" | "yml") {
            let parsed = self.files.parse(path)?;
            let json = parsed.json();
            let text = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
            self.add_prompt(&text, named, Some(path), prompts);
            return Ok(());
        }
        let source = self.files.read(path)?;
        let text = source.text().strip_prefix('\u{feff}').unwrap_or(source.text());
        match kind.as_str() {
            "txt" => {
                for part in separated(text) {
                    self.add_prompt(&part, named, Some(path), prompts);
                }
            }
            "jsonl" => {
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    self.add_prompt(line, named, Some(path), prompts);
                }
            }
            "csv" => self.prompt_table(path, text, named, prompts)?,
            "md" | "j2" | "json" => self.add_prompt(text, named, Some(path), prompts),
            _ => {
                return Err(Unusable {
                    reason: format!("`{}` is not a file of prompts", shown(path)),
                    help: format!("use a file that ends in one of: {}", PROMPT_FILES.join(", ")),
                    is_missing: false,
                });
            }
        }
        Ok(())
    }

    /// Reads a table with the columns `prompt` and `label`, or lines of text.
    fn prompt_table(
        &mut self,
        path: &str,
        text: &str,
        named: &Named<'_>,
        prompts: &mut Vec<PromptText>,
    ) -> Result<(), Unusable> {
        if !text.contains(',') {
            let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
            for (_, line) in lines.filter(|(at, line)| *at > 0 || !line.trim().eq_ignore_ascii_case("prompt")) {
                self.add_prompt(line, named, Some(path), prompts);
            }
            return Ok(());
        }
        let broken = |error: csv::Error| Unusable {
            reason: format!("{path}: {error}"),
            help: "correct the table".to_owned(),
            is_missing: false,
        };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let columns = reader.headers().map_err(broken)?.clone();
        let column = |name| columns.iter().position(|column| column == name);
        let Some(prompt) = column("prompt") else {
            return Err(Unusable {
                reason: format!("{path} has no column `prompt`"),
                help: "name the column with the prompts `prompt`".to_owned(),
                is_missing: false,
            });
        };
        for record in reader.into_records() {
            let record = record.map_err(broken)?;
            let label = column("label").and_then(|column| record.get(column)).filter(|label| !label.is_empty());
            let named = Named { label: label.or(named.label), ..*named };
            if let Some(raw) = record.get(prompt).filter(|raw| !raw.is_empty()) {
                self.add_prompt(raw, &named, Some(path), prompts);
            }
        }
        Ok(())
    }

    /// Adds a prompt: a text, or a list of messages in JSON or YAML.
    fn add_prompt(&mut self, raw: &str, named: &Named<'_>, path: Option<&str>, prompts: &mut Vec<PromptText>) {
        let place = named.node.place.clone();
        let (messages, is_chat) = match messages(raw) {
            Ok(messages) => messages,
            Err((reason, help)) => {
                let item = format!("prompt `{}`", shown(path.or(named.label).unwrap_or(raw)));
                return self.findings.not_carried(&place, Remark::new(item, reason, help));
            }
        };
        let from_path =
            path.map(|path| path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default());
        let own = named.label.or(named.id.filter(|id| !id.starts_with(SCHEME))).or(from_path);
        let names = [named.id, named.label].into_iter().flatten().chain([raw]).map(str::to_owned).collect();
        prompts.push(PromptText {
            name: own.map(slug).filter(|name| !name.is_empty()).unwrap_or_else(|| "prompt".to_owned()),
            names,
            label: named.label.map(str::to_owned),
            messages,
            is_chat,
            place,
        });
    }
}

/// Why a prompt cannot be carried over, and what to do.
type Refusal = (String, &'static str);

/// Splits a prompt into messages, and returns whether it is a list of them. A text is one message of the user.
fn messages(raw: &str) -> Result<(Vec<(Role, String)>, bool), Refusal> {
    let trimmed = raw.trim();
    let parsed = match trimmed.starts_with("- role:") {
        true => yaml_list(raw),
        false => serde_json::from_str(&with_plain_values(trimmed))
            .ok()
            .filter(|json: &serde_json::Value| json.is_array() || json.is_object()),
    };
    let is_chat = parsed.is_some();
    let messages = match parsed {
        Some(list) => chat_messages(&list)?,
        None if trimmed.starts_with("[{") && trimmed.contains("\"role\"") || trimmed.starts_with("- role:") => {
            return Err((
                "the list of messages can be read only after its template has run".to_owned(),
                "write the messages in a prompt file, with role markers and a loop or a thread",
            ));
        }
        None => vec![(Role::User, raw.to_owned())],
    };
    for (_, text) in &messages {
        if let Some(line) = text.lines().find(|line| marker_role(line).is_some()) {
            return Err((
                format!("its line `{}` is text in promptfoo, and starts a message in a prompt file", line.trim()),
                "reword the line, or split the prompt into messages",
            ));
        }
    }
    Ok((messages, is_chat))
}

/// Converts `{{ name | dump }}` outside of strings, which writes a variable as JSON, to the string `"{{ name }}"`: the
/// messages are the same.
fn with_plain_values(json: &str) -> String {
    let (mut out, mut rest, mut is_string) = (String::new(), json, false);
    while let Some(char) = rest.chars().next() {
        let value = rest.strip_prefix("{{").filter(|_| !is_string).and_then(|inner| inner.split_once("}}"));
        if let Some((name, after)) = value.and_then(|(inner, after)| Some((dumped(inner)?, after))) {
            out.push_str(&format!("\"{{{{ {name} }}}}\""));
            rest = after;
            continue;
        }
        // An escaped character does not end a string.
        let length = match char {
            '\\' if is_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            other => other.len_utf8(),
        };
        is_string ^= char == '"';
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// Returns the variable in an expression such as `name | dump`.
fn dumped(expression: &str) -> Option<&str> {
    let (name, filters) = expression.split_once('|')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '.'));
    let filters: Vec<_> = filters.split('|').map(str::trim).collect();
    (is_name && matches!(filters.as_slice(), ["dump"] | ["dump", "safe"])).then_some(name)
}

fn yaml_list(raw: &str) -> Option<serde_json::Value> {
    let source = tympan_core::text::source::SourceFile::new("prompt", raw);
    let node = Node::parse(&source, tympan_core::format::definition::Syntax::Yaml).ok()?;
    node.is_list().then(|| node.json())
}

/// Reads messages as the API for chats has them.
fn chat_messages(list: &serde_json::Value) -> Result<Vec<(Role, String)>, Refusal> {
    let no_list = || {
        ("it is JSON, and not a list of messages".to_owned(), "write the messages in a prompt file, with role markers")
    };
    let items = list.as_array().filter(|items| !items.is_empty()).ok_or_else(no_list)?;
    let message = |item: &serde_json::Value| {
        let map = item.as_object().ok_or_else(no_list)?;
        let role = map.get("role").and_then(serde_json::Value::as_str).ok_or_else(no_list)?;
        let known = Role::IN_MARKERS.into_iter().find(|known| known.as_str() == role);
        let role = known.ok_or_else(|| {
            let reason = format!("it has a message of the role `{}`", shown(role));
            (reason, "use the roles system, developer, user and assistant; pass a history with tool calls as a thread")
        })?;
        if let Some(other) = map.keys().find(|key| !matches!(key.as_str(), "role" | "content")) {
            return Err((
                format!("a message has the key `{}`", shown(other)),
                "write the message in the prompt file yourself",
            ));
        }
        match map.get("content").and_then(text_of) {
            Some(text) => Ok((role, text.to_owned())),
            None => Err((
                "a message has content that is not a text".to_owned(),
                "declare images and files as inputs of the kinds `image` and `file`",
            )),
        }
    };
    items.iter().map(message).collect()
}

/// Returns the text of a content: a text itself, or the only part of a list.
fn text_of(content: &serde_json::Value) -> Option<&str> {
    match content.as_array().map(Vec::as_slice) {
        None => content.as_str(),
        Some([part]) if part["type"] == "text" && part.as_object().is_some_and(|part| part.len() == 2) => {
            part["text"].as_str()
        }
        Some(_) => None,
    }
}

/// Splits the text of a file at the lines that separate prompts.
fn separated(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let parts = lines.split(|line| line.trim() == SEPARATOR);
    parts.map(|lines| lines.join("\n").trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Converts a label to the name of a file: letters and digits of ASCII, with hyphens between them.
pub(super) fn slug(label: &str) -> String {
    const LONGEST: usize = 40;
    let words = label.split(|char: char| !char.is_ascii_alphanumeric() && char != '_').filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(LONGEST);
    slug.trim_matches('-').to_owned()
}
