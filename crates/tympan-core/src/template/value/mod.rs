//! Values while a template is rendered: what they are, and which inputs they come from.

pub(crate) mod dict;
pub(crate) mod limits;
pub(crate) mod ops;
pub(crate) mod print;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::template::input::{GivenList, GivenMap, GivenRef, View};
use crate::template::tree::{Authored, Const, Function, MacroDef};
use crate::template::value::dict::Dict;
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

/// A value and its origin. `'a` is the life of the caller's inputs and of the template: both are
/// borrowed, never copied.
///
/// The origin of a container had a part in all of its elements; each element of a container that the
/// template made has an origin of its own besides.
///
/// Only what the template itself says has the author's origin: see [`Value::written`]. Everything else is computed
/// from other values, and a constructor asks which.
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
    /// What `x if y` gives without an `else`: undefined, but never an error to print.
    Silent,
    None,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit 64 bits.
    Big(Rc<i128>),
    Float(f64),
    Str(&'a str),
    Text(Rc<Text>),
    GivenList(GivenList<'a>),
    GivenMap(GivenMap<'a>),
    List(Rc<List<'a>>),
    Dict(Rc<Dict<'a>>),
    /// A namespace, by its number. Numbers cannot form cycles that would never be freed.
    Namespace(usize),
    Loop(Rc<LoopState<'a>>),
    Macro(Rc<MacroValue<'a>>),
    Function(Function),
    /// A thread, image, file or audio input, by its index.
    Rich(usize),
}

/// Text that the template made.
#[derive(Debug, Default)]
pub(crate) struct Text {
    pub(crate) traced: TracedText,
    /// Whether it is escaped already (`|safe`, `|escape`).
    pub(crate) safe: bool,
}

#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) items: Vec<Value<'a>>,
    pub(crate) kind: ListKind,
    pub(crate) depth: u16,
    /// The inputs that decided how many elements there are.
    pub(crate) shape: Origin,
    /// All origins inside together, and the shape. They are not looked for when they are asked for: a list may hold
    /// the same list many times, and so on.
    pub(crate) inner: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    List,
    Tuple,
    /// What a generator would be in Python: the result of `range`, a slice, `items`, …
    Iterable,
    /// A pair of `grouper` and `list`.
    Group,
}

/// What `loop` is.
#[derive(Debug)]
pub(crate) struct LoopState<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) index: Cell<usize>,
    pub(crate) depth: usize,
    /// What `loop.changed` saw last. Emptied when the loop ends, so that it cannot hold on to
    /// itself.
    pub(crate) last_changed: RefCell<Option<Vec<Value<'a>>>>,
    pub(crate) ended: Cell<bool>,
    /// The loop to run again when `loop(…)` is called.
    pub(crate) recursion: Option<&'a crate::template::tree::For>,
    /// The frame that the loop runs in: only from there can it be called.
    pub(crate) frame_id: usize,
}

#[derive(Debug)]
pub(crate) struct MacroValue<'a> {
    pub(crate) def: &'a MacroDef,
    /// Values of the enclosing macro's slots, in the order of the definition's captures.
    pub(crate) captured: Vec<Value<'a>>,
    /// The slot of the enclosing frame that the macro itself is stored in.
    pub(crate) own_slot: Option<usize>,
    /// How deep containers are nested in what it captured.
    pub(crate) depth: u16,
}

/// Something that can be iterated over, without a copy where there need not be one.
#[derive(Clone, Debug)]
pub(crate) enum Items<'a> {
    Given(GivenList<'a>, Origin),
    List(Rc<List<'a>>, Origin),
}

impl<'a> Items<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Given(items, _) => items.len(),
            Self::List(list, _) => list.items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Given(items, origin) => items.get(index).map(|item| Value::given(item, *origin)),
            Self::List(list, origin) => list.items.get(index).map(|item| item.clone().also(*origin)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The inputs that decided how many items there are.
    pub(crate) fn shape(&self) -> Origin {
        match self {
            Self::Given(_, origin) => *origin,
            Self::List(list, origin) => list.shape | *origin,
        }
    }

    /// All inputs that had a part in the items or in their number.
    pub(crate) fn whole_origin(&self) -> Origin {
        match self {
            Self::Given(_, origin) => *origin,
            Self::List(list, origin) => list.inner | *origin,
        }
    }
}

/// The kinds of values, in the order in which values of different kinds sort.
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
    /// What a slot holds before anything is stored in it.
    pub(crate) const UNSET: Self = Self { repr: Repr::Unset, origin: Origin::AUTHOR };

    /// A value that these inputs had a part in.
    pub(crate) fn new(repr: Repr<'a>, origin: Origin) -> Self {
        Self { repr, origin }
    }

    /// A value that the template itself says.
    pub(crate) fn written(repr: Repr<'a>, author: Authored) -> Self {
        Self { repr, origin: author.origin() }
    }

    /// What looking for something in vain gives; `origin` had a part in what was searched.
    pub(crate) fn undefined(origin: Origin) -> Self {
        Self { repr: Repr::Undefined, origin }
    }

    /// The same value, in which these inputs had a part too.
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

    /// Text that all comes from one origin.
    pub(crate) fn string(text: impl Into<String>, origin: Origin) -> Self {
        Self::text(TracedText::whole(text, origin)).also(origin)
    }

    /// Text whose pieces have their own origins.
    pub(crate) fn text(traced: TracedText) -> Self {
        Self { repr: Repr::Text(Rc::new(Text { traced, safe: false })), origin: Origin::AUTHOR }
    }

    /// The same for text that is escaped already.
    pub(crate) fn safe_text(traced: TracedText) -> Self {
        Self { repr: Repr::Text(Rc::new(Text { traced, safe: true })), origin: Origin::AUTHOR }
    }

    /// A list whose elements have their own origins; `shape` decided how many there are.
    pub(crate) fn list(items: Vec<Self>, kind: ListKind, shape: Origin) -> Self {
        let depth = 1 + items.iter().map(Self::depth).max().unwrap_or(0);
        let inner = shape | items.iter().map(Self::whole_origin).collect();
        Self { repr: Repr::List(Rc::new(List { items, kind, depth, shape, inner })), origin: Origin::AUTHOR }
    }

    /// A map whose entries have their own origins.
    pub(crate) fn dict(dict: Dict<'a>) -> Self {
        Self { repr: Repr::Dict(Rc::new(dict)), origin: Origin::AUTHOR }
    }

    /// A namespace, by its number.
    pub(crate) fn namespace(index: usize) -> Self {
        Self { repr: Repr::Namespace(index), origin: Origin::AUTHOR }
    }

    /// What `loop` is in the body of a loop.
    pub(crate) fn loop_state(state: Rc<LoopState<'a>>) -> Self {
        Self { repr: Repr::Loop(state), origin: Origin::AUTHOR }
    }

    #[inline]
    pub(crate) fn given(given: GivenRef<'a>, origin: Origin) -> Self {
        let repr = match given.view() {
            View::Str(text) => Repr::Str(text),
            View::Null => Repr::None,
            View::Bool(value) => Repr::Bool(value),
            View::List(items) => Repr::GivenList(items),
            View::Map(map) => Repr::GivenMap(map),
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

    /// How deep containers that the template made are nested in each other. Containers of the
    /// caller are not counted: they are never freed here.
    pub(super) fn depth(&self) -> u16 {
        match &self.repr {
            Repr::List(list) => list.depth,
            Repr::Dict(dict) => dict.depth(),
            Repr::Macro(value) => 1 + value.depth,
            _ => 0,
        }
    }

    /// Whether containers are nested deeper than they may be.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.depth() > crate::template::value::limits::MAX_VALUE_DEPTH
    }

    pub(crate) fn kind(&self) -> ValueKind {
        match &self.repr {
            Repr::Unset | Repr::Undefined | Repr::Silent => ValueKind::Undefined,
            Repr::None => ValueKind::None,
            Repr::Bool(_) => ValueKind::Bool,
            Repr::Int(_) | Repr::Big(_) | Repr::Float(_) => ValueKind::Number,
            Repr::Str(_) | Repr::Text(_) => ValueKind::String,
            Repr::GivenList(_) => ValueKind::Sequence,
            Repr::List(list) if list.kind == ListKind::Iterable => ValueKind::Iterable,
            Repr::List(_) => ValueKind::Sequence,
            Repr::GivenMap(_) | Repr::Dict(_) | Repr::Namespace(_) => ValueKind::Map,
            Repr::Loop(_) | Repr::Macro(_) => ValueKind::Map,
            Repr::Function(_) | Repr::Rich(_) => ValueKind::Object,
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self.repr, Repr::Unset | Repr::Undefined | Repr::Silent)
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

    /// The value as an integer, also if it is a boolean or a float without a fraction.
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

    /// The value as a float, with what precision there is.
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
            Repr::Unset | Repr::Undefined | Repr::Silent | Repr::None => false,
            Repr::Bool(value) => *value,
            Repr::Int(value) => *value != 0,
            Repr::Big(value) => **value != 0,
            Repr::Float(value) => *value != 0.0,
            Repr::Str(text) => !text.is_empty(),
            Repr::Text(text) => !text.traced.as_str().is_empty(),
            Repr::GivenList(items) => items.len() > 0,
            Repr::GivenMap(map) => map.len() > 0,
            Repr::List(list) => !list.items.is_empty(),
            Repr::Dict(dict) => dict.len() > 0,
            Repr::Namespace(_) | Repr::Loop(_) | Repr::Macro(_) | Repr::Function(_) | Repr::Rich(_) => true,
        }
    }

    /// The number of characters of a string, or of elements of a container.
    pub(crate) fn len(&self) -> Option<usize> {
        match &self.repr {
            Repr::Str(_) | Repr::Text(_) => self.as_str().map(|text| text.chars().count()),
            Repr::GivenList(items) => Some(items.len()),
            Repr::GivenMap(map) => Some(map.len()),
            Repr::List(list) => Some(list.items.len()),
            Repr::Dict(dict) => Some(dict.len()),
            _ => None,
        }
    }

    /// All inputs that had a part in the value or in anything in it.
    pub(crate) fn whole_origin(&self) -> Origin {
        let inner = match &self.repr {
            Repr::Text(text) => text.traced.origin(),
            Repr::List(list) => list.inner,
            Repr::Dict(dict) => dict.inner(),
            _ => Origin::AUTHOR,
        };
        self.origin | inner
    }

    /// How many pieces a text has: the work of copying it, besides its bytes.
    pub(crate) fn pieces(&self) -> usize {
        match &self.repr {
            Repr::Text(text) => text.traced.piece_ends().len(),
            _ => 1,
        }
    }

    /// The pieces of a string with their origins.
    pub(crate) fn push_pieces(&self, out: &mut TracedText) -> bool {
        match &self.repr {
            Repr::Str(text) => out.push_behind_mark(text, self.origin),
            Repr::Text(text) => out.push_traced(&text.traced, self.origin),
            _ => return false,
        }
        true
    }
}
