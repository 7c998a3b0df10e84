//! Deserializes a document tree into types, without an intermediate JSON value.

use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};

use super::yaml::{Node, Value};

/// A value in a document, which can be deserialized into any type.
pub(super) struct Document<'s>(pub(super) Node<'s>);

impl<'de> IntoDeserializer<'de> for Document<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Document<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), ..) => visitor.visit_u64(value),
                (_, Some(value), _) => visitor.visit_i64(value),
                (.., value) => visitor.visit_f64(value.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text.into_owned()),
            Value::List(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(Document))),
            Value::Map(entries) => visitor
                .visit_map(MapDeserializer::new(entries.into_iter().map(|entry| (entry.key, Document(entry.value))))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0.value {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            // `{name: value}` is the variant `name` with a value.
            Value::Map(entries) => {
                let entries = entries.into_iter().map(|entry| (entry.key, Document(entry.value)));
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries)))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
