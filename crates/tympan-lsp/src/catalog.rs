//! The filters, tests, functions and variables of templates, for hover and completion.

use tympan_core::template::name_use::NameKind;

/// A name of the template language: how it is written, and what it does.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
}

const fn entry(name: &'static str, usage: &'static str, about: &'static str) -> Entry {
    Entry { name, usage, about }
}

/// Returns the entry of a name.
pub(crate) fn find(kind: NameKind, name: &str) -> Option<&'static Entry> {
    entries(kind).iter().find(|entry| entry.name == name)
}

/// Returns all entries of a kind.
pub(crate) const fn entries(kind: NameKind) -> &'static [Entry] {
    match kind {
        NameKind::Filter => FILTERS,
        NameKind::Test => TESTS,
        NameKind::Function => FUNCTIONS,
    }
}

const FILTERS: &[Entry] = &[
    entry("abs", "abs", "the absolute value"),
    entry("attr", "attr(name)", "an entry of a map"),
    entry("batch", "batch(size, fill)", "lists of `size` elements; `fill` pads the last one"),
    entry("bool", "bool", "`true` or `false`"),
    entry("capitalize", "capitalize", "the first letter in upper case, all others in lower case"),
    entry("center", "center(width=80)", "centered in `width` characters"),
    entry("chain", "chain(other)", "two lists or maps concatenated"),
    entry("count", "count", "the number of elements, entries or characters"),
    entry("d", "d(value, boolean=false)", "a fallback if the value is undefined; with `true`, also if it is false"),
    entry(
        "default",
        "default(value, boolean=false)",
        "a fallback if the value is undefined; with `true`, also if it is false",
    ),
    entry("dictsort", "dictsort(by=\"key\", reverse=false)", "the entries of a map as pairs, sorted"),
    entry("e", "e", "`<`, `>`, `&`, `\"`, `'` and `/` escaped for HTML"),
    entry("escape", "escape", "`<`, `>`, `&`, `\"`, `'` and `/` escaped for HTML"),
    entry("filesizeformat", "filesizeformat(binary=false)", "a number of bytes with a unit"),
    entry("first", "first", "the first element"),
    entry("float", "float(default=0.0)", "a float, or the default if the value is not a number"),
    entry("format", "format(…)", "the text with `%s`, `%d` and other placeholders filled in"),
    entry("groupby", "groupby(attribute)", "groups of elements, each with `grouper` and `list`"),
    entry("indent", "indent(width=4, first=false, blank=false)", "all lines but the first indented"),
    entry("int", "int(default=0, base=10)", "an integer, or the default if the value is not a number"),
    entry("items", "items", "the entries of a map, as pairs"),
    entry("join", "join(separator, attribute)", "the elements as one text"),
    entry("last", "last", "the last element"),
    entry("length", "length", "the number of elements, entries or characters"),
    entry("lines", "lines", "the lines, as a list"),
    entry("list", "list", "a list of the elements, keys or characters"),
    entry("lower", "lower", "the text in lower case"),
    entry(
        "map",
        "map(filter)",
        "the list with a filter applied to each element; `attribute=` selects an entry of each",
    ),
    entry("max", "max(attribute)", "the largest element"),
    entry("min", "min(attribute)", "the smallest element"),
    entry("pprint", "pprint", "pretty-printed on multiple lines"),
    entry("random", "random", "a random element or character"),
    entry("reject", "reject(test)", "the elements that fail a test"),
    entry("rejectattr", "rejectattr(name, test)", "the elements of which an entry fails a test"),
    entry("replace", "replace(old, new)", "with every `old` replaced"),
    entry("reverse", "reverse", "in reverse order"),
    entry("round", "round(digits=0, method=\"common\")", "rounded; `\"ceil\"` and `\"floor\"` round up and down"),
    entry("safe", "safe", "the same text, which `escape` then leaves unchanged"),
    entry("select", "select(test)", "the elements that pass a test"),
    entry("selectattr", "selectattr(name, test)", "the elements of which an entry passes a test"),
    entry("slice", "slice(count)", "`count` lists of about the same length"),
    entry("sort", "sort(reverse=false, case_sensitive=false, attribute)", "sorted"),
    entry("split", "split(separator, limit)", "the parts between separators, as a list; without an argument, words"),
    entry("string", "string", "the value as text"),
    entry("striptags", "striptags", "without HTML tags and comments"),
    entry("sum", "sum(attribute, start=0)", "the sum of all numbers"),
    entry("title", "title", "each word capitalized"),
    entry("tojson", "tojson(indent)", "JSON; `indent=2` for multiple lines"),
    entry("trim", "trim(characters)", "without leading and trailing white space, or without these characters"),
    entry("truncate", "truncate(length=255, killwords=false, end=\"...\", leeway=5)", "shortened at the end of a word"),
    entry("unique", "unique(case_sensitive=false, attribute)", "without duplicates"),
    entry("upper", "upper", "the text in upper case"),
    entry("urlencode", "urlencode", "the text percent-encoded, or a map as a query string"),
    entry("wordcount", "wordcount", "the number of words"),
    entry("wordwrap", "wordwrap(width=79)", "wrapped into lines of `width` characters"),
    entry("xmlattr", "xmlattr(autospace=true)", "a map as attributes"),
    entry("zip", "zip(other)", "pairs of elements"),
];

const TESTS: &[Entry] = &[
    entry("!=", "!=(value)", "not equal to the argument"),
    entry("<", "<(value)", "less than the argument"),
    entry("<=", "<=(value)", "at most the argument"),
    entry("==", "==(value)", "equal to the argument"),
    entry(">", ">(value)", "greater than the argument"),
    entry(">=", ">=(value)", "at least the argument"),
    entry("boolean", "boolean", "`true` or `false`"),
    entry("defined", "defined", "a value that is defined"),
    entry("divisibleby", "divisibleby(number)", "an integer that the argument divides"),
    entry("endingwith", "endingwith(text)", "text that ends with the argument"),
    entry("eq", "eq(value)", "equal to the argument"),
    entry("equalto", "equalto(value)", "equal to the argument"),
    entry("escaped", "escaped", "text that `escape` or `safe` has been applied to"),
    entry("even", "even", "an even integer"),
    entry("false", "false", "`false`"),
    entry("filter", "filter", "the name of a filter"),
    entry("float", "float", "a float"),
    entry("ge", "ge(value)", "at least the argument"),
    entry("greaterthan", "greaterthan(value)", "greater than the argument"),
    entry("gt", "gt(value)", "greater than the argument"),
    entry("in", "in(list)", "contained in a list or a text, or a key of a map"),
    entry("int", "int", "an integer"),
    entry("integer", "integer", "an integer"),
    entry("iterable", "iterable", "everything that a loop can iterate over: lists, maps, text"),
    entry("le", "le(value)", "at most the argument"),
    entry("lessthan", "lessthan(value)", "less than the argument"),
    entry("lower", "lower", "text whose letters are all lower case"),
    entry("lt", "lt(value)", "less than the argument"),
    entry("mapping", "mapping", "a map"),
    entry("ne", "ne(value)", "not equal to the argument"),
    entry("none", "none", "`none`"),
    entry("number", "number", "a number, including booleans"),
    entry("odd", "odd", "an odd integer"),
    entry("safe", "safe", "text that `escape` or `safe` has been applied to"),
    entry("sameas", "sameas(value)", "the identical value, of the same type"),
    entry("sequence", "sequence", "a list or a tuple"),
    entry("startingwith", "startingwith(text)", "text that starts with the argument"),
    entry("string", "string", "text"),
    entry("test", "test", "the name of a test"),
    entry("true", "true", "`true`"),
    entry("undefined", "undefined", "a value that is not defined"),
    entry("upper", "upper", "text whose letters are all upper case"),
];

const FUNCTIONS: &[Entry] = &[
    entry("range", "range(start, end, step)", "integers, excluding the end"),
    entry("dict", "dict(a=1, b=2)", "a map; `dict(other, b=2)` starts with the entries of another map"),
    entry("namespace", "namespace(a=1)", "an object whose attributes can be set"),
];

/// The members of `loop`.
pub(crate) const LOOP: &[Entry] = &[
    entry("index", "index", "the number of the iteration, from 1"),
    entry("index0", "index0", "the number of the iteration, from 0"),
    entry("revindex", "revindex", "the number of remaining iterations, including this one"),
    entry("revindex0", "revindex0", "the number of remaining iterations, excluding this one"),
    entry("first", "first", "whether this is the first iteration"),
    entry("last", "last", "whether this is the last iteration"),
    entry("length", "length", "the number of iterations"),
    entry("previtem", "previtem", "the element before this one"),
    entry("nextitem", "nextitem", "the element after this one"),
    entry("depth", "depth", "the depth of a recursive loop, from 1"),
    entry("depth0", "depth0", "the depth of a recursive loop, from 0"),
    entry("cycle", "cycle(…)", "each of the arguments in turn"),
    entry("changed", "changed(value)", "whether the value differs from the previous iteration"),
];

/// The statements that can be at the beginning of a tag.
pub(crate) const STATEMENTS: &[Entry] = &[
    entry("if", "if condition", "a condition"),
    entry("elif", "elif condition", "another condition"),
    entry("else", "else", "the other branch"),
    entry("endif", "endif", "ends a condition"),
    entry("for", "for item in list", "a loop"),
    entry("endfor", "endfor", "ends a loop"),
    entry("set", "set name = value", "a variable"),
    entry("endset", "endset", "ends a variable that is a block of text"),
    entry("with", "with name = value", "a block with its own variables"),
    entry("endwith", "endwith", "ends a block with its own variables"),
    entry("macro", "macro name(parameters)", "a macro"),
    entry("endmacro", "endmacro", "ends a macro"),
    entry("call", "call macro()", "calls a macro with a block of text"),
    entry("endcall", "endcall", "ends a call"),
    entry("filter", "filter name", "applies a filter to a block of text"),
    entry("endfilter", "endfilter", "ends a filtered block"),
    entry("raw", "raw", "text in which nothing is a tag"),
    entry("endraw", "endraw", "ends raw text"),
    entry("break", "break", "ends the loop"),
    entry("continue", "continue", "continues with the next iteration"),
    entry("do", "do call()", "a call whose result is not written"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_name_has_an_entry() {
        for kind in [NameKind::Filter, NameKind::Test, NameKind::Function] {
            let named: Vec<_> = entries(kind).iter().map(|entry| entry.name).collect();
            assert_eq!(named, kind.builtin(), "{kind:?}");
        }
    }
}
