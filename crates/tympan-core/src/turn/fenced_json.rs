//! Finds the JSON in an answer. Models like to write it in a fenced block of Markdown, even if they are asked not to.

use serde::de::IgnoredAny;
use serde_json::Value as Json;

/// The languages of blocks that may contain JSON. Many models do not name one.
const LANGUAGES: [&str; 4] = ["", "json", "jsonc", "json5"];

/// The minimum length of a fence.
const FENCE: usize = 3;

/// Parses an answer that is JSON, or that contains JSON in its only fenced block.
pub(super) fn parse(answer: &str) -> Option<Json> {
    serde_json::from_str(answer).ok().or_else(|| serde_json::from_str(block(answer)?).ok())
}

/// Returns the JSON of an answer that [`parse`] accepts, or else the answer.
pub(super) fn find(answer: &str) -> &str {
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json(answer) { answer } else { block(answer).filter(|block| is_json(block)).unwrap_or(answer) }
}

/// An opening fence.
struct Fence<'a> {
    mark: char,
    len: usize,
    language: &'a str,
    /// The position after the language.
    end: usize,
}

impl<'a> Fence<'a> {
    /// Matches a line that starts at this position of the answer.
    fn open(line: &'a str, start: usize) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let len = text.len() - info.len();
        let word = info.trim_start();
        let rest = word.trim_start_matches(|char: char| char.is_ascii_alphanumeric());
        let language = &word[..word.len() - rest.len()];
        (len >= FENCE).then_some(Self { mark, len, language, end: start + line.len() - rest.len() })
    }

    /// Returns how many bytes of a line precede the closing fence. A line of JSON cannot end with these characters, so
    /// the fence may also follow the JSON directly.
    fn close(&self, line: &str) -> Option<usize> {
        let line = line.trim_end();
        let before = line.trim_end_matches(self.mark);
        (line.len() - before.len() >= self.len).then_some(before.len())
    }
}

/// Returns the content of the only fenced block, if its language is JSON or not named. A block may lack its end.
fn block(answer: &str) -> Option<&str> {
    let mut open: Option<Fence<'_>> = None;
    let mut found = None;
    let mut start = 0;
    for line in answer.split_inclusive('\n') {
        let mut inner = start;
        if open.is_none() {
            open = Fence::open(line, start);
            if open.is_some() && found.is_some() {
                return None;
            }
            inner = open.as_ref().map_or(inner, |fence| fence.end);
        }
        start += line.len();
        if let Some(fence) = &open {
            found = Some((fence.language, fence.end..answer.len()));
            if let Some(len) = fence.close(&answer[inner..start]) {
                found = Some((fence.language, fence.end..inner + len));
                open = None;
            }
        }
    }
    let (language, content) = found?;
    LANGUAGES.iter().any(|known| language.eq_ignore_ascii_case(known)).then(|| &answer[content])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_fence() {
        for answer in [
            "{\"a\": 1}",
            "```json\n{\"a\": 1}\n```",
            "\n  ```JSON\r\n{\"a\": 1}\r\n```\r\n",
            "```\n{\"a\": 1}\n```",
            "~~~~json\n{\n\"a\": 1\n}\n~~~~",
            "```json {\"a\": 1} ```",
            "```{\"a\": 1}```",
            "```json\n{\"a\": 1}```",
            "```json\n{\"a\": 1}",
            "Here it is:\n\n```json\n{\"a\": 1}\n```\n\nIs there anything else?",
        ] {
            assert_eq!(parse(answer), Some(serde_json::json!({"a": 1})), "{answer:?}");
            assert_eq!(serde_json::from_str::<Json>(find(answer)).ok(), parse(answer), "{answer:?}");
        }
        let code = "```json\n{\"a\": \"```\\n```\"}\n```";
        assert_eq!(parse(code), Some(serde_json::json!({"a": "```\n```"})));
    }

    #[test]
    fn other_text_is_not_json() {
        for answer in [
            "",
            "```",
            "no",
            "```json\nnone\n```",
            "```python\n{\"a\": 1}\n```",
            "``\n{\"a\": 1}\n``",
            "Use ```json {\"a\": 1} ```.",
            "```json\n{\"a\": 1}\n```\nor\n```json\n{\"a\": 2}\n```",
        ] {
            assert_eq!(parse(answer), None, "{answer:?}");
            assert_eq!(find(answer), answer);
        }
    }
}
