//! Assertions that have no equivalent.

use super::assertion::{PROGRAM, Refusal};

/// A group of assertions, and why they have no equivalent.
struct Group {
    types: &'static [&'static str],
    reason: &'static str,
    help: &'static str,
}

const GROUPS: [Group; 14] = [
    Group {
        types: &["javascript", "python", "ruby", "webhook"],
        reason: "it runs code or calls an address, and an import carries over neither",
        help: PROGRAM,
    },
    Group {
        types: &["similar", "similar:cosine", "similar:dot", "similar:euclidean"],
        reason: "it compares embeddings, and Tympan's `similar` compares words or characters",
        help: "write `similar: {to: …, min: 0.8}` with a limit of your choice, or let a `judge` decide",
    },
    Group {
        types: &["rouge-n", "bleu", "gleu", "meteor", "f-score"],
        reason: "Tympan does not have this measure",
        help: "write `similar: {to: …, measure: longest, min: 0.75}` with a limit of your choice; `longest` is ROUGE-L",
    },
    Group {
        types: &["is-refusal"],
        reason: "it searches the answer for phrases, and Tympan's `refusal` is what the provider reports",
        help: "write `refusal: true`, or `result: {matches: …}` with the phrases that you expect",
    },
    Group {
        types: &["contains-json"],
        reason: "it finds JSON anywhere in the answer, and Tympan's `json` checks the whole answer",
        help: "write `result: {json: true}`, or declare `outputs`: then JSON between the fences of a code block counts as well",
    },
    Group {
        types: &["is-xml", "contains-xml", "is-html", "contains-html", "is-sql", "contains-sql"],
        reason: "Tympan does not parse XML, HTML and SQL in answers",
        help: PROGRAM,
    },
    Group {
        types: &[
            "factuality",
            "model-graded-factuality",
            "model-graded-closedqa",
            "g-eval",
            "answer-relevance",
            "context-faithfulness",
            "context-recall",
            "context-relevance",
            "conversation-relevance",
            "search-rubric",
            "agent-rubric",
            "pi",
        ],
        reason: "a model decides with a prompt or a service of promptfoo",
        help: "write the question to the model as a rubric, and name it in an assertion `judge`",
    },
    Group { types: &["classifier", "moderation", "guardrails"], reason: "another service decides", help: PROGRAM },
    Group {
        types: &["select-best", "max-score"],
        reason: "it compares the answers of several models, and Tympan's assertions are about one answer",
        help: "compare runs with `tympan test --save` and `--baseline`",
    },
    Group { types: &["human"], reason: "a person decides", help: "leave it out" },
    Group {
        types: &["perplexity", "perplexity-score"],
        reason: "Tympan does not request the probabilities of tokens",
        help: "leave it out",
    },
    Group {
        types: &[
            "tool-call-f1",
            "is-valid-function-call",
            "is-valid-openai-function-call",
            "is-valid-openai-tools-call",
        ],
        reason: "an import does not carry over tools",
        help: "declare the tools in the prompt file; then `tool_calls: {include: [NAME]}` names the calls that you expect, \
            and Tympan checks arguments by the declarations",
    },
    Group {
        types: &[
            "skill-used",
            "trajectory:goal-success",
            "trajectory:tool-args-match",
            "trajectory:step-count",
            "trajectory:tool-sequence",
            "trajectory:tool-used",
            "trace-error-spans",
            "trace-span-count",
            "trace-span-duration",
        ],
        reason: "it is about traces of an agent",
        help: "declare the tools in the prompt file, and state the expected calls with `tool_calls` and `rounds`",
    },
    Group {
        types: &["promptfoo:redteam"],
        reason: "a service of promptfoo decides",
        help: "test forged messages with `forge: all`, and let a `judge` decide about answers",
    },
];

/// Returns why a type of assertion has no equivalent.
pub(super) fn unsupported(kind: &str) -> Option<Refusal> {
    let is_in = |group: &&Group| {
        let red_team = kind.starts_with("promptfoo:redteam:") && group.types.contains(&"promptfoo:redteam");
        red_team || group.types.contains(&kind)
    };
    GROUPS.iter().find(is_in).map(|group| (group.reason.to_owned(), group.help.to_owned()))
}
