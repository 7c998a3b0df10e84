//! The names that serde gives to fields under `rename_all`.

/// A rule of `#[serde(rename_all = "…")]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Rule {
    /// The rule that is written like this. serde itself reports any other.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "snake_case" => Self::Snake,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            _ => return None,
        })
    }

    /// The name of a field under this rule. As serde does, it takes for granted that fields are in snake case.
    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Lower | Self::Snake => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(field),
            Self::Camel => {
                let pascal = pascal(field);
                let first = pascal.chars().next().map_or(0, char::len_utf8);
                pascal[..first].to_ascii_lowercase() + &pascal[first..]
            }
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(field: &str) -> String {
    let mut name = String::new();
    let mut starts_word = true;
    for c in field.chars() {
        match c {
            '_' => starts_word = true,
            _ if starts_word => {
                name.push(c.to_ascii_uppercase());
                starts_word = false;
            }
            _ => name.push(c),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_serde() {
        let cases = [
            ("lowercase", "user_name"),
            ("UPPERCASE", "USER_NAME"),
            ("PascalCase", "UserName"),
            ("camelCase", "userName"),
            ("snake_case", "user_name"),
            ("SCREAMING_SNAKE_CASE", "USER_NAME"),
            ("kebab-case", "user-name"),
            ("SCREAMING-KEBAB-CASE", "USER-NAME"),
        ];
        for (rule, name) in cases {
            assert_eq!(Rule::from_name(rule).expect("a rule of serde's").apply("user_name"), name);
        }
        assert_eq!(Rule::from_name("Title Case"), None);
    }
}
