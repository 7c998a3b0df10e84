//! Filters for lists and maps.

use std::cmp::Ordering;

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::eval::access;
use crate::template::eval::filters::params::{Params, as_count};
use crate::template::eval::filters::sort::sort_by;
use crate::template::eval::host;
use crate::template::tree::BinaryOp;
use crate::template::value::dict::Dict;
use crate::template::value::limits::Meter;
use crate::template::value::ops;
use crate::template::value::print;
use crate::template::value::{ListKind, Repr, Value, ValueKind};
use crate::text::origin::Origin;
use crate::text::traced::{Piece, TracedText};

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
            None => Err(params.fail(format_args!("expected a string, list or map, found {}", value.kind().name()))),
        },
        "join" => join(eval, &value, params),
        "first" | "last" => end(eval, name, &value),
        "list" => {
            let (items, shape) = elements(eval, &value)?;
            Ok(Value::list(items, ListKind::List, shape))
        }
        "reverse" => reverse(eval, &value, params),
        "items" => match eval.entries(&value)? {
            Some(pairs) => pair_list(eval, pairs, ListKind::Iterable, eval.keys_origin(&value)),
            None => Err(params.fail(format_args!("expected a map, found {}", value.kind().name()))),
        },
        "attr" => {
            let key = params.required("name")?;
            let mut meter = eval.budget.meter();
            let found = ops::map_get(&value, &key, &mut meter);
            let found = found.or_else(|| key.as_str().and_then(|name| access::entry(&value, name, &mut meter)));
            eval.budget.pay(&meter)?;
            Ok(found.unwrap_or(Value::undefined(eval.keys_origin(&value))).also(value.origin | key.whole_origin()))
        }
        "sort" | "min" | "max" | "unique" | "groupby" | "dictsort" => ordered(eval, name, &value, params),
        "batch" | "slice" => chunks(eval, name, &value, params),
        "map" => map(eval, &value, params),
        "select" | "reject" | "selectattr" | "rejectattr" => select(eval, name, &value, params),
        "sum" => sum(eval, &value, params),
        "chain" => chain(eval, value, params),
        "zip" => zip(eval, value, params),
        "random" => random(eval, &value, params),
        _ => host::apply_filter(eval, name, value, params.rest_arguments()),
    }
}

/// Returns the elements of a value and the inputs that decided how many there are, and charges for the elements.
fn elements<'a>(eval: &mut Eval<'a>, value: &Value<'a>) -> Result<(Vec<Value<'a>>, Origin)> {
    let items = eval.iterate(value)?;
    eval.budget.make_list(items.len())?;
    Ok((items.iter().collect(), items.shape()))
}

/// The cost of a pair, in list elements.
const PAIR: usize = 5;

fn pair_list<'a>(
    eval: &mut Eval<'a>,
    pairs: Vec<(Value<'a>, Value<'a>)>,
    kind: ListKind,
    shape: Origin,
) -> Result<Value<'a>> {
    eval.budget.make_list(pairs.len().saturating_mul(PAIR))?;
    let pair = |(key, value)| Value::list(vec![key, value], ListKind::Tuple, Origin::default());
    Ok(Value::list(pairs.into_iter().map(pair).collect(), kind, shape))
}

fn attribute<'a>(value: &Value<'a>, path: Option<&Value<'a>>, meter: &mut Meter) -> Value<'a> {
    let Some(path) = path else { return value.clone() };
    let found = match path.as_str() {
        Some(path) => access::path(value, path, meter),
        None => ops::sequence(value).and_then(|items| items.get(access::position(path, items.len())?)),
    };
    found.unwrap_or(Value::undefined(value.whole_origin())).also(path.whole_origin())
}

/// Returns the attribute of every item, and charges for the lookups.
fn attributes<'a>(eval: &mut Eval<'a>, items: &[Value<'a>], path: Option<&Value<'a>>) -> Result<Vec<Value<'a>>> {
    eval.budget.make_list(items.len())?;
    let mut meter = eval.budget.meter();
    let found = items.iter().map(|item| attribute(item, path, &mut meter)).collect();
    eval.budget.pay(&meter)?;
    Ok(found)
}

pub(crate) fn join<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let joiner = params.next("d").filter(|joiner| !joiner.is_none());
    let path = params.next("attribute");
    let is_safe =
        eval.escapes() && (joiner.as_ref().is_some_and(Value::is_safe) || has_safe_item(eval, value, path.as_ref())?);
    join_with(eval, value, joiner.as_ref(), path.as_ref(), is_safe)
}

/// Returns whether an item, or its attribute, is safe text.
fn has_safe_item<'a>(eval: &mut Eval<'a>, value: &Value<'a>, path: Option<&Value<'a>>) -> Result<bool> {
    let items = eval.iterate(value)?;
    eval.budget.step(items.len())?;
    let mut meter = eval.budget.meter();
    let found = items.iter().any(|item| attribute(&item, path, &mut meter).is_safe());
    eval.budget.pay(&meter)?;
    Ok(found)
}

/// Joins the items of a list. If the result is to be safe, everything that is not safe is escaped.
pub(crate) fn join_with<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    joiner: Option<&Value<'a>>,
    path: Option<&Value<'a>>,
    is_safe: bool,
) -> Result<Value<'a>> {
    let items = eval.iterate(value)?;
    eval.budget.step(items.len())?;
    let joiner = match joiner {
        Some(joiner) if is_safe => {
            let joiner = eval.escaped_text(joiner)?;
            Some(eval.joiner(joiner, &items)?)
        }
        Some(joiner) => Some(eval.joiner(joiner.clone(), &items)?),
        None => None,
    };
    let joiner = joiner.as_ref();
    let mut out = TracedText::default();
    let mut made = 0;
    for (index, item) in items.iter().enumerate() {
        if let Some(joiner) = joiner.filter(|_| index > 0) {
            eval.budget.print(joiner)?;
            eval.budget.make(joiner.as_str().map_or(0, str::len))?;
            print::print(joiner, &mut out)?;
        }
        let len = out.as_str().len();
        let mut meter = eval.budget.meter();
        let item = attribute(&item, path, &mut meter);
        eval.budget.pay(&meter)?;
        let item = if is_safe { eval.escaped_text(&item)? } else { item };
        eval.budget.print(&item)?;
        eval.budget.make(item.as_str().map_or(0, str::len))?;
        print::print(&item, &mut out)?;
        if item.as_str().is_none() {
            eval.budget.make(out.as_str().len() - len)?;
        }
        made = out.as_str().len().max(made);
        if made > eval.budget.operation_bytes() {
            // The operation as a whole is subject to the limit for one operation.
            eval.budget.make(made)?;
        }
    }
    eval.budget.make(out.piece_ends().len().saturating_mul(size_of::<Piece>()))?;
    out.mark(items.shape());
    let result = |traced| if is_safe { Value::safe_text(traced) } else { Value::text(traced) };
    if out.as_str().is_empty() {
        let origin = value.whole_origin() | out.origin();
        return Ok(result(TracedText::whole("", origin)).also(origin));
    }
    Ok(result(out))
}

fn end<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>) -> Result<Value<'a>> {
    if let Some(text) = value.as_str() {
        let char = if name == "first" { text.chars().next() } else { text.chars().next_back() };
        return Ok(match char {
            // As in Jinja2, only the last character of safe text is safe.
            Some(char) if name == "last" => Value::string_like(value, char, value.whole_origin()),
            Some(char) => Value::string(char, value.whole_origin()),
            None => Value::undefined(value.whole_origin()),
        });
    }
    let items = eval.iterate(value)?;
    let index = if name == "first" { 0 } else { items.len().wrapping_sub(1) };
    let found = items.get(index).unwrap_or(Value::undefined(items.whole_origin()));
    eval.chosen(found, items.shape())
}

/// Returns a random character or element. The seed of the host and the number of earlier choices decide which.
fn random<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &Params<'_, 'a>) -> Result<Value<'a>> {
    let Some(len) = value.len().filter(|_| value.kind() != ValueKind::Map) else {
        return Err(params.fail(format_args!("expected a string or a list, found {}", value.kind().name())));
    };
    if len == 0 {
        return Ok(Value::undefined(value.whole_origin()));
    }
    let Some(number) = eval.next_random() else {
        return Err(params
            .fail("missing seed: without one, the same inputs could render differently")
            .with_help("the application sets a seed with RenderOptions::seed; the command has --seed"));
    };
    // The high half of the product is a number below `len`.
    let index = usize::try_from((u128::from(number) * len as u128) >> 64).unwrap_or(0);
    if let Some(text) = value.as_str() {
        let char = text.chars().nth(index).unwrap_or_default();
        return Ok(Value::string(char, value.whole_origin()));
    }
    let items = eval.iterate(value)?;
    let found = items.get(index).unwrap_or(Value::undefined(items.whole_origin()));
    eval.chosen(found, items.shape())
}

fn reverse<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &Params<'_, 'a>) -> Result<Value<'a>> {
    if let Some(text) = value.as_str() {
        eval.budget.make(text.len())?;
        return Ok(Value::string_like(value, text.chars().rev().collect::<String>(), value.whole_origin()));
    }
    if value.is_undefined() || value.is_none() {
        return Ok(value.clone());
    }
    if !matches!(value.kind(), ValueKind::Sequence | ValueKind::Iterable | ValueKind::Map) {
        return Err(params.fail(format_args!("expected a string, list or map, found {}", value.kind().name())));
    }
    let (mut items, shape) = elements(eval, value)?;
    items.reverse();
    Ok(Value::list(items, ListKind::Iterable, shape))
}

/// Compares sort keys. Texts are compared without regard to ASCII case, unless `case_sensitive` is set.
fn compare_keys(a: &Value<'_>, b: &Value<'_>, case_sensitive: bool, meter: &mut Meter) -> Ordering {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) if !case_sensitive => ops::compare_text(a, b, |byte| byte.to_ascii_lowercase(), meter),
        _ => ops::compare(a, b, meter),
    }
}

/// Applies filters that depend on an order. All elements decide which one comes first, so each element of the result is
/// marked with the inputs of all of them.
fn ordered<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let case_sensitive = params.named_flag("case_sensitive");
    if name == "dictsort" {
        return dict_sort(eval, value, case_sensitive, params);
    }
    let path = match name {
        "groupby" => Some(params.required("attribute")?),
        _ => params.named("attribute"),
    };
    let default = if name == "groupby" { params.named("default") } else { None };
    let is_reversed = name == "sort" && params.next("reverse").is_some_and(|reverse| reverse.is_true());
    let (items, shape) = elements(eval, value)?;
    let items = all_chosen(eval, items, value.whole_origin())?;
    if name == "sort" {
        return sort(eval, items, path.as_ref(), (case_sensitive, is_reversed), shape);
    }
    let mut keys = attributes(eval, &items, path.as_ref())?;
    if name == "unique" && !case_sensitive {
        keys = keys.into_iter().map(|key| lower_case(eval, key)).collect::<Result<_>>()?;
    }
    let mut meter = eval.budget.meter();
    let case_sensitive = case_sensitive || name == "unique";
    let mut compare = |a: &Value<'a>, b: &Value<'a>| compare_keys(a, b, case_sensitive, &mut meter);
    let result = match name {
        "min" | "max" => {
            let mut best: Option<usize> = None;
            for (index, key) in keys.iter().enumerate() {
                let better = best.is_none_or(|best| {
                    let order = compare(key, &keys[best]);
                    if name == "min" { order.is_lt() } else { order.is_ge() }
                });
                best = if better { Some(index) } else { best };
            }
            let best = best.and_then(|best| items.into_iter().nth(best));
            best.unwrap_or(Value::undefined(value.whole_origin()))
        }
        "unique" => Value::list(unique(&keys, items, &mut compare), ListKind::List, value.whole_origin()),
        _ => {
            let keys = keys.into_iter().map(|key| {
                if key.is_undefined() {
                    default.clone().map_or(key.clone(), |other| other.also(key.origin))
                } else {
                    key
                }
            });
            let keyed = keys.zip(items).collect();
            let sorted = sort_by(keyed, &mut |a: &(Value<'a>, Value<'a>), b| compare(&a.0, &b.0));
            Value::list(groups(sorted, &mut compare), ListKind::List, value.whole_origin())
        }
    };
    eval.budget.pay(&meter)?;
    if name == "groupby" {
        eval.budget.make_list(result.len().unwrap_or(0).saturating_mul(2 * PAIR))?;
    }
    Ok(result)
}

/// Marks each item with the inputs that contributed to choosing it.
fn all_chosen<'a>(eval: &mut Eval<'a>, items: Vec<Value<'a>>, by: Origin) -> Result<Vec<Value<'a>>> {
    if by.is_author() {
        return Ok(items);
    }
    items.into_iter().map(|item| eval.chosen(item, by)).collect()
}

fn dict_sort<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    case_sensitive: bool,
    params: &mut Params<'_, 'a>,
) -> Result<Value<'a>> {
    let by_value = params.named("by").is_some_and(|by| by.as_str() == Some("value"));
    let is_reversed = params.named_flag("reverse");
    let Some(pairs) = eval.entries(value)?.filter(|_| value.kind() == ValueKind::Map) else {
        return Err(params.fail(format_args!("expected a map, found {}", value.kind().name())));
    };
    let mut meter = eval.budget.meter();
    let sorted = sort_by(pairs, &mut |a: &(Value<'a>, Value<'a>), b| {
        let (a, b) = if by_value { (&a.1, &b.1) } else { (&a.0, &b.0) };
        let order = compare_keys(a, b, case_sensitive, &mut meter);
        if is_reversed { order.reverse() } else { order }
    });
    eval.budget.pay(&meter)?;
    let whole = value.whole_origin();
    let mut pairs = Vec::with_capacity(sorted.len());
    for (key, item) in sorted {
        pairs.push((eval.chosen(key, whole)?, eval.chosen(item, whole)?));
    }
    pair_list(eval, pairs, ListKind::List, eval.keys_origin(value))
}

/// Sorts by the items themselves, or by their attributes: `sort(attribute="a, b")`.
fn sort<'a>(
    eval: &mut Eval<'a>,
    items: Vec<Value<'a>>,
    path: Option<&Value<'a>>,
    (case_sensitive, is_reversed): (bool, bool),
    shape: Origin,
) -> Result<Value<'a>> {
    let names = path.and_then(Value::as_str).unwrap_or_default();
    let names = || names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let width = names().count().max(1);
    eval.budget.make_list(items.len().saturating_mul(width.saturating_add(1)))?;
    let mut meter = eval.budget.meter();
    let mut keyed = Vec::with_capacity(items.len());
    for item in items {
        let key = |name| access::path(&item, name, &mut meter).unwrap_or(Value::undefined(item.origin));
        let mut keys: Vec<_> = names().map(key).collect();
        if keys.is_empty() {
            keys.push(attribute(&item, path, &mut meter));
        }
        keyed.push((keys, item));
        if meter.is_spent() {
            break;
        }
    }
    let sorted = sort_by(keyed, &mut |a: &(Vec<Value<'a>>, Value<'a>), b| {
        let mut orders = a.0.iter().zip(&b.0).map(|(a, b)| compare_keys(a, b, case_sensitive, &mut meter));
        let order = orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        if is_reversed { order.reverse() } else { order }
    });
    eval.budget.pay(&meter)?;
    Ok(Value::list(sorted.into_iter().map(|(_, item)| item).collect(), ListKind::List, shape))
}

type Compare<'c, 'a> = &'c mut dyn FnMut(&Value<'a>, &Value<'a>) -> Ordering;

/// Converts a key to lower case if it is text. Unlike the filters that sort, `unique` ignores the case of all letters.
fn lower_case<'a>(eval: &mut Eval<'a>, key: Value<'a>) -> Result<Value<'a>> {
    let Some(text) = key.as_str() else { return Ok(key) };
    eval.budget.step(1 + text.len() / ops::BYTES_PER_STEP)?;
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Ok(key);
    }
    // In lower case, some letters have more bytes.
    eval.budget.make(text.len().saturating_mul(2))?;
    Ok(Value::string(text.to_lowercase(), key.origin))
}

/// Keeps the first of all items with equal keys, in the order of the items.
fn unique<'a>(keys: &[Value<'a>], items: Vec<Value<'a>>, compare: Compare<'_, 'a>) -> Vec<Value<'a>> {
    let numbered: Vec<usize> = (0..keys.len()).collect();
    let sorted = sort_by(numbered, &mut |a, b| compare(&keys[*a], &keys[*b]));
    let mut keep = vec![true; keys.len()];
    for pair in sorted.windows(2) {
        if compare(&keys[pair[0]], &keys[pair[1]]).is_eq() {
            keep[pair[1]] = false;
        }
    }
    items.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(item, _)| item).collect()
}

/// Groups neighbors with equal keys.
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
    let group = |(key, items): (Value<'a>, Vec<Value<'a>>)| {
        let items = Value::list(items, ListKind::Iterable, key.whole_origin());
        Value::list(vec![key, items], ListKind::Group, Origin::default())
    };
    groups.into_iter().map(group).collect()
}

fn chunks<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let count = params.count("count")?.filter(|count| as_count(count) > 0);
    let count = count.ok_or_else(|| params.fail("`count` must be at least 1"))?;
    let origin = count.origin;
    let count = as_count(&count);
    let filler = params.next("fill_with").filter(|filler| !filler.is_none() && !filler.is_undefined());
    let (items, shape) = elements(eval, value)?;
    let list = |items: Vec<Value<'a>>| Value::list(items, ListKind::List, shape);
    if name == "batch" {
        eval.budget.make_list(items.len().saturating_add((items.len() / count).saturating_mul(PAIR)))?;
        let mut batches: Vec<Vec<Value<'a>>> = items.chunks(count).map(<[_]>::to_vec).collect();
        if let (Some(filler), Some(last)) = (filler, batches.last_mut()) {
            eval.budget.make_list(count)?;
            last.resize(count, filler);
        }
        return Ok(list(batches.into_iter().map(list).collect()).also(origin));
    }
    eval.budget.make_list(items.len().saturating_add(count.saturating_mul(PAIR)))?;
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
        let (items, shape) = elements(eval, value)?;
        let found = attributes(eval, &items, Some(&path))?;
        let mut mapped = Vec::with_capacity(found.len());
        for found in found {
            mapped.push(match &default {
                Some(default) if found.is_undefined() => eval.chosen(default.clone(), found.origin)?,
                _ => found,
            });
        }
        return Ok(Value::list(mapped, ListKind::List, shape));
    }
    let name = params.required("filter")?;
    let filter = name.as_str().unwrap_or_default().to_owned();
    if !host::has_filter(eval, &filter) {
        return Err(host::unknown_filter(eval, &filter, name.whole_origin()));
    }
    let rest = params.rest_arguments();
    let mut mapped = Vec::new();
    let (items, shape) = elements(eval, value)?;
    for item in items {
        let is_missing = item.is_undefined() && !item.is_absent();
        if is_missing && !eval.lenient && !crate::template::eval::filters::accepts_undefined(&filter) {
            return Err(Error::new(Kind::UndefinedVariable, "an element of the list passed to `map`"));
        }
        eval.budget.step(1 + rest.values().count())?;
        mapped.push(super::apply(eval, &filter, item, rest.clone())?.also(name.whole_origin()));
    }
    Ok(Value::list(mapped, ListKind::List, shape))
}

fn select<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let wanted = name.starts_with("select");
    let path = if name.ends_with("attr") { Some(params.required("attribute")?) } else { None };
    let test = params.next("test").filter(|test| !test.is_none());
    let args = params.rest_arguments();
    let mut selected = Vec::new();
    let (items, shape) = elements(eval, value)?;
    let keys = attributes(eval, &items, path.as_ref())?;
    let items = all_chosen(eval, items, value.whole_origin())?;
    for (item, tested) in items.into_iter().zip(keys) {
        let passed = match &test {
            Some(test) => {
                let name = test.as_str().unwrap_or_default();
                crate::template::eval::predicates::check(eval, name, test.whole_origin(), &tested, &args)?
            }
            None => tested.is_true(),
        };
        if passed == wanted {
            selected.push(item);
        }
    }
    Ok(Value::list(selected, ListKind::List, shape | value.whole_origin()))
}

fn sum<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let path = params.next("attribute").filter(|path| !path.is_none());
    let mut total = params.next("start").unwrap_or(Value::new(Repr::Int(0), value.whole_origin()));
    let (items, _) = elements(eval, value)?;
    let items = attributes(eval, &items, path.as_ref())?;
    if let Some(total) = concatenated(eval, &total, &items)? {
        return Ok(total);
    }
    for item in items {
        if item.is_undefined() {
            continue;
        }
        if total.kind() == ValueKind::Number && !matches!(item.kind(), ValueKind::Number | ValueKind::Bool) {
            return Err(params.fail(format_args!("expected numbers, found {}", item.kind().name())));
        }
        total = ops::arithmetic(BinaryOp::Add, &total, &item, &mut eval.budget)?;
    }
    Ok(total)
}

/// Returns the sum of texts or of lists, or `None` for other values. It is built at once, because adding them one by
/// one would copy the intermediate result each time.
fn concatenated<'a>(eval: &mut Eval<'a>, start: &Value<'a>, items: &[Value<'a>]) -> Result<Option<Value<'a>>> {
    let items = || [start].into_iter().chain(items.iter().filter(|item| !item.is_undefined()));
    if items().all(|item| item.as_str().is_some()) {
        let bytes = items().filter_map(Value::as_str).map(str::len).fold(0, usize::saturating_add);
        let pieces = items().map(Value::pieces).fold(0, usize::saturating_add);
        eval.budget.make_text(bytes, pieces)?;
        let mut text = TracedText::with_capacity(bytes, pieces);
        items().for_each(|item| {
            item.push_pieces(&mut text);
        });
        return Ok(Some(Value::text(text)));
    }
    if items().all(|item| item.kind() == ValueKind::Sequence && !ops::is_tuple(item)) {
        let len = items().filter_map(Value::len).fold(0, usize::saturating_add);
        eval.budget.make_list(len)?;
        let lists: Vec<_> = items().filter_map(ops::sequence).collect();
        let shape = lists.iter().map(crate::template::value::Items::shape).collect();
        return Ok(Some(Value::list(lists.iter().flat_map(|list| list.iter()).collect(), ListKind::List, shape)));
    }
    Ok(None)
}

fn chain<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let mut all = vec![value];
    all.extend(params.rest());
    if all.iter().all(|value| value.kind() == ValueKind::Map) {
        let mut dict = Dict::shaped_by(all.iter().map(|value| eval.keys_origin(value)).collect());
        for value in &all {
            let entries = eval.entries(value)?.unwrap_or_default();
            let mut meter = eval.budget.meter();
            for (key, item) in entries {
                dict.insert(key, item, &mut meter);
            }
            eval.budget.pay(&meter)?;
        }
        return Ok(Value::dict(dict));
    }
    let is_list = all.iter().all(|value| value.kind() == ValueKind::Sequence);
    let mut items = Vec::new();
    let mut shape = Origin::default();
    for value in &all {
        let (more, of_value) = elements(eval, value)?;
        shape |= of_value;
        items.extend(more);
    }
    Ok(Value::list(items, if is_list { ListKind::List } else { ListKind::Iterable }, shape))
}

fn zip<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let mut columns = Vec::new();
    let mut shape = Origin::default();
    for column in [value].into_iter().chain(params.rest()) {
        let (items, of_column) = elements(eval, &column)?;
        shape |= of_column;
        columns.push(items);
    }
    let len = columns.iter().map(Vec::len).min().unwrap_or(0);
    eval.budget.make_list(len.saturating_mul(columns.len().saturating_add(PAIR)))?;
    let row = |index: usize| {
        let items = columns.iter().map(|column| column[index].clone()).collect();
        Value::list(items, ListKind::Tuple, Origin::default())
    };
    Ok(Value::list((0..len).map(row).collect(), ListKind::Iterable, shape))
}
