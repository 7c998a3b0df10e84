//! Capabilities, which grant permissions to a directive: `rye.<action>.<type>.<item>`. Later Rye versions write
//! `ryeos.<action>.<type>.<item>`, with slashes in the item.

use std::fmt;

/// The supported actions. Later Rye versions use `fetch` in place of `search` and `load`.
pub const ACTIONS: [&str; 5] = ["execute", "search", "load", "sign", "fetch"];
/// The types of items that actions apply to.
pub const ITEM_TYPES: [&str; 3] = ["tool", "directive", "knowledge"];

/// The beginning of a capability, and its beginning in later Rye versions.
const FIRST: &str = "rye.";
const LATER: &str = "ryeos.";

/// A capability, written as a string such as `rye.execute.tool.rye.file-system.*`.
///
/// `*` matches any characters, and `?` matches one. A short form such as `rye.execute.*` or `rye.*` covers everything
/// that it leaves out. A permission that Tympan does not understand is kept as [`unknown`](Capability::unknown), and
/// covers nothing.
///
/// ```
/// use tympan::format::directive::Capability;
///
/// let capability: Capability = "rye.execute.tool.rye.file-system.*".parse()?;
/// assert!(capability.covers("execute", "tool", "rye/file-system/write"));
/// assert!(!capability.covers("execute", "tool", "rye/bash"));
/// assert!(!capability.covers("sign", "tool", "rye/file-system/write"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Capability {
    text: String,
    is_known: bool,
}

impl Capability {
    /// Creates the capability for an action on items of a type. Slashes in the item's name become dots.
    ///
    /// # Errors
    /// Returns a message if the capability is invalid.
    pub fn new(action: &str, item_type: &str, item: &str) -> Result<Self, String> {
        format!("rye.{action}.{item_type}.{}", item.trim().replace('/', ".")).parse()
    }

    /// Creates the capability for an action on any item.
    ///
    /// # Errors
    /// Returns a message if there is no such action.
    pub fn any_of(action: &str) -> Result<Self, String> {
        format!("rye.{action}.*").parse()
    }

    /// Returns the capability that covers everything.
    pub fn everything() -> Self {
        Self { text: "rye.*".to_owned(), is_known: true }
    }

    /// Keeps a permission that Tympan does not understand. It covers nothing.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_known: false }
    }

    /// Returns whether Tympan understands the permission.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns the capability as a string.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the capability allows an action on an item. An item with wildcards is never allowed, and an
    /// unknown capability allows nothing.
    pub fn covers(&self, action: &str, item_type: &str, item: &str) -> bool {
        // A name with wildcards would stand for several items.
        if !self.is_known || item.contains(['*', '?']) {
            return false;
        }
        let pattern = self.text.replace('/', ".");
        let product = if pattern.starts_with(LATER) { LATER } else { FIRST };
        let asked = format!("{product}{action}.{item_type}.{}", item.replace('/', "."));
        matches(pattern.as_bytes(), asked.as_bytes())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Capability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_fit = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '*' | '?');
        let is_later = text.starts_with(LATER);
        let segments: Vec<&str> = text.split(|char| char == '.' || (is_later && char == '/')).collect();
        if segments.iter().any(|segment| segment.is_empty() || !segment.chars().all(is_fit)) {
            return Err(format!("`{text}`: expected non-empty parts of letters, digits, `_`, `-`, `*` and `?`"));
        }
        let known = |place: usize, names: &[&str], what: &str| match segments.get(place) {
            Some(segment) if *segment != "*" && !names.contains(segment) => {
                Err(format!("unknown {what} `{segment}`: expected one of {}", names.join(", ")))
            }
            _ => Ok(()),
        };
        if segments[0] != "rye" && !is_later {
            return Err(format!("`{text}` does not start with `rye.`"));
        }
        known(1, &ACTIONS, "action")?;
        // Later Rye versions let a project define types of items.
        if !is_later {
            known(2, &ITEM_TYPES, "item type")?;
        }
        if segments.len() < 4 && segments.last() != Some(&"*") {
            return Err(format!("`{text}` does not name an item: expected `rye.<action>.<type>.<item>`"));
        }
        Ok(Self { text: text.to_owned(), is_known: true })
    }
}

/// Returns whether a text matches a pattern. The time is at most proportional to the product of their lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at_pattern, mut at_text) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at_text < text.len() {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                star = Some((at_pattern, at_text));
                at_pattern += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[at_text] => {
                at_pattern += 1;
                at_text += 1;
            }
            _ => {
                // Backtrack: let the last star match one more character.
                let Some((at_star, taken)) = star else { return false };
                star = Some((at_star, taken + 1));
                at_pattern = at_star + 1;
                at_text = taken + 1;
            }
        }
    }
    pattern[at_pattern..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_a_syntax() {
        for text in [
            "rye.*",
            "rye.execute.*",
            "rye.*.tool.a",
            "rye.load.knowledge.rye.core.*",
            "rye.sign.directive.*",
            "rye.search.tool.a?",
            "ryeos.execute.service.*",
            "ryeos.execute.tool.ryeos/threads/internal/*",
        ] {
            assert_eq!(text.parse::<Capability>().map(|capability| capability.to_string()).as_deref(), Ok(text));
        }
        for text in [
            "",
            "rye",
            "rye.",
            "ryo.execute.tool.a",
            "rye.run.tool.a",
            "rye.execute.thing.a",
            "rye.execute.tool",
            "rye.execute.tool.",
            "rye.execute.tool.a b",
            "rye.execute.tool..a",
            "rye.execute",
            "rye.execute.tool.a/b",
            "ryeos.run.tool.a",
            "ryeos.execute.tool.a//b",
        ] {
            assert!(text.parse::<Capability>().is_err(), "{text}");
        }
    }

    #[test]
    fn capabilities_cover_what_they_say() {
        let cases = [
            ("rye.*", "execute", "tool", "anything", true),
            ("rye.execute.*", "execute", "tool", "a/b", true),
            ("rye.execute.*", "executes", "tool", "a", false),
            ("rye.execute.tool.a", "execute", "tool", "a", true),
            ("rye.execute.tool.a", "execute", "tool", "a/b", false),
            ("rye.execute.tool.a.*", "execute", "tool", "a", false),
            ("rye.execute.tool.*.b", "execute", "tool", "a/x/b", true),
            ("rye.execute.tool.a*", "execute", "tool", "*", false),
            ("rye.execute.tool.a?", "execute", "tool", "ab", true),
            ("ryeos.execute.tool.a/b/*", "execute", "tool", "a/b/c", true),
            ("ryeos.execute.tool.a/b/*", "execute", "tool", "a/c", false),
            ("ryeos.fetch.*", "fetch", "service", "a", true),
        ];
        for (text, action, item_type, item, expected) in cases {
            let capability: Capability = text.parse().expect("it is one");
            assert_eq!(capability.covers(action, item_type, item), expected, "{text} {action} {item_type} {item}");
        }
        assert!(!Capability::unknown("rye.*").covers("execute", "tool", "a"));
        let slow: Capability = format!("rye.execute.tool.{}b", "*a".repeat(200)).parse().expect("it is one");
        assert!(!slow.covers("execute", "tool", &"a".repeat(5_000)));
    }
}
