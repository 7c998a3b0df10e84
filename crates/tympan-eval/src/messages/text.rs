//! The text of messages.

use tympan_core::spec::test_suite::{MessageMatch, TextMatch};

use super::Subject;
use crate::matching::{Mismatch, check_equal_text, check_text};

impl Subject<'_> {
    /// Checks that one of the messages meets all conditions, and that none contains what it must not.
    pub(super) fn message(&self, wanted: &MessageMatch) -> Result<(), Mismatch> {
        let selected = self.select(wanted.place)?;
        if wanted.snapshot {
            self.snapshot(&selected, wanted.place)?;
        }
        let texts: Vec<_> = selected.iter().map(|message| message.message.to_text()).collect();
        let TextMatch { not_contains, ignore_case, .. } = &wanted.text;
        let mut forbidden = TextMatch::default();
        (forbidden.not_contains, forbidden.ignore_case) = (not_contains.clone(), *ignore_case);
        texts.iter().try_for_each(|text| check_text(text, &forbidden))?;
        let mut conditions = wanted.text.clone();
        conditions.not_contains = None;
        let mut first = None;
        for text in &texts {
            match equals(text, wanted).and_then(|()| check_text(text, &conditions)) {
                Ok(()) => return Ok(()),
                Err(invalid) if invalid.is_invalid => return Err(invalid),
                Err(mismatch) => first = first.or(Some(mismatch)),
            }
        }
        first.map_or(Ok(()), |mismatch| {
            Err(match texts.len() {
                1 => mismatch,
                count => mismatch.within(&format!("none of {count} messages matches; the first one")),
            })
        })
    }
}

fn equals(text: &str, wanted: &MessageMatch) -> Result<(), Mismatch> {
    // Block scalars of YAML end with a newline, which splitting removes from messages.
    let expected = wanted.equals.as_deref().map(|expected| expected.trim_end_matches('\n'));
    expected.map_or(Ok(()), |expected| check_equal_text(text, expected, wanted.text.ignore_case))
}
