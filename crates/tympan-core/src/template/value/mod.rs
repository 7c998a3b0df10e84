//! Values during a render, and the inputs that they come from.

pub(crate) mod dict;
pub(crate) mod limits;
pub(crate) mod ops;
pub(crate) mod print;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::template::input::{InputList, InputMap, InputRef, View};
use crate::template::tree::{Authored, Const, Function, MacroDef};
use crate::template::value::dict::Dict;
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

/// A value and its origin. The lifetime `'a` is that of the caller's inputs and of the template. Both are borrowed and
/// never copied.
///
/// The origin of a container applies to all of its elements. In a container that the template created, each element
/// also has its own origin.
///
/// Only values that are written in the template have the author's origin: see [`Value::written`]. Everything else is
/// computed from other values, and its constructor takes their origin.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) repr: Repr<'a>,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug)]
pub(crate) enum Repr<'a> {
    /// A slot in which nothing has been stored.
    Unset,
    Undefined,
    /// The result of `x if y` without an `else`: undefined, but printing it is never an error.
    Silent,
    /// An optional input without a value, or a part of one: undefined, but usable as an empty value.
    Absent,
    None,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit 64 bits.
    Big(Rc<i128>),
    Float(f64),
    Str(&'a str),
    Text(Rc<Text>),
    InputList(InputList<'a>),
    InputMap(InputMap<'a>),
    List(Rc<List<'a>>),
    Dict(Rc<Dict<'a>>),
    /// A namespace, by its index. With references, namespaces could form cycles that are never freed.
    Namespace(usize),
    Loop(Rc<LoopState<'a>>),
    Macro(Rc<MacroValue<'a>>),
    Function(Function),
    /// A thread, image, file or audio input, by its index.
    Rich(usize),
}

/// Text that the template created.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub(crate) traced: TracedText,
    /// Whether the text is already escaped (`|safe`, `|escape`).
    pub(crate) safe: bool,
}

#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) items: Vec<Value<'a>>,
    pub(crate) kind: ListKind,
    pub(crate) depth: u16,
    /// The inputs that decided how many elements there are.
    pub(crate) shape: Origin,
    /// The union of all origins in the list, and the shape. It is stored instead of computed on demand, because a list
    /// may contain the same list many times, at every level.
    pub(crate) inner: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    List,
    Tuple,
    /// The counterpart of a generator in Python: the result of `range`, a slice, `items`, …
    Iterable,
    /// A pair of `grouper` and `list`.
    Group,
}

/// The state of a loop, the value of `loop`.
#[derive(Debug)]
pub(crate) struct LoopState<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) index: Cell<usize>,
    pub(crate) depth: usize,
    /// The last arguments of `loop.changed`. They are cleared when the loop ends, so that they cannot form a reference
    /// cycle.
    pub(crate) last_changed: RefCell<Option<Vec<Value<'a>>>>,
    pub(crate) ended: Cell<bool>,
    /// The loop that `loop(…)` runs again.
    pub(crate) recursion: Option<&'a crate::template::tree::For>,
    /// The frame that the loop runs in. The loop can only be called from there.
    pub(crate) frame_id: usize,
}

#[derive(Debug)]
pub(crate) struct MacroValue<'a> {
    pub(crate) def: &'a MacroDef,
    /// The values of the enclosing macro's slots, in the order of the definition's captures.
    pub(crate) captured: Vec<Value<'a>>,
    /// The slot of the enclosing frame that the macro itself is stored in.
    pub(crate) own_slot: Option<usize>,
    /// How deeply containers are nested in the captured values.
    pub(crate) depth: u16,
}

/// The elements of something that can be iterated over, borrowed or shared where possible.
#[derive(Clone, Debug)]
pub(crate) enum Items<'a> {
    Input(InputList<'a>, Origin),
    List(Rc<List<'a>>, Origin),
}

impl<'a> Items<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Input(items, _) => items.len(),
            Self::List(list, _) => list.items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Input(items, origin) => items.get(index).map(|item| Value::from_input(item, *origin)),
            Self::List(list, origin) => list.items.get(index).map(|item| item.clone().also(*origin)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the inputs that decided how many items there are.
    pub(crate) fn shape(&self) -> Origin {
        match self {
            Self::Input(_, origin) => *origin,
            Self::List(list, origin) => list.shape | *origin,
        }
    }

    /// Returns all inputs that contributed to the items or to their number.
    pub(crate) fn whole_origin(&self) -> Origin {
        match self {
            Self::Input(_, origin) => *origin,
            Self::List(list, origin) => list.inner | *origin,
        }
    }
}

/// The kinds of values, in the order in which values of different kinds are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueKind {
    Undefined,
    None,
    Bool,
    Number,
    String,
    Sequence,
    Map,
    Iterable,
    Object,
}

impl ValueKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::None => "none",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Sequence => "a list",
            Self::Map => "a map",
            Self::Iterable => "an iterator",
            Self::Object => "an object",
        }
    }
}

impl<'a> Value<'a> {
    /// The content of a slot before anything is stored in it.
    pub(crate) const UNSET: Self = Self { repr: Repr::Unset, origin: Origin::AUTHOR };

    /// Creates a value that these inputs contributed to.
    pub(crate) fn new(repr: Repr<'a>, origin: Origin) -> Self {
        Self { repr, origin }
    }

    /// Creates a value that is written in the template.
    pub(crate) fn written(repr: Repr<'a>, author: Authored) -> Self {
        Self { repr, origin: author.origin() }
    }

    /// Creates the result of a failed lookup. `origin` contributed to what was searched.
    pub(crate) fn undefined(origin: Origin) -> Self {
        Self { repr: Repr::Undefined, origin }
    }

    /// Creates the value of an optional input that has none. `origin` contributed to what was searched.
    pub(crate) fn absent(origin: Origin) -> Self {
        Self { repr: Repr::Absent, origin }
    }

    /// Adds inputs to the origin of the value.
    #[inline]
    pub(crate) fn also(mut self, origin: Origin) -> Self {
        self.origin |= origin;
        self
    }

    pub(crate) fn bool(value: bool, origin: Origin) -> Self {
        Self::new(Repr::Bool(value), origin)
    }

    pub(crate) fn int(value: i128, origin: Origin) -> Self {
        let repr = i64::try_from(value).map_or_else(|_| Repr::Big(Rc::new(value)), Repr::Int);
        Self::new(repr, origin)
    }

    pub(crate) fn float(value: f64, origin: Origin) -> Self {
        Self::new(Repr::Float(value), origin)
    }

    /// Creates text with a single origin.
    pub(crate) fn string(text: impl Into<String>, origin: Origin) -> Self {
        Self::text(TracedText::whole(text, origin)).also(origin)
    }

    /// Creates text whose pieces have their own origins.
    pub(crate) fn text(traced: TracedText) -> Self {
        Self { repr: Repr::Text(Rc::new(Text { traced, safe: false })), origin: Origin::AUTHOR }
    }

    /// Creates text that is already escaped and whose pieces have their own origins.
    pub(crate) fn safe_text(traced: TracedText) -> Self {
        Self { repr: Repr::Text(Rc::new(Text { traced, safe: true })), origin: Origin::AUTHOR }
    }

    /// Creates text that was made from another text. It is safe if that text is.
    pub(crate) fn text_like(source: &Self, traced: TracedText) -> Self {
        if source.is_safe() { Self::safe_text(traced) } else { Self::text(traced) }
    }

    /// Creates text with a single origin that was made from another text. It is safe if that text is.
    pub(crate) fn string_like(source: &Self, text: impl Into<String>, origin: Origin) -> Self {
        Self::text_like(source, TracedText::whole(text, origin)).also(origin)
    }

    /// Creates a list whose elements have their own origins. `shape` decided how many there are.
    pub(crate) fn list(items: Vec<Self>, kind: ListKind, shape: Origin) -> Self {
        let depth = 1 + items.iter().map(Self::depth).max().unwrap_or(0);
        let inner = shape | items.iter().map(Self::whole_origin).collect();
        Self { repr: Repr::List(Rc::new(List { items, kind, depth, shape, inner })), origin: Origin::AUTHOR }
    }

    /// Creates a map whose entries have their own origins.
    pub(crate) fn dict(dict: Dict<'a>) -> Self {
        Self { repr: Repr::Dict(Rc::new(dict)), origin: Origin::AUTHOR }
    }

    /// Creates a namespace value from its index.
    pub(crate) fn namespace(index: usize) -> Self {
        Self { repr: Repr::Namespace(index), origin: Origin::AUTHOR }
    }

    /// Creates the value of `loop` in the body of a loop.
    pub(crate) fn loop_state(state: Rc<LoopState<'a>>) -> Self {
        Self { repr: Repr::Loop(state), origin: Origin::AUTHOR }
    }

    #[inline]
    pub(crate) fn from_input(input: InputRef<'a>, origin: Origin) -> Self {
        let repr = match input.view() {
            View::Str(text) => Repr::Str(text),
            View::Null => Repr::None,
            View::Bool(value) => Repr::Bool(value),
            View::List(items) => Repr::InputList(items),
            View::Map(map) => Repr::InputMap(map),
            View::Int(int) => Repr::Int(int),
            View::Uint(int) => Repr::Big(Rc::new(i128::from(int))),
            View::Float(float) => Repr::Float(float),
        };
        Self::new(repr, origin)
    }

    pub(crate) fn constant(constant: &'a Const) -> Self {
        let repr = match constant {
            Const::None => Repr::None,
            Const::Bool(value) => Repr::Bool(*value),
            Const::Int(value) => Repr::Int(*value),
            Const::Big(value) => Repr::Big(Rc::new(*value)),
            Const::Float(value) => Repr::Float(*value),
            Const::Str(value) => Repr::Str(value),
        };
        Self::written(repr, constant.authored())
    }

    /// Returns how deeply containers that the template created are nested. The caller's containers do not count,
    /// because they are not freed here.
    pub(super) fn depth(&self) -> u16 {
        match &self.repr {
            Repr::List(list) => list.depth,
            Repr::Dict(dict) => dict.depth(),
            Repr::Macro(value) => 1 + value.depth,
            _ => 0,
        }
    }

    /// Returns whether containers are nested too deeply.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.depth() > crate::template::value::limits::MAX_VALUE_DEPTH
    }

    pub(crate) fn kind(&self) -> ValueKind {
        match &self.repr {
            Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent => ValueKind::Undefined,
            Repr::None => ValueKind::None,
            Repr::Bool(_) => ValueKind::Bool,
            Repr::Int(_) | Repr::Big(_) | Repr::Float(_) => ValueKind::Number,
            Repr::Str(_) | Repr::Text(_) => ValueKind::String,
            Repr::InputList(_) => ValueKind::Sequence,
            Repr::List(list) if list.kind == ListKind::Iterable => ValueKind::Iterable,
            Repr::List(_) => ValueKind::Sequence,
            Repr::InputMap(_) | Repr::Dict(_) | Repr::Namespace(_) => ValueKind::Map,
            Repr::Loop(_) | Repr::Macro(_) => ValueKind::Map,
            Repr::Function(_) | Repr::Rich(_) => ValueKind::Object,
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self.repr, Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent)
    }

    /// Returns whether the value is an optional input without a value, or a part of one.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.repr, Repr::Absent)
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self.repr, Repr::None)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.repr {
            Repr::Str(text) => Some(text),
            Repr::Text(text) => Some(text.traced.as_str()),
            _ => None,
        }
    }

    pub(crate) fn is_safe(&self) -> bool {
        matches!(&self.repr, Repr::Text(text) if text.safe)
    }

    /// Returns the value as an integer. Booleans and floats without a fraction are converted.
    pub(crate) fn as_int(&self) -> Option<i128> {
        match &self.repr {
            Repr::Bool(value) => Some(i128::from(*value)),
            Repr::Int(value) => Some(i128::from(*value)),
            Repr::Big(value) => Some(**value),
            #[expect(clippy::cast_possible_truncation, reason = "compared with the original")]
            Repr::Float(value) if (*value as i64) as f64 == *value => Some(i128::from(*value as i64)),
            _ => None,
        }
    }

    pub(crate) fn is_integer(&self) -> bool {
        matches!(self.repr, Repr::Int(_) | Repr::Big(_))
    }

    /// Returns the value as a float, which may lose precision.
    pub(crate) fn as_float(&self) -> Option<f64> {
        match &self.repr {
            Repr::Bool(value) => Some(f64::from(u8::from(*value))),
            Repr::Int(value) => Some(*value as f64),
            Repr::Big(value) => Some(**value as f64),
            Repr::Float(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        match &self.repr {
            Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent | Repr::None => false,
            Repr::Bool(value) => *value,
            Repr::Int(value) => *value != 0,
            Repr::Big(value) => **value != 0,
            Repr::Float(value) => *value != 0.0,
            Repr::Str(text) => !text.is_empty(),
            Repr::Text(text) => !text.traced.as_str().is_empty(),
            Repr::InputList(items) => items.len() > 0,
            Repr::InputMap(map) => map.len() > 0,
            Repr::List(list) => !list.items.is_empty(),
            Repr::Dict(dict) => dict.len() > 0,
            Repr::Namespace(_) | Repr::Loop(_) | Repr::Macro(_) | Repr::Function(_) | Repr::Rich(_) => true,
        }
    }

    /// Returns the number of characters of a string, or of elements of a container.
    pub(crate) fn len(&self) -> Option<usize> {
        match &self.repr {
            Repr::Str(_) | Repr::Text(_) => self.as_str().map(|text| text.chars().count()),
            Repr::InputList(items) => Some(items.len()),
            Repr::InputMap(map) => Some(map.len()),
            Repr::List(list) => Some(list.items.len()),
            Repr::Dict(dict) => Some(dict.len()),
            _ => None,
        }
    }

    /// Returns all inputs that contributed to the value or to anything in it.
    pub(crate) fn whole_origin(&self) -> Origin {
        let inner = match &self.repr {
            Repr::Text(text) => text.traced.origin(),
            Repr::List(list) => list.inner,
            Repr::Dict(dict) => dict.inner(),
            _ => Origin::AUTHOR,
        };
        self.origin | inner
    }

    /// Returns the number of pieces of a text. Copying it takes time for each piece and for each byte.
    pub(crate) fn pieces(&self) -> usize {
        match &self.repr {
            Repr::Text(text) => text.traced.piece_ends().len(),
            _ => 1,
        }
    }

    /// Appends the pieces of a string with their origins. Returns `false` if the value is not a string.
    pub(crate) fn push_pieces(&self, out: &mut TracedText) -> bool {
        match &self.repr {
            Repr::Str(text) => out.push_behind_mark(text, self.origin),
            Repr::Text(text) => out.push_traced(&text.traced, self.origin),
            _ => return false,
        }
        true
    }
}
