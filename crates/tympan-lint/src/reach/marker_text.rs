//! Text that may end a role marker which other parts of a template begin.

use tympan_core::prompt::analysis::marker_role;
use tympan_core::spec::role::Role;

/// Whether the text of inputs is known to be right before and right after a text. A marker has such text only in its
/// attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbors {
    pub(super) before: bool,
    pub(super) after: bool,
}

/// Returns whether a line of the author's text may be the end of a role marker, apart from lines that are known to be
/// markers. Every marker ends with a colon that the author wrote, so it is enough to look at what is before colons at
/// the ends of lines. `is_known` is called with the offset of a colon.
pub(super) fn may_end_marker(text: &str, known: Neighbors, is_known: impl Fn(usize) -> bool) -> bool {
    let mut start = 0;
    for line in text.split('\n') {
        let (is_first, is_last) = (start == 0, start + line.len() == text.len());
        let colon = line.trim_end().len();
        let before = line.trim_end().strip_suffix(':').map(str::trim_end);
        let may_end = before.is_some_and(|before| match () {
            () if is_last && known.after => false,
            () if is_first && known.before => before.ends_with(']'),
            () if is_first => is_end_of_marker(before),
            () => marker_role(line.trim_end()).is_some(),
        });
        if may_end && !is_known(start + colon - 1) {
            return true;
        }
        start += line.len() + 1;
    }
    false
}

/// Returns whether a marker can end with this text and a colon.
fn is_end_of_marker(text: &str) -> bool {
    let word = text.trim_start().trim_start_matches('#').trim_start();
    word.ends_with(']') || is_end_of_role(word)
}

fn is_end_of_role(word: &str) -> bool {
    Role::IN_MARKERS.into_iter().map(Role::as_str).any(|role| {
        let end = role.len().checked_sub(word.len()).and_then(|start| role.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(word))
    })
}

/// Returns whether text of the author's can be a part of a marker outside of its attributes, apart from the colon.
pub(super) fn may_be_part(text: &str) -> bool {
    let word = text.trim();
    let is_in = |role: &str| role.to_ascii_lowercase().contains(&word.to_ascii_lowercase());
    text.contains([':', '\n', ']', '[', '#']) || Role::IN_MARKERS.into_iter().map(Role::as_str).any(is_in)
}
