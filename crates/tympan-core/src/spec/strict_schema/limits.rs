//! How large schemas may be that a provider enforces.

use serde_json::Value as Json;

use super::Dialect;
use crate::spec::json_schema::within;

/// The size of a schema, as providers count it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Size {
    properties: usize,
    /// The number of objects inside each other.
    levels: usize,
    literals: usize,
    /// The characters of all names of properties and definitions, and of all literals.
    characters: usize,
    /// The properties that are not required.
    optional: usize,
    /// The schemas that allow several types or have choices.
    unions: usize,
}

impl Size {
    /// Measures a schema. References are not followed.
    pub(crate) fn of(schema: &Json) -> Self {
        let mut size = Self::default();
        size.add(schema, 0);
        size
    }

    fn add(&mut self, schema: &Json, levels: usize) {
        let levels = levels + usize::from(schema.get("properties").is_some());
        self.levels = self.levels.max(levels);
        let named = ["properties", "$defs", "definitions"];
        let named = named.iter().filter_map(|key| schema.get(key)?.as_object());
        self.characters += named.flat_map(|named| named.keys()).map(|name| name.chars().count()).sum::<usize>();
        let properties = schema.get("properties").and_then(Json::as_object).map_or(0, serde_json::Map::len);
        let required = schema.get("required").and_then(Json::as_array).map_or(0, Vec::len);
        self.properties += properties;
        self.optional += properties.saturating_sub(required);
        let literals = schema.get("enum").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        self.literals += literals.len();
        let literals = literals.iter().chain(schema.get("const")).filter_map(Json::as_str);
        self.characters += literals.map(|literal| literal.chars().count()).sum::<usize>();
        self.unions += usize::from(schema.get("anyOf").is_some() || schema.get("type").is_some_and(Json::is_array));
        for inner in within(schema) {
            self.add(inner, levels);
        }
    }

    /// Returns whether the provider accepts a schema of this size.
    #[cfg_attr(not(feature = "wire"), expect(dead_code, reason = "only requests have a size"))]
    pub(crate) fn fits(self, dialect: Dialect) -> bool {
        self.excess(dialect).next().is_none()
    }

    /// Describes what is more than the provider allows in one schema.
    pub(super) fn excess(self, dialect: Dialect) -> impl Iterator<Item = String> {
        let Limits { properties, levels, literals, characters, optional, unions } = Limits::of(dialect);
        [
            (self.properties, properties, "properties"),
            (self.levels, levels, "levels of nesting"),
            (self.literals, literals, "values of `enum`"),
            (self.characters, characters, "characters of names and values"),
            (self.optional, optional, "optional properties"),
            (self.unions, unions, "choices"),
        ]
        .into_iter()
        .filter(|(size, limit, _)| size > limit)
        .map(|(_, limit, what)| format!("more than {limit} {what}"))
    }
}

/// The limits of a provider.
struct Limits {
    properties: usize,
    levels: usize,
    literals: usize,
    characters: usize,
    optional: usize,
    unions: usize,
}

impl Limits {
    const NONE: Self = Self {
        properties: usize::MAX,
        levels: usize::MAX,
        literals: usize::MAX,
        characters: usize::MAX,
        optional: usize::MAX,
        unions: usize::MAX,
    };

    const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAi => {
                Self { properties: 5_000, levels: 10, literals: 1_000, characters: 120_000, ..Self::NONE }
            }
            Dialect::Azure => Self { properties: 100, levels: 5, literals: 500, characters: 15_000, ..Self::NONE },
            Dialect::Anthropic => Self { optional: 24, unions: 16, ..Self::NONE },
        }
    }
}

/// What the schemas of one request may still use. Anthropic refuses a request whose schemas are together too large.
#[cfg_attr(not(feature = "wire"), allow(dead_code, reason = "only requests have one"))]
pub(crate) struct Budget {
    tools: usize,
    optional: usize,
    unions: usize,
}

#[cfg_attr(not(feature = "wire"), expect(dead_code, reason = "only requests have one"))]
impl Budget {
    /// Creates the budget of a request.
    pub(crate) const fn new(dialect: Dialect) -> Self {
        let Limits { optional, unions, .. } = Limits::of(dialect);
        let tools = if matches!(dialect, Dialect::Anthropic) { 20 } else { usize::MAX };
        Self { tools, optional, unions }
    }

    /// Takes the schema of the response, which comes first because it cannot do without.
    pub(crate) fn take_response(&mut self, size: Size) {
        self.optional = self.optional.saturating_sub(size.optional);
        self.unions = self.unions.saturating_sub(size.unions);
    }

    /// Takes the schema of a tool. Returns `false` if the request would be refused.
    pub(crate) fn take_tool(&mut self, size: Size) -> bool {
        let Self { tools, optional, unions } = self;
        let rest = (tools.checked_sub(1), optional.checked_sub(size.optional), unions.checked_sub(size.unions));
        let (Some(tools), Some(optional), Some(unions)) = rest else { return false };
        *self = Self { tools, optional, unions };
        true
    }
}
