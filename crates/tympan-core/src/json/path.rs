//! JSON paths: a small part of RFC 9535.
//!
//! A path starts with `$`, the whole value. `.name` and `['name']` select a member, `[0]` and `[-1]` an item, `.*` and
//! `[*]` everything in a map or a list. With two dots, as in `..name`, a selector applies to the value and to everything
//! in it. Slices, filters and lists of selectors are not supported.

use std::fmt;

use serde_json::Value as Json;

/// The maximum length of a path in bytes.
const MAX_PATH: usize = 1_000;

/// The maximum number of values that one evaluation looks at. Paths such as `$..*..*` visit some values many times.
const MAX_VISITS: usize = 1_000_000;

/// A path to values in JSON.
///
/// ```
/// use serde_json::json;
/// use tympan::json::path::JsonPath;
///
/// let path = JsonPath::parse("$.items[-1]['name']")?;
/// let value = json!({"items": [{"name": "a"}, {"name": "b"}]});
/// assert_eq!(path.select(&value)?, [&json!("b")]);
/// # Ok::<(), tympan::json::path::PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// A mistake in a path, or a path that selects too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    message: String,
    /// The position in the path, in bytes.
    at: Option<usize>,
}

impl PathError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), at: Some(at) }
    }

    /// Returns the position of the mistake in the path, in bytes.
    pub const fn position(&self) -> Option<usize> {
        self.at
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "invalid JSON path at byte {at}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for PathError {}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// Whether the selector applies to everything in the value too.
    is_deep: bool,
    selector: Selector,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Selector {
    Name(String),
    Index(i64),
    All,
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// Returns an error if the text is not a path, or uses a part of the syntax that is not supported.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        if path.len() > MAX_PATH {
            return Err(PathError::new(MAX_PATH, format!("expected at most {MAX_PATH} bytes, found {}", path.len())));
        }
        if !path.starts_with('$') {
            return Err(PathError::new(0, "expected `$`, which is the whole value, as in `$.name`"));
        }
        let mut parser = Parser { text: path, at: 1 };
        let mut steps = Vec::new();
        while parser.at < path.len() {
            steps.push(parser.step()?);
        }
        Ok(Self { steps })
    }

    /// Returns the values that the path selects, in the order of the document.
    ///
    /// # Errors
    /// Returns an error if the path visits too many values.
    pub fn select<'v>(&self, value: &'v Json) -> Result<Vec<&'v Json>, PathError> {
        let mut visits = 0;
        let mut selected = vec![value];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in selected {
                let from = if step.is_deep { descendants(value, &mut visits)? } else { vec![value] };
                for value in from {
                    step.selector.select(value, &mut next);
                    visit(&mut visits, next.len())?;
                }
            }
            selected = next;
        }
        Ok(selected)
    }
}

/// Counts a visit. `held` is the number of values that are kept at the same time.
fn visit(visits: &mut usize, held: usize) -> Result<(), PathError> {
    *visits += 1;
    if *visits > MAX_VISITS || held > MAX_VISITS {
        let message = format!("the JSON path visits more than {MAX_VISITS} values");
        return Err(PathError { message, at: None });
    }
    Ok(())
}

/// Returns a value and everything in it, in the order of the document.
fn descendants<'v>(value: &'v Json, visits: &mut usize) -> Result<Vec<&'v Json>, PathError> {
    let (mut found, mut stack) = (Vec::new(), vec![value]);
    while let Some(value) = stack.pop() {
        visit(visits, stack.len())?;
        found.push(value);
        match value {
            Json::Array(items) => stack.extend(items.iter().rev()),
            Json::Object(map) => stack.extend(map.values().rev()),
            _ => {}
        }
    }
    Ok(found)
}

impl Selector {
    fn select<'v>(&self, value: &'v Json, selected: &mut Vec<&'v Json>) {
        match (self, value) {
            (Self::Name(name), Json::Object(map)) => selected.extend(map.get(name)),
            (Self::Index(index), Json::Array(items)) => {
                let from_end = || i64::try_from(items.len()).ok()?.checked_add(*index);
                let index = if *index < 0 { from_end() } else { Some(*index) };
                selected.extend(index.and_then(|index| usize::try_from(index).ok()).and_then(|index| items.get(index)));
            }
            (Self::All, Json::Array(items)) => selected.extend(items),
            (Self::All, Json::Object(map)) => selected.extend(map.values()),
            _ => {}
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips a text. Returns whether it was there.
    fn skip(&mut self, text: &str) -> bool {
        let is_there = self.rest().starts_with(text);
        self.at += if is_there { text.len() } else { 0 };
        is_there
    }

    fn step(&mut self) -> Result<Step, PathError> {
        let is_deep = self.skip("..");
        let selector = if self.skip("[") {
            self.bracket()?
        } else if is_deep || self.skip(".") {
            if self.skip("*") { Selector::All } else { Selector::Name(self.name()?) }
        } else {
            return Err(PathError::new(self.at, "expected `.` or `[`"));
        };
        Ok(Step { is_deep, selector })
    }

    /// Parses a name without quotes.
    fn name(&mut self) -> Result<String, PathError> {
        let is_part = |char: char| char == '_' || char.is_ascii_alphanumeric() || !char.is_ascii();
        let rest = self.rest();
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|char: char| char.is_ascii_digit()) {
            return Err(PathError::new(self.at, "expected a name; names with other characters are written `['a-b']`"));
        }
        self.at += end;
        match self.rest().chars().next() {
            None | Some('.' | '[') => Ok(rest[..end].to_owned()),
            Some(_) => {
                Err(PathError::new(self.at, "expected `.` or `[`; names with other characters are written `['a-b']`"))
            }
        }
    }

    /// Parses what is in brackets.
    fn bracket(&mut self) -> Result<Selector, PathError> {
        self.space();
        let selector = match self.rest().chars().next() {
            Some('*') => {
                self.at += 1;
                Selector::All
            }
            Some(quote @ ('\'' | '"')) => Selector::Name(self.quoted(quote)?),
            Some('-' | '0'..='9') => self.index()?,
            Some('?') => return Err(PathError::new(self.at, "filters are not supported")),
            Some(':') => return Err(PathError::new(self.at, "slices are not supported")),
            _ => return Err(PathError::new(self.at, "expected a number, `*` or a name in quotes")),
        };
        self.space();
        match self.rest().chars().next() {
            Some(']') => self.at += 1,
            Some(',') => return Err(PathError::new(self.at, "lists of selectors are not supported")),
            Some(':') => return Err(PathError::new(self.at, "slices are not supported")),
            _ => return Err(PathError::new(self.at, "expected `]`")),
        }
        Ok(selector)
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn index(&mut self) -> Result<Selector, PathError> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let sign = rest.len() - digits.len();
        let end = sign + digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
        let index = rest[..end].parse().map_err(|_| PathError::new(self.at, "expected an index, such as 0 or -1"))?;
        self.at += end;
        Ok(Selector::Index(index))
    }

    /// Parses a name in quotes, which has the escapes of JSON.
    fn quoted(&mut self, quote: char) -> Result<String, PathError> {
        let start = self.at;
        let wrong = |message: &str| PathError::new(start, message);
        let mut json = String::from("\"");
        let mut chars = self.text[start + 1..].char_indices();
        loop {
            match chars.next() {
                None => return Err(wrong("the quote is not closed")),
                Some((end, char)) if char == quote => {
                    self.at = start + 1 + end + 1;
                    break;
                }
                Some((_, '"')) => json.push_str("\\\""),
                Some((_, '\\')) => match chars.next() {
                    Some((_, '\'')) if quote == '\'' => json.push('\''),
                    Some((_, char)) => json.extend(['\\', char]),
                    None => return Err(wrong("the quote is not closed")),
                },
                Some((_, char)) => json.push(char),
            }
        }
        json.push('"');
        serde_json::from_str(&json).map_err(|_| wrong("invalid escape in the name"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn select(path: &str, value: &Json) -> Vec<Json> {
        let path = JsonPath::parse(path).expect("a path");
        path.select(value).expect("few values").into_iter().cloned().collect()
    }

    #[test]
    fn selectors_select() {
        let value = json!({"a": [{"b": 1}, {"b": 2, "a": {"b": 3}}], "x y": {"'": 4, "\"": 5, "é\n": 6}, "_é1": 7});
        let cases = [
            ("$", vec![value.clone()]),
            ("$.a[0].b", vec![json!(1)]),
            ("$.a[-1]['b']", vec![json!(2)]),
            ("$[\"a\"][ 1 ].a", vec![json!({"b": 3})]),
            ("$.a[*].b", vec![json!(1), json!(2)]),
            ("$.a.*.b", vec![json!(1), json!(2)]),
            ("$..b", vec![json!(1), json!(2), json!(3)]),
            ("$..a[0]", vec![json!({"b": 1})]),
            ("$..[1].b", vec![json!(2)]),
            ("$['x y']['\\'']", vec![json!(4)]),
            ("$['x y']['\"']", vec![json!(5)]),
            ("$['x y'][\"\\u00e9\\n\"]", vec![json!(6)]),
            ("$._é1", vec![json!(7)]),
            ("$.a[2]", vec![]),
            ("$.a[-3]", vec![]),
            ("$.a.b", vec![]),
            ("$.a[-9223372036854775808]", vec![]),
        ];
        for (path, expected) in cases {
            assert_eq!(select(path, &value), expected, "{path}");
        }
    }

    #[test]
    fn mistakes_have_a_position() {
        let cases = [
            ("a.b", 0, "expected `$`"),
            ("$a", 1, "expected `.` or `[`"),
            ("$.", 2, "expected a name"),
            ("$.a-b", 3, "['a-b']"),
            ("$.1", 2, "expected a name"),
            ("$[", 2, "expected a number"),
            ("$[0", 3, "expected `]`"),
            ("$[0,1]", 3, "lists of selectors are not supported"),
            ("$[1:2]", 3, "slices are not supported"),
            ("$[?@.a]", 2, "filters are not supported"),
            ("$['a", 2, "not closed"),
            ("$['a\\", 2, "not closed"),
            ("$['\\x']", 2, "invalid escape"),
            ("$[-]", 2, "expected an index"),
            ("$[99999999999999999999]", 2, "expected an index"),
        ];
        for (path, at, message) in cases {
            let error = JsonPath::parse(path).expect_err(path);
            assert_eq!(error.position(), Some(at), "{path}: {error}");
            assert!(error.to_string().contains(message), "{path}: {error}");
        }
        assert!(JsonPath::parse(&format!("$.{}", "a".repeat(MAX_PATH))).is_err());
    }

    #[test]
    fn work_is_bounded() {
        let wide = Json::Array(vec![Json::Array(vec![json!(1); 100]); 100]);
        let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let path = JsonPath::parse(&format!("${}", "..*".repeat(300))).expect("a path");
        for value in [wide, nested] {
            let selected = path.select(&value);
            assert!(selected.is_err() || selected.is_ok_and(|selected| selected.is_empty()));
        }
    }
}
