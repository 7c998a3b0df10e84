//! The reach map as JSON.

use serde_json::{Value as Json, json};
use tympan_core::template::flow::How;
use tympan_core::text::source::{SourceFile, Span};

use super::{BoundInput, InputReach, ReachMap, ReachPlace, ReachedMessage, Target};

impl ReachMap {
    /// Converts the map to JSON. `source` is the file of the prompt, for lines and columns.
    pub fn to_json(&self, source: &SourceFile) -> Json {
        let messages = self.messages.iter().map(|message| message.to_json(source));
        let bindings = self.bindings.iter().map(|binding| binding.to_json(source));
        json!({"messages": messages.collect::<Json>(), "bindings": bindings.collect::<Json>()})
    }
}

impl ReachedMessage {
    fn to_json(&self, source: &SourceFile) -> Json {
        let thread = match &self.target {
            Target::Thread(name) => Some(name),
            _ => None,
        };
        json!({
            "template": self.template,
            "role": self.target.role(),
            "thread": thread,
            "line": self.span.map(|span| source.line_column(span.start).line),
            "inputs": self.inputs.iter().map(|input| input.to_json(source)).collect::<Json>(),
        })
    }
}

impl InputReach {
    fn to_json(&self, source: &SourceFile) -> Json {
        json!({
            "input": self.input,
            "declared": self.is_declared,
            "trusted": self.trusted,
            "how": how_str(self.how),
            "in_marker": self.in_marker,
            "env": self.env,
            "places": self.places.iter().map(|place| place.to_json(source)).collect::<Json>(),
        })
    }
}

impl ReachPlace {
    fn to_json(&self, source: &SourceFile) -> Json {
        let mut place = position(self.span, source);
        place["how"] = how_str(self.how).into();
        let steps = self.path.iter().map(|(span, step)| {
            let mut at = position(*span, source);
            at["step"] = step.as_str().into();
            at
        });
        place["path"] = steps.collect();
        place
    }
}

impl BoundInput {
    fn to_json(&self, source: &SourceFile) -> Json {
        json!({
            "tool": self.tool,
            "parameter": self.parameter,
            "input": self.input,
            "trusted": self.trusted,
            "line": self.span.map(|span| source.line_column(span.start).line),
        })
    }
}

/// Returns the word for how an input reaches a message: `text`, `filtered` or `decides`.
pub fn how_str(how: How) -> &'static str {
    match how {
        How::Text => "text",
        How::Filtered => "filtered",
        How::Decides => "decides",
    }
}

fn position(span: Span, source: &SourceFile) -> Json {
    let at = source.line_column(span.start);
    json!({"line": at.line, "column": at.column})
}
