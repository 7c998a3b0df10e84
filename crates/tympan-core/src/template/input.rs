//! Input values: JSON, or data of another language that is borrowed where it is.
//!
//! Copying a caller's data into JSON takes longer than rendering it. The engine therefore reads both through one view,
//! and the rest of the engine does not depend on how a value is stored.

use std::borrow::Cow;

use serde_json::{Number, Value as Json};

use crate::json::JsonMap;

/// Up to this many entries, a JSON map is searched linearly: objects in prompts are small, and comparing a few keys is
/// faster than hashing one.
const MAX_SEARCHED: usize = 16;
/// The maximum number of entries of a map that can only be searched linearly.
const MAX_ENTRIES: usize = 64;

/// A borrowed value with the data model of JSON.
///
/// ```
/// use tympan::template::input::{InputData, InputMap};
///
/// let source = "{name: a, role: user, body: 'Hello, {{ name }}!', variables: {name: {type: string, trusted: false}}}";
/// let prompt = tympan::Prompt::from_yaml(source)?;
/// let name = String::from("Ada");
/// let entries = [("name", InputData::Str(&name))];
/// let inputs = InputData::map(&entries).expect("few entries");
/// let inputs = InputMap::of(&inputs).expect("a map");
/// assert_eq!(prompt.render_borrowed(inputs, &Default::default())?.text(), "Hello, Ada!");
/// # Ok::<(), tympan::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum InputData<'a> {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is too large for [`InputData::Int`].
    Uint(u64),
    /// A floating-point number. JSON cannot represent infinities and NaN.
    Float(f64),
    /// A string.
    Str(&'a str),
    /// A list.
    List(&'a [InputData<'a>]),
    /// A map, created by [`InputData::map`].
    Map(Entries<'a>),
}

/// The entries of a map, few enough for a linear search.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a>(&'a [(&'a str, InputData<'a>)]);

impl<'a> InputData<'a> {
    /// Creates a map from entries with distinct names. Returns `None` if there are more than 64 entries, because
    /// lookups are linear. Use a JSON map for more.
    #[inline]
    pub fn map(entries: &'a [(&'a str, Self)]) -> Option<Self> {
        (entries.len() <= MAX_ENTRIES).then_some(Self::Map(Entries(entries)))
    }

    /// Converts the value to JSON.
    pub fn to_json(&self) -> Json {
        InputRef::Borrowed(self).to_json()
    }
}

/// A borrowed map: the inputs of a prompt, or a map inside them.
#[derive(Debug, Clone, Copy)]
pub enum InputMap<'a> {
    /// A JSON map.
    Json(&'a JsonMap),
    /// The entries of a [`InputData::Map`].
    Borrowed(&'a Entries<'a>),
}

impl<'a> From<&'a JsonMap> for InputMap<'a> {
    fn from(map: &'a JsonMap) -> Self {
        Self::Json(map)
    }
}

impl<'a> InputMap<'a> {
    /// Returns the value as a map, or `None` if it is not a map.
    pub fn of(value: &'a InputData<'a>) -> Option<Self> {
        match value {
            InputData::Map(entries) => Some(Self::Borrowed(entries)),
            _ => None,
        }
    }

    /// Returns the map as JSON. It is copied unless it is JSON already.
    pub fn to_json(self) -> Cow<'a, JsonMap> {
        match self {
            Self::Json(map) => Cow::Borrowed(map),
            Self::Borrowed(_) => {
                Cow::Owned(self.iter().map(|(name, value)| (name.to_owned(), value.to_json())).collect())
            }
        }
    }

    /// Looks up a key. This runs for every name in a template, so the common case is inlined.
    #[inline]
    pub(crate) fn get(self, key: &str) -> Option<InputRef<'a>> {
        match self {
            Self::Json(map) if map.len() <= MAX_SEARCHED => {
                map.iter().find(|(name, _)| is_same(name, key)).map(|(_, value)| InputRef::Json(value))
            }
            other => other.get_elsewhere(key),
        }
    }

    #[inline(never)]
    fn get_elsewhere(self, key: &str) -> Option<InputRef<'a>> {
        match self {
            Self::Json(map) => map.get(key).map(InputRef::Json),
            Self::Borrowed(entries) => {
                entries.0.iter().find(|(name, _)| is_same(name, key)).map(|(_, value)| InputRef::Borrowed(value))
            }
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a str, InputRef<'a>)> {
        let (json, given) = match self {
            Self::Json(map) => (Some(map), None),
            Self::Borrowed(entries) => (None, Some(entries.0)),
        };
        let json = json.into_iter().flatten().map(|(name, value)| (name.as_str(), InputRef::Json(value)));
        json.chain(given.into_iter().flatten().map(|(name, value)| (*name, InputRef::Borrowed(value))))
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::Json(map) => map.len(),
            Self::Borrowed(entries) => entries.0.len(),
        }
    }

    /// Returns whether both are the same map in memory.
    pub(crate) fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Json(a), Self::Json(b)) => std::ptr::eq(a, b),
            (Self::Borrowed(a), Self::Borrowed(b)) => std::ptr::eq(a.0, b.0),
            _ => false,
        }
    }
}

/// Compares two names. Names of the same length rarely start with the same byte, and checking that is cheaper than a
/// call to compare them.
#[inline(always)]
fn is_same(name: &str, key: &str) -> bool {
    let (name, key) = (name.as_bytes(), key.as_bytes());
    name.len() == key.len() && name.first() == key.first() && name == key
}

/// A borrowed list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InputList<'a> {
    Json(&'a Vec<Json>),
    /// A double reference, so that both variants have the same size and fit into registers.
    Borrowed(&'a &'a [InputData<'a>]),
}

impl<'a> InputList<'a> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Borrowed(items) => items.len(),
        }
    }

    #[inline]
    pub(crate) fn get(self, index: usize) -> Option<InputRef<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(InputRef::Json),
            Self::Borrowed(items) => items.get(index).map(InputRef::Borrowed),
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = InputRef<'a>> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }

    /// Returns whether both are the same list in memory.
    pub(crate) fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Json(a), Self::Json(b)) => std::ptr::eq(a, b),
            (Self::Borrowed(a), Self::Borrowed(b)) => std::ptr::eq(*a, *b),
            _ => false,
        }
    }
}

/// A reference to an input value. It is passed around a lot and fits into registers, which a [`View`] does not.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InputRef<'a> {
    Json(&'a Json),
    Borrowed(&'a InputData<'a>),
}

/// A view of an input value that does not depend on how the value is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum View<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(&'a str),
    List(InputList<'a>),
    Map(InputMap<'a>),
}

impl<'a> From<&'a Json> for InputRef<'a> {
    fn from(json: &'a Json) -> Self {
        Self::Json(json)
    }
}

impl<'a> InputRef<'a> {
    #[inline(always)]
    pub(crate) fn view(self) -> View<'a> {
        match self {
            Self::Json(Json::String(text)) => View::Str(text),
            Self::Json(Json::Null) => View::Null,
            Self::Json(Json::Bool(value)) => View::Bool(*value),
            Self::Json(Json::Array(items)) => View::List(InputList::Json(items)),
            Self::Json(Json::Object(map)) => View::Map(InputMap::Json(map)),
            Self::Json(Json::Number(number)) => View::number(number),
            Self::Borrowed(InputData::Str(text)) => View::Str(text),
            Self::Borrowed(InputData::Null) => View::Null,
            Self::Borrowed(InputData::Bool(value)) => View::Bool(*value),
            Self::Borrowed(InputData::Int(number)) => View::Int(*number),
            Self::Borrowed(InputData::Uint(number)) => View::Uint(*number),
            Self::Borrowed(InputData::Float(number)) => View::Float(*number),
            Self::Borrowed(InputData::List(items)) => View::List(InputList::Borrowed(items)),
            Self::Borrowed(InputData::Map(entries)) => View::Map(InputMap::Borrowed(entries)),
        }
    }

    pub(crate) fn as_str(self) -> Option<&'a str> {
        match self.view() {
            View::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(self) -> bool {
        matches!(self.view(), View::Null)
    }

    pub(crate) fn to_json(self) -> Json {
        match self.view() {
            View::Null => Json::Null,
            View::Bool(value) => Json::Bool(value),
            View::Int(number) => number.into(),
            View::Uint(number) => number.into(),
            View::Float(number) => number.into(),
            View::Str(text) => Json::String(text.to_owned()),
            View::List(list) => Json::Array(list.iter().map(InputRef::to_json).collect()),
            View::Map(map) => Json::Object(map.to_json().into_owned()),
        }
    }

    /// Returns the name of the value's type, for error messages.
    pub(crate) fn type_name(self) -> &'static str {
        match self.view() {
            View::Null => "null",
            View::Bool(_) => "a boolean",
            View::Int(_) | View::Uint(_) | View::Float(_) => "a number",
            View::Str(_) => "a string",
            View::List(_) => "a list",
            View::Map(_) => "a map",
        }
    }
}

impl View<'_> {
    fn number(number: &Number) -> Self {
        match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Self::Int(number),
            (None, Some(number)) => Self::Uint(number),
            (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}
