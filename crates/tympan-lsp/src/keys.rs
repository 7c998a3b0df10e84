//! The keys of prompt files: what they mean, and the values that they can have.

use tympan_core::spec::role::Role;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::wire::compatible::PROVIDERS;

/// A key of a prompt file.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) values: Values,
}

/// The values that a key can have, if they can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Any,
    Boolean,
    Kind,
    Type,
    Provider,
    ApiType,
    Model,
    Input,
    Role,
    Words(&'static [&'static str]),
}

/// The segment of a path that stands for an item of a list.
pub(crate) const ITEM: &str = "[]";

const fn key(name: &'static str, values: Values, about: &'static str) -> Key {
    Key { name, about, values }
}

/// Returns the keys that a map can have at this path.
pub(crate) fn keys(path: &[&str], is_definition: bool) -> &'static [Key] {
    if is_definition {
        return match path {
            [] => DEFINITION,
            ["variables", _] => VARIABLE,
            ["variants", _] => VARIANT,
            _ => &[],
        };
    }
    match path {
        [] => TOP,
        ["model"] => MODEL,
        ["model", "options"] => OPTIONS,
        ["model", "connection"] | ["tools", _, "connection"] => CONNECTION,
        ["template"] => TEMPLATE,
        ["template", "format" | "parser"] => TEMPLATE_PART,
        ["tools", _] => TOOL,
        ["tools", _, "bindings", _] => BINDING,
        ["inputs" | "outputs", rest @ ..] | ["tools", _, "parameters", rest @ ..] if is_property(rest) => PROPERTY,
        _ => &[],
    }
}

/// Returns the key at the end of a path.
pub(crate) fn find(path: &[&str], is_definition: bool) -> Option<&'static Key> {
    let (name, parent) = path.split_last()?;
    keys(parent, is_definition).iter().find(|key| key.name == *name)
}

/// Returns whether a path below a section of properties leads to a property.
fn is_property(path: &[&str]) -> bool {
    match path {
        [_] => true,
        [_, "items", rest @ ..] => rest.is_empty() || is_property(&[&["items"], rest].concat()),
        [_, "properties", rest @ ..] => is_property(rest),
        _ => false,
    }
}

/// Returns the listed values, with a description each if there is one.
pub(crate) fn values(values: Values) -> Vec<String> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match values {
        Values::Any | Values::Model | Values::Input => Vec::new(),
        Values::Boolean => owned(&["true", "false"]),
        Values::Kind => PropertyKind::ALL.iter().map(|kind| kind.as_str().to_owned()).collect(),
        Values::Type => owned(&["string", "integer", "number", "boolean", "array", "object"]),
        Values::Provider => {
            let names = PROVIDERS.iter().map(|provider| provider.name).chain(["echo"]);
            names.map(str::to_owned).collect()
        }
        Values::ApiType => {
            let mut names: Vec<_> = PROVIDERS.iter().flat_map(|provider| provider.protocols).collect::<Vec<_>>();
            names.dedup();
            let mut names: Vec<_> = names.into_iter().map(|protocol| protocol.api_type().to_owned()).collect();
            names.sort();
            names.dedup();
            names
        }
        Values::Role => {
            [Role::System, Role::User, Role::Assistant].iter().map(|role| role.as_str().to_owned()).collect()
        }
        Values::Words(words) => owned(words),
    }
}

const TOP: &[Key] = &[
    key("name", Values::Any, "The prompt's name."),
    key("displayName", Values::Any, "The name that is shown to people."),
    key("description", Values::Any, "What the prompt does."),
    key("metadata", Values::Any, "A map with arbitrary content, such as `authors`, `tags` and `version`."),
    key("model", Values::Model, "The model: its name, or a map with `id`, `provider`, `connection` and `options`."),
    key("inputs", Values::Any, "The values that the template reads: a list of properties, or a map by name."),
    key("outputs", Values::Any, "The data that the model answers with: a list of properties, or a map by name."),
    key("tools", Values::Any, "The tools that the model may call: a list, or a map by name."),
    key("template", Values::Words(&["jinja2", "mustache"]), "The format of the template: a name, or a map."),
    key(
        "policy",
        Values::Words(&["strict"]),
        "The policy for tools. With `strict`, tools without an effect count as external.",
    ),
    TESTS,
];

const TESTS: Key = key("tests", Values::Any, "The tests of the prompt: a list of cases, or a map as in a test file.");

const MODEL: &[Key] = &[
    key("id", Values::Model, "The provider's name for the model."),
    key("provider", Values::Provider, "The provider."),
    key("apiType", Values::ApiType, "The API of the provider. The default is the provider's first one."),
    key("connection", Values::Any, "The address of the provider, and the credentials."),
    key("options", Values::Any, "Options of the model, such as `temperature`."),
];

const OPTIONS: &[Key] = &[
    key("temperature", Values::Any, "How random the answer is. 0 is the least."),
    key("maxOutputTokens", Values::Any, "The maximum number of tokens in the answer."),
    key("topP", Values::Any, "Samples from the most likely tokens with this total probability."),
    key("topK", Values::Any, "Samples from this number of most likely tokens."),
    key("frequencyPenalty", Values::Any, "Lowers the probability of tokens by how often they occurred."),
    key("presencePenalty", Values::Any, "Lowers the probability of tokens that occurred."),
    key("seed", Values::Any, "The seed of the random numbers."),
    key("stopSequences", Values::Any, "A list of texts that end the answer."),
    key("allowMultipleToolCalls", Values::Boolean, "Whether the model may call several tools at once."),
    key("cache", Values::Words(&["auto", "off"]), "Whether the provider may cache the beginning of the prompt."),
    key("additionalProperties", Values::Any, "Options that only this provider has, sent as they are."),
];

const CONNECTION: &[Key] = &[
    key(
        "kind",
        Values::Words(&["key", "reference", "remote", "anonymous", "foundry", "oauth"]),
        "How the connection is authenticated.",
    ),
    key("name", Values::Any, "The name of a connection that the application registers."),
    key("endpoint", Values::Any, "The base URL of the provider."),
    key("apiKey", Values::Any, "The key. Write a reference such as `${env:OPENAI_API_KEY}`, never the key itself."),
];

const TEMPLATE: &[Key] = &[
    key("format", Values::Words(&["jinja2", "mustache"]), "The syntax of the template."),
    key("parser", Values::Words(&["prompty", "message"]), "How the rendered text is split into messages."),
    key("strict", Values::Boolean, "Whether text in inputs that looks like a role marker is an error."),
    key(
        "undefined",
        Values::Words(&["strict", "lenient"]),
        "Whether undefined variables are errors or render as nothing.",
    ),
];

const TEMPLATE_PART: &[Key] = &[
    key("kind", Values::Any, "The name of the format or parser."),
    key("options", Values::Any, "Options of the format or parser."),
];

const TOOL: &[Key] = &[
    key("name", Values::Any, "The name by which the model calls the tool."),
    key("kind", Values::Words(&["function", "mcp", "openapi", "prompty"]), "The kind of the tool."),
    key("description", Values::Any, "What the tool does. The model reads it."),
    key("parameters", Values::Any, "The arguments of a function: a list of properties, or a map by name."),
    key("strict", Values::Boolean, "Whether the provider has to follow the schema of the parameters exactly."),
    key("bindings", Values::Any, "Arguments that come from inputs instead of the model."),
    key(
        "effect",
        Values::Words(&["read", "write", "external"]),
        "What the tool does besides returning a result: nothing, changing data, or sending data to others.",
    ),
    key("confidential", Values::Boolean, "Whether results are confidential."),
    key(
        "hide",
        Values::Words(&["auto", "always", "never"]),
        "Whether the model sees a handle instead of an untrusted result.",
    ),
    key("connection", Values::Any, "The address of an MCP server or an API, and the credentials."),
    key("serverName", Values::Any, "The name of an MCP server."),
    key("approvalMode", Values::Any, "Whether calls need an approval."),
    key("allowedTools", Values::Any, "The tools of an MCP server that the model may call."),
    key("specification", Values::Any, "The OpenAPI document."),
    key("path", Values::Any, "The path of another prompt."),
    key("mode", Values::Words(&["single", "agentic"]), "One model call, or a loop with the tools of the other prompt."),
];

const BINDING: &[Key] = &[
    key("name", Values::Any, "The parameter."),
    key("input", Values::Input, "The input whose value the parameter gets."),
    key("value", Values::Any, "The value that the parameter gets."),
];

const PROPERTY: &[Key] = &[
    key("name", Values::Any, "The name."),
    key("kind", Values::Kind, "The kind of value."),
    key("description", Values::Any, "What the value is."),
    key("required", Values::Boolean, "Whether a value is required."),
    key("default", Values::Any, "The value to use if none is provided."),
    key("example", Values::Any, "An example, for readers and tools. It is never used as a value at run time."),
    key("enumValues", Values::Any, "The allowed values."),
    key("items", Values::Any, "The declaration of an array's items."),
    key("properties", Values::Any, "The declarations of an object's properties."),
    key("nullable", Values::Boolean, "Whether null is a valid value."),
    key("trusted", Values::Boolean, "Whether the text counts as written by the author. Other inputs are untrusted."),
    key("strict", Values::Boolean, "Whether text in the value that looks like a role marker is an error."),
    key("confidential", Values::Boolean, "Whether the value of an input is confidential."),
    key("speaker", Values::Words(&["user"]), "Who speaks through an input. The policy for tools trusts the user."),
    key("trusted_only", Values::Boolean, "Whether the value of a tool's parameter must come from a trusted origin."),
    key("destination", Values::Boolean, "Whether a tool's parameter is an address that data goes to."),
    key("anyOf", Values::Any, "A list of declarations, of which one has to match."),
    key("oneOf", Values::Any, "A list of declarations, of which exactly one has to match."),
];

const DEFINITION: &[Key] = &[
    key("name", Values::Any, "The prompt's name."),
    key("role", Values::Role, "The role of the message."),
    key("body", Values::Any, "The template."),
    key("variables", Values::Any, "The values that the template reads, by name."),
    key("variants", Values::Any, "Other templates for the same variables, by name."),
    key("metadata", Values::Any, "A map with arbitrary content."),
    key("output_model", Values::Any, "The application's name for the type that the response should have."),
    TESTS,
];

const VARIABLE: &[Key] = &[
    key("type", Values::Type, "The type of the value, or a list of types."),
    key("trusted", Values::Boolean, "Whether the text counts as written by the author."),
    key("description", Values::Any, "What the value is."),
    key("validation_required", Values::Boolean, "Whether callers have to validate the value before rendering."),
];

const VARIANT: &[Key] =
    &[key("body", Values::Any, "The template."), key("metadata", Values::Any, "A map with arbitrary content.")];
