//! Calls, attributes that filters read, and comparisons with the values that a declaration lists.

use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::jinja::ast::{
    Argument, ArgumentKind, Call, CompareOperator, Expression, ExpressionKind,
};
use tympan_core::text::source::Span;

use super::known::{Known, is_closed, item_of, known_property};
use super::{BindingKind, Callee, NamedCall, Scan, UnknownAttribute, text_literal};

impl<'p> Scan<'_, 'p> {
    pub(super) fn function_call(&mut self, node: &Call) {
        self.arguments(&node.args);
        match &node.callee.kind {
            ExpressionKind::Name => {
                let name = self.text(node.callee.span);
                self.read(name);
                let bindings = self.active.get(name).map(Vec::as_slice).unwrap_or_default();
                let callee = match bindings {
                    [] if !self.declarations.inputs.contains_key(name) => Callee::Name(NameKind::Function),
                    [only] => {
                        let binding = &self.names.bindings[*only];
                        match &binding.params {
                            Some(params) => Callee::Macro(params.clone()),
                            None if binding.kind == BindingKind::Special && name == "loop" => Callee::Loop,
                            None => return,
                        }
                    }
                    _ => return,
                };
                self.call(callee, name, node.callee.span, &node.args);
            }
            // Whether a value has a method is not a question of its declaration.
            ExpressionKind::Attribute(attribute) => self.expressions([&attribute.value]),
            _ => self.expressions([&node.callee]),
        }
    }

    pub(super) fn call(&mut self, callee: Callee<'p>, name: &'p str, span: Span, args: &[Argument]) {
        let mut call = NamedCall { callee, name, span, positional: 0, named: Vec::new(), has_spread: false };
        for arg in args {
            match arg.kind {
                ArgumentKind::Positional => call.positional += 1,
                ArgumentKind::Named(name) => call.named.push((self.text(name), name)),
                _ => call.has_spread = true,
            }
        }
        self.names.calls.push(call);
    }

    /// Reports the attribute that a filter reads from the items of a declared list, if they do not have it.
    pub(super) fn attribute_of_items(&mut self, filter: &str, list: Known<'p>, of: &Expression, args: &[Argument]) {
        let Known::Declared(list) = list else { return };
        let Known::Declared(mut owner) = item_of(list) else { return };
        let Some((path, at)) = self.attribute_argument(filter, args) else { return };
        let (of, mut of_item, mut start) = (of.span, true, 0);
        for part in path.split('.') {
            // A number is the index of an item.
            if part.is_empty() || part.bytes().all(|byte| byte.is_ascii_digit()) {
                return;
            }
            match known_property(owner, part) {
                Some(Known::Declared(property)) => owner = property,
                Some(Known::Nothing) => return,
                None if is_closed(owner) => {
                    let span = Span::new(at + start, at + start + part.len());
                    let text = if of_item { self.text(of) } else { &path[..start - 1] };
                    let unknown =
                        UnknownAttribute { span, name: part, owner: text, of_item, text: path, declaration: owner };
                    return self.names.unknown_attributes.push(unknown);
                }
                None => return,
            }
            (of_item, start) = (false, start + part.len() + 1);
        }
    }

    /// Returns the path of the attribute that a filter reads, and its position. Attributes that may be missing are left out.
    fn attribute_argument(&self, filter: &str, args: &[Argument]) -> Option<(&'p str, usize)> {
        let named = |wanted: &str| {
            args.iter().find(|arg| matches!(arg.kind, ArgumentKind::Named(name) if self.text(name) == wanted))
        };
        let mut positional = args.iter().filter(|arg| arg.kind == ArgumentKind::Positional);
        let arg = match filter {
            "selectattr" | "rejectattr" => {
                let arg = positional.next();
                let test = positional.next().and_then(|test| text_literal(&test.value, self.source));
                arg.filter(|_| !matches!(test, Some("defined" | "undefined" | "none")))
            }
            "groupby" | "sum" => named("attribute").or_else(|| positional.next()),
            "map" | "sort" | "min" | "max" | "unique" | "join" => named("attribute"),
            _ => None,
        };
        let arg = arg.filter(|_| named("default").is_none())?;
        Some((text_literal(&arg.value, self.source)?, arg.value.span.start + 1))
    }

    pub(super) fn comparison(
        &mut self,
        left: (Known<'p>, &Expression),
        operator: CompareOperator,
        right: (Known<'p>, &Expression),
    ) {
        use CompareOperator::{Equal, In, NotEqual, NotIn};
        let pairs = match operator {
            Equal | NotEqual => vec![(left.0, right.1), (right.0, left.1)],
            In | NotIn => match &right.1.unparenthesized().kind {
                ExpressionKind::List(items) | ExpressionKind::Tuple(items) => {
                    items.iter().map(|item| (left.0, item)).collect()
                }
                _ => return,
            },
            _ => return,
        };
        for (known, literal) in pairs {
            let Known::Declared(declaration) = known else { continue };
            let Some(values) = declaration.enum_values.as_ref().filter(|values| !values.is_empty()) else { continue };
            let literal = literal.unparenthesized();
            let Some(text) = text_literal(literal, self.source) else { continue };
            if values.iter().all(|value| value.as_str().is_some_and(|value| value != text)) {
                self.names.unknown_values.push((literal.span, text, declaration));
            }
        }
    }
}
