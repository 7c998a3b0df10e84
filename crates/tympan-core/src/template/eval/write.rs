//! Writing to the output: interpolations, their notable parts, and escaping.

use crate::error::Result;
use crate::template::eval::{Escape, Eval, InputValue};
use crate::template::input::{InputRef, View};
use crate::template::tree::{Arg, Expr, ExprKind, Literal, Named, Shortcut};
use crate::template::value::print;
use crate::template::value::{Items, Repr, Value, ValueKind};
use crate::text::origin::Origin;
use crate::text::traced::{Note, TracedText};

/// The approximate size of a line that starts a message, and of the message.
const NOTE_BYTES: usize = 256;

impl<'a> Eval<'a> {
    pub(super) fn emit(&mut self, expr: &'a Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Call(call) if self.emit_call(call, expr)? => return Ok(()),
            ExprKind::Filter(named) if self.escape == Escape::None && self.emit_filter(named, expr)? => return Ok(()),
            ExprKind::Input(_) | ExprKind::Attr(..) if self.escape == Escape::None => {
                if let Some(given) = self.given_at(expr)
                    && self.emit_given(given, expr)?
                {
                    return Ok(());
                }
            }
            _ => {}
        }
        let value = match &expr.kind {
            ExprKind::Filter(_) | ExprKind::And(..) | ExprKind::Or(..) => self.written_choice(expr)?,
            _ => self.eval(expr)?,
        };
        self.write(&value, expr)
    }

    /// Writes a value of the caller's if it needs no further processing. Returns whether it was written.
    #[inline]
    fn emit_given(&mut self, given: InputRef<'a>, expr: &'a Expr) -> Result<bool> {
        match given.view() {
            View::Str(text) => {
                self.budget.output(self.out.as_str().len() + text.len())?;
                self.out.push(text, self.path_origin(expr));
            }
            View::Int(_) | View::Uint(_) | View::Float(_) | View::Bool(_) => {
                print::print_given(given, self.path_origin(expr), &mut self.out)?;
                self.budget.output(self.out.as_str().len())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Records that an interpolation that started at `start` ends here. If it called a macro that wrote directly to the
    /// output, the macro's own interpolations are merged into this one.
    #[inline(never)]
    pub(super) fn mark_end(&mut self, start: usize) {
        if self.captures > 0 {
            return;
        }
        if let Some(ends) = &mut self.ends {
            while ends.last().is_some_and(|end| *end > start) {
                ends.pop();
            }
            ends.push(self.out.as_str().len());
        }
    }

    /// Writes the result of a filter directly to the output, if the filter has a shortcut.
    #[inline]
    fn emit_filter(&mut self, named: &'a Named, expr: &'a Expr) -> Result<bool> {
        match named.shortcut {
            Some(Shortcut::PlainDefault) if self.captures == 0 => self.emit_default(named, expr),
            Some(Shortcut::Join) => self.emit_join(named).map_err(|error| error.at(expr.place.into())),
            _ => Ok(false),
        }
    }

    /// Writes a value, or the author's default if the value is undefined. This is only used where it does not matter
    /// who chose the text.
    #[inline(never)]
    fn emit_default(&mut self, named: &'a Named, expr: &'a Expr) -> Result<bool> {
        let value = self.eval(&named.value)?;
        match named.args.positional.first() {
            // A plain default cannot be notable, so it is not searched.
            Some(Arg::One(default)) if value.is_undefined() => {
                let default = self.eval(default)?;
                self.write_value(&default, expr)?;
            }
            _ => self.write(&value, expr)?,
        }
        Ok(true)
    }

    /// Writes the elements of a list with a separator, which is the result of the filter `join`, without creating an
    /// intermediate text.
    fn emit_join(&mut self, named: &'a Named) -> Result<bool> {
        let value = self.defined(&named.value)?;
        let Some(items) = crate::template::value::ops::sequence(&value) else { return Ok(false) };
        let joiner = match named.args.positional.first() {
            Some(Arg::One(joiner)) => {
                let joiner = self.defined(joiner)?;
                let is_plain = matches!(joiner.repr, Repr::Str(text) if !text.bytes().any(|byte| byte == b'\n'));
                let is_given = matches!(items, Items::Input(..));
                Some(if is_plain && is_given { joiner } else { self.joiner(joiner, &items)? })
            }
            _ => None,
        };
        self.budget.step(items.len())?;
        let start = self.out.as_str().len();
        for index in 0..items.len() {
            match &joiner {
                Some(Value { repr: Repr::Str(text), origin }) if index > 0 => self.out.push(text, *origin),
                Some(joiner) if index > 0 => {
                    self.budget.print(joiner)?;
                    self.budget.output(self.out.as_str().len() + joiner.as_str().map_or(0, str::len))?;
                    print::print(joiner, &mut self.out)?;
                }
                _ => {}
            }
            match &items {
                Items::Input(items, origin) => match items.get(index).map(|item| (item, item.view())) {
                    Some((_, View::Str(text))) => self.out.push(text, *origin),
                    Some((item, _)) => {
                        self.budget.print(&Value::from_input(item, *origin))?;
                        print::print_given(item, *origin, &mut self.out)?;
                    }
                    None => {}
                },
                Items::List(..) => {
                    if let Some(item) = items.get(index) {
                        self.budget.print(&item)?;
                        print::print(&item, &mut self.out)?;
                    }
                }
            }
            self.budget.output(self.out.as_str().len())?;
        }
        if self.out.as_str().len() == start {
            self.out.push("", value.whole_origin());
        } else {
            self.out.mark(items.shape());
        }
        let joins_notably = |joiner: &Value<'_>| joiner.origin.is_author() && self.is_notable(joiner);
        if value.origin.is_author() || joiner.as_ref().is_some_and(joins_notably) {
            self.note(start);
        }
        Ok(true)
    }

    /// Records that the text written since `start` may contain notable text of the author's.
    fn note(&mut self, start: usize) {
        if self.captures == 0 && self.tree.notable.is_some() {
            self.notable.push(Note { range: start..self.out.as_str().len(), is_line: false });
        }
    }

    /// Records the notable parts of a literal that is about to be written, and charges for the messages they may start.
    pub(super) fn note_literal(&mut self, literal: &Literal) -> Result<()> {
        self.budget.hold(literal.notable.len().saturating_mul(NOTE_BYTES))?;
        if self.captures > 0 {
            return Ok(());
        }
        let start = self.out.as_str().len();
        for place in &literal.notable {
            let begins_line = place.start > 0 || self.out.is_untouched();
            let is_line = begins_line && place.end < literal.text.len();
            self.notable.push(Note { range: start + place.start..start + place.end, is_line });
        }
        Ok(())
    }

    /// Returns whether a value that the author contributed to may be notable when it is written. If others may have
    /// contributed to it as well, the answer is always yes.
    fn is_notable(&self, value: &Value<'_>) -> bool {
        match (&value.repr, self.tree.notable) {
            (_, None) => false,
            (Repr::Str(text), Some(notable)) => !(notable.lines)(text).is_empty(),
            (Repr::Int(_) | Repr::Float(_) | Repr::Bool(_) | Repr::None, _) => false,
            _ => true,
        }
    }

    /// Writes a value to the output.
    #[inline]
    pub(super) fn write(&mut self, value: &Value<'a>, expr: &'a Expr) -> Result<()> {
        let start = self.out.as_str().len();
        self.write_value(value, expr)?;
        if value.origin.is_author() && self.is_notable(value) {
            self.note(start);
        }
        Ok(())
    }

    #[inline]
    fn write_value(&mut self, value: &Value<'a>, expr: &'a Expr) -> Result<()> {
        match &value.repr {
            Repr::Str(text) if self.escape == Escape::None => {
                self.budget.output(self.out.as_str().len() + text.len())?;
                self.out.push(text, value.origin);
                Ok(())
            }
            Repr::Undefined | Repr::Unset if !self.lenient => Err(self.undefined(expr)),
            Repr::Rich(index) => self.write_rich(*index, expr),
            _ if self.escape != Escape::None => self.write_escaped(value),
            _ => {
                if let Repr::Text(text) = &value.repr {
                    self.budget.output(self.out.as_str().len() + text.traced.as_str().len())?;
                }
                self.budget.print(value)?;
                print::print(value, &mut self.out)?;
                self.budget.output(self.out.as_str().len())
            }
        }
    }

    fn write_rich(&mut self, index: usize, expr: &'a Expr) -> Result<()> {
        if self.captures > 0 {
            return Err(print::rich_in_text().at(expr.place.into()));
        }
        let start = self.out.as_str().len();
        if let Some(InputValue::Rich(rich)) = self.given.get(index) {
            // The first time, the caller's own value is used. Every further time makes a copy.
            if self.written_rich.contains(index) {
                self.budget.make(NOTE_BYTES.saturating_add(rich.copy_bytes()))?;
            }
            self.written_rich |= Origin::input(index);
            self.out.push(rich.nonce(), Origin::input(index));
            self.rich.push((start..self.out.as_str().len(), index));
            self.budget.output(self.out.as_str().len())?;
        }
        Ok(())
    }

    fn write_escaped(&mut self, value: &Value<'a>) -> Result<()> {
        let escaped = self.escaped(value)?;
        self.out.append(&escaped);
        self.budget.output(self.out.as_str().len())
    }

    /// Returns whether values are escaped when they are written.
    pub(super) fn escapes(&self) -> bool {
        self.escape != Escape::None
    }

    /// Returns a value as the current escaping mode writes it, as safe text.
    pub(super) fn escaped_text(&mut self, value: &Value<'a>) -> Result<Value<'a>> {
        if value.is_safe() {
            return Ok(value.clone());
        }
        self.escaped(value).map(Value::safe_text)
    }

    /// Returns a value as the current escaping mode writes it.
    fn escaped(&mut self, value: &Value<'a>) -> Result<TracedText> {
        let mut text = TracedText::default();
        self.budget.print(value)?;
        if self.escape == Escape::Json {
            crate::template::eval::filters::print_json(value, &mut text)?;
            return Ok(text);
        }
        print::print(value, &mut text)?;
        let is_plain = matches!(value.kind(), ValueKind::Bool | ValueKind::Number | ValueKind::None);
        if value.is_safe() || is_plain {
            return Ok(text);
        }
        self.budget.make(super::filters::escaped_len(&text))?;
        Ok(super::filters::escape_html(&text))
    }
}
