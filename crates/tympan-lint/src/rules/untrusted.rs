//! Untrusted inputs, for the rules about where they go.

use tympan_core::spec::schema::PropertyKind;
use tympan_core::template::flow::{How, Sink};

use crate::context::{Compiled, Context, TemplateContext};

/// A place where the text of an untrusted input is written.
pub(super) struct UntrustedText<'c, 'p> {
    pub(super) template: &'c TemplateContext<'p>,
    pub(super) sink: &'c Sink,
    pub(super) name: &'p str,
    /// The index of the message in the template.
    pub(super) message: usize,
    /// Whether it is on the line of the message's marker.
    pub(super) in_marker: bool,
}

/// Returns the places where untrusted text is written, in the order of the templates.
pub(super) fn untrusted_text<'c, 'p>(context: &'c Context<'p>) -> Vec<UntrustedText<'c, 'p>> {
    let mut found = Vec::new();
    for (template, compiled) in context.compiled() {
        for sink in &compiled.flow.sinks {
            if sink.how == How::Decides || context.is_trusted(sink.input) || !can_hold_text(context, sink.input) {
                continue;
            }
            // In a Mustache section, a name that is not declared is probably a key of the section's value.
            let name = compiled.input_name(sink.input);
            if context.declaration(sink.input).is_none() && !compiled.is_undeclared(name) {
                continue;
            }
            let Some((message, written)) = template.message_at(sink.span.start) else { continue };
            let in_marker = written.marker.is_some_and(|marker| marker.range().contains(&sink.span.start));
            found.push(UntrustedText { template, sink, name, message, in_marker });
        }
    }
    found
}

/// Returns whether the declaration of an input allows text of any kind. Numbers, booleans and the values of an enum
/// cannot contain instructions, and a thread becomes messages of its own.
fn can_hold_text(context: &Context<'_>, input: usize) -> bool {
    use PropertyKind::{Boolean, Float, Integer, Thread};
    let Some(declared) = context.declaration(input) else { return true };
    let kinds = if declared.kinds.is_empty() { std::slice::from_ref(&declared.kind) } else { &declared.kinds };
    let is_plain = kinds.iter().all(|kind| matches!(kind, Boolean | Float | Integer | Thread));
    !is_plain && declared.enum_values.is_none()
}

/// Returns the untrusted inputs that decide about text, and their sinks.
pub(super) fn decisions<'c, 'p>(
    context: &'c Context<'p>,
    compiled: &'c Compiled<'p>,
) -> impl Iterator<Item = &'c Sink> + use<'c, 'p> {
    compiled.flow.sinks.iter().filter(|sink| sink.how == How::Decides && !context.is_trusted(sink.input))
}
