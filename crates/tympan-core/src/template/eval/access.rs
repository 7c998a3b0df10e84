//! Access to parts of values: attributes, items, slices, iteration.

use std::rc::Rc;

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::tree::{Expr, ExprKind, Param, SliceExpr, Tree};
use crate::template::value::limits::Meter;
use crate::template::value::ops;
use crate::template::value::print;
use crate::template::value::{Items, ListKind, LoopState, MacroValue, Repr, Value, ValueKind};
use crate::text::origin::Origin;

/// The cost of a character that becomes a text of its own, in list elements.
const CHARACTER: usize = 5;

impl<'a> Eval<'a> {
    /// Evaluates `parent.name`. `source` is the expression of the parent.
    pub(super) fn attr(&mut self, parent: &Value<'a>, name: &str, source: &'a Expr) -> Result<Value<'a>> {
        let found = match &parent.repr {
            Repr::Undefined | Repr::Unset | Repr::Silent => return Err(self.undefined(source)),
            Repr::Absent => return Ok(parent.clone()),
            Repr::Rich(_) => return Err(print::rich_in_text()),
            Repr::Loop(state) => loop_field(self.tree, state, name),
            _ => self.entry(parent, name)?,
        };
        Ok(found.unwrap_or(Value::undefined(self.keys_origin(parent))))
    }

    /// Returns a field of `loop` if the expression is the loop's variable, without copying the loop's state.
    #[inline(never)]
    pub(super) fn own_loop_field(&self, source: &'a Expr, name: &str) -> Option<Value<'a>> {
        let ExprKind::Local(local) = &source.kind else { return None };
        let Repr::Loop(state) = &self.frame[local.slot].repr else { return None };
        loop_field(self.tree, state, name)
    }

    /// Returns the entry of a container with a name, and charges for the lookup.
    pub(super) fn entry(&mut self, parent: &Value<'a>, name: &str) -> Result<Option<Value<'a>>> {
        let mut meter = self.budget.meter();
        let found = match &parent.repr {
            Repr::Namespace(index) => self.namespaces[*index].get_str(name, &mut meter),
            _ => entry(parent, name, &mut meter),
        };
        self.budget.pay(&meter)?;
        Ok(found)
    }

    /// Returns the value of a key in a map, and charges for the lookup.
    pub(crate) fn get(&mut self, map: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>> {
        let mut meter = self.budget.meter();
        let found = match &map.repr {
            Repr::Namespace(index) => self.namespaces[*index].get(key, &mut meter),
            _ => ops::map_get(map, key, &mut meter),
        };
        self.budget.pay(&meter)?;
        Ok(found)
    }

    /// Returns the inputs that contributed to the names that a container has.
    pub(crate) fn keys_origin(&self, parent: &Value<'a>) -> Origin {
        match &parent.repr {
            Repr::Namespace(index) => parent.origin | self.namespaces[*index].keys_origin(),
            _ => ops::keys_origin(parent),
        }
    }

    /// Evaluates `parent[index]`.
    pub(super) fn item(&mut self, parent: &Value<'a>, index: &Value<'a>, source: &'a Expr) -> Result<Value<'a>> {
        let origin = index.whole_origin();
        let missing = self.keys_origin(parent);
        self.budget.step(ops::weight(index))?;
        let found = match &parent.repr {
            Repr::Undefined | Repr::Unset | Repr::Silent => return Err(self.undefined(source)),
            Repr::Absent => Some(parent.clone()),
            Repr::Rich(_) => return Err(print::rich_in_text()),
            Repr::Str(_) | Repr::Text(_) => {
                self.budget.step(ops::weight(parent))?;
                character(parent, index)
            }
            Repr::InputList(_) | Repr::List(_) if index.as_str().is_none() => {
                ops::sequence(parent).and_then(|items| items.get(position(index, items.len())?))
            }
            Repr::InputMap(_) | Repr::Dict(_) => self.get(parent, index)?,
            _ => match index.as_str() {
                Some(name) => Some(self.attr(parent, name, source)?),
                None => None,
            },
        };
        Ok(found.unwrap_or(Value::undefined(missing | parent.whole_origin())).also(origin))
    }

    pub(super) fn slice(&mut self, slice: &'a SliceExpr) -> Result<Value<'a>> {
        let value = self.defined(&slice.value)?;
        let mut bound = |expr: &'a Option<Expr>| -> Result<(Option<i64>, Origin)> {
            let Some(expr) = expr else { return Ok((None, Origin::default())) };
            let bound = self.defined(expr)?;
            if bound.is_none() {
                return Ok((None, bound.origin));
            }
            let int = bound.as_int().and_then(|int| i64::try_from(int).ok());
            let int = int.ok_or_else(|| {
                let details = format!("slice bounds: expected an integer, found {}", bound.kind().name());
                Error::new(Kind::InvalidOperation, details)
            })?;
            Ok((Some(int), bound.origin))
        };
        let (start, start_origin) = bound(&slice.start)?;
        let (stop, stop_origin) = bound(&slice.stop)?;
        let (step, step_origin) = bound(&slice.step)?;
        let origin = start_origin | stop_origin | step_origin;
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(Error::new(Kind::InvalidOperation, "slice step cannot be 0"));
        }
        self.slice_value(&value, (start, stop, step), origin)
    }

    fn slice_value(
        &mut self,
        value: &Value<'a>,
        bounds: (Option<i64>, Option<i64>, i64),
        origin: Origin,
    ) -> Result<Value<'a>> {
        if value.is_undefined() || value.is_none() {
            return Ok(Value::list(Vec::new(), ListKind::List, value.origin).also(origin));
        }
        if let Some(text) = value.as_str() {
            self.budget.step(ops::weight(value))?;
            self.budget.make(text.len())?;
            return Ok(Value::string(slice_text(text, bounds), value.whole_origin() | origin));
        }
        let Some(items) = ops::sequence(value) else {
            let details = format!("cannot slice {}", value.kind().name());
            return Err(Error::new(Kind::InvalidOperation, details));
        };
        let is_tuple = matches!(&value.repr, Repr::List(list) if list.kind == ListKind::Tuple);
        let kind = if is_tuple { ListKind::Tuple } else { ListKind::Iterable };
        let indexes = slice_indexes(bounds, items.len());
        self.budget.make_list(items.len())?;
        Ok(Value::list(indexes.filter_map(|index| items.get(index)).collect(), kind, items.shape()).also(origin))
    }

    /// Returns the elements of a value for iteration.
    pub(crate) fn iterate(&mut self, value: &Value<'a>) -> Result<Items<'a>> {
        if let Some(items) = ops::sequence(value) {
            return Ok(items);
        }
        let (items, shape) = match &value.repr {
            Repr::Undefined | Repr::Unset | Repr::Silent | Repr::Absent => (Vec::new(), value.origin),
            Repr::InputMap(_) | Repr::Dict(_) => {
                self.budget.make_list(value.len().unwrap_or(0))?;
                let keys = ops::pairs(value).unwrap_or_default().into_iter().map(|(key, _)| key);
                (keys.collect(), ops::keys_origin(value))
            }
            Repr::Namespace(index) => {
                let namespace = &self.namespaces[*index];
                self.budget.make_list(namespace.len())?;
                (namespace.entries().iter().map(|(key, _)| key.clone()).collect(), namespace.keys_origin())
            }
            Repr::Str(text) => {
                self.budget.make_list(text.len())?;
                (chars(text).map(|char| Value::new(Repr::Str(char), value.origin)).collect(), value.origin)
            }
            Repr::Text(text) => {
                self.budget.make_list(text.traced.as_str().len().saturating_mul(CHARACTER))?;
                let origin = value.whole_origin();
                let text = text.traced.as_str();
                (chars(text).map(|char| Value::string(char, origin)).collect(), origin)
            }
            Repr::Rich(_) => return Err(print::rich_in_text()),
            _ => {
                let details = format!("cannot iterate over {}", value.kind().name());
                return Err(Error::new(Kind::InvalidOperation, details));
            }
        };
        let list = Value::list(items, ListKind::List, shape);
        ops::sequence(&list).ok_or_else(print::too_deep)
    }

    /// Returns the entries of a map of any kind.
    pub(crate) fn entries(&mut self, value: &Value<'a>) -> Result<Option<Vec<(Value<'a>, Value<'a>)>>> {
        if let Repr::Namespace(index) = value.repr {
            self.budget.make_list(self.namespaces[index].len().saturating_mul(2))?;
            return Ok(Some(self.namespaces[index].entries().to_vec()));
        }
        if value.kind() == ValueKind::Map {
            self.budget.make_list(value.len().unwrap_or(0).saturating_mul(2))?;
        }
        if value.is_absent() {
            return Ok(Some(Vec::new()));
        }
        Ok(ops::pairs(value))
    }
}

/// Returns the entry with a name in a container of the caller or of the template.
pub(crate) fn entry<'a>(parent: &Value<'a>, name: &str, meter: &mut Meter) -> Option<Value<'a>> {
    match &parent.repr {
        Repr::InputMap(map) => map.get(name).map(|item| Value::from_input(item, parent.origin)),
        Repr::Dict(dict) => dict.get_str(name, meter).map(|item| item.also(parent.origin)),
        Repr::List(list) if list.kind == ListKind::Group => {
            let index = match name {
                "grouper" => 0,
                "list" => 1,
                _ => return None,
            };
            list.items.get(index).map(|item| item.clone().also(parent.origin))
        }
        Repr::Macro(value) => macro_field(value, name),
        _ => None,
    }
}

/// Returns the value at a dotted path such as `meta.tags.0`.
pub(crate) fn path<'a>(value: &Value<'a>, path: &str, meter: &mut Meter) -> Option<Value<'a>> {
    let mut value = value.clone();
    for part in path.split('.') {
        if !meter.spend(1 + part.len() / ops::BYTES_PER_STEP) {
            return None;
        }
        value = match part.parse::<usize>() {
            Ok(index) => ops::sequence(&value)?.get(index)?,
            Err(_) => entry(&value, part, meter)?,
        };
    }
    Some(value)
}

fn macro_field<'a>(value: &Rc<MacroValue<'a>>, name: &str) -> Option<Value<'a>> {
    let def = value.def;
    Some(match name {
        "name" => Value::written(Repr::Str(&def.name), def.authored()),
        "arguments" => {
            let name = |param: &'a Param| Value::written(Repr::Str(&param.name), def.authored());
            Value::list(def.params.iter().map(name).collect(), ListKind::List, def.authored().origin())
        }
        _ => return None,
    })
}

/// Returns a field of `loop`. The number of the iteration depends only on the path through the template, so it is the
/// author's. The number of iterations depends on the items.
fn loop_field<'a>(tree: &Tree, state: &LoopState<'a>, name: &str) -> Option<Value<'a>> {
    let index = state.index.get();
    let len = state.items.len();
    let shape = state.items.shape();
    let written = |number: usize| Value::written(Repr::Int(number as i64), tree.authored());
    let counted = |number: usize| Value::new(Repr::Int(number as i64), shape);
    Some(match name {
        "index" => written(index + 1),
        "index0" => written(index),
        "length" => counted(len),
        "revindex" => counted(len.saturating_sub(index)),
        "revindex0" => counted(len.saturating_sub(index + 1)),
        "first" => Value::written(Repr::Bool(index == 0), tree.authored()),
        "last" => Value::bool(index + 1 == len, shape),
        "depth" => written(state.depth + 1),
        "depth0" => written(state.depth),
        "previtem" => index.checked_sub(1).and_then(|index| state.items.get(index)).unwrap_or(Value::undefined(shape)),
        "nextitem" => state.items.get(index + 1).unwrap_or(Value::undefined(shape)),
        _ => return None,
    })
}

/// Converts an index to a position in a sequence. A negative index counts from the end.
pub(crate) fn position(index: &Value<'_>, len: usize) -> Option<usize> {
    let index = index.as_int()?;
    if index < 0 { usize::try_from(index + len as i128).ok() } else { usize::try_from(index).ok() }
}

fn character<'a>(text: &Value<'a>, index: &Value<'_>) -> Option<Value<'a>> {
    let chars = text.as_str()?;
    let position = position(index, chars.chars().count())?;
    let char = chars.chars().nth(position)?;
    Some(Value::string(char, text.whole_origin()))
}

fn chars(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, char)| &text[at..at + char.len_utf8()])
}

/// Returns the characters of a text that a slice selects.
fn slice_text(text: &str, bounds: (Option<i64>, Option<i64>, i64)) -> String {
    let step = usize::try_from(bounds.2.unsigned_abs()).unwrap_or(usize::MAX);
    let len = text.chars().count();
    let mut indexes = slice_indexes(bounds, len);
    let Some(first) = indexes.next() else { return String::new() };
    let count = 1 + indexes.count();
    if bounds.2 > 0 {
        text.chars().skip(first).step_by(step).take(count).collect()
    } else {
        text.chars().rev().skip(len - 1 - first).step_by(step).take(count).collect()
    }
}

/// Returns the indexes that a slice selects, in order.
fn slice_indexes((start, stop, step): (Option<i64>, Option<i64>, i64), len: usize) -> impl Iterator<Item = usize> {
    let end = len as i64;
    let clamp = |bound: i64, low: i64, high: i64| (if bound < 0 { bound + end } else { bound }).clamp(low, high);
    let (first, last) = if step > 0 {
        (start.map_or(0, |bound| clamp(bound, 0, end)), stop.map_or(end, |bound| clamp(bound, 0, end)))
    } else {
        (start.map_or(end - 1, |bound| clamp(bound, -1, end - 1)), stop.map_or(-1, |bound| clamp(bound, -1, end - 1)))
    };
    let mut next = first;
    std::iter::from_fn(move || {
        let index = next;
        if (step > 0 && index >= last) || (step < 0 && index <= last) {
            return None;
        }
        next = index.saturating_add(step);
        usize::try_from(index).ok()
    })
}
