//! The results of batches.

use serde_json::{Value as Json, json};

use super::{Batch, State};

impl State {
    /// Ends a batch: all requests are answered, fail or expire.
    pub(super) fn finish(&mut self, index: usize) {
        let Some(batch) = self.batches.get(index).cloned() else { return };
        let (output, errors) = (format!("{}-output", batch.id), format!("{}-errors", batch.id));
        if self.files.contains_key(&output) || self.faults.broken.is_some() || batch.is_refused {
            return;
        }
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for request in &batch.requests {
            let id = request["custom_id"].as_str().unwrap_or_default();
            let row = id.rsplit('-').next().and_then(|row| row.parse().ok()).unwrap_or(u64::MAX);
            let is_first = self.sent.get(id) == Some(&1);
            let line = match (batch.is_anthropic, is_first) {
                (false, true) if self.faults.failing.contains(&row) => {
                    let body = json!({ "error": { "message": self.faults.error_text, "code": "server_error" } });
                    json!({ "id": "r", "custom_id": id, "response": { "status_code": 500, "body": body }, "error": null })
                }
                (false, true) if self.faults.expiring.contains(&row) => {
                    let error = json!({ "code": "batch_expired", "message": "too late" });
                    json!({ "id": "r", "custom_id": id, "response": null, "error": error })
                }
                (true, true) if self.faults.failing.contains(&row) => {
                    let error = json!({ "type": "api_error", "message": self.faults.error_text });
                    let result = json!({ "type": "errored", "error": { "type": "error", "error": error } });
                    json!({ "custom_id": id, "result": result })
                }
                (true, true) if self.faults.expiring.contains(&row) => {
                    json!({ "custom_id": id, "result": { "type": "expired" } })
                }
                (true, _) => {
                    let content = json!([{ "type": "text", "text": format!("answer to {id}") }]);
                    let message = json!({
                        "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn",
                        "usage": { "input_tokens": 3, "output_tokens": 4 },
                    });
                    json!({ "custom_id": id, "result": { "type": "succeeded", "message": message } })
                }
                (false, _) => {
                    let choice = json!({ "message": { "role": "assistant", "content": format!("answer to {id}") } });
                    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 });
                    let body = json!({ "object": "chat.completion", "choices": [choice], "usage": usage });
                    json!({ "id": "r", "custom_id": id, "response": { "status_code": 200, "body": body }, "error": null })
                }
            };
            let is_failure = !batch.is_anthropic && line["response"]["status_code"] != 200;
            if is_failure { &mut failures } else { &mut answers }.push(line.to_string());
        }
        // Answers come in another order.
        answers.reverse();
        if let Some(edit) = &self.faults.edit {
            answers = edit(answers);
        }
        let content = |lines: &[String]| lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        self.files.insert(output, content(&answers).into());
        if !failures.is_empty() {
            self.files.insert(errors, content(&failures).into());
        }
    }

    /// Returns a batch as its API shows it.
    pub(super) fn to_json(&self, batch: &Batch) -> Json {
        let Batch { id, created, requests, is_cancelled, .. } = batch;
        let output = self.files.contains_key(&format!("{id}-output"));
        let errors = self.files.contains_key(&format!("{id}-errors"));
        if batch.is_anthropic {
            let status = if output { "ended" } else { "in_progress" };
            let counts =
                json!({ "processing": 0, "succeeded": requests.len(), "errored": 0, "canceled": 0, "expired": 0 });
            let url = output.then(|| format!("https://elsewhere.example/v1/messages/batches/{id}/results"));
            return json!({ "id": id, "processing_status": status, "request_counts": counts, "results_url": url });
        }
        let status = match &self.faults.broken {
            Some(_) => "failed",
            None if batch.is_refused => "failed",
            None if output && *is_cancelled => "cancelled",
            None if output && !self.faults.expiring.is_empty() && self.batches.len() == 1 => "expired",
            None if output => "completed",
            None => "in_progress",
        };
        let broken = self.faults.broken.as_ref().map(|text| json!({ "data": [{ "message": text, "line": 1 }] }));
        let full = json!({ "data": [{ "code": "token_limit_exceeded", "message": "too many tokens are waiting" }] });
        let reason = broken.or_else(|| batch.is_refused.then_some(full));
        json!({
            "id": id,
            "object": "batch",
            "status": status,
            "metadata": created["metadata"],
            "input_file_id": created["input_file_id"],
            "endpoint": created["endpoint"],
            "output_file_id": output.then(|| format!("{id}-output")),
            "error_file_id": errors.then(|| format!("{id}-errors")),
            "errors": reason,
            "request_counts": { "total": requests.len(), "completed": if output { requests.len() } else { 0 }, "failed": 0 },
        })
    }
}
