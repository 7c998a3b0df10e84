//! Estimates of the number of tokens in a text.

/// The number of bytes that a token of English text has, about.
const BYTES_PER_TOKEN: usize = 4;

/// Returns about how many tokens a text has.
pub(crate) const fn estimate(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}
