//! Which schemas each provider can enforce.

use serde_json::Value as Json;

/// The keywords that every provider can enforce, or that do not restrict values.
pub(super) const COMMON: [&str; 13] = [
    "type",
    "title",
    "description",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
];

/// The keywords that OpenAI can enforce in addition.
const OPENAI: [&str; 9] = [
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

/// The keywords that Anthropic can enforce in addition.
const ANTHROPIC: [&str; 3] = ["pattern", "format", "default"];

/// The formats that OpenAI can enforce.
const OPENAI_FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// A provider's rules for schemas that it enforces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dialect {
    /// OpenAI's, which compatible providers share.
    OpenAi,
    /// Azure's, which documents fewer keywords than OpenAI.
    Azure,
    /// Anthropic's.
    Anthropic,
}

impl Dialect {
    /// Returns the rules of a provider, by its name or alias.
    pub(crate) fn of(provider: Option<&str>) -> Self {
        match provider {
            Some("anthropic" | "claude") => Self::Anthropic,
            Some("azure" | "azure_openai" | "azure-openai" | "foundry" | "azure_ai" | "azure-ai") => Self::Azure,
            _ => Self::OpenAi,
        }
    }

    /// Returns whether the provider knows a keyword.
    pub(super) fn knows(self, key: &str) -> bool {
        let further: &[&str] = match self {
            Self::OpenAi => &OPENAI,
            Self::Azure => &[],
            Self::Anthropic => &ANTHROPIC,
        };
        COMMON.contains(&key) || further.contains(&key)
    }

    /// Returns whether the provider knows a format.
    pub(super) fn knows_format(self, format: &Json) -> bool {
        let Some(name) = format.as_str() else { return false };
        self.knows("format") && (OPENAI_FORMATS.contains(&name) || self == Self::Anthropic && name == "uri")
    }

    /// Returns whether the provider accepts a value of `enum` or `const`.
    pub(super) fn knows_literal(self, value: &Json) -> bool {
        match value {
            Json::Array(_) | Json::Object(_) => false,
            Json::String(text) => self == Self::Anthropic || !text.contains(['\n', '\r']),
            _ => true,
        }
    }
}

/// Returns whether a pattern uses only what a grammar can express: no look-around, no references to groups and no word
/// boundaries.
pub(super) fn is_regular(pattern: &str) -> bool {
    let mut rest = pattern;
    let mut is_class = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\\' => {
                let escaped = rest[1..].chars().next();
                if !is_class && escaped.is_some_and(|next| matches!(next, 'b' | 'B' | 'k' | '1'..='9')) {
                    return false;
                }
                1 + escaped.map_or(0, char::len_utf8)
            }
            '(' if !is_class && ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| rest.starts_with(start)) => {
                return false;
            }
            _ => first.len_utf8(),
        };
        is_class = if is_class { first != ']' } else { first == '[' };
        rest = &rest[length..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_regular;

    #[test]
    fn patterns_are_regular_without_look_around_references_and_word_boundaries() {
        for pattern in ["^[0-9]{5}$", r"\\b", r"[\b\]]", "[(?=]", "(?:a|é)+", r"\d\0", "\\", "(?<year>a)"] {
            assert!(is_regular(pattern), "{pattern}");
        }
        for pattern in
            ["a(?=b)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", r"\bword", r"a\B", r"[\]]\b", r"(?<a>x)\k<a>"]
        {
            assert!(!is_regular(pattern), "{pattern}");
        }
    }
}
