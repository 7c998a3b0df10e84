//! Filters on lists and maps.

use std::cmp::Ordering;

use super::super::eval::Eval;
use super::super::eval::access;
use super::super::eval::expr::Arguments;
use super::super::limits::Meter;
use super::super::ops;
use super::super::print;
use super::super::tree::BinaryOp;
use super::super::value::{Dict, ListKind, Repr, Value, ValueKind};
use super::params::{Params, as_count};
use super::sort::sort_by;
use crate::error::{Error, Kind, Result};
use crate::origin::Origin;
use crate::rendered::TracedText;

pub(super) fn apply<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    value: Value<'a>,
    params: &mut Params<'_, 'a>,
) -> Result<Value<'a>> {
    match name {
        "length" | "count" => match value.len() {
            Some(len) => Ok(Value::int(len as i128, value.whole_origin())),
            None if value.is_undefined() => Ok(Value::int(0, value.origin)),
            None => Err(params.fail(format_args!("needs a string, a list or a map, not {}", value.kind().name()))),
        },
        "join" => join(eval, &value, params),
        "first" | "last" => end(eval, name, &value),
        "list" => {
            let items = elements(eval, &value)?;
            Ok(Value::list(items, ListKind::List, Origin::AUTHOR))
        }
        "reverse" => reverse(eval, &value, params),
        "items" => match eval.entries(&value)? {
            Some(pairs) => Ok(pair_list(pairs, ListKind::Iterable)),
            None => Err(params.fail(format_args!("needs a map, not {}", value.kind().name()))),
        },
        "attr" => {
            let key = params.required("name")?;
            let mut meter = eval.budget.meter();
            let found = ops::map_get(&value, &key, &mut meter);
            let found = found.or_else(|| key.as_str().and_then(|name| access::entry(&value, name)));
            eval.budget.pay(&meter)?;
            Ok(found.unwrap_or(Value::UNDEFINED).also(value.origin | key.whole_origin()))
        }
        "sort" | "min" | "max" | "unique" | "groupby" | "dictsort" => ordered(eval, name, &value, params),
        "batch" | "slice" => chunks(eval, name, &value, params),
        "map" => map(eval, &value, params),
        "select" | "reject" | "selectattr" | "rejectattr" => select(eval, name, &value, params),
        "sum" => sum(eval, &value, params),
        "chain" => chain(eval, value, params),
        "zip" => zip(eval, value, params),
        _ => Err(super::unknown(name, Origin::AUTHOR)),
    }
}

/// The elements of a value, paid for.
fn elements<'a>(eval: &mut Eval<'a>, value: &Value<'a>) -> Result<Vec<Value<'a>>> {
    let items = eval.iterate(value)?;
    eval.budget.make_list(items.len())?;
    Ok(items.iter().collect())
}

fn pair_list<'a>(pairs: Vec<(Value<'a>, Value<'a>)>, kind: ListKind) -> Value<'a> {
    let pairs = pairs.into_iter().map(|(key, value)| Value::list(vec![key, value], ListKind::Tuple, Origin::AUTHOR));
    Value::list(pairs.collect(), kind, Origin::AUTHOR)
}

fn attribute<'a>(value: &Value<'a>, path: Option<&Value<'a>>) -> Value<'a> {
    let Some(path) = path else { return value.clone() };
    let found = match path.as_str() {
        Some(path) => access::path(value, path),
        None => ops::sequence(value).and_then(|items| items.get(access::position(path, items.len())?)),
    };
    found.unwrap_or(Value::new(Repr::Undefined, value.origin)).also(path.whole_origin())
}

pub(crate) fn join<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let joiner = params.next("d").filter(|joiner| !joiner.is_none());
    let path = params.next("attribute");
    join_with(eval, value, joiner.as_ref(), path.as_ref())
}

pub(crate) fn join_with<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    joiner: Option<&Value<'a>>,
    path: Option<&Value<'a>>,
) -> Result<Value<'a>> {
    let items = eval.iterate(value)?;
    eval.budget.step(items.len())?;
    let between = joiner.and_then(Value::as_str).map_or(0, str::len).saturating_mul(items.len());
    eval.budget.make(between)?;
    let mut out = TracedText::default();
    for (index, item) in items.iter().enumerate() {
        if let Some(joiner) = joiner.filter(|_| index > 0) {
            eval.budget.print(joiner)?;
            print::print(joiner, &mut out)?;
        }
        let len = out.as_str().len();
        let item = attribute(&item, path);
        eval.budget.print(&item)?;
        print::print(&item, &mut out)?;
        eval.budget.make(out.as_str().len() - len)?;
    }
    if out.as_str().is_empty() {
        return Ok(Value::new(Repr::Str(""), value.whole_origin()));
    }
    Ok(Value::traced(out, Origin::AUTHOR))
}

fn end<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>) -> Result<Value<'a>> {
    if let Some(text) = value.as_str() {
        let char = if name == "first" { text.chars().next() } else { text.chars().next_back() };
        return Ok(match char {
            Some(char) => Value::string(char, value.whole_origin()),
            None => Value::new(Repr::Undefined, value.origin),
        });
    }
    let items = eval.iterate(value)?;
    let index = if name == "first" { 0 } else { items.len().wrapping_sub(1) };
    Ok(items.get(index).unwrap_or(Value::new(Repr::Undefined, value.origin)))
}

fn reverse<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &Params<'_, 'a>) -> Result<Value<'a>> {
    if let Some(text) = value.as_str() {
        eval.budget.make(text.len())?;
        return Ok(Value::string(text.chars().rev().collect::<String>(), value.whole_origin()));
    }
    if value.is_undefined() || value.is_none() {
        return Ok(value.clone());
    }
    if !matches!(value.kind(), ValueKind::Sequence | ValueKind::Iterable | ValueKind::Map) {
        return Err(params.fail(format_args!("needs a string, a list or a map, not {}", value.kind().name())));
    }
    let mut items = elements(eval, value)?;
    items.reverse();
    Ok(Value::list(items, ListKind::Iterable, Origin::AUTHOR))
}

/// Compares as people sort: without regard to case, unless told otherwise.
fn compare_keys(a: &Value<'_>, b: &Value<'_>, case_sensitive: bool, meter: &mut Meter) -> Ordering {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) if !case_sensitive => {
            meter.spend(1 + a.len().min(b.len()) / ops::BYTES_PER_STEP);
            let lower = |text: &str| text.bytes().map(|byte| byte.to_ascii_lowercase()).collect::<Vec<_>>();
            lower(a).cmp(&lower(b))
        }
        _ => ops::compare(a, b, meter),
    }
}

/// Filters that need an order.
fn ordered<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let mut meter = eval.budget.meter();
    let case_sensitive = params.named_flag("case_sensitive");
    let mut compare = |a: &Value<'a>, b: &Value<'a>| compare_keys(a, b, case_sensitive, &mut meter);
    let result = match name {
        "dictsort" => {
            let by_value = params.named("by").is_some_and(|by| by.as_str() == Some("value"));
            let reverse = params.named_flag("reverse");
            let Some(pairs) = eval.entries(value)?.filter(|_| value.kind() == ValueKind::Map) else {
                return Err(params.fail(format_args!("needs a map, not {}", value.kind().name())));
            };
            let sorted = sort_by(pairs, &mut |a, b| {
                let order = if by_value { compare(&a.1, &b.1) } else { compare(&a.0, &b.0) };
                if reverse { order.reverse() } else { order }
            });
            pair_list(sorted, ListKind::List)
        }
        "min" | "max" => {
            let path = params.named("attribute");
            let mut best: Option<(Value<'a>, Value<'a>)> = None;
            for item in elements(eval, value)? {
                let key = attribute(&item, path.as_ref());
                let better = best.as_ref().is_none_or(|(best, _)| {
                    let order = compare(&key, best);
                    if name == "min" { order.is_lt() } else { order.is_ge() }
                });
                if better {
                    best = Some((key, item));
                }
            }
            best.map_or(Value::new(Repr::Undefined, value.origin), |(_, item)| item)
        }
        "unique" => {
            let path = params.named("attribute");
            let keyed = elements(eval, value)?.into_iter().map(|item| (attribute(&item, path.as_ref()), item));
            Value::list(unique(keyed.collect(), &mut compare), ListKind::List, Origin::AUTHOR)
        }
        "groupby" => {
            let path = params.required("attribute")?;
            let default = params.named("default");
            let keyed = elements(eval, value)?.into_iter().map(|item| {
                let key = attribute(&item, Some(&path));
                (if key.is_undefined() { default.clone().unwrap_or(key) } else { key }, item)
            });
            let sorted = sort_by(keyed.collect(), &mut |a: &(Value<'a>, Value<'a>), b| compare(&a.0, &b.0));
            Value::list(groups(sorted, &mut compare), ListKind::List, Origin::AUTHOR)
        }
        _ => {
            let reverse = params.next("reverse").is_some_and(|reverse| reverse.is_true());
            let path = params.named("attribute");
            let keys = sort_keys(path.as_ref());
            let items = elements(eval, value)?;
            let keyed = items.into_iter().map(|item| (key_of(&item, &keys, path.as_ref()), item)).collect();
            let sorted = sort_by(keyed, &mut |a: &(Vec<Value<'a>>, Value<'a>), b| {
                let mut orders = a.0.iter().zip(&b.0).map(|(a, b)| compare(a, b));
                let order = orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
                if reverse { order.reverse() } else { order }
            });
            Value::list(sorted.into_iter().map(|(_, item)| item).collect(), ListKind::List, Origin::AUTHOR)
        }
    };
    eval.budget.pay(&meter)?;
    Ok(result)
}

/// `sort(attribute="a, b")` sorts by several attributes.
fn sort_keys(path: Option<&Value<'_>>) -> Vec<String> {
    let path = path.and_then(Value::as_str).unwrap_or_default();
    path.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn key_of<'a>(item: &Value<'a>, keys: &[String], path: Option<&Value<'a>>) -> Vec<Value<'a>> {
    if keys.is_empty() {
        return vec![attribute(item, path)];
    }
    keys.iter().map(|key| access::path(item, key).unwrap_or(Value::UNDEFINED)).collect()
}

type Compare<'c, 'a> = &'c mut dyn FnMut(&Value<'a>, &Value<'a>) -> Ordering;

/// The first of all items whose keys are equal, in the order of the items.
fn unique<'a>(keyed: Vec<(Value<'a>, Value<'a>)>, compare: Compare<'_, 'a>) -> Vec<Value<'a>> {
    let numbered: Vec<usize> = (0..keyed.len()).collect();
    let sorted = sort_by(numbered, &mut |a, b| compare(&keyed[*a].0, &keyed[*b].0));
    let mut keep = vec![true; keyed.len()];
    for pair in sorted.windows(2) {
        if compare(&keyed[pair[0]].0, &keyed[pair[1]].0).is_eq() {
            keep[pair[1]] = false;
        }
    }
    keyed.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|((_, item), _)| item).collect()
}

/// Neighbours with equal keys, together.
fn groups<'a>(keyed: Vec<(Value<'a>, Value<'a>)>, compare: Compare<'_, 'a>) -> Vec<Value<'a>> {
    let mut groups: Vec<(Value<'a>, Vec<Value<'a>>)> = Vec::new();
    for (key, item) in keyed {
        match groups.last_mut() {
            Some((last, items)) if compare(last, &key).is_eq() => {
                *last = key;
                items.push(item);
            }
            _ => groups.push((key, vec![item])),
        }
    }
    let group = |(key, items)| {
        let items = Value::list(items, ListKind::Iterable, Origin::AUTHOR);
        Value::list(vec![key, items], ListKind::Group, Origin::AUTHOR)
    };
    groups.into_iter().map(group).collect()
}

fn chunks<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let count = params.count("count")?.filter(|count| as_count(count) > 0);
    let count = count.ok_or_else(|| params.fail("needs a count of at least 1"))?;
    let origin = count.origin;
    let count = as_count(&count);
    let filler = params.next("fill_with").filter(|filler| !filler.is_none() && !filler.is_undefined());
    let items = elements(eval, value)?;
    let list = |items: Vec<Value<'a>>| Value::list(items, ListKind::List, Origin::AUTHOR);
    if name == "batch" {
        let mut batches: Vec<Vec<Value<'a>>> = items.chunks(count).map(<[_]>::to_vec).collect();
        if let (Some(filler), Some(last)) = (filler, batches.last_mut()) {
            eval.budget.make_list(count)?;
            last.resize(count, filler);
        }
        return Ok(list(batches.into_iter().map(list).collect()).also(origin));
    }
    eval.budget.make_list(count)?;
    let (size, longer) = (items.len() / count, items.len() % count);
    let mut rest = items.into_iter();
    let mut slices = Vec::with_capacity(count);
    for index in 0..count {
        let mut slice: Vec<_> = rest.by_ref().take(size + usize::from(index < longer)).collect();
        if let Some(filler) = filler.as_ref().filter(|_| index >= longer) {
            slice.push(filler.clone());
        }
        slices.push(list(slice));
    }
    Ok(list(slices).also(origin))
}

fn map<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    if let Some(path) = params.named("attribute") {
        let default = params.named("default");
        let items = elements(eval, value)?.into_iter().map(|item| {
            let found = attribute(&item, Some(&path));
            if found.is_undefined() { default.clone().unwrap_or(found) } else { found }
        });
        return Ok(Value::list(items.collect(), ListKind::List, Origin::AUTHOR));
    }
    let name = params.required("filter")?;
    let filter = name.as_str().unwrap_or_default().to_owned();
    if !super::NAMES.contains(&filter.as_str()) {
        return Err(super::unknown(&filter, name.whole_origin()));
    }
    let (positional, named) = (params.rest(), params.rest_named());
    let mut mapped = Vec::new();
    for item in elements(eval, value)? {
        if item.is_undefined() && !eval.lenient && !super::accepts_undefined(&filter) {
            return Err(Error::new(Kind::UndefinedVariable, "an element of the list that `map` is applied to"));
        }
        let args = Arguments { positional: positional.clone(), named: named.clone() };
        mapped.push(super::apply(eval, &filter, item, args)?.also(name.whole_origin()));
    }
    Ok(Value::list(mapped, ListKind::List, Origin::AUTHOR))
}

fn select<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let wanted = name.starts_with("select");
    let path = if name.ends_with("attr") { Some(params.required("attribute")?) } else { None };
    let test = params.next("test").filter(|test| !test.is_none());
    let args = Arguments { positional: params.rest(), named: params.rest_named() };
    let mut selected = Vec::new();
    for item in elements(eval, value)? {
        let tested = attribute(&item, path.as_ref());
        let passed = match &test {
            Some(test) => {
                let name = test.as_str().unwrap_or_default().to_owned();
                super::super::predicates::check(eval, &name, test.whole_origin(), &tested, &args)?
            }
            None => tested.is_true(),
        };
        if passed == wanted {
            selected.push(item);
        }
    }
    Ok(Value::list(selected, ListKind::List, Origin::AUTHOR))
}

fn sum<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let path = params.next("attribute").filter(|path| !path.is_none());
    let mut total = params.next("start").unwrap_or(Value::author(Repr::Int(0)));
    for item in elements(eval, value)? {
        let item = attribute(&item, path.as_ref());
        if item.is_undefined() {
            continue;
        }
        if total.kind() == ValueKind::Number && !matches!(item.kind(), ValueKind::Number | ValueKind::Bool) {
            return Err(params.fail(format_args!("adds numbers, not {}", item.kind().name())));
        }
        total = ops::arithmetic(BinaryOp::Add, &total, &item, &mut eval.budget)?;
    }
    Ok(total)
}

fn chain<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let mut all = vec![value];
    all.extend(params.rest());
    if all.iter().all(|value| value.kind() == ValueKind::Map) {
        let mut dict = Dict::default();
        let mut meter = eval.budget.meter();
        for value in &all {
            for (key, item) in eval.entries(value)?.unwrap_or_default() {
                dict.insert(key, item, &mut meter);
            }
        }
        eval.budget.pay(&meter)?;
        return Ok(Value::dict(dict, Origin::AUTHOR));
    }
    let is_list = all.iter().all(|value| value.kind() == ValueKind::Sequence);
    let mut items = Vec::new();
    for value in &all {
        items.extend(elements(eval, value)?);
    }
    Ok(Value::list(items, if is_list { ListKind::List } else { ListKind::Iterable }, Origin::AUTHOR))
}

fn zip<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let mut columns = vec![elements(eval, &value)?];
    for other in params.rest() {
        columns.push(elements(eval, &other)?);
    }
    let len = columns.iter().map(Vec::len).min().unwrap_or(0);
    let row = |index: usize| {
        let items = columns.iter().map(|column| column[index].clone()).collect();
        Value::list(items, ListKind::Tuple, Origin::AUTHOR)
    };
    Ok(Value::list((0..len).map(row).collect(), ListKind::Iterable, Origin::AUTHOR))
}
