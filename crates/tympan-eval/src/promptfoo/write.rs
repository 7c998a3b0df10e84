//! The text of prompt files and test files.

use std::collections::HashSet;

use serde_json::{Value as Json, json};
use tympan_core::diagnostic::Severity;
use tympan_core::format::NoReferences;
use tympan_core::text::source::SourceFile;
use tympan_core::{JsonMap, Prompt};
use tympan_lint::{Finding, Options, check_file, yaml};

use super::case::Case;
use super::finding::Remark;
use super::node::{Node, Value};
use super::prompt::{PromptText, slug};
use super::provider::{Model, selects, shown};
use super::template::{reads_environment, written};
use super::{Importer, is_reference};

/// Variables that promptfoo sets itself.
const OWN_VARIABLES: [&str; 1] = ["_conversation"];

/// Rules about names that Tympan's templates do not have. Rendering fails because of them.
const UNKNOWN_NAMES: [&str; 3] = ["unknown_filter", "unknown_test", "unknown_function"];

/// The models that share a prompt file.
struct ModelGroup<'m> {
    models: Vec<&'m Model>,
}

/// A prompt that was checked.
struct CheckedPrompt {
    text: String,
    inputs: Vec<String>,
}

impl Importer<'_> {
    /// Writes the files of all prompts.
    pub(super) fn write(&mut self, prompts: &[PromptText], cases: &[Case], description: Option<&str>) {
        let models = std::mem::take(&mut self.models);
        let mut names: HashSet<String> = self.rubrics.iter().map(|rubric| rubric.name.clone()).collect();
        for prompt in prompts {
            let own = |model: &&Model| model.prompts.as_ref().is_none_or(|filters| is_selected(filters, &prompt.names));
            let groups = groups(models.iter().filter(own));
            let own: Vec<_> = cases
                .iter()
                .filter(|case| case.prompts.as_ref().is_none_or(|filters| is_selected(filters, &prompt.names)))
                .collect();
            for (index, group) in groups.iter().enumerate() {
                let wanted = match (index, group.models.first()) {
                    (1.., Some(model)) => {
                        format!("{}-{}", prompt.name, slug(model.names.last().map_or("", String::as_str)))
                    }
                    _ => prompt.name.clone(),
                };
                let name = unique(&wanted, &mut names);
                self.write_prompt(&name, prompt, group, &own, index == 0, description);
            }
        }
        self.models = models;
    }

    fn write_prompt(
        &mut self,
        name: &str,
        prompt: &PromptText,
        group: &ModelGroup<'_>,
        cases: &[&Case],
        is_first: bool,
        description: Option<&str>,
    ) {
        let selected: Vec<_> = cases.iter().filter(|case| is_first || case.model.is_none()).copied().collect();
        let Some(checked) = self.checked_prompt(name, prompt, group, &selected, description) else { return };
        let blocked = self.template_problem(prompt).or_else(|| self.echo_problem(prompt, group));
        let roles: Vec<_> = prompt.messages.iter().map(|(role, _)| role.as_str()).collect();
        let mut written = Vec::new();
        let mut names = HashSet::new();
        for case in selected {
            let Some(mut json) = case_json(case, group, &checked.inputs) else { continue };
            let name = unique(case.name.as_deref().unwrap_or("case"), &mut names);
            json.shift_insert(0, "name".to_owned(), name.into());
            if let Some(reason) = self
                .value_problem(prompt, case)
                .or_else(|| self.model_problem(case, group))
                .or_else(|| blocked.clone())
                .or_else(|| case.skip.clone())
            {
                json.shift_insert(1, "skip".to_owned(), format!("import: {reason}").into());
            }
            if !case.has_assertions {
                json.insert("expect".to_owned(), json!([{ "roles": roles }]));
            }
            written.push(json);
        }
        if self.spend(checked.text.len()).is_err() {
            return;
        }
        self.out.push(super::ImportedFile { name: format!("{name}.prompty"), text: checked.text });
        if written.is_empty() {
            let remark =
                Remark::new("tests", format!("no test runs with the prompt `{name}`"), "write a test file for it");
            self.findings.note(&prompt.place, remark);
            return;
        }
        let text = suite_text(written, group.models.first().is_some_and(|model| model.settings.is_echo));
        if let Err((reason, help)) = self.spend(text.len()) {
            self.findings.not_carried(&prompt.place, Remark::new("tests", reason, help));
            return;
        }
        self.out.push(super::ImportedFile { name: format!("{name}.test.yaml"), text });
    }

    /// Returns the text of a prompt file, if Tympan accepts it.
    fn checked_prompt(
        &mut self,
        name: &str,
        prompt: &PromptText,
        group: &ModelGroup<'_>,
        cases: &[&Case],
        description: Option<&str>,
    ) -> Option<CheckedPrompt> {
        let mut body = String::new();
        for (role, text) in &prompt.messages {
            body.push_str(&format!("{}:\n{}\n\n", role.as_str(), text.trim_matches('\n')));
        }
        body.truncate(body.trim_end_matches('\n').len());
        body.push('\n');
        let refuse = |this: &mut Self, reason: String| {
            let help = "write the prompt file by hand: Tympan's templates are Jinja, and promptfoo's are Nunjucks";
            this.findings.not_carried(&prompt.place, Remark::new(format!("prompt `{}`", shown(name)), reason, help));
        };
        let bare = prompt_file(&json!({ "name": name }), &body);
        let inputs = match undeclared(&bare) {
            Ok(inputs) => inputs,
            Err(reason) => {
                refuse(self, reason);
                return None;
            }
        };
        let mut fields = json!({ "name": name });
        let plain = |text: &&str| !is_reference(text) && !text.trim().is_empty();
        if let Some(label) = prompt.label.as_deref().filter(plain) {
            fields["displayName"] = label.into();
        }
        if let Some(description) = description.filter(plain) {
            fields["description"] = description.into();
        }
        if let Some(model) = group.models.first() {
            fields["model"] = model_json(model);
        }
        if !inputs.is_empty() {
            fields["inputs"] = inputs.iter().map(|input| input_json(input, cases)).collect();
        }
        let text = prompt_file(&fields, &body);
        let source = SourceFile::new(format!("{name}.prompty"), text.clone());
        let findings = check_file(&source, &mut NoReferences, &Options::default()).findings;
        let is_broken =
            |finding: &Finding| finding.severity == Severity::Error || UNKNOWN_NAMES.contains(&finding.rule.name);
        if let Some(error) = findings.iter().find(|finding| is_broken(finding)) {
            refuse(self, format!("Tympan does not accept its template: {}", error.message));
            return None;
        }
        Some(CheckedPrompt { text, inputs })
    }

    /// Reports what a template reads that only promptfoo has. Returns why its cases cannot run.
    fn template_problem(&mut self, prompt: &PromptText) -> Option<String> {
        let reads = |test: &dyn Fn(&str) -> bool| prompt.messages.iter().any(|(_, text)| test(text));
        let (item, reason, help) = if reads(&reads_environment) {
            (
                "`env` in a prompt",
                "a template in Tympan cannot read the environment",
                "give the value of the variable as an input",
            )
        } else if reads(&|text| OWN_VARIABLES.iter().any(|name| text.contains(name))) {
            (
                "`_conversation` in a prompt",
                "promptfoo fills it in with earlier tests",
                "declare an input of the kind `thread`, and give the conversation in the test file",
            )
        } else {
            return None;
        };
        self.findings.not_carried(&prompt.place, Remark::new(item, reason, help));
        Some(format!("the prompt uses {}", item.trim_end_matches(" in a prompt")))
    }

    /// Reports messages for the provider `echo`, which answers with all of them in promptfoo. Returns why the cases cannot
    /// run.
    fn echo_problem(&mut self, prompt: &PromptText, group: &ModelGroup<'_>) -> Option<String> {
        let is_echo = group.models.first().is_some_and(|model| model.settings.is_echo);
        if !is_echo || !prompt.is_chat {
            return None;
        }
        let reason =
            "promptfoo's `echo` answers with the messages as JSON, and Tympan's with the last message of the user";
        let help = "state a fixed answer, as in `answer: {text: …}`";
        self.findings.not_carried(&prompt.place, Remark::new("messages for `echo`", reason, help));
        Some("`echo` answers with something else".to_owned())
    }

    /// Reports a model of a case whose options are not those of the prompt file. Returns why the case cannot run.
    fn model_problem(&mut self, case: &Case, group: &ModelGroup<'_>) -> Option<String> {
        let own = case.model.as_ref()?;
        let shared = group.models.first().map(|model| model.settings.clone()).unwrap_or_default();
        if own.settings == shared {
            return None;
        }
        let reason = "its options differ from those of the other models, and a prompt file has one set of options";
        let help = "write a second prompt file with these options, and a test file for it";
        self.findings.not_carried(&case.place, Remark::new("`provider` of a test", reason, help));
        Some("the options of its provider were not imported".to_owned())
    }

    /// Reports values that JavaScript writes in another way. Returns why the case cannot run.
    fn value_problem(&mut self, prompt: &PromptText, case: &Case) -> Option<String> {
        let is_structured =
            |node: &Node| node.is_list() || node.is_map() || node.script_text().is_none() && !node.is_null();
        let structured: Vec<_> = case.variables.iter().filter(|(_, node)| is_structured(node)).collect();
        if structured.is_empty() {
            return None;
        }
        let used = prompt.messages.iter().flat_map(|(_, text)| written(text));
        let (name, node) = used.filter_map(|name| structured.iter().find(|(known, _)| known == name)).next()?;
        let item = format!("variable `{}`", shown(name));
        let reason = "the prompt writes it as it is, and JavaScript writes lists and maps in another way than Tympan";
        let help = "use a filter, such as `{{ items | join(\", \") }}`, or write the value as text";
        self.findings.not_carried(&node.place, Remark::new(item.clone(), reason, help));
        Some(format!("{item} is written as it is"))
    }
}

/// Returns the text of a prompt file.
pub(super) fn prompt_file(fields: &Json, body: &str) -> String {
    let mut text = "---\n".to_owned();
    for (key, value) in fields.as_object().into_iter().flatten() {
        yaml::push_entry(&mut text, 0, key, value);
    }
    text.push_str("---\n");
    text.push_str(body);
    text
}

/// Returns what a prompt file says about a model.
pub(super) fn model_json(model: &Model) -> Json {
    let mut json = JsonMap::new();
    if !model.model.is_empty() {
        json.insert("id".to_owned(), model.model.clone().into());
    }
    json.insert("provider".to_owned(), model.provider.into());
    if let Some(api_type) = model.settings.api_type {
        json.insert("apiType".to_owned(), api_type.into());
    }
    let mut options = model.settings.options.clone();
    if !model.settings.additional.is_empty() {
        options.insert("additionalProperties".to_owned(), model.settings.additional.clone().into());
    }
    if !options.is_empty() {
        json.insert("options".to_owned(), options.into());
    }
    json.into()
}

/// Returns the names that a prompt reads, or why it does not compile.
fn undeclared(text: &str) -> Result<Vec<String>, String> {
    let source = SourceFile::new("prompt.prompty", text);
    let reason = |error: tympan_core::Error| format!("Tympan does not accept its template: {}", error.message());
    let prompt = Prompt::from_prompty_source(source, &mut NoReferences).map_err(reason)?;
    let mut names = Vec::new();
    for template in prompt.templates() {
        let flow = template.flow().map_err(reason)?;
        let found = template.undeclared_names(&flow).map_err(reason)?;
        names.extend(found.into_iter().map(|(name, _)| name.to_owned()));
    }
    Ok(names)
}

/// Returns the declaration of an input, with the kind of its values.
fn input_json(name: &str, cases: &[&Case]) -> Json {
    let values = |case: &&Case| -> Vec<Value> {
        let own = case.variables.iter().filter(|(known, _)| known == name).map(|(_, node)| node.value.clone());
        let lists = case.lists.iter().filter(|(known, _)| known == name);
        own.chain(lists.flat_map(|(_, values)| values.iter().map(|node| node.value.clone()))).collect()
    };
    let (mut kind, mut is_in_all) = (None, !cases.is_empty());
    for case in cases {
        let values = values(case);
        is_in_all &= values.iter().any(|value| *value != Value::Null);
        for value in values.iter().filter(|value| **value != Value::Null) {
            let own = kind_of(value);
            kind = Some(kind.map_or(own, |known| joined(known, own)));
        }
    }
    let mut json = json!({ "name": name });
    match kind.unwrap_or(if name == "env" { "object" } else { "string" }) {
        "any" => {
            json["kind"] = "union".into();
            json["anyOf"] = ["string", "float", "boolean", "array", "object"]
                .map(|kind| json!({ "kind": kind }))
                .into_iter()
                .collect();
        }
        kind => json["kind"] = kind.into(),
    }
    if is_in_all {
        json["required"] = true.into();
    }
    json
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "float",
        Value::Bool(_) => "boolean",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        Value::Text(_) | Value::Null => "string",
    }
}

/// Returns the kind that values of two kinds have.
fn joined(a: &'static str, b: &'static str) -> &'static str {
    let numbers = ["integer", "float"];
    match (a, b) {
        _ if a == b => a,
        _ if numbers.contains(&a) && numbers.contains(&b) => "float",
        // Any number is text.
        ("string", other) | (other, "string") if numbers.contains(&other) => "string",
        _ => "any",
    }
}

/// Returns a case, unless the models of the group are not for it.
fn case_json(case: &Case, group: &ModelGroup<'_>, inputs: &[String]) -> Option<JsonMap> {
    let mut json = JsonMap::new();
    let is_input = |name: &String| inputs.contains(name);
    let values = case.variables.iter().filter(|(name, node)| is_input(name) && !node.is_null());
    let values: JsonMap = values.map(|(name, node)| (name.clone(), node.json())).collect();
    if !values.is_empty() {
        json.insert("inputs".to_owned(), values.into());
    }
    let lists = case.lists.iter().filter(|(name, _)| is_input(name));
    let lists: JsonMap = lists.map(|(name, nodes)| (name.clone(), nodes.iter().map(Node::json).collect())).collect();
    let mut matrix = JsonMap::new();
    if !lists.is_empty() {
        matrix.insert("inputs".to_owned(), lists.into());
    }
    let selected: Vec<_> = match &case.models {
        Some(filters) => group.models.iter().filter(|model| is_selected(filters, &model.names)).collect(),
        None => group.models.iter().collect(),
    };
    let own = case.model.as_ref().or_else(|| selected.first().copied().copied());
    match (own, selected.as_slice()) {
        (Some(model), _) if case.model.is_some() => set_model(&mut json, model),
        (None, _) if !group.models.is_empty() => return None,
        (Some(model), [_]) if group.models.len() > 1 => set_model(&mut json, model),
        (Some(_), [_, _, ..]) => {
            let names: Json = selected.iter().map(|model| Json::from(model.qualified())).collect();
            matrix.insert("models".to_owned(), names);
        }
        _ => {}
    }
    if !matrix.is_empty() {
        json.insert("matrix".to_owned(), matrix.into());
    }
    if let Some(answer) = &case.answer {
        json.insert("answer".to_owned(), json!({ "text": answer }));
    }
    if let Some(repeat) = case.repeat.filter(|repeat| *repeat > 1) {
        json.insert("repeat".to_owned(), repeat.into());
    }
    json.insert("expect".to_owned(), case.expect.clone().into());
    Some(json)
}

fn set_model(json: &mut JsonMap, model: &Model) {
    json.insert("provider".to_owned(), model.provider.into());
    if !model.model.is_empty() {
        json.insert("model".to_owned(), model.model.clone().into());
    }
}

/// Returns the text of a test file. What all cases have in common becomes a default.
fn suite_text(mut cases: Vec<JsonMap>, is_echo: bool) -> String {
    let mut defaults = JsonMap::new();
    if is_echo {
        defaults.insert("answer".to_owned(), "echo".into());
    }
    if cases.len() > 1 {
        let common =
            cases[0].get("repeat").cloned().filter(|first| cases.iter().all(|case| case.get("repeat") == Some(first)));
        if let Some(repeat) = common {
            cases.iter_mut().for_each(|case| drop(case.shift_remove("repeat")));
            defaults.insert("repeat".to_owned(), repeat);
        }
        let shared = shared_expectations(&mut cases);
        if !shared.is_empty() {
            defaults.insert("expect".to_owned(), shared.into());
        }
    }
    let mut text = String::new();
    if !defaults.is_empty() {
        yaml::push_entry(&mut text, 0, "defaults", &defaults.into());
    }
    let cases: Vec<_> = cases.into_iter().map(Json::Object).collect();
    yaml::push_entry(&mut text, 0, "cases", &cases.into());
    text
}

/// Takes the first expectations out of all cases, as far as they are the same.
fn shared_expectations(cases: &mut [JsonMap]) -> Vec<Json> {
    fn expect(case: &JsonMap) -> &[Json] {
        case.get("expect").and_then(Json::as_array).map_or(&[], Vec::as_slice)
    }
    let first = expect(&cases[0]);
    let agrees = |case: &JsonMap| expect(case).iter().zip(first).take_while(|(a, b)| a == b).count();
    let count = cases.iter().map(agrees).min().unwrap_or(0);
    let shared = first[..count].to_vec();
    for case in cases {
        if let Some(Json::Array(list)) = case.get_mut("expect") {
            list.drain(..count);
        }
        if expect(case).is_empty() && count > 0 {
            case.shift_remove("expect");
        }
    }
    shared
}

/// Groups models that can share a prompt file. Without models, there is one group.
fn groups<'m>(models: impl Iterator<Item = &'m Model>) -> Vec<ModelGroup<'m>> {
    let mut groups: Vec<ModelGroup<'m>> = Vec::new();
    for model in models {
        match groups.iter_mut().find(|group| group.models[0].settings == model.settings) {
            Some(group) if group.models.iter().any(|known| known.qualified() == model.qualified()) => {}
            Some(group) => group.models.push(model),
            None => groups.push(ModelGroup { models: vec![model] }),
        }
    }
    if groups.is_empty() {
        groups.push(ModelGroup { models: Vec::new() });
    }
    groups
}

fn is_selected(filters: &[String], names: &[String]) -> bool {
    filters.iter().any(|filter| selects(filter, names))
}

/// Returns a name that is not used yet, and remembers it.
fn unique(wanted: &str, names: &mut HashSet<String>) -> String {
    let mut number = 1_usize;
    loop {
        let name = if number == 1 { wanted.to_owned() } else { format!("{wanted} {number}") };
        let name = if wanted.contains(' ') { name } else { name.replace(' ', "-") };
        if names.insert(name.clone()) {
            return name;
        }
        number += 1;
    }
}
