//! Surrogate pairs that a server has split.
//!
//! A server that splits its text by UTF-16 code units may send the first half of a surrogate pair in one event and the
//! second half in the next. Neither event is valid JSON on its own, so the first half is held back until the second
//! arrives.

/// The first half of a surrogate pair, as it was escaped: `\ud83d`.
#[derive(Debug, Default)]
pub(super) struct Halves {
    held: Option<String>,
}

/// Which half of a surrogate pair an escape is.
enum Half {
    First,
    Second,
}

impl Halves {
    /// Returns the data with split surrogate pairs repaired, or `None` if it contains none.
    pub(super) fn mend(&mut self, data: &str) -> Option<String> {
        let mut mended = String::with_capacity(data.len());
        let (mut rest, mut is_changed) = (data, false);
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            mended.push_str(before);
            let half = half(escape);
            let is_pair = matches!(half, Some(Half::First)) && matches!(self::half(&escape[6..]), Some(Half::Second));
            let length = match half {
                _ if is_pair => 12,
                Some(_) => 6,
                // A backslash and the character that it escapes, which may be another backslash.
                None => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
            };
            let written = &escape[..length];
            match half {
                Some(Half::First) if !is_pair => {
                    self.held = Some(written.to_owned());
                    is_changed = true;
                }
                Some(Half::Second) => {
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
fn half(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_find_each_other() {
        let mut halves = Halves::default();
        assert_eq!(halves.mend(r#"{"a":"x\ud83c"}"#).as_deref(), Some(r#"{"a":"x"}"#));
        assert_eq!(halves.mend(r#"{"a":"\uDFF0y"}"#).as_deref(), Some(r#"{"a":"\ud83c\uDFF0y"}"#));
        assert_eq!(halves.mend(r#"{"a":"\udff0"}"#).as_deref(), Some("{\"a\":\"\u{fffd}\"}"));
    }

    #[test]
    fn what_is_whole_is_left_alone() {
        for data in [r#"{"a":"\ud83c\udff0 \\ud83c \n"}"#, "", r"\", r"\u12", "é\\é\\u00e9"] {
            assert_eq!(Halves::default().mend(data), None, "{data}");
        }
    }
}
