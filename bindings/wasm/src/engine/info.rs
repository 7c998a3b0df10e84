//! What a file declares.

use serde_json::{Value as Json, json};
use tympan_core::format::Format;
use tympan_core::json::JsonMap;
use tympan_core::spec::schema::Property;
use tympan_core::spec::{PromptKind, Tool, ToolKind};
use tympan_core::wire::Function;
use tympan_core::wire::{EncodeOptions, ModelSelection};

use super::{Prompt, findings, tests_of};

/// Returns what a file declares, and its mistakes if it does not load.
pub(super) fn info(file: &Prompt) -> Json {
    let mut info = match &file.prompt {
        Some(prompt) => declared(file, prompt),
        None => json!({"kind": if matches!(file.format, Format::Tests(_)) { "tests" } else { kind_of(file.format) }}),
    };
    let (cases, prompt_path, broken) = tests_of::cases(file);
    info["ok"] = (file.error.is_none() && !broken).into();
    info["cases"] = cases;
    info["prompt_path"] = prompt_path.into();
    if let Some(error) = &file.error {
        info["error"] = findings::error_to_json(error, &file.source, &file.offsets);
        info["error"]["findings"] = file.check();
    } else if broken {
        info["error"] = json!({"findings": file.check()});
    }
    info
}

fn kind_of(format: Format) -> &'static str {
    match format {
        Format::Definition(_) => "definition",
        Format::Directive => "directive",
        _ => "prompty",
    }
}

fn declared(file: &Prompt, prompt: &tympan_core::Prompt) -> Json {
    let spec = prompt.spec();
    let kind = match prompt.kind() {
        PromptKind::Definition => "definition",
        PromptKind::Directive => "directive",
        _ => kind_of(file.format),
    };
    let selection = ModelSelection::new(prompt, &EncodeOptions::default());
    let property = |property: &Property| property_to_json(property, file);
    let examples = prompt.variables().iter().filter_map(|input| Some((input.name.clone(), example(input)?)));
    json!({
        "kind": kind,
        "name": spec.name,
        "description": spec.description,
        "definition_hash": prompt.definition_hash(),
        "template_hash": prompt.template_hash(),
        "role": prompt.role(),
        "model": {
            "id": selection.model,
            "provider": selection.provider,
            "api_type": selection.api_type,
        },
        "inputs": prompt.variables().iter().map(property).collect::<Json>(),
        "undeclared": undeclared(file, prompt),
        "outputs": spec.outputs.iter().map(property).collect::<Json>(),
        "tools": spec.tools.iter().map(|tool| tool_to_json(tool, file)).collect::<Json>(),
        "variants": prompt.arms().collect::<Vec<_>>(),
        "template_spans": template_spans(file, prompt),
        "sample": examples.collect::<JsonMap>(),
    })
}

/// Returns the example of an input. Those of credentials are left out.
fn example(input: &Property) -> Option<Json> {
    let example = input.example.as_ref()?;
    (input.to_json_redacted()["example"] == *example).then(|| example.clone())
}

fn property_to_json(property: &Property, file: &Prompt) -> Json {
    // Values of inputs that are named like credentials are redacted.
    let shown = property.to_json_redacted();
    let kinds = if property.kinds.is_empty() { std::slice::from_ref(&property.kind) } else { &property.kinds };
    json!({
        "name": property.name,
        "kind": property.kind.as_str(),
        "kinds": kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
        "required": property.required == Some(true),
        "trusted": property.trusted,
        "confidential": property.confidential,
        "strict": property.strict,
        "nullable": property.nullable,
        "default": shown["default"],
        "example": shown["example"],
        "description": property.description,
        "enum": shown["enumValues"],
        "schema": shown,
        "span": property.span.map(|span| file.offsets.span(span)),
    })
}

/// Returns the names that templates read and that the prompt does not declare. A `.prompty` file may use them as inputs.
fn undeclared(file: &Prompt, prompt: &tympan_core::Prompt) -> Json {
    let mut found: Vec<Json> = Vec::new();
    for template in prompt.templates() {
        let Ok(flow) = template.flow() else { continue };
        for (name, span) in template.undeclared_names(&flow).unwrap_or_default() {
            if found.iter().all(|other| other["name"] != *name) {
                found.push(json!({"name": name, "span": file.offsets.span(template.locate(span))}));
            }
        }
    }
    found.into()
}

fn tool_to_json(tool: &Tool, file: &Prompt) -> Json {
    let parameters = match &tool.kind {
        ToolKind::Function { parameters, .. } => {
            Some(Function::of_properties(&*tool.name, tool.description.clone(), parameters).parameters)
        }
        _ => None,
    };
    json!({
        "name": tool.name,
        "kind": tool.kind.as_str(),
        "description": tool.description,
        "effect": tool.flow.effect.map(|effect| effect.as_str()),
        "parameters": parameters,
        "span": tool.span.map(|span| file.offsets.span(span)),
    })
}

/// Returns the position of every template in the file, and of the messages in it.
fn template_spans(file: &Prompt, prompt: &tympan_core::Prompt) -> Json {
    use tympan_core::text::source::Span;
    let templates = prompt.templates().map(|template| {
        let span = |span: Span| file.offsets.span(template.locate(span));
        let messages = template.messages().into_iter().map(|message| {
            json!({
                "role": message.role,
                "marker": message.marker.map(span),
                "span": span(message.content),
            })
        });
        json!({
            "name": template.name(),
            "span": span(Span::new(0, template.source().len())),
            "messages": messages.collect::<Json>(),
        })
    });
    templates.collect()
}
