//! Evaluation of expressions.

use crate::error::{Error, Kind, Result};
use crate::template::eval::filters;
use crate::template::eval::predicates;
use crate::template::eval::{Eval, InputValue};
use crate::template::input::{InputMap, InputRef, View};
use crate::template::tree::{
    Arg, Args, BinaryOp, Expr, ExprKind, Local, Lookup, Named, NamedArg, Shortcut, TernaryExpr,
};
use crate::template::value::dict::Dict;
use crate::template::value::limits::Meter;
use crate::template::value::ops;
use crate::template::value::print;
use crate::template::value::{Items, ListKind, Repr, Value};
use crate::template::{Notable, influence};
use crate::text::origin::Origin;
use crate::text::traced::{Piece, TracedText};

/// The evaluated arguments of a call.
#[derive(Debug, Default, Clone)]
pub(crate) struct Arguments<'a> {
    pub(crate) positional: Vec<Value<'a>>,
    /// Names (as string values) and values. A name is the author's, unless it comes from `**`.
    pub(crate) named: Vec<(Value<'a>, Value<'a>)>,
    /// The inputs that decided how many arguments `*` and `**` added.
    pub(crate) spread: Origin,
}

impl<'a> Arguments<'a> {
    /// Returns all inputs that contributed to the arguments.
    pub(crate) fn origin(&self) -> Origin {
        let named = self.named.iter().map(|(name, value)| name.whole_origin() | value.whole_origin());
        self.spread | self.positional.iter().map(Value::whole_origin).chain(named).collect()
    }

    /// Returns the values of the positional and named arguments.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value<'a>> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value))
    }
}

impl<'a> Eval<'a> {
    pub(super) fn eval(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        match &expr.kind {
            ExprKind::Input(index) => Ok(super::input_value(*index, self.given[*index])),
            ExprKind::Local(local) => match self.frame[local.slot].repr {
                Repr::Unset => self.otherwise(local),
                _ => Ok(self.frame[local.slot].clone()),
            },
            ExprKind::Attr(value, name) => {
                if let Some(map) = self.given_map(value) {
                    let origin = self.path_origin(value);
                    return Ok(match map.get(name) {
                        Some(item) => Value::from_input(item, origin),
                        None => Value::new(Repr::Undefined, origin),
                    });
                }
                if let Some(found) = self.own_loop_field(value, name) {
                    return Ok(found);
                }
                let found = self.eval(value).and_then(|parent| self.attr(&parent, name, value));
                found.map_err(|error| error.at(expr.place.into()))
            }
            ExprKind::Const(constant) => Ok(Value::constant(constant)),
            _ => self.eval_other(expr).map_err(|error| error.at(expr.place.into())),
        }
    }

    /// Returns a map of the caller's by following the path of the expression, without creating intermediate values.
    #[inline]
    fn given_map(&self, expr: &'a Expr) -> Option<InputMap<'a>> {
        if let ExprKind::Local(local) = &expr.kind {
            return match self.frame[local.slot].repr {
                Repr::InputMap(map) => Some(map),
                _ => None,
            };
        }
        match self.given_at(expr)?.view() {
            View::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns a value of the caller's by following the path of the expression, without creating intermediate values.
    pub(super) fn given_at(&self, expr: &'a Expr) -> Option<InputRef<'a>> {
        match &expr.kind {
            ExprKind::Input(index) => match self.given[*index] {
                InputValue::Present(given) => Some(given),
                _ => None,
            },
            ExprKind::Attr(value, name) => self.given_map(value)?.get(name),
            _ => None,
        }
    }

    /// Returns the origin of the value at such a path. It is a separate function, because the value alone fits into
    /// registers.
    pub(super) fn path_origin(&self, expr: &'a Expr) -> Origin {
        let mut expr = expr;
        while let ExprKind::Attr(value, _) = &expr.kind {
            expr = value;
        }
        match &expr.kind {
            ExprKind::Input(index) => Origin::input(*index),
            ExprKind::Local(local) => self.frame[local.slot].origin,
            // No other path leads to a caller's value. If one did, its text must not count as the author's: a bit
            // without an input is never trusted.
            _ => Origin::input(usize::MAX),
        }
    }

    /// Returns whether a condition is true.
    pub(super) fn holds(&mut self, condition: &'a Expr) -> Result<bool> {
        if let Some(given) = self.given_at(condition)
            && let View::Bool(value) = given.view()
        {
            return Ok(value);
        }
        Ok(self.eval(condition)?.is_true())
    }

    #[inline(never)]
    fn otherwise(&mut self, local: &'a Local) -> Result<Value<'a>> {
        match &local.otherwise {
            Some(expr) => self.eval(expr),
            None => Ok(Value::written(Repr::Undefined, self.tree.authored())),
        }
    }

    /// Evaluates the less common expressions, to keep [`Eval::eval`] small. Each kind has its own function: in
    /// unoptimized builds, a single function would use stack space for every kind at each level.
    #[inline(never)]
    fn eval_other(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        match &expr.kind {
            ExprKind::Filter(named) if named.shortcut.is_some_and(Shortcut::is_default) => self.filter_default(named),
            ExprKind::Filter(named) => self.filter_named(named),
            ExprKind::Test(named) => self.test(named),
            ExprKind::Call(call) => self.call(call, expr),
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            ExprKind::Concat(parts) => self.concat(parts),
            ExprKind::And(left, right) => self.either(left, right, false),
            ExprKind::Or(left, right) => self.either(left, right, true),
            ExprKind::Not(value) => self.not(value),
            ExprKind::Ternary(ternary) => self.ternary(ternary),
            ExprKind::Outer(local) => self.outer_local(local),
            ExprKind::Item(value, index) => self.item_of(value, index),
            _ => self.eval_rare(expr),
        }
    }

    #[inline(never)]
    fn eval_rare(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        match &expr.kind {
            ExprKind::Slice(slice) => self.slice(slice),
            ExprKind::Neg(value) => self.negate(value),
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::List(items) => self.list(items, ListKind::List),
            ExprKind::Tuple(items) => self.list(items, ListKind::Tuple),
            ExprKind::Dict(pairs) => self.dict(pairs),
            ExprKind::Captured => Ok(self.captured.last().cloned().unwrap_or(Value::UNSET)),
            ExprKind::Function(function) => Ok(Value::written(Repr::Function(*function), function.authored())),
            ExprKind::HostFunction => Ok(Value::written(Repr::Undefined, self.tree.authored())),
            ExprKind::Caller(def) => Ok(self.make_macro(def, None)),
            ExprKind::Lookup(lookup) => self.lookup(lookup),
            _ => self.eval(expr),
        }
    }

    fn filter_default(&mut self, named: &'a Named) -> Result<Value<'a>> {
        let (value, by) = self.default_choice(named)?;
        self.chosen(value, by)
    }

    /// Returns the result of the filter `default`, and the inputs that contributed to choosing it.
    fn default_choice(&mut self, named: &'a Named) -> Result<(Value<'a>, Origin)> {
        let value = self.eval(&named.value)?;
        if !value.is_undefined() {
            return Ok((value, Origin::default()));
        }
        let default = match named.args.positional.first() {
            Some(Arg::One(default)) => self.eval(default)?,
            _ => Value::written(Repr::Str(""), self.tree.authored()),
        };
        Ok((default, value.origin))
    }

    /// Evaluates an expression whose value is written unchanged. A choice is only marked where it matters who chose it.
    #[inline(never)]
    pub(super) fn written_choice(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        let choice = match &expr.kind {
            ExprKind::Filter(named) if named.shortcut.is_some_and(Shortcut::is_default) => self.default_choice(named),
            ExprKind::And(left, right) => self.either_choice(left, right, false),
            ExprKind::Or(left, right) => self.either_choice(left, right, true),
            _ => return self.eval(expr),
        };
        let (value, by) = choice.map_err(|error| error.at(expr.place.into()))?;
        let is_final = self.captures == 0;
        if is_final && !influence::matters(&value, self.tree.notable) {
            return Ok(value);
        }
        self.chosen(value, by)
    }

    /// Marks a value with the inputs that contributed to choosing it.
    #[inline]
    pub(crate) fn chosen(&mut self, value: Value<'a>, by: Origin) -> Result<Value<'a>> {
        if by.is_within(value.origin) {
            return Ok(value);
        }
        self.budget.step(ops::weight(&value))?;
        Ok(influence::mark_choice(value, by, self.tree.notable))
    }

    /// Marks the separator of joined items with the inputs that decide how many items there are, because they also
    /// decide how often the separator is written.
    #[inline(never)]
    pub(crate) fn joiner(&mut self, joiner: Value<'a>, items: &Items<'a>) -> Result<Value<'a>> {
        match (items, self.tree.notable) {
            (Items::List(..), Some(_)) if may_break_marker(&joiner, items) => Ok(joiner.also(items.shape())),
            (Items::List(..), _) => self.chosen(joiner, items.shape()),
            // All items are the input's, so no marks are needed next to them.
            (Items::Input(_, origin), Some(notable)) if influence::has_line(&joiner, notable) => {
                Ok(joiner.also(*origin))
            }
            _ => Ok(joiner),
        }
    }

    /// Returns the functions that find notable parts of the author's text.
    pub(crate) fn notable(&self) -> Option<Notable> {
        self.tree.notable
    }

    fn filter_named(&mut self, named: &'a Named) -> Result<Value<'a>> {
        let value = self.eval(&named.value)?;
        let args = self.arguments(&named.args)?;
        self.filter(&named.name, value, args, &named.value)
    }

    fn test(&mut self, named: &'a Named) -> Result<Value<'a>> {
        let value = self.eval(&named.value)?;
        let args = self.arguments(&named.args)?;
        predicates::apply(self, &named.name, &value, &args)
    }

    /// Returns the left operand if its truth value is `wanted`, and the right one otherwise.
    fn either(&mut self, left: &'a Expr, right: &'a Expr, wanted: bool) -> Result<Value<'a>> {
        let (value, by) = self.either_choice(left, right, wanted)?;
        self.chosen(value, by)
    }

    fn either_choice(&mut self, left: &'a Expr, right: &'a Expr, wanted: bool) -> Result<(Value<'a>, Origin)> {
        let value = self.eval(left)?;
        if value.is_true() == wanted {
            return Ok((value, Origin::default()));
        }
        Ok((self.eval(right)?, value.whole_origin()))
    }

    fn not(&mut self, value: &'a Expr) -> Result<Value<'a>> {
        let value = self.eval(value)?;
        Ok(Value::bool(!value.is_true(), value.whole_origin()))
    }

    fn negate(&mut self, value: &'a Expr) -> Result<Value<'a>> {
        let operand = self.defined(value)?;
        ops::negate(&operand)
    }

    fn ternary(&mut self, ternary: &'a TernaryExpr) -> Result<Value<'a>> {
        if self.eval(&ternary.condition)?.is_true() {
            return self.eval(&ternary.then);
        }
        match &ternary.or_else {
            Some(expr) => self.eval(expr),
            None => Ok(Value::written(Repr::Silent, self.tree.authored())),
        }
    }

    fn outer_local(&mut self, local: &'a Local) -> Result<Value<'a>> {
        let value = self.outer.get(local.slot).filter(|value| !matches!(value.repr, Repr::Unset));
        match value.cloned() {
            Some(value) => Ok(value),
            None => self.otherwise(local),
        }
    }

    fn item_of(&mut self, value: &'a Expr, index: &'a Expr) -> Result<Value<'a>> {
        let parent = self.eval(value)?;
        let index = self.eval(index)?;
        self.item(&parent, &index, value)
    }

    /// Evaluates an operand that must be defined.
    pub(super) fn defined(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        let value = self.eval(expr)?;
        self.require_defined(&value, expr)?;
        Ok(value)
    }

    fn require_defined(&self, value: &Value<'a>, expr: &'a Expr) -> Result<()> {
        match value.repr {
            Repr::Undefined | Repr::Unset if !self.lenient => Err(self.undefined(expr)),
            _ => Ok(()),
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &'a Expr, right: &'a Expr) -> Result<Value<'a>> {
        let left = self.defined(left)?;
        let right = self.defined(right)?;
        match op {
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::In
            | BinaryOp::NotIn => {
                let holds = self.compare(op, &left, &right)?;
                Ok(Value::bool(holds, left.whole_origin() | right.whole_origin()))
            }
            _ => ops::arithmetic(op, &left, &right, &mut self.budget),
        }
    }

    fn compare(&mut self, op: BinaryOp, left: &Value<'a>, right: &Value<'a>) -> Result<bool> {
        let mut meter = self.budget.meter();
        let holds = compare(op, left, right, &mut meter)?;
        self.budget.pay(&meter)?;
        Ok(holds)
    }

    fn chain(&mut self, first: &'a Expr, rest: &'a [(BinaryOp, Expr)]) -> Result<Value<'a>> {
        let mut left = self.defined(first)?;
        let mut origin = left.whole_origin();
        for (op, expr) in rest {
            let right = self.defined(expr)?;
            origin |= right.whole_origin();
            if !self.compare(*op, &left, &right)? {
                return Ok(Value::bool(false, origin));
            }
            left = right;
        }
        Ok(Value::bool(true, origin))
    }

    fn concat(&mut self, parts: &'a [Expr]) -> Result<Value<'a>> {
        let mut text = TracedText::default();
        let (most, mut printed) = (self.budget.operation_bytes(), 0);
        for part in parts {
            let value = self.defined(part)?;
            self.budget.print(&value)?;
            self.budget.make(value.as_str().map_or(0, str::len))?;
            print::print(&value, &mut text)?;
            if value.as_str().is_none() {
                self.budget.make(text.as_str().len() - printed)?;
            }
            printed = text.as_str().len();
            if printed > most {
                // The operation as a whole is subject to the limit for one operation.
                self.budget.make(printed)?;
            }
        }
        self.budget.make(text.piece_ends().len().saturating_mul(size_of::<Piece>()))?;
        Ok(Value::text(text))
    }

    fn list(&mut self, items: &'a [Expr], kind: ListKind) -> Result<Value<'a>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.eval(item)?);
        }
        self.budget.make_list(values.len())?;
        shallow(Value::list(values, kind, self.tree.authored().origin()))
    }

    fn dict(&mut self, pairs: &'a [(Expr, Expr)]) -> Result<Value<'a>> {
        self.budget.make_list(pairs.len().saturating_mul(2))?;
        let mut dict = Dict::default();
        for (key, value) in pairs {
            let key = self.eval(key)?;
            let value = self.eval(value)?;
            let mut meter = self.budget.meter();
            dict.insert(key, value, &mut meter);
            self.budget.pay(&meter)?;
        }
        shallow(Value::dict(dict))
    }

    /// Looks up a Mustache name: in the enclosing contexts, innermost first, then in the inputs. Each further part of
    /// the name is looked up only in the value of the previous part.
    fn lookup(&mut self, lookup: &'a Lookup) -> Result<Value<'a>> {
        self.budget.step(lookup.contexts + lookup.rest.len())?;
        let mut meter = self.budget.meter();
        let mut searched = Origin::default();
        let mut in_context = None;
        for context in self.frame[..lookup.contexts].iter().rev() {
            in_context = match &*lookup.first {
                "" => Some(context.clone()),
                first => crate::template::eval::access::entry(context, first, &mut meter),
            };
            if in_context.is_some() {
                break;
            }
            searched |= ops::keys_origin(context);
        }
        let mut value = match (in_context, lookup.input) {
            (Some(value), _) => value,
            (None, Some(index)) => crate::template::eval::input_value(index, self.given[index]),
            (None, None) => Value::undefined(searched),
        };
        if value.is_undefined() {
            value = value.also(searched);
        }
        for name in &lookup.rest {
            value = match crate::template::eval::access::entry(&value, name, &mut meter) {
                Some(value) => value,
                None if matches!(value.repr, Repr::Rich(_)) => {
                    let help = "use it alone, as {{name}}; test it with {{#name}}";
                    return Err(print::rich_in_text().with_help(help));
                }
                None if value.is_absent() => value,
                None => Value::undefined(ops::keys_origin(&value)),
            };
            if value.is_undefined() {
                break;
            }
        }
        self.budget.pay(&meter)?;
        Ok(value)
    }

    pub(super) fn arguments(&mut self, args: &'a Args) -> Result<Arguments<'a>> {
        let mut arguments = Arguments::default();
        for arg in &args.positional {
            match arg {
                Arg::One(value) => arguments.positional.push(self.eval(value)?),
                Arg::All(list) => self.spread_list(list, &mut arguments)?,
            }
        }
        for arg in &args.named {
            match arg {
                NamedArg::One(name, value) => {
                    let name = Value::written(Repr::Str(name), name.authored());
                    arguments.named.push((name, self.eval(value)?));
                }
                NamedArg::All(map) => self.spread_map(map, &mut arguments)?,
            }
        }
        Ok(arguments)
    }

    fn spread_list(&mut self, list: &'a Expr, arguments: &mut Arguments<'a>) -> Result<()> {
        let list = self.defined(list)?;
        let items = self.iterate(&list)?;
        self.budget.make_list(items.len())?;
        arguments.spread |= items.shape();
        arguments.positional.extend(items.iter());
        Ok(())
    }

    fn spread_map(&mut self, map: &'a Expr, arguments: &mut Arguments<'a>) -> Result<()> {
        let map = self.defined(map)?;
        let Some(pairs) = self.entries(&map)?.filter(|_| !matches!(map.repr, Repr::Namespace(_))) else {
            let details = format!("`**`: expected a map, found {}", map.kind().name());
            return Err(Error::new(Kind::InvalidOperation, details));
        };
        arguments.spread |= ops::keys_origin(&map);
        for (key, value) in pairs {
            let name = filters::text::text(self, key)?;
            arguments.named.push((name, value));
        }
        Ok(())
    }

    /// Applies a filter.
    pub(crate) fn filter(
        &mut self,
        name: &str,
        value: Value<'a>,
        args: Arguments<'a>,
        source: &'a Expr,
    ) -> Result<Value<'a>> {
        let tolerant = filters::accepts_undefined(name);
        if !tolerant {
            self.require_defined(&value, source)?;
        }
        filters::apply(self, name, value, args)
    }

    /// Builds the error for an undefined value. It names what the template asked for.
    #[cold]
    pub(super) fn undefined(&self, expr: &'a Expr) -> Error {
        let error = Error::new(Kind::UndefinedVariable, self.describe(expr)).at(expr.place.into());
        error.with_help(self.undefined_help(expr))
    }

    fn undefined_help(&self, expr: &'a Expr) -> String {
        let fallback = if matches!(expr.kind, ExprKind::Lookup(_)) {
            "pass a value, or wrap it in a section of the same name; with `undefined: lenient`, undefined variables \
                render as an empty string"
        } else {
            "pass a value, or add a fallback with `| default(\"…\")`; with `undefined: lenient`, undefined variables \
                render as an empty string"
        };
        match self.guess(expr) {
            Some(guess) => format!("did you mean `{guess}`? Otherwise, {fallback}"),
            None => fallback.to_owned(),
        }
    }

    /// Guesses which name was meant by one that has no value. Only names of variables are candidates, because the
    /// contents of inputs must not appear in error messages.
    fn guess(&self, expr: &'a Expr) -> Option<String> {
        let wanted = match &expr.kind {
            // A name that has a value is not misspelled.
            ExprKind::Input(index) if !matches!(self.given[*index], crate::template::eval::InputValue::Missing) => {
                return None;
            }
            ExprKind::Input(index) => &*self.tree.inputs[*index].name,
            ExprKind::Local(local) | ExprKind::Outer(local) => &*local.name,
            ExprKind::Lookup(lookup) if lookup.rest.is_empty() => &*lookup.first,
            ExprKind::Attr(value, _) | ExprKind::Item(value, _) => return self.guess(value),
            _ => return None,
        };
        let given = self.tree.inputs.iter().zip(self.given);
        let given = given.filter(|(_, value)| !matches!(value, crate::template::eval::InputValue::Missing));
        filters::nearest(wanted, given.map(|(input, _)| &*input.name)).map(str::to_owned)
    }

    /// Returns the name of an expression for error messages.
    fn describe(&self, expr: &'a Expr) -> String {
        match &expr.kind {
            ExprKind::Input(index) => self.tree.inputs[*index].name.to_string(),
            ExprKind::Local(local) | ExprKind::Outer(local) => local.name.to_string(),
            ExprKind::Attr(value, name) => format!("{}.{name}", self.describe(value)),
            ExprKind::Item(value, index) => match &index.kind {
                ExprKind::Const(super::super::tree::Const::Str(key)) => format!("{}[\"{key}\"]", self.describe(value)),
                ExprKind::Const(super::super::tree::Const::Int(key)) => format!("{}[{key}]", self.describe(value)),
                _ => format!("{}[…]", self.describe(value)),
            },
            ExprKind::Filter(named) => format!("{} | {}", self.describe(&named.value), named.name),
            ExprKind::Lookup(lookup) => {
                let rest = lookup.rest.iter().map(|name| format!(".{name}")).collect::<String>();
                format!("{}{rest}", lookup.first)
            }
            ExprKind::Call(call) => match &call.callee {
                crate::template::tree::Callee::Name(_, name) => format!("{name}(…)"),
                crate::template::tree::Callee::Method(value, name) => format!("{}.{name}(…)", self.describe(value)),
                crate::template::tree::Callee::Value(value) => format!("{}(…)", self.describe(value)),
            },
            _ => "this expression".to_owned(),
        }
    }
}

/// Compares two values with an operator.
pub(crate) fn compare(op: BinaryOp, left: &Value<'_>, right: &Value<'_>, meter: &mut Meter) -> Result<bool> {
    Ok(match op {
        BinaryOp::Eq => ops::equal(left, right, meter),
        BinaryOp::Ne => !ops::equal(left, right, meter),
        BinaryOp::Lt => ops::compare(left, right, meter).is_lt(),
        BinaryOp::Le => ops::compare(left, right, meter).is_le(),
        BinaryOp::Gt => ops::compare(left, right, meter).is_gt(),
        BinaryOp::Ge => ops::compare(left, right, meter).is_ge(),
        BinaryOp::In => ops::contains(right, left, meter)?,
        BinaryOp::NotIn => !ops::contains(right, left, meter)?,
        _ => false,
    })
}

/// Returns the value, or an error if its containers are nested too deeply.
pub(crate) fn shallow(value: Value<'_>) -> Result<Value<'_>> {
    if value.is_too_deep() { Err(print::too_deep()) } else { Ok(value) }
}

/// Returns whether a separator can break a role marker of the author's: an input in an attribute of the marker may have
/// split it, and so decide where the separator is written.
fn may_break_marker(joiner: &Value<'_>, items: &Items<'_>) -> bool {
    let breaks = |text: &str| text.contains(['\n', ']', '"', ',', '=']);
    let opens = |text: &str| memchr::memchr(b'[', text.as_bytes()).is_some();
    let has_attributes = |item: &Value<'_>| match &item.repr {
        Repr::Str(text) => opens(text),
        Repr::Text(text) => text.traced.pieces().any(|(piece, origin)| origin.is_author() && opens(piece)),
        _ => false,
    };
    !items.shape().is_author()
        && joiner.as_str().is_some_and(breaks)
        && items.iter().any(|item| item.origin.is_author() && has_attributes(&item))
}
