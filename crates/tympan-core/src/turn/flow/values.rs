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
            let is_between = |char: char| char.is_whitespace() || is_delimiter(char) || bracket(char).is_some();
            let mut tokens = trusted.text.split(is_between);
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
        let (before, value, after) = (self.text.get(..start), self.text.get(start..end), self.text.get(end..));
        let (Some(before), Some(value), Some(after)) = (before, value, after) else { return false };
        let is_balanced = is_balanced(value);
        self.starts(before, is_balanced) && self.ends(after, is_balanced)
    }

    /// Returns whether a token starts after this text. A bracket is not a part of it if nothing else is, and if the
    /// brackets of the token itself are balanced.
    fn starts(&self, before: &str, is_balanced: bool) -> bool {
        let Some(last) = before.chars().next_back() else { return !self.is_open_start };
        if last.is_whitespace() || is_delimiter(last) {
            return true;
        }
        let rest = match bracket(last) {
            Some(Bracket::Opening) if is_balanced => before.trim_end_matches(is_opening),
            _ if is_quote(last) => &before[..before.len() - last.len_utf8()],
            _ => return false,
        };
        match rest.chars().next_back() {
            None => !self.is_open_start,
            Some(char) => is_edge(char) || (is_opening(last) && (is_punctuation(char) || is_quote(char))),
        }
    }

    /// Returns whether a token ends before this text.
    fn ends(&self, after: &str, is_balanced: bool) -> bool {
        let rest = after.trim_start_matches(is_punctuation);
        let Some(first) = rest.chars().next() else { return !self.is_open_end };
        if first.is_whitespace() || is_delimiter(first) {
            return true;
        }
        let is_closing = |char: char| bracket(char) == Some(Bracket::Closing);
        let rest = match bracket(first) {
            Some(Bracket::Closing) if is_balanced => {
                rest.trim_start_matches(|char| is_closing(char) || is_punctuation(char))
            }
            _ if is_quote(first) => rest[first.len_utf8()..].trim_start_matches(is_punctuation),
            _ => return false,
        };
        match rest.chars().next() {
            None => !self.is_open_end,
            Some(char) => is_edge(char) || (is_closing(first) && is_quote(char)),
        }
    }
}

/// Returns whether a token cannot go on across this character.
fn is_edge(char: char) -> bool {
    char.is_whitespace() || is_delimiter(char) || bracket(char).is_some()
}

/// Returns whether a character is between tokens, and never in one: no address contains it.
fn is_delimiter(char: char) -> bool {
    matches!(char, '"' | '`' | '<' | '>' | '“' | '”' | '„' | '«' | '»')
}

/// A bracket. Words, addresses and paths may contain brackets, as in `https://example.com/a_(b)`.
#[derive(Clone, Copy, PartialEq)]
enum Bracket {
    Opening,
    Closing,
}

fn bracket(char: char) -> Option<Bracket> {
    match char {
        '(' | '[' | '{' => Some(Bracket::Opening),
        ')' | ']' | '}' => Some(Bracket::Closing),
        _ => None,
    }
}

fn is_opening(char: char) -> bool {
    bracket(char) == Some(Bracket::Opening)
}

/// Returns whether no bracket in a text belongs to one outside.
fn is_balanced(text: &str) -> bool {
    let depth = text.chars().filter_map(bracket).try_fold(0_usize, |depth, bracket| match bracket {
        Bracket::Opening => Some(depth + 1),
        Bracket::Closing => depth.checked_sub(1),
    });
    depth == Some(0)
}

/// Returns whether a character may be a quotation mark or part of a word.
fn is_quote(char: char) -> bool {
    matches!(char, '\'' | '‘' | '’')
}

/// Returns whether a character ends a sentence or a clause if white space follows.
fn is_punctuation(char: char) -> bool {
    matches!(char, '.' | ',' | ';' | ':' | '!' | '?')
}

/// Compares numbers by value. A large whole number is not compared with one that has lost digits.
fn is_equal(a: &Number, b: &Number) -> bool {
    match (whole(a), whole(b)) {
        (None, None) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// Returns a whole number, if it is exact.
fn whole(number: &Number) -> Option<i128> {
    /// All whole numbers up to here are exact as floating-point numbers.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number below 2^53")]
    let rounded = || number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < MAX_EXACT).map(|it| it as i128);
    exact.or_else(rounded)
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
    // Some servers ignore what follows a semicolon.
    path.chars().all(is_plain) && !path.split(['/', '?', '#', ';']).any(|part| part == ".." || part == ".")
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
        // Numbers that are only equal if digits are lost.
        let values = of("Accounts 9007199254740993 and 18446744073709551615, and 1e3, 2.5.");
        for number in ["9007199254740993", "18446744073709551615", "1000", "1000.0", "2.50"] {
            assert!(values.contain(&parsed(number), &NONE), "{number}");
        }
        for other in ["9007199254740992", "9007199254740993.0", "18446744073709551614", "18446744073709551616", "2.4"] {
            assert!(!values.contain(&parsed(other), &NONE), "{other}");
        }
    }

    fn parsed(json: &str) -> Json {
        serde_json::from_str(json).expect("it is JSON")
    }

    /// A bracket may be part of an address, and then so is what it encloses.
    #[test]
    fn brackets_belong_to_words() {
        let text = "See https://x.org/a_(b), (https://x.org/c_(d)) and [its page](https://x.org/e). Not f(7), [9], \
            http://[::1]/admin, https://x.org/{id}/key, 'O[k]' or {\"to\": [\"bob\", 'eve']}: (12).";
        let values = of(text);
        for token in [
            "https://x.org/a_(b)",
            "https://x.org/c_(d)",
            "its page",
            "https://x.org/e",
            "f(7)",
            "http://[::1]/admin",
            "https://x.org/{id}/key",
            "O[k]",
            "bob",
            "eve",
            "12",
        ] {
            assert!(values.contain(&json!(token), &NONE), "{token}");
        }
        for other in [
            "https://x.org/a_",
            "https://x.org/a_(b",
            "https://x.org/c_(d",
            "https://x.org/c_",
            "d",
            "b",
            "f",
            "7",
            "http://",
            "http://[",
            "::1",
            "/admin",
            "]/admin",
            "https://x.org/",
            "id",
            "/key",
            "k",
            "O",
        ] {
            assert!(!values.contain(&json!(other), &NONE), "{other}");
        }
        assert!(values.contain(&json!(12), &NONE) && values.contain(&json!(9), &NONE));
        assert!(!values.contain(&json!(7), &NONE) && !values.contain(&json!(1), &NONE));
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
            "https://x.org/in/..;/out",
            "https://x.org/in/..;x=1/out",
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
