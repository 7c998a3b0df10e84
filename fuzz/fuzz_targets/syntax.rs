//! Any template: its tokens cover the source, and it is accepted if and only if minijinja accepts it. The bytes choose
//! from parts of templates, so that most of what is compared is nearly valid.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tympan::Kind;
use tympan::template::syntax::{parse_jinja, parse_mustache};

const PARTS: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{{-",
    "-}}",
    "{%-",
    "-%}",
    "{%+",
    "+%}",
    " ",
    "\n",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "a",
    "b",
    ".",
    ",",
    ":",
    "=",
    "|",
    "~",
    "+",
    "-",
    "*",
    "**",
    "/",
    "//",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "1",
    "1.5",
    "0x1f",
    "1e5",
    "'s'",
    "\"t\"",
    "'\\n'",
    "'\\u00e9'",
    " and ",
    " or ",
    " not ",
    " in ",
    " is ",
    " if ",
    " else ",
    "true",
    "none",
    "f(",
    "a=",
    "{{ ",
    " }}",
    "{% if a %}",
    "{% elif b %}",
    "{% else %}",
    "{% endif %}",
    "{% for a in b %}",
    "{% for ",
    " recursive ",
    "{% endfor %}",
    "{% set ",
    "{% set x %}",
    "{% endset %}",
    "{% with ",
    "{% with %}",
    "{% endwith %}",
    "{% macro f(",
    "{% endmacro %}",
    "{% call ",
    "{% call(a) f() %}",
    "{% endcall %}",
    "{% filter ",
    "{% endfilter %}",
    "{% autoescape ",
    "{% endautoescape %}",
    "{% do ",
    "{% break %}",
    "{% continue %}",
    "{% raw %}",
    "{% endraw %}",
    "text",
    "é",
    "\\",
    "'",
    "\"",
];

fuzz_target!(|bytes: &[u8]| {
    let source: String = bytes.iter().map(|byte| PARTS[usize::from(*byte) % PARTS.len()]).collect();
    check(&source);
    if let Ok(source) = std::str::from_utf8(bytes) {
        check(source);
    }
});

fn check(source: &str) {
    let parsed = parse_jinja(source);
    let tokens: String = parsed.tokens.iter().map(|token| &source[token.span().range()]).collect();
    assert_eq!(tokens, source);
    let tokens: String = parse_mustache(source).tokens.iter().map(|token| &source[token.span().range()]).collect();
    assert_eq!(tokens, source);
    // Prompts have a lower bound for nesting, and no inheritance: neither parser's word counts there.
    let is_ours = parsed.errors.iter().any(|error| error.kind == Kind::LimitExceeded)
        || ["block", "extends", "include", "import", "from"].iter().any(|word| source.contains(word));
    if !is_ours {
        let theirs = minijinja::Environment::new().template_from_str(source).map(drop);
        assert_eq!(parsed.errors.is_empty(), theirs.is_ok(), "{source:?}\n{:?}\n{theirs:?}", parsed.errors);
    }
}
