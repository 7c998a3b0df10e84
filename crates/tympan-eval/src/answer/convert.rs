//! Converts results of model calls to answers.

use tympan_core::turn::outcome;
use tympan_core::wire::arguments;
use tympan_core::wire::response::{self, FinishReason, Output, Response};
use tympan_core::{Error, Kind, Outcome, Prompt, Result};
use tympan_runtime::Run;

use super::{Answer, AnsweredCall, Question};

/// Converts the result of a model call.
pub(super) fn whole(prompt: &Prompt, run: &Run) -> Answer {
    let calls = match &run.outcome {
        Outcome::ToolCalls(calls) => calls.iter().map(|call| called(&call.name, &call.arguments, 1)).collect(),
        _ => Vec::new(),
    };
    Answer {
        text: text(&run.outcome),
        result: run.outcome.to_json(),
        tool_calls: calls,
        finish_reason: run.finish_reason.as_ref().map(|reason| reason.as_str().to_owned()),
        rounds: 1,
        usage: run.usage.clone(),
        refusal: run.refusal.clone(),
        problems: problems(prompt, run),
        ..Answer::default()
    }
}

/// Converts a fixed text, as if a model had answered it.
pub(super) fn fixed(question: &Question<'_>, text: &str) -> Result<Answer> {
    let answer = response::Answer { text: text.to_owned(), ..response::Answer::default() };
    let finish_reason = Some(FinishReason::Stop);
    let response =
        Response { output: Output::Answer(answer), finish_reason: finish_reason.clone(), ..Response::default() };
    let outcome = outcome::finish(question.prompt, response)?;
    let run = Run { outcome, usage: None, model: None, id: None, finish_reason, refusal: None };
    Ok(whole(question.prompt, &run))
}

/// Converts the error that reports a refusal, which is an answer too. Streams report refusals in this way.
pub(super) fn refused(prompt: &Prompt, error: Error) -> Result<Answer> {
    if error.kind() != Kind::Refused {
        return Err(error);
    }
    let (outcome, refusal) = (Outcome::Text(String::new()), Some(error.message().to_owned()));
    let run = Run { outcome, usage: None, model: None, id: None, finish_reason: None, refusal };
    Ok(whole(prompt, &run))
}

/// Converts a tool call that the model wrote.
pub(super) fn called(name: &str, raw: &str, round: u32) -> AnsweredCall {
    let arguments = arguments::parse(raw).ok().map(|(arguments, _)| arguments);
    AnsweredCall { name: name.to_owned(), arguments, raw: raw.to_owned(), round, ..AnsweredCall::default() }
}

/// Returns the text that the model wrote. Numbers and media are not text.
fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Text(text) => text.clone(),
        Outcome::Structured(structured) => structured.raw.clone(),
        _ => String::new(),
    }
}

/// Returns the mismatches with the prompt's outputs.
fn problems(prompt: &Prompt, run: &Run) -> Option<Vec<String>> {
    if prompt.spec().outputs.is_empty() {
        return None;
    }
    Some(match &run.outcome {
        Outcome::Structured(structured) => structured.problems.clone(),
        _ if run.refusal.is_some() => vec!["expected JSON, found a refusal".to_owned()],
        Outcome::Text(_) => vec!["expected JSON, found other text".to_owned()],
        other => vec![format!("expected JSON, found {}", other.kind().replace('_', " "))],
    })
}
