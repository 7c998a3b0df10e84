//! Rubrics: the prompt files of judges.

use serde_json::{Value as Json, json};

use super::Importer;
use super::assertion::{Refusal, Scope};
use super::finding::Remark;
use super::node::Node;
use super::provider::Model;
use super::write::model_json;

/// The name of the first rubric, without its ending.
const NAME: &str = "promptfoo-judge";

/// What the judge is told.
const INSTRUCTIONS: &str = "system:
You judge whether an answer meets a criterion. Judge only what the criterion asks for.
Decide `pass` strictly: it is true only if the answer meets the criterion fully.
Set `score` to a number from 0 (not met at all) to 1 (fully met), and explain the verdict in one sentence as `reason`.

user:
The criterion:
{{ criterion }}

The answer:
{{ answer }}
";

/// A rubric that was written.
pub(super) struct Rubric {
    pub(super) name: String,
    /// The model of the judge.
    model: Option<Model>,
}

impl Importer<'_> {
    /// Converts `llm-rubric` to a judge.
    pub(super) fn judge(&mut self, node: &Node, scope: &Scope<'_>) -> Result<Json, Refusal> {
        let option = |key: &str| scope.options.and_then(|options| options.get(key));
        if node.get("rubricPrompt").or_else(|| option("rubricPrompt")).is_some() {
            return Err((
                "it has its own prompt for the judge".to_owned(),
                "write the prompt as a rubric, with the input `answer` and the outputs `pass` and `score`, and name it in `judge`".to_owned(),
            ));
        }
        let criterion = self.text(node, scope)?;
        let grader = node.get("provider").or_else(|| option("provider")).or(self.grader);
        let model = match grader {
            Some(grader) => Some(self.grader_model(grader)?),
            None => self.models.first().filter(|model| model.provider != "echo").cloned(),
        };
        let chosen = match (&model, grader) {
            (_, Some(_)) => "the judge that the configuration names",
            (Some(_), None) => "the first model of the configuration, because the configuration names no judge",
            (None, None) => "no model yet, because the configuration names no judge",
        };
        let remark = Remark::new(
            "assertion `llm-rubric`",
            format!(
                "the judge gets Tympan's own instructions and {chosen}, so its verdicts may differ from those of promptfoo"
            ),
            "check the rubric file, and measure the judge with a `calibration` set",
        );
        self.findings.note(&node.place, remark);
        let name = self.rubric(model);
        let mut judge = json!({ "rubric": format!("{name}.prompty"), "inputs": { "criterion": criterion } });
        if let Some(threshold) =
            node.get("threshold").and_then(Node::number).filter(|number| (0.0..=1.0).contains(number))
        {
            judge["min_score"] = threshold.into();
        }
        Ok(json!({ "judge": judge }))
    }

    /// Returns the model of a judge. It may be given for texts alone.
    fn grader_model(&mut self, grader: &Node) -> Result<Model, Refusal> {
        let node = grader.get("text").filter(|_| grader.get("id").is_none()).unwrap_or(grader);
        self.model(node).ok_or_else(|| {
            let help = "write a rubric with a model that Tympan can call, and name it in `judge`";
            ("its judge is a provider that was not imported".to_owned(), help.to_owned())
        })
    }

    /// Returns the name of the rubric with a model.
    fn rubric(&mut self, model: Option<Model>) -> String {
        let same = |rubric: &&Rubric| match (&rubric.model, &model) {
            (Some(a), Some(b)) => (a.provider, &a.model, &a.settings) == (b.provider, &b.model, &b.settings),
            (a, b) => a.is_none() && b.is_none(),
        };
        if let Some(known) = self.rubrics.iter().find(same) {
            return known.name.clone();
        }
        let name = match self.rubrics.len() {
            0 => NAME.to_owned(),
            count => format!("{NAME}-{}", count + 1),
        };
        self.rubrics.push(Rubric { name: name.clone(), model });
        name
    }
}

/// Returns the text of a rubric.
pub(super) fn rubric_text(rubric: &Rubric) -> String {
    let mut fields = json!({
        "name": rubric.name,
        "description": "Judges whether an answer meets a criterion",
    });
    if let Some(model) = &rubric.model {
        fields["model"] = model_json(model);
    }
    fields["inputs"] = json!([
        { "name": "answer", "kind": "string", "required": true },
        { "name": "criterion", "kind": "string", "required": true },
    ]);
    fields["outputs"] = json!([
        { "name": "reason", "kind": "string", "required": true },
        { "name": "pass", "kind": "boolean", "required": true },
        { "name": "score", "kind": "float", "required": true },
    ]);
    super::write::prompt_file(&fields, INSTRUCTIONS)
}
