//! Calls, and comparisons with the values that a declaration lists.

use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::jinja::ast::{
    Argument, ArgumentKind, Call, CompareOperator, Expression, ExpressionKind,
};
use tympan_core::text::source::Span;

use super::known::Known;
use super::{BindingKind, Callee, NamedCall, Scan, text_literal};

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
