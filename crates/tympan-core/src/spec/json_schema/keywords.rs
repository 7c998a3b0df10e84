//! The keywords of JSON Schema.

/// The keywords whose value is a schema. `items` may also be a list of schemas.
pub(crate) const ONE: [&str; 12] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];

/// The keywords whose value is a list of schemas.
pub(crate) const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// The keywords whose value is a map from names to schemas.
pub(crate) const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// The keywords whose schemas only count where a reference points to them.
pub(super) const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The keywords that combine schemas, so that a schema may declare properties elsewhere.
pub(crate) const COMBINING: [&str; 9] =
    ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "$dynamicRef", "$recursiveRef"];

/// The keywords that restrict values and have no counterpart in a [`Property`]. `type`, `enum`, `properties`, `required`
/// and `items` do.
pub(super) const RESTRICTING: [&str; 44] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "const",
    "format",
    "pattern",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "uniqueItems",
    "prefixItems",
    "additionalItems",
    "contains",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "nullable",
    "discriminator",
    "$defs",
    "definitions",
];

/// The keywords of a [`RESTRICTING`] kind that the check of values does not know.
pub(super) const UNCHECKED: [&str; 10] = [
    "$dynamicRef",
    "$recursiveRef",
    "format",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$anchor",
];

/// The keywords that describe values, and those that [`Property`] can express.
const OTHER_KEYWORDS: [&str; 17] = [
    "$schema",
    "$id",
    "$comment",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "type",
    "enum",
    "properties",
    "required",
    "items",
    "additionalProperties",
];

/// Returns whether a key is a keyword of JSON Schema.
pub(crate) fn is_keyword(word: &str) -> bool {
    RESTRICTING.contains(&word) || UNCHECKED.contains(&word) || OTHER_KEYWORDS.contains(&word)
}

/// Returns whether a tree, as written, contains a keyword that [`Property`] has no counterpart for.
pub(crate) fn is_restricting(key: &str) -> bool {
    RESTRICTING.contains(&key) || key == "additionalProperties"
}
