//! Numbers of tokens.

use tympan_core::spec::test_suite::{CachePrefix, TokenRange};

use super::Subject;
use crate::matching::Mismatch;

impl Subject<'_> {
    pub(super) fn tokens(&self, range: &TokenRange) -> Result<(), Mismatch> {
        let encoding = self.case.encoding();
        let selected = self.select(range.place)?;
        let count: usize = selected.iter().map(|message| encoding.count_message(&message.message)).sum();
        match (range.min, range.max) {
            (Some(min), _) if count < min => {
                Err(Mismatch::new(format!("expected at least {min} tokens, found {count}")))
            }
            (_, Some(max)) if count > max => {
                Err(Mismatch::new(format!("expected at most {max} tokens, found {count}")))
            }
            _ => Ok(()),
        }
    }

    /// Counts the tokens at the beginning that no input wrote.
    pub(super) fn cache_prefix(&self, wanted: CachePrefix) -> Result<(), Mismatch> {
        let encoding = self.case.encoding();
        let mut count = 0;
        for message in &self.rendering.messages {
            if message.origin.is_author() {
                count += encoding.count_message(&message.message);
                continue;
            }
            let segments = message.segments.first().map_or(&[][..], Vec::as_slice);
            let fixed = segments.iter().take_while(|segment| segment.origin.is_author()).last();
            let end = fixed.map_or(0, |segment| segment.range.end);
            let text = message.message.content.first().and_then(|part| part.as_text()).unwrap_or_default();
            count += encoding.count(&text[..end]);
            break;
        }
        if count >= wanted.min_tokens {
            return Ok(());
        }
        let wanted = wanted.min_tokens;
        Err(Mismatch::new(format!("expected at least {wanted} tokens before the first input, found {count}")))
    }
}
