//! An estimate of the tokens in a text, without a vocabulary.

/// The average number of bytes per token in English text.
const BYTES: usize = 4;

/// Returns the estimated number of tokens in the fixed text of a template.
pub(crate) fn tokens(text: &str) -> usize {
    text.trim().len().div_ceil(BYTES)
}
