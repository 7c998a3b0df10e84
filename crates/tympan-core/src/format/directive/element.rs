//! Metadata as a tree of elements, independent of its syntax.

use serde_json::Value as Json;

use super::super::yaml::{Node, Value};
use crate::json::JsonMap;
use crate::text::source::Span;

/// An XML element, or a YAML value with its key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Element {
    /// The tag name or the key; empty for an item of a list.
    pub(super) name: String,
    /// The position of the start tag or the key.
    pub(super) span: Span,
    pub(super) attributes: Vec<Attribute>,
    /// The text, without surrounding whitespace.
    pub(super) text: String,
    /// The position of the text, or of the element if it has no text.
    pub(super) text_span: Span,
    pub(super) children: Vec<Element>,
    /// The type of the YAML value; `None` for XML.
    pub(super) yaml: Option<Yaml>,
}

/// The type of a YAML value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Yaml {
    Scalar(Json),
    /// The children are the items.
    List,
    /// The children are the values, each with its key as its name.
    Map,
}

/// An attribute, and the position of its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) span: Span,
}

/// A text and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Text<'e> {
    pub(super) text: &'e str,
    pub(super) span: Span,
}

impl Element {
    /// Returns the first child with this name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the attribute with this name, or else the text of the child with this name: XML metadata uses
    /// attributes, and YAML metadata uses keys.
    pub(super) fn field(&self, name: &str) -> Option<Text<'_>> {
        if let Some(attribute) = self.attributes.iter().find(|attribute| attribute.name == name) {
            return Some(Text { text: &attribute.value, span: attribute.span });
        }
        self.child(name).filter(|child| child.children.is_empty()).map(Self::as_text)
    }

    /// Returns the field with this name, unless it is blank.
    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        self.field(name).map(|field| field.text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(super) fn as_text(&self) -> Text<'_> {
        Text { text: &self.text, span: self.text_span }
    }

    /// Returns whether the element comes from YAML.
    pub(super) fn is_yaml(&self) -> bool {
        self.yaml.is_some()
    }

    /// Converts the element to JSON without losing anything: attributes and children by name, several children with the
    /// same name as a list, and text next to other content as `text`.
    pub(super) fn to_json(&self) -> Json {
        match &self.yaml {
            Some(Yaml::Scalar(json)) => return json.clone(),
            Some(Yaml::List) => return self.children.iter().map(Self::to_json).collect(),
            Some(Yaml::Map) => {
                return self.children.iter().map(|child| (child.name.clone(), child.to_json())).collect();
            }
            None => {}
        }
        if self.attributes.is_empty() && self.children.is_empty() {
            return self.text.clone().into();
        }
        let mut map = JsonMap::new();
        for attribute in &self.attributes {
            map.insert(attribute.name.clone(), attribute.value.clone().into());
        }
        for child in &self.children {
            let value = child.to_json();
            match map.get_mut(&child.name) {
                None => {
                    map.insert(child.name.clone(), value);
                }
                Some(Json::Array(items)) => items.push(value),
                Some(first) => *first = Json::Array(vec![first.take(), value]),
            }
        }
        if !self.text.is_empty() {
            map.insert("text".into(), self.text.clone().into());
        }
        Json::Object(map)
    }

    /// Converts the root of YAML metadata.
    pub(super) fn from_yaml(node: Node<'_>) -> Self {
        Self::of_value(String::new(), node.span, node)
    }

    fn of_value(name: String, span: Span, node: Node<'_>) -> Self {
        let text_span = node.span;
        let yaml = Some(match &node.value {
            Value::List(_) => Yaml::List,
            Value::Map(_) => Yaml::Map,
            _ => Yaml::Scalar(node.clone().into_json()),
        });
        let (text, children) = match node.value {
            Value::Null => (String::new(), Vec::new()),
            Value::Bool(value) => (value.to_string(), Vec::new()),
            Value::Number(value) => (value.to_string(), Vec::new()),
            Value::String(value) => (value.trim().to_owned(), Vec::new()),
            Value::List(items) => {
                let items = items.into_iter().map(|item| Self::of_value(String::new(), item.span, item));
                (String::new(), items.collect())
            }
            Value::Map(entries) => {
                let child = |entry: super::super::yaml::Entry<'_>| {
                    Self::of_value(entry.key.into(), entry.key_span, entry.value)
                };
                (String::new(), entries.into_iter().map(child).collect())
            }
        };
        Self { name, span, attributes: Vec::new(), text, text_span, children, yaml }
    }
}
