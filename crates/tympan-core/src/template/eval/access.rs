//! Looking into values: attributes, items, slices, iteration.

use std::rc::Rc;

use super::super::ops;
use super::super::print;
use super::super::tree::{Expr, SliceExpr};
use super::super::value::{Items, List, ListKind, LoopState, MacroValue, Repr, Text, Value, ValueKind};
use super::Eval;
use crate::error::{Error, Kind, Result};
use crate::origin::Origin;

impl<'a> Eval<'a> {
    /// `parent.name`; `source` is the expression that gave the parent.
    pub(super) fn attr(&self, parent: &Value<'a>, name: &str, source: &'a Expr) -> Result<Value<'a>> {
        let found = match &parent.repr {
            Repr::Undefined | Repr::Unset | Repr::Silent => return Err(self.undefined(source)),
            Repr::Rich(_) => return Err(print::rich_in_text()),
            Repr::Namespace(index) => self.namespaces[*index].get_str(name).cloned(),
            Repr::Loop(state) => loop_field(state, name),
            _ => entry(parent, name),
        };
        Ok(found.unwrap_or(Value::new(Repr::Undefined, parent.origin)))
    }

    /// `parent[index]`
    pub(super) fn item(&mut self, parent: &Value<'a>, index: &Value<'a>, source: &'a Expr) -> Result<Value<'a>> {
        let origin = index.whole_origin();
        let found = match &parent.repr {
            Repr::Undefined | Repr::Unset | Repr::Silent => return Err(self.undefined(source)),
            Repr::Rich(_) => return Err(print::rich_in_text()),
            Repr::Str(_) | Repr::Text(_) => {
                self.budget.step(ops::weight(parent))?;
                character(parent, index)
            }
            Repr::GivenList(_) | Repr::List(_) if index.as_str().is_none() => {
                ops::sequence(parent).and_then(|items| items.get(position(index, items.len())?))
            }
            Repr::GivenMap(_) | Repr::Dict(_) => {
                let mut meter = self.budget.meter();
                let found = ops::map_get(parent, index, &mut meter);
                self.budget.pay(&meter)?;
                found
            }
            _ => match index.as_str() {
                Some(name) => Some(self.attr(parent, name, source)?),
                None => None,
            },
        };
        Ok(found.unwrap_or(Value::new(Repr::Undefined, parent.origin)).also(origin))
    }

    pub(super) fn slice(&mut self, slice: &'a SliceExpr) -> Result<Value<'a>> {
        let value = self.defined(&slice.value)?;
        let mut bound = |expr: &'a Option<Expr>| -> Result<(Option<i64>, Origin)> {
            let Some(expr) = expr else { return Ok((None, Origin::AUTHOR)) };
            let bound = self.defined(expr)?;
            if bound.is_none() {
                return Ok((None, bound.origin));
            }
            let int = bound.as_int().and_then(|int| i64::try_from(int).ok());
            let int = int.ok_or_else(|| {
                let details = format!("a slice is bounded by whole numbers, not by {}", bound.kind().name());
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
            return Err(Error::new(Kind::InvalidOperation, "a slice cannot have a step of 0"));
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
            return Ok(Value::list(Vec::new(), ListKind::List, origin | value.origin));
        }
        if let Some(text) = value.as_str() {
            self.budget.step(ops::weight(value))?;
            let indexes = slice_indexes(bounds, text.chars().count());
            self.budget.make(text.len())?;
            let chars: Vec<char> = text.chars().collect();
            let sliced: String = indexes.map(|index| chars[index]).collect();
            return Ok(Value::string(sliced, value.whole_origin() | origin));
        }
        let Some(items) = ops::sequence(value) else {
            let details = format!("{} cannot be sliced", value.kind().name());
            return Err(Error::new(Kind::InvalidOperation, details));
        };
        let is_tuple = matches!(&value.repr, Repr::List(list) if list.kind == ListKind::Tuple);
        let kind = if is_tuple { ListKind::Tuple } else { ListKind::Iterable };
        let indexes = slice_indexes(bounds, items.len());
        self.budget.make_list(items.len())?;
        Ok(Value::list(indexes.filter_map(|index| items.get(index)).collect(), kind, origin))
    }

    /// What a value consists of when it is iterated over.
    pub(crate) fn iterate(&mut self, value: &Value<'a>) -> Result<Items<'a>> {
        if let Some(items) = ops::sequence(value) {
            return Ok(items);
        }
        let items = match &value.repr {
            Repr::Undefined | Repr::Unset | Repr::Silent => Vec::new(),
            Repr::GivenMap(_) | Repr::Dict(_) => {
                self.budget.make_list(value.len().unwrap_or(0))?;
                ops::pairs(value).unwrap_or_default().into_iter().map(|(key, _)| key).collect()
            }
            Repr::Namespace(index) => self.namespaces[*index].entries.iter().map(|(key, _)| key.clone()).collect(),
            Repr::Str(text) => {
                self.budget.make_list(text.len())?;
                chars(text).map(|char| Value::new(Repr::Str(char), value.origin)).collect()
            }
            Repr::Text(text) => {
                self.budget.make_list(text.traced.as_str().len() * 3)?;
                text_chars(text, value.origin)
            }
            Repr::Rich(_) => return Err(print::rich_in_text()),
            _ => {
                let details = format!("{} cannot be iterated over", value.kind().name());
                return Err(Error::new(Kind::InvalidOperation, details));
            }
        };
        let depth = 1;
        let inner = items.iter().fold(Origin::AUTHOR, |all, item| all | item.whole_origin());
        Ok(Items::List(Rc::new(List { items, kind: ListKind::List, depth, inner }), Origin::AUTHOR))
    }

    /// The entries of a map of any sort.
    pub(crate) fn entries(&mut self, value: &Value<'a>) -> Result<Option<Vec<(Value<'a>, Value<'a>)>>> {
        if let Repr::Namespace(index) = value.repr {
            return Ok(Some(self.namespaces[index].entries.clone()));
        }
        if value.kind() == ValueKind::Map {
            self.budget.make_list(2 * value.len().unwrap_or(0))?;
        }
        Ok(ops::pairs(value))
    }
}

/// What a container of the caller's, or of the template's, holds under a name.
pub(crate) fn entry<'a>(parent: &Value<'a>, name: &str) -> Option<Value<'a>> {
    match &parent.repr {
        Repr::GivenMap(map) => map.get(name).map(|item| Value::given(item, parent.origin)),
        Repr::Dict(dict) => dict.get_str(name).map(|item| item.clone().also(parent.origin)),
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

/// What a dotted path such as `meta.tags.0` leads to.
pub(crate) fn path<'a>(value: &Value<'a>, path: &str) -> Option<Value<'a>> {
    let mut value = value.clone();
    for part in path.split('.') {
        value = match part.parse::<usize>() {
            Ok(index) => ops::sequence(&value)?.get(index)?,
            Err(_) => entry(&value, part)?,
        };
    }
    Some(value)
}

fn macro_field<'a>(value: &Rc<MacroValue<'a>>, name: &str) -> Option<Value<'a>> {
    let def = value.def;
    Some(match name {
        "name" => Value::author(Repr::Str(&def.name)),
        "arguments" => {
            let names = def.params.iter().map(|param| Value::author(Repr::Str(&param.name))).collect();
            Value::list(names, ListKind::List, Origin::AUTHOR)
        }
        _ => return None,
    })
}

fn loop_field<'a>(state: &LoopState<'a>, name: &str) -> Option<Value<'a>> {
    let index = state.index.get();
    let len = state.items.len();
    let number = |number: usize| Value::author(Repr::Int(number as i64));
    Some(match name {
        "index" => number(index + 1),
        "index0" => number(index),
        "length" => number(len),
        "revindex" => number(len.saturating_sub(index)),
        "revindex0" => number(len.saturating_sub(index + 1)),
        "first" => Value::bool(index == 0, Origin::AUTHOR),
        "last" => Value::bool(index + 1 == len, Origin::AUTHOR),
        "depth" => number(state.depth + 1),
        "depth0" => number(state.depth),
        "previtem" => index.checked_sub(1).and_then(|index| state.items.get(index)).unwrap_or(Value::UNDEFINED),
        "nextitem" => state.items.get(index + 1).unwrap_or(Value::UNDEFINED),
        _ => return None,
    })
}

/// The place in a sequence that an index means, from the end if it is negative.
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

fn text_chars<'a>(text: &Text, origin: Origin) -> Vec<Value<'a>> {
    let pieces = text.traced.pieces();
    pieces.flat_map(|(piece, of_piece)| chars(piece).map(move |char| Value::string(char, of_piece | origin))).collect()
}

/// The indexes that a slice selects, in order.
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
