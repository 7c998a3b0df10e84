//! Comparisons as JSON.

use serde_json::{Value as Json, json};
use tympan_core::text::source::SourceFile;
use tympan_lint::Finding;

use super::reach::{path_json, target_str};
use super::{
    Comparison, DefinitionChange, HashChange, InputPath, MessageComparison, MessageVersion, ModelTokens, Piece,
    PromptVersion, ReachChange, ReachTarget, ReachWarning, TextWriter, VariantComparison,
};

impl Comparison {
    /// Converts the comparison to JSON. The versions are those that were compared, for lines and columns.
    pub fn to_json(&self, before: &PromptVersion, after: &PromptVersion) -> Json {
        let findings = |findings: &[Finding], source: &SourceFile| {
            findings.iter().map(|finding| finding.to_json(source)).collect::<Json>()
        };
        json!({
            "equal": self.is_equal(),
            "warnings": self.warnings.iter().map(ReachWarning::to_json).collect::<Json>(),
            "newly_trusted": self.newly_trusted,
            "definition": self.definition.iter().map(DefinitionChange::to_json).collect::<Json>(),
            "hashes": self.hashes.iter().map(HashChange::to_json).collect::<Json>(),
            "reach": self.reach.iter().map(ReachChange::to_json).collect::<Json>(),
            "variants": self.variants.iter().map(VariantComparison::to_json).collect::<Json>(),
            "findings": {
                "new": findings(&self.new_findings, after.written.source()),
                "fixed": findings(&self.fixed_findings, before.written.source()),
            },
        })
    }
}

impl DefinitionChange {
    fn to_json(&self) -> Json {
        json!({ "path": self.path, "before": self.before, "after": self.after })
    }
}

impl HashChange {
    fn to_json(&self) -> Json {
        let of = if self.is_template { "template" } else { "definition" };
        json!({ "of": of, "name": self.name, "before": self.before, "after": self.after })
    }
}

impl ReachChange {
    fn to_json(&self) -> Json {
        let mut json = target_json(&self.target);
        json["template"] = self.template.as_str().into();
        add_paths(&mut json, &self.input, self.before.as_ref(), self.after.as_ref());
        json
    }
}

impl ReachWarning {
    fn to_json(&self) -> Json {
        let mut json = target_json(&self.target);
        json["message"] = self.message().into();
        add_paths(&mut json, &self.input, self.before.as_ref(), Some(&self.after));
        json
    }
}

fn target_json(target: &ReachTarget) -> Json {
    let mut json = json!({ "target": target_str(target) });
    match target {
        ReachTarget::Thread(thread) => json["thread"] = thread.as_str().into(),
        ReachTarget::Parameter { tool, parameter } => {
            json["tool"] = tool.as_str().into();
            json["parameter"] = parameter.as_str().into();
        }
        _ => {}
    }
    json
}

fn add_paths(json: &mut Json, input: &str, before: Option<&InputPath>, after: Option<&InputPath>) {
    json["input"] = input.into();
    json["before"] = before.map(path_json).into();
    json["after"] = after.map(path_json).into();
}

impl VariantComparison {
    fn to_json(&self) -> Json {
        json!({
            "variant": self.variant,
            "equal": self.is_equal(),
            "messages": self.messages.iter().map(MessageComparison::to_json).collect::<Json>(),
            "tokens": { "before": self.before.to_json(), "after": self.after.to_json() },
        })
    }
}

impl ModelTokens {
    fn to_json(&self) -> Json {
        json!({
            "model": self.model,
            "exact": self.count.is_exact,
            "tokens": self.count.total(),
            "cacheable": self.count.cacheable,
            "cost": self.cost,
        })
    }
}

impl MessageComparison {
    /// Converts the message to JSON. The text of an unchanged message is left out.
    fn to_json(&self) -> Json {
        let pieces = self.pieces.iter().filter(|_| !self.is_equal()).map(Piece::to_json);
        json!({
            "equal": self.is_equal(),
            "before": self.before.as_ref().map(MessageVersion::to_json),
            "after": self.after.as_ref().map(MessageVersion::to_json),
            "pieces": pieces.collect::<Json>(),
        })
    }
}

impl MessageVersion {
    fn to_json(&self) -> Json {
        json!({ "index": self.index, "role": self.role, "metadata": self.metadata, "tokens": self.tokens })
    }
}

impl Piece {
    fn to_json(&self) -> Json {
        let writer = |writer: &TextWriter| json!({ "kind": writer.kind.as_str(), "inputs": writer.inputs });
        let mut json = json!({ "change": self.change.as_str(), "text": self.text, "writer": writer(&self.writer) });
        if let Some(before) = &self.before {
            json["before"] = writer(before);
        }
        json
    }
}
