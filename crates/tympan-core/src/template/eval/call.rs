//! Calls: macros, functions, methods, and recursive loops.

use std::rc::Rc;

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::eval::expr::{Arguments, shallow};
use crate::template::eval::host;
use crate::template::eval::methods;
use crate::template::tree::{Args, CallExpr, Callee, Expr, Function, MacroDef};
use crate::template::value::dict::Dict;
use crate::template::value::ops;
use crate::template::value::print;
use crate::template::value::{ListKind, LoopState, MacroValue, Repr, Value, ValueKind};
use crate::text::origin::Origin;

/// The maximum number of elements of a range, as in minijinja.
const MAX_RANGE: i128 = 100_000;

impl<'a> Eval<'a> {
    /// Creates a macro value with the values that it captures from the enclosing macro.
    pub(super) fn make_macro(&mut self, def: &'a MacroDef, own_slot: Option<usize>) -> Value<'a> {
        let captured: Vec<_> = def.captures.iter().map(|(slot, _)| self.frame[*slot].clone()).collect();
        let depth = captured.iter().map(Value::depth).max().unwrap_or(0);
        let value = MacroValue { def, captured, own_slot, depth };
        Value::written(Repr::Macro(Rc::new(value)), def.authored())
    }

    /// Writes the result of calling a macro or a loop directly to the output. Returns whether the expression was such a
    /// call.
    pub(super) fn emit_call(&mut self, call: &'a CallExpr, expr: &'a Expr) -> Result<bool> {
        let Callee::Name(callee, _) = &call.callee else { return Ok(false) };
        if self.escape != crate::template::eval::Escape::None {
            return Ok(false);
        }
        match self.eval(callee)?.repr {
            Repr::Macro(value) => {
                let args = self.arguments(&call.args)?;
                self.run_macro(&value, args).map_err(|error| error.at(expr.place.into()))?;
            }
            Repr::Loop(state) => {
                let args = self.arguments(&call.args)?;
                self.recurse(&state, &args).map_err(|error| error.at(expr.place.into()))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn call(&mut self, call: &'a CallExpr, expr: &'a Expr) -> Result<Value<'a>> {
        match &call.callee {
            Callee::Name(callee, name) => self.call_named(callee, name, &call.args),
            Callee::Method(value, name) => self.call_method_of(value, name, &call.args, expr),
            Callee::Value(callee) => {
                let function = self.defined(callee)?;
                self.call_with(&function, &call.args)
            }
        }
    }

    fn call_named(&mut self, callee: &'a Expr, name: &str, args: &'a Args) -> Result<Value<'a>> {
        let function = self.eval(callee)?;
        if function.is_undefined() {
            return self.call_host(callee, name, args);
        }
        self.call_with(&function, args)
    }

    /// Calls a function that the host has registered.
    fn call_host(&mut self, callee: &'a Expr, name: &str, args: &'a Args) -> Result<Value<'a>> {
        let Some(function) = self.functions.and_then(|functions| functions.function(name)) else {
            return Err(host::unknown_function(self, name).at(callee.place.into()));
        };
        let args = self.arguments(args)?;
        host::call_function(self, name, &*function, args)
    }

    fn call_method_of(&mut self, value: &'a Expr, name: &str, args: &'a Args, expr: &'a Expr) -> Result<Value<'a>> {
        let value = self.defined(value)?;
        if value.is_absent() {
            let args = self.arguments(args)?;
            return Ok(value.also(args.origin()));
        }
        if value.is_undefined() {
            return Err(self.undefined(expr));
        }
        let args = self.arguments(args)?;
        self.call_method(&value, name, args)
    }

    fn call_with(&mut self, function: &Value<'a>, args: &'a Args) -> Result<Value<'a>> {
        let args = self.arguments(args)?;
        self.call_value(function, args)
    }

    fn call_value(&mut self, function: &Value<'a>, args: Arguments<'a>) -> Result<Value<'a>> {
        match &function.repr {
            Repr::Macro(value) => {
                let value = value.clone();
                Ok(self.capture(|eval| eval.run_macro(&value, args))?.0)
            }
            Repr::Loop(state) => {
                let state = state.clone();
                Ok(self.capture(|eval| eval.recurse(&state, &args))?.0)
            }
            Repr::Function(Function::Range) => self.range(&args),
            Repr::Function(Function::Dict) => self.make_dict(args),
            Repr::Function(Function::Namespace) => self.make_namespace(args),
            _ => Err(Error::new(Kind::InvalidOperation, format_args!("cannot call {}", function.kind().name()))),
        }
    }

    fn call_method(&mut self, value: &Value<'a>, name: &str, args: Arguments<'a>) -> Result<Value<'a>> {
        let attribute = match &value.repr {
            Repr::Loop(state) => return loop_method(self, state, name, args),
            Repr::Rich(_) => return Err(print::rich_in_text()),
            _ => self.entry(value, name)?,
        };
        match attribute {
            Some(function) if matches!(function.repr, Repr::Macro(_) | Repr::Function(_)) => {
                self.call_value(&function, args)
            }
            _ => methods::call(self, value, name, args),
        }
    }

    /// Runs a macro's body and writes its text to the output.
    fn run_macro(&mut self, value: &Rc<MacroValue<'a>>, args: Arguments<'a>) -> Result<()> {
        let def = value.def;
        let bytes = def.frame_size.saturating_mul(size_of::<Value<'_>>());
        self.budget.fill(def.frame_size)?;
        self.budget.hold(bytes)?;
        let mut frame = macro_frame(value, args)?;
        self.enter(def.stack)?;
        self.frames_made += 1;
        let frame_id = std::mem::replace(&mut self.frame_id, self.frames_made);
        std::mem::swap(&mut self.frame, &mut frame);
        let is_outermost = frame_id == 0;
        if is_outermost {
            std::mem::swap(&mut self.outer, &mut frame);
        }
        let result = self.macro_body(def);
        if is_outermost {
            std::mem::swap(&mut self.outer, &mut frame);
        }
        self.frame = frame;
        self.frame_id = frame_id;
        self.leave(def.stack);
        self.budget.release(bytes);
        result
    }

    /// Enters a call whose body takes up this much of the stack.
    fn enter(&mut self, stack: usize) -> Result<()> {
        self.calls += 1;
        self.stack += stack;
        self.budget.call(self.calls, self.stack)
    }

    fn leave(&mut self, stack: usize) {
        self.calls -= 1;
        self.stack -= stack;
    }

    fn macro_body(&mut self, def: &'a MacroDef) -> Result<()> {
        for (slot, param) in def.params.iter().enumerate() {
            if self.frame[slot].is_undefined()
                && let Some(default) = &param.default
            {
                self.frame[slot] = self.eval(default)?;
            }
        }
        self.block(&def.body)?;
        Ok(())
    }

    /// Runs a recursive loop again with other items.
    fn recurse(&mut self, state: &Rc<LoopState<'a>>, args: &Arguments<'a>) -> Result<()> {
        let Some(node) = state.recursion.filter(|_| state.frame_id == self.frame_id) else {
            let error = Error::new(Kind::InvalidOperation, "`loop` can only be called in the body of a recursive loop");
            return Err(error.with_help("write `{% for … recursive %}`"));
        };
        let [value] = args.positional.as_slice() else {
            return Err(Error::new(Kind::InvalidOperation, "`loop` expects one argument, the value to loop over"));
        };
        let items = self.iterate(value)?;
        self.enter(node.stack)?;
        let bytes = node.all.len().saturating_mul(size_of::<Value<'_>>());
        self.budget.fill(node.all.len())?;
        self.budget.hold(bytes)?;
        let kept = self.frame[node.all.clone()].to_vec();
        let result = self.run_loop(node, items, state.depth + 1);
        self.frame[node.all.clone()].clone_from_slice(&kept);
        self.budget.release(bytes);
        self.leave(node.stack);
        result
    }

    fn range(&mut self, args: &Arguments<'a>) -> Result<Value<'a>> {
        no_names("range", args)?;
        let origin = args.origin();
        let numbers: Option<Vec<i128>> = args
            .positional
            .iter()
            .map(|arg| arg.as_int().filter(|int| i64::try_from(*int).is_ok() && arg.kind() == ValueKind::Number))
            .collect();
        let (start, stop, step) = match numbers.as_deref() {
            Some([stop]) => (0, *stop, 1),
            Some([start, stop]) => (*start, *stop, 1),
            Some([start, stop, step]) if *step != 0 => (*start, *stop, *step),
            _ => {
                let error =
                    Error::new(Kind::InvalidOperation, "`range` expects one to three integers and a step other than 0");
                return Err(error.with_help("write range(stop), range(start, stop) or range(start, stop, step)"));
            }
        };
        let distance = if step > 0 { stop - start } else { start - stop };
        let len = (distance.max(0) + step.abs() - 1) / step.abs();
        if len > MAX_RANGE {
            let details = format!("range has more than {MAX_RANGE} elements");
            return Err(Error::new(Kind::LimitExceeded, details));
        }
        let len = len as usize;
        self.budget.make_list(len)?;
        let items = (0..len).map(|index| Value::int(start + index as i128 * step, origin)).collect();
        Ok(Value::list(items, ListKind::Iterable, origin).also(origin))
    }

    fn make_dict(&mut self, args: Arguments<'a>) -> Result<Value<'a>> {
        let mut dict = self.base_dict("dict", &args)?;
        let mut meter = self.budget.meter();
        for (name, value) in args.named {
            dict.insert(name, value, &mut meter);
        }
        self.budget.pay(&meter)?;
        shallow(Value::dict(dict))
    }

    fn make_namespace(&mut self, args: Arguments<'a>) -> Result<Value<'a>> {
        let made = self.make_dict(args)?;
        self.budget.make_list(made.len().unwrap_or(0).saturating_mul(2).saturating_add(4))?;
        if let Repr::Dict(dict) = made.repr {
            self.namespaces.push(Rc::unwrap_or_clone(dict));
        }
        Ok(Value::namespace(self.namespaces.len() - 1))
    }

    fn base_dict(&mut self, function: &str, args: &Arguments<'a>) -> Result<Dict<'a>> {
        let mut dict = Dict::shaped_by(args.spread);
        let entries = match args.positional.as_slice() {
            [] => return Ok(dict),
            [base] if base.is_undefined() => return Ok(Dict::shaped_by(args.spread | base.origin)),
            [base] => {
                dict = Dict::shaped_by(args.spread | base.origin);
                self.entries(base)?
            }
            _ => None,
        };
        let Some(entries) = entries else {
            let details = format!("`{function}` expects a map or named arguments");
            return Err(Error::new(Kind::InvalidOperation, details));
        };
        let mut meter = self.budget.meter();
        for (key, value) in entries {
            dict.insert(key, value, &mut meter);
        }
        self.budget.pay(&meter)?;
        Ok(dict)
    }
}

/// Creates the frame of a macro call.
fn macro_frame<'a>(value: &Rc<MacroValue<'a>>, args: Arguments<'a>) -> Result<crate::template::eval::Frame<'a>> {
    let def = value.def;
    let mut frame: crate::template::eval::Frame<'a> = vec![Value::UNSET; def.frame_size];
    bind_arguments(def, args, &mut frame)?;
    for ((outer, inner), captured) in def.captures.iter().zip(&value.captured) {
        let is_itself = Some(*outer) == value.own_slot;
        frame[*inner] =
            if is_itself { Value::written(Repr::Macro(value.clone()), def.authored()) } else { captured.clone() };
    }
    Ok(frame)
}

/// Stores arguments in the slots of a macro's parameters.
fn bind_arguments<'a>(def: &MacroDef, args: Arguments<'a>, frame: &mut [Value<'a>]) -> Result<()> {
    let fail = |details: String| Err(Error::new(Kind::InvalidOperation, details));
    if args.positional.len() > def.params.len() {
        return fail(format!(
            "macro `{}` expects at most {} arguments, found {}",
            def.name,
            def.params.len(),
            args.positional.len()
        ));
    }
    let given = args.positional.len();
    for (slot, value) in args.positional.into_iter().enumerate() {
        frame[slot] = value;
    }
    let missing = Value::undefined(args.spread);
    frame[given..def.params.len()].fill(missing.clone());
    frame[def.caller_slot] = missing;
    for (name, value) in args.named {
        let name = name.as_str().unwrap_or_default();
        match def.params.iter().position(|param| *param.name == *name) {
            Some(slot) if slot < given => return fail(format!("macro `{}` receives `{name}` twice", def.name)),
            Some(slot) => frame[slot] = value,
            None if name == "caller" => frame[def.caller_slot] = value,
            None => return fail(format!("macro `{}` does not have a parameter with this name", def.name)),
        }
    }
    Ok(())
}

fn loop_method<'a>(
    eval: &mut Eval<'a>,
    state: &Rc<LoopState<'a>>,
    name: &str,
    args: Arguments<'a>,
) -> Result<Value<'a>> {
    match name {
        "cycle" => {
            let index = state.index.get().checked_rem(args.positional.len()).unwrap_or(0);
            let spread = args.spread;
            let value = args.positional.into_iter().nth(index).unwrap_or(Value::undefined(spread));
            eval.chosen(value, spread)
        }
        "changed" => {
            let mut meter = eval.budget.meter();
            let mut last = state.last_changed.borrow_mut();
            let same = last.as_ref().is_some_and(|last| {
                last.len() == args.positional.len()
                    && last.iter().zip(&args.positional).all(|(a, b)| ops::equal(a, b, &mut meter))
            });
            eval.budget.pay(&meter)?;
            let before = last.iter().flatten().map(Value::whole_origin).collect::<Origin>();
            let origin = args.origin() | before;
            if !same && !state.ended.get() {
                *last = Some(args.positional);
            }
            Ok(Value::bool(!same, origin))
        }
        _ => {
            Err(Error::new(Kind::UnknownFunction, format_args!("loop.{name}"))
                .with_help("known methods: cycle, changed"))
        }
    }
}

fn no_names(function: &str, args: &Arguments<'_>) -> Result<()> {
    if args.named.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::InvalidOperation, format_args!("`{function}` does not accept named arguments")))
}
