//! Differences between two texts, for people and for `patch`.

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, TextDiff};

use crate::color::styled;
use crate::escape::{visible, visible_line};
use crate::output::Looks;

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// Returns the difference between two versions of a file in the unified format. It can be applied by other programs
/// unless it is displayed on a terminal, where control characters are escaped.
pub(crate) fn unified(name: &str, before: &str, after: &str, looks: Looks) -> String {
    let style = |style: Style| if looks.colors { style } else { Style::new() };
    let difference = TextDiff::from_lines(before, after);
    let mut out = String::new();
    let name = visible_line(name);
    styled(&mut out, &format!("--- {name}"), style(REMOVED));
    out.push('\n');
    styled(&mut out, &format!("+++ {name}"), style(ADDED));
    out.push('\n');
    for hunk in difference.unified_diff().context_radius(CONTEXT).iter_hunks() {
        styled(&mut out, &hunk.header().to_string(), style(PLACE));
        out.push('\n');
        for change in hunk.iter_changes() {
            let (sign, color) = match change.tag() {
                ChangeTag::Delete => ('-', REMOVED),
                ChangeTag::Insert => ('+', ADDED),
                ChangeTag::Equal => (' ', Style::new()),
            };
            let line = change.value();
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            let text = format!("{sign}{text}");
            if looks.is_seen {
                let text = text.strip_suffix('\r').filter(|_| !end.is_empty()).unwrap_or(&text);
                styled(&mut out, &visible(text), style(color));
            } else {
                out.push_str(&text);
            }
            out.push_str(if end.is_empty() { "\n\\ No newline at end of file\n" } else { end });
        }
    }
    out
}
