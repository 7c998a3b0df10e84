//! Values from trusted origins: whether an argument is one of them.
//!
//! An argument counts only if it is a whole trusted value, or a whole delimited token in trusted text, byte for byte. So
//! `bob@example.com` counts if the user wrote it, and `ob@example.com`, `Bob@example.com` and `example.com` do not.

use memchr::memmem;
use serde_json::{Number, Value as Json};

/// The maximum number of bytes that are searched for the values of one call.
const MAX_SEARCHED: usize = 64 << 20;

/// A text that the policy trusts.
#[derive(Clone, Debug)]
struct TrustedText {
    text: String,
    /// Whether text that is not trusted directly precedes it. A token that starts there is not whole.
    is_open_start: bool,
    /// Whether text that is not trusted directly follows it.
    is_open_end: bool,
}

/// The values and texts of a turn that the policy trusts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedValues {
    texts: Vec<TrustedText>,
    values: Vec<Json>,
}

impl TrustedValues {
    /// Adds a whole text.
    pub(crate) fn add_text(&mut self, text: &str) {
        self.add_part(text, false, false);
    }

    /// Adds a part of a text, and whether it is next to text that is not trusted.
    pub(crate) fn add_part(&mut self, text: &str, is_open_start: bool, is_open_end: bool) {
        if !text.trim().is_empty() {
            self.texts.push(TrustedText { text: text.to_owned(), is_open_start, is_open_end });
        }
    }

    /// Adds a value and everything in it.
    pub(crate) fn add_value(&mut self, value: &Json) {
        match value {
            Json::String(text) => self.add_text(text),
            Json::Number(_) | Json::Bool(_) => self.values.push(value.clone()),
            Json::Array(items) => items.iter().for_each(|item| self.add_value(item)),
            Json::Object(map) => map.values().for_each(|value| self.add_value(value)),
            Json::Null => {}
        }
    }

    /// Returns whether a value, and everything in it, comes from a trusted origin.
    pub(crate) fn contain(&self, value: &Json, listed: &Listed<'_>) -> bool {
        let mut left = MAX_SEARCHED;
        self.contain_all(value, listed, &mut left)
    }

    fn contain_all(&self, value: &Json, listed: &Listed<'_>, left: &mut usize) -> bool {
        match value {
            // Nothing is passed.
            Json::Null => true,
            Json::String(text) => listed.contains(text) || self.contain_text(text, left),
            Json::Number(number) => {
                listed.contains(&number.to_string())
                    || self.values.iter().any(|own| own.as_number().is_some_and(|own| is_equal(own, number)))
                    || self.contain_number(number, left)
            }
            Json::Bool(_) => self.values.contains(value),
            Json::Array(items) => items.iter().all(|item| self.contain_all(item, listed, left)),
            // Names may carry as much as values do.
            Json::Object(map) => {
                map.iter().all(|(name, value)| self.contain_text(name, left) && self.contain_all(value, listed, left))
            }
        }
    }

    fn contain_text(&self, value: &str, left: &mut usize) -> bool {
        if value.is_empty() || value != value.trim() {
            return false;
        }
        let finder = memmem::Finder::new(value);
        self.texts.iter().any(|trusted| {
            let text = trusted.text.as_str();
            let Some(rest) = left.checked_sub(text.len()) else { return false };
            *left = rest;
            (text == value && !trusted.is_open_start && !trusted.is_open_end)
                || finder.find_iter(text.as_bytes()).any(|start| trusted.is_token(start, start + value.len()))
        })
    }

    fn contain_number(&self, value: &Number, left: &mut usize) -> bool {
        self.texts.iter().any(|trusted| {
            let Some(rest) = left.checked_sub(trusted.text.len()) else { return false };
            *left = rest;
            let mut tokens = trusted.text.split(|char: char| char.is_whitespace() || is_enclosing(char));
            tokens.any(|token| {
                let token = token.trim_end_matches(is_punctuation);
                let start = token.as_ptr() as usize - trusted.text.as_ptr() as usize;
                let is_number = token.parse::<Number>().is_ok_and(|number| is_equal(&number, value));
                is_number && trusted.is_token(start, start + token.len())
            })
        })
    }
}

impl TrustedText {
    /// Returns whether this range is a whole token, or several: nothing that belongs to it is directly before or after
    /// it.
    fn is_token(&self, start: usize, end: usize) -> bool {
        let (Some(before), Some(after)) = (self.text.get(..start), self.text.get(end..)) else { return false };
        let starts = match before.chars().next_back() {
            None => !self.is_open_start,
            Some(char) => {
                char.is_whitespace() || is_enclosing(char) || (is_quote(char) && is_edge(before.chars().rev().nth(1)))
            }
        };
        starts && self.ends(after)
    }

    /// Returns whether a token ends before this text.
    fn ends(&self, after: &str) -> bool {
        let rest = after.trim_start_matches(is_punctuation);
        match rest.chars().next() {
            None => !self.is_open_end,
            Some(char) if char.is_whitespace() || is_enclosing(char) => true,
            Some(char) if is_quote(char) => {
                let rest = rest[char.len_utf8()..].trim_start_matches(is_punctuation);
                is_edge(rest.chars().next()) && (!rest.is_empty() || !self.is_open_end)
            }
            Some(_) => false,
        }
    }
}

/// Returns whether a token cannot go on across this character.
fn is_edge(char: Option<char>) -> bool {
    char.is_none_or(|char| char.is_whitespace() || is_enclosing(char))
}

/// Returns whether a character encloses tokens.
fn is_enclosing(char: char) -> bool {
    matches!(char, '"' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '“' | '”' | '„' | '«' | '»')
}

/// Returns whether a character may be a quotation mark or part of a word.
fn is_quote(char: char) -> bool {
    matches!(char, '\'' | '‘' | '’')
}

/// Returns whether a character ends a sentence or a clause if white space follows.
fn is_punctuation(char: char) -> bool {
    matches!(char, '.' | ',' | ';' | ':' | '!' | '?')
}

/// Compares numbers by value.
fn is_equal(a: &Number, b: &Number) -> bool {
    match (a.as_i64(), b.as_i64(), a.as_f64(), b.as_f64()) {
        (Some(a), Some(b), ..) => a == b,
        (_, _, Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// The values that the host lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<'a> {
    pub(crate) values: &'a [String],
    pub(crate) destinations: &'a [String],
}

impl Listed<'_> {
    fn contains(&self, value: &str) -> bool {
        self.values.iter().any(|listed| listed == value) || is_listed(self.destinations, value)
    }
}

/// Returns whether an address is on the host's list.
pub(crate) fn is_listed(destinations: &[String], value: &str) -> bool {
    destinations.iter().any(|entry| match (entry.strip_prefix("*@"), entry.strip_suffix("/*")) {
        (Some(domain), _) => value.split_once('@').is_some_and(|(name, of)| of == domain && is_mailbox(name)),
        (None, Some(base)) if base.ends_with(['/', ':']) || base.is_empty() => false,
        (None, Some(base)) => value.strip_prefix(base).is_some_and(|path| path.starts_with('/') && is_plain_path(path)),
        (None, None) => entry == value,
    })
}

/// Returns whether a text is the name of a mailbox and nothing else, such as a list of addresses.
fn is_mailbox(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '+' | '-'))
}

/// Returns whether a path stays below its base, whoever parses it.
fn is_plain_path(path: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_graphic() && char != '\\' && char != '%';
    path.chars().all(is_plain) && !path.split(['/', '?', '#']).any(|part| part == ".." || part == ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NONE: Listed<'static> = Listed { values: &[], destinations: &[] };

    fn of(text: &str) -> TrustedValues {
        let mut values = TrustedValues::default();
        values.add_text(text);
        values
    }

    #[test]
    fn tokens_are_whole() {
        let text =
            "Pay bob@example.com, 'Le Marais Boutique' and https://x.org/a?b=c. It's (GB29) 10.00 and \"Chez L'Ami\"!";
        let values = of(text);
        for token in [
            "bob@example.com",
            "Le Marais Boutique",
            "https://x.org/a?b=c",
            "GB29",
            "10.00",
            "Chez L'Ami",
            "It's",
            "Pay",
            text,
        ] {
            assert!(values.contain(&json!(token), &NONE), "{token}");
        }
        for other in [
            "ob@example.com",
            "bob@example.co",
            "Bob@example.com",
            "bob",
            "example.com",
            "bob@example.com ",
            "https://x.org/a",
            "https://x.org",
            "x.org",
            "HTTPS://x.org/a?b=c",
            "bоb@example.com",
            "L'Ami Je",
            "Ami",
            "",
            " ",
            "eve@evil.com",
        ] {
            assert!(!values.contain(&json!(other), &NONE), "{other}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let values = of("Send 10.00 to account 7, not 12.5%.");
        assert!(
            values.contain(&json!(10), &NONE)
                && values.contain(&json!(10.0), &NONE)
                && values.contain(&json!(7), &NONE)
        );
        assert!(
            !values.contain(&json!(12.5), &NONE)
                && !values.contain(&json!(1), &NONE)
                && !values.contain(&json!(true), &NONE)
        );
    }

    #[test]
    fn everything_in_a_value_counts() {
        let values = of("a b name");
        assert!(values.contain(&json!(["a", "b"]), &NONE) && values.contain(&json!({"name": "a"}), &NONE));
        assert!(!values.contain(&json!(["a", "c"]), &NONE) && !values.contain(&json!({"other": "a"}), &NONE));
        assert!(values.contain(&json!([]), &NONE) && values.contain(&json!(null), &NONE));
    }

    #[test]
    fn a_token_does_not_end_where_other_text_goes_on() {
        let mut values = TrustedValues::default();
        values.add_part("mail bob", false, true);
        values.add_part("com now", true, false);
        assert!(values.contain(&json!("mail"), &NONE) && values.contain(&json!("now"), &NONE));
        assert!(!values.contain(&json!("bob"), &NONE) && !values.contain(&json!("com"), &NONE));
    }

    #[test]
    fn the_hosts_list() {
        let list = ["*@example.com", "https://x.org/in/*", "ops"].map(str::to_owned);
        for value in ["a.b+c@example.com", "https://x.org/in/1?q=2", "ops"] {
            assert!(is_listed(&list, value), "{value}");
        }
        for value in [
            "@example.com",
            "a@b@example.com",
            "eve,a@example.com",
            "eve a@example.com",
            "eve%evil.com@example.com",
            "evil.com!eve@example.com",
            "eve@evil.com,a@example.com",
            "a@example.com.evil.com",
            "a@EXAMPLE.com",
            "https://x.org/inside",
            "https://x.org/in/../out",
            "https://x.org/in/%2e%2e/out",
            "https://x.org/in/a b",
            "Ops",
        ] {
            assert!(!is_listed(&list, value), "{value}");
        }
        for entry in ["https://*", "https:/*", "/*"] {
            assert!(!is_listed(&[entry.to_owned()], "https://evil.com/"), "{entry} would match everything");
        }
    }

    #[test]
    fn the_search_is_bounded() {
        let values = of(&"x ".repeat(1 << 20));
        let many = Json::from(vec!["y"; 100_000]);
        assert!(!values.contain(&many, &NONE));
        let found = Json::from(vec!["x"; 100_000]);
        assert!(!values.contain(&found, &NONE), "it costs too much to find out");
    }
}
