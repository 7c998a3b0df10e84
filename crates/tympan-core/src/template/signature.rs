//! The arguments that built-in filters, tests and functions accept. The evaluator refuses all others.

/// The arguments that something accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The parameters that can be passed by position, in order, or by name.
    pub params: &'static [&'static str],
    /// How many of them are required.
    pub required: usize,
    /// The parameters that can only be passed by name.
    pub named: &'static [&'static str],
    /// Whether more positional arguments are accepted.
    pub more: bool,
    /// Whether arguments with any name are accepted.
    pub any_name: bool,
    /// Whether the parameters can only be passed by position.
    pub by_position: bool,
}

/// What is wrong with the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentMistake {
    /// A required argument is missing. Holds the name of the parameter.
    Missing(&'static str),
    /// There are more positional arguments than parameters. Holds the number of parameters.
    TooMany(usize),
    /// No parameter has the name of this argument. Holds the index of the argument among the named ones.
    UnknownName(usize),
    /// A parameter is passed by position and by name. Holds the index of the argument among the named ones.
    Twice(usize),
}

impl Signature {
    const NONE: Self = Self { params: &[], required: 0, named: &[], more: false, any_name: false, by_position: false };

    const fn of(params: &'static [&'static str], required: usize) -> Self {
        Self { params, required, ..Self::NONE }
    }

    const fn with_named(self, named: &'static [&'static str]) -> Self {
        Self { named, ..self }
    }

    const fn and_more(self) -> Self {
        Self { more: true, ..self }
    }

    const fn and_any_name(self) -> Self {
        Self { any_name: true, ..self }
    }

    const fn by_position(self) -> Self {
        Self { by_position: true, ..self }
    }

    /// Returns the signature of a built-in filter. The value that it is applied to is not part of it. `named` are the names of the
    /// arguments, because `map` has two forms.
    pub fn of_filter(name: &str, named: &[&str]) -> Option<Self> {
        Some(match name {
            "default" | "d" => Self::of(&["default_value", "boolean"], 0),
            "replace" => Self::of(&["old", "new"], 2),
            "trim" => Self::of(&["chars"], 0),
            "indent" => Self::of(&["width", "first", "blank"], 0),
            "split" => Self::of(&["sep", "maxsplit"], 0),
            "truncate" => Self::of(&["length", "killwords", "end", "leeway"], 0),
            "wordwrap" => Self::of(&["width", "break_long_words", "wrapstring", "break_on_hyphens"], 0),
            "center" => Self::of(&["width"], 0),
            "xmlattr" => Self::of(&["autospace"], 0),
            "int" => Self::of(&["default", "base"], 0),
            "float" => Self::of(&["default"], 0),
            "round" => Self::of(&["precision", "method"], 0),
            "filesizeformat" => Self::of(&["binary"], 0),
            "tojson" => Self::of(&["indent"], 0),
            "format" => Self::NONE.and_more().and_any_name(),
            "join" => Self::of(&["d", "attribute"], 0),
            "attr" => Self::of(&["name"], 1),
            "sort" => Self::of(&["reverse"], 0).with_named(&["case_sensitive", "attribute"]),
            "min" | "max" | "unique" => Self::NONE.with_named(&["case_sensitive", "attribute"]),
            "groupby" => Self::of(&["attribute"], 1).with_named(&["case_sensitive", "default"]),
            "dictsort" => Self::NONE.with_named(&["case_sensitive", "by", "reverse"]),
            "batch" | "slice" => Self::of(&["count", "fill_with"], 1),
            "map" if named.contains(&"attribute") => Self::NONE.with_named(&["attribute", "default"]),
            "map" => Self::of(&["filter"], 1).and_more().and_any_name(),
            "select" | "reject" => Self::of(&["test"], 0).and_more().and_any_name(),
            "selectattr" | "rejectattr" => Self::of(&["attribute", "test"], 1).and_more().and_any_name(),
            "sum" => Self::of(&["attribute", "start"], 0),
            "chain" | "zip" => Self::NONE.and_more(),
            _ if super::names::FILTERS.contains(&name) => Self::NONE,
            _ => return None,
        })
    }

    /// Returns the signature of a built-in test. The value that it is applied to is not part of it. Tests ignore what they do
    /// not need.
    pub fn of_test(name: &str) -> Option<Self> {
        Some(match name {
            "eq" | "equalto" | "==" | "ne" | "!=" | "lt" | "lessthan" | "<" | "le" | "<=" | "gt" | "greaterthan"
            | ">" | "ge" | ">=" | "in" | "startingwith" | "endingwith" | "divisibleby" | "sameas" => {
                Self::of(&["other"], 1).by_position().and_more().and_any_name()
            }
            _ if super::names::TESTS.contains(&name) => Self::NONE.and_more().and_any_name(),
            _ => return None,
        })
    }

    /// Returns the signature of a built-in function.
    pub fn of_function(name: &str) -> Option<Self> {
        Some(match name {
            // A single argument is the end.
            "range" => Self::of(&["stop", "stop", "step"], 1).by_position(),
            "dict" | "namespace" => Self::of(&["map"], 0).by_position().and_any_name(),
            _ => return None,
        })
    }

    /// Returns what is wrong with some arguments: a number of positional ones, and named ones.
    pub fn mistake(&self, positional: usize, named: &[&str]) -> Option<ArgumentMistake> {
        if positional > self.params.len() && !self.more {
            return Some(ArgumentMistake::TooMany(self.params.len()));
        }
        for (index, name) in named.iter().enumerate() {
            let param = self.params.iter().position(|param| param == name).filter(|_| !self.by_position);
            match param {
                Some(param) if param < positional && !self.any_name => return Some(ArgumentMistake::Twice(index)),
                None if !self.any_name && !self.named.contains(name) => {
                    return Some(ArgumentMistake::UnknownName(index));
                }
                _ => {}
            }
        }
        let is_passed = |param: &&str| !self.by_position && named.contains(param);
        let missing = self.params.iter().take(self.required).skip(positional).find(|param| !is_passed(param));
        missing.map(|param| ArgumentMistake::Missing(param))
    }
}
