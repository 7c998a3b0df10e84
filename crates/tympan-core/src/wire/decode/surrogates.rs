//! Surrogate pairs that a server has split.
//!
//! A server that splits its text by UTF-16 code units may send the first half of a surrogate pair in one event and the
//! second half in the next. Neither event is valid JSON on its own, so the first half is held back until the second
//! arrives.

/// Joins surrogate pairs that are split across events. Holds the first half of a pair, as it was escaped: `\ud83d`.
#[derive(Debug, Default)]
pub(super) struct SurrogateJoiner {
    held: Option<String>,
}

/// Which half of a surrogate pair an escape is: the high one comes first.
enum Surrogate {
    High,
    Low,
}

impl SurrogateJoiner {
    /// Returns the data with split surrogate pairs repaired, or `None` if it contains none.
    pub(super) fn mend(&mut self, data: &str) -> Option<String> {
        let mut mended = String::with_capacity(data.len());
        let (mut rest, mut is_changed) = (data, false);
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            mended.push_str(before);
            let kind = surrogate(escape);
            let is_pair =
                matches!(kind, Some(Surrogate::High)) && matches!(surrogate(&escape[6..]), Some(Surrogate::Low));
            let length = match kind {
                _ if is_pair => 12,
                Some(_) => 6,
                // A backslash and the character that it escapes, which may be another backslash.
                None => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
            };
            let written = &escape[..length];
            match kind {
                Some(Surrogate::High) if !is_pair => {
                    self.held = Some(written.to_owned());
                    is_changed = true;
                }
                Some(Surrogate::Low) => {
                    match self.held.take() {
                        Some(first) => mended.extend([first.as_str(), written]),
                        None => mended.push('\u{fffd}'),
                    }
                    is_changed = true;
                }
                _ => mended.push_str(written),
            }
            rest = &escape[length..];
        }
        mended.push_str(rest);
        is_changed.then_some(mended)
    }
}

/// Returns which half of a surrogate pair a text starts with, if any.
fn surrogate(text: &str) -> Option<Surrogate> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_are_joined_across_events() {
        let mut surrogates = SurrogateJoiner::default();
        assert_eq!(surrogates.mend(r#"{"a":"x\ud83c"}"#).as_deref(), Some(r#"{"a":"x"}"#));
        assert_eq!(surrogates.mend(r#"{"a":"\uDFF0y"}"#).as_deref(), Some(r#"{"a":"\ud83c\uDFF0y"}"#));
        assert_eq!(surrogates.mend(r#"{"a":"\udff0"}"#).as_deref(), Some("{\"a\":\"\u{fffd}\"}"));
    }

    #[test]
    fn what_is_whole_is_left_alone() {
        for data in [r#"{"a":"\ud83c\udff0 \\ud83c \n"}"#, "", r"\", r"\u12", "é\\é\\u00e9"] {
            assert_eq!(SurrogateJoiner::default().mend(data), None, "{data}");
        }
    }
}
