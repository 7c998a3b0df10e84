//! Computes the field names that serde writes under `rename_all`.

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
    /// Returns the rule with this name. serde itself reports unknown names.
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

    /// Applies the rule to a field name. Like serde, it assumes that field names are in snake case.
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

    /// Compares the field names with those that serde writes.
    macro_rules! check {
        ($($rule:literal)*) => {$({
            #[derive(serde::Serialize)]
            #[serde(rename_all = $rule)]
            struct Fields {
                user_name: u8,
                x: u8,
                _a_b2: u8,
                größe_ä: u8,
            }
            let value = serde_json::to_value(Fields { user_name: 0, x: 0, _a_b2: 0, größe_ä: 0 }).expect("a map");
            let mut written: Vec<_> = value.as_object().expect("a map").keys().cloned().collect();
            let rule = Rule::from_name($rule).expect("a rule of serde's");
            let mut applied = ["user_name", "x", "_a_b2", "größe_ä"].map(|field| rule.apply(field));
            written.sort_unstable();
            applied.sort_unstable();
            assert_eq!(written, applied, $rule);
        })*};
    }

    #[test]
    fn names_are_those_of_serde() {
        check!("lowercase" "UPPERCASE" "PascalCase" "camelCase" "snake_case" "SCREAMING_SNAKE_CASE" "kebab-case"
            "SCREAMING-KEBAB-CASE");
        assert_eq!(Rule::from_name("Title Case"), None);
    }
}
