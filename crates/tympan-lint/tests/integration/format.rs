//! Formatting: the cases in `fixtures/format`, and what holds for every file and every template.
//!
//! Each folder of `fixtures/format` has a file `in` and what it becomes, `out`, with the same extension.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tympan_core::format::{Format, ReferencedFile, Resolve};
use tympan_core::template::syntax::{TokenKind, parse_jinja};
use tympan_core::template::{CompileOptions, Template};
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, JsonMap, Kind, Result};
use tympan_lint::format::{FormatError, FormatOptions, Formatted, format_file};

use crate::fixtures::{read, root};
use crate::grammar;

/// Reads files below the folder of a prompt.
struct Folder(PathBuf);

impl Resolve for Folder {
    fn env(&mut self, _: &str) -> Result<Option<String>> {
        unreachable!("formatting reads no variables")
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        #[expect(clippy::disallowed_methods, reason = "a test reads fixtures")]
        let text = std::fs::read_to_string(self.0.join(path));
        let text = text.map_err(|_| Error::new(Kind::ReferencedFileNotFound, path))?;
        Ok(ReferencedFile { text })
    }
}

fn front_matter_only() -> FormatOptions {
    let mut options = FormatOptions::default();
    options.front_matter_only = true;
    options
}

fn format_with(source: &SourceFile, options: &FormatOptions) -> std::result::Result<Formatted, FormatError> {
    let folder = Path::new(source.name()).parent().unwrap_or(Path::new("")).to_owned();
    format_file(source, &mut Folder(folder), options)
}

fn format(source: &SourceFile) -> std::result::Result<Formatted, FormatError> {
    format_with(source, &FormatOptions::default())
}

/// Formats a text that must be valid.
fn formatted(name: &str, text: &str) -> Formatted {
    format(&SourceFile::new(name, text)).unwrap_or_else(|error| panic!("{error}\n{}", &text[..text.len().min(500)]))
}

/// Returns the template of a `.prompty` file without front matter, formatted.
fn template(text: &str) -> String {
    formatted("x.prompty", text).text
}

/// All files below a folder that may be prompts.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !["node_modules", "target"].iter().any(|name| path.ends_with(name)) {
            files(&path, found);
        } else if path.is_file() {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if ["prompty", "yaml", "yml", "json", "toml", "md"].contains(&extension) {
                found.push(path);
            }
        }
    }
}

#[test]
fn cases_become_what_is_next_to_them() {
    let mut paths: Vec<_> = std::fs::read_dir(root().join("format"))
        .expect("the folder is there")
        .flat_map(|case| std::fs::read_dir(case.expect("an entry").path()).expect("a folder"))
        .map(|file| file.expect("a file").path())
        .filter(|path| path.file_stem().is_some_and(|stem| stem == "in"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 8, "{paths:?}");
    for path in paths {
        let result = format(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let expected = path.with_file_name("out").with_extension(path.extension().unwrap_or_default());
        assert_eq!(result.text, read(&expected).text(), "{}", path.display());
    }
}

#[test]
fn every_file_is_formatted_safely() {
    let mut paths = Vec::new();
    files(&root(), &mut paths);
    files(&root().join("../examples"), &mut paths);
    let mut count = 0;
    for path in paths.into_iter().filter(|path| !path.ends_with("not_utf8.prompty")) {
        let source = read(&path);
        if !Format::detect(&path, source.text()).matches(source.text()) {
            continue;
        }
        let result = match format(&source) {
            Ok(result) => result,
            Err(FormatError::Invalid(_)) => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        count += 1;
        let again = format(&SourceFile::new(source.name(), result.text.as_str())).expect("it can be formatted again");
        assert_eq!(again.text, result.text, "{}", path.display());
        let declarations = format_with(&source, &front_matter_only()).expect("it can be formatted");
        let hashes = declarations.hashes.as_ref();
        assert!(hashes.is_none_or(|hashes| hashes.before == hashes.after), "{}", path.display());
        assert_eq!(words(&result.text), words(source.text()), "{}", path.display());
        assert_eq!(edited(source.text(), &result), result.text, "{}", path.display());
        assert!(!result.changed || !path.starts_with(root().join("../examples")), "not formatted: {}", path.display());
    }
    assert!(count > 150, "only {count} files were found");
}

/// Returns a text without white space, commas and quotes.
fn words(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace() && !matches!(char, '"' | '\'')).collect()
}

/// Applies the edits of a result.
fn edited(before: &str, result: &Formatted) -> String {
    let (mut text, mut at) = (String::new(), 0);
    for (span, new) in result.edits(before) {
        text += &before[at..span.start];
        text += &new;
        at = span.end;
    }
    text + &before[at..]
}

#[test]
fn formatted_templates_render_alike() {
    let mut count = 0;
    for file in std::fs::read_dir(root().join("jinja")).expect("the folder is there") {
        let text = read(&file.expect("a file").path()).text().to_owned();
        let cases: Vec<JsonMap> = serde_json::from_str(&text).expect("it is a list of cases");
        for case in cases {
            let source = case["template"].as_str().expect("a text");
            let Some(inputs) = case["inputs"].as_object() else { continue };
            let lenient = case.get("lenient").is_some_and(|lenient| lenient == true);
            let render = |source: &str| {
                let template = Template::compile(source, CompileOptions::default()).ok()?;
                Some(template.render_json(inputs, lenient).map(|text| text.as_str().to_owned()).map_err(|e| e.kind()))
            };
            let Some(before) = render(source) else { continue };
            if source.starts_with("---") {
                continue;
            }
            count += 1;
            assert_eq!(render(&template(source)), Some(before), "{source}");
        }
    }
    assert!(count > 300, "only {count} cases were found");
}

#[test]
fn expressions_have_one_style() {
    let cases = [
        ("{{x}}", "{{ x }}"),
        ("{{-  x-}}", "{{- x -}}"),
        ("{{ x|upper|default('a') }}", "{{ x | upper | default(\"a\") }}"),
        ("{{a+b*-c}}", "{{ a + b * -c }}"),
        ("{{ - 3 }}{{ (-  3) }}{{a--b}}", "{{ -3 }}{{ (-3) }}{{ a - -b }}"),
        ("{{ f( a,b = 1,*c , ** d ) }}", "{{ f(a, b=1, *c, **d) }}"),
        ("{{ x [ 1 : 2 ] }}{{x[::-1]}}", "{{ x[1:2] }}{{ x[::-1] }}"),
        ("{{ {'a' :1,\"b\":{'c':2}} }}", "{{ {\"a\": 1, \"b\": {\"c\": 2}} }}"),
        ("{{ {'a': {'b': 1} } }}", "{{ {\"a\": {\"b\": 1} } }}"),
        ("{{ (a,) }}{{ [ ] }}{{ { } }}", "{{ (a,) }}{{ [] }}{{ {} }}"),
        ("{{ 1 .x }}{{ a . b . 0 }}", "{{ 1 .x }}{{ a.b.0 }}"),
        ("{{ x is divisibleby 3 }}{{ x is  not in [1] }}", "{{ x is divisibleby 3 }}{{ x is not in [1] }}"),
        ("{{ not(a)and(b) }}{{ a if(b)else c }}", "{{ not (a) and (b) }}{{ a if (b) else c }}"),
        ("{%set x=1%}{%   set (a,b)=x %}", "{% set x = 1 %}{% set (a, b) = x %}"),
        ("{%with a=1,b=f(c=2)%}{%endwith%}", "{% with a = 1, b = f(c=2) %}{% endwith %}"),
        ("{%if(x)%}{%elif y%}{%endif%}", "{% if (x) %}{% elif y %}{% endif %}"),
        ("{%macro m (a,b = 1)%}{%endmacro%}", "{% macro m(a, b=1) %}{% endmacro %}"),
        (
            "{%macro m(l)%}{{caller(l)}}{%endmacro%}{%call (i)m([1])%}{{i}}{%endcall%}",
            "{% macro m(l) %}{{ caller(l) }}{% endmacro %}{% call(i) m([1]) %}{{ i }}{% endcall %}",
        ),
        ("{% filter  upper|trim %}x{%endfilter%}", "{% filter upper | trim %}x{% endfilter %}"),
        ("{%-raw-%} {{x}} {%endraw+%}", "{%- raw -%} {{x}} {% endraw +%}"),
        ("{#x#}{#- x-#}{#+x#}{##}{# #}{#-#}", "{# x #}{#- x -#}{#+ x #}{##}{# #}{#-#}"),
        ("{#### x ####}{#\n x#}", "{#### x ####}{#\n x#}"),
        ("{{ \n  x  \n  |upper\n}}", "{{\n  x\n  | upper\n}}"),
        ("{{ x\r\n|upper }}", "{{ x\r\n| upper }}"),
        ("<a b=\"{{ c['d'] }}\">{{ c['d'] }}", "<a b=\"{{ c['d'] }}\">{{ c[\"d\"] }}"),
        ("{{ 'it\"s' }}{{ \"it's\" }}{{ 'a\\n' }}", "{{ 'it\"s' }}{{ \"it's\" }}{{ \"a\\n\" }}"),
        ("{{x|a . b}}{{x is a .b}}", "{{ x | a.b }}{{ x is a.b }}"),
        ("{{ '{{'+x }}", "{{ '{{'+x }}"),
        ("  a  \n\tb {{x}}  \n\n\n", "  a  \n\tb {{ x }}  \n\n\n"),
    ];
    for (before, after) in cases {
        assert_eq!(template(before), after);
        assert_eq!(template(after), after);
    }
}

#[test]
fn mustache_tags_have_one_style() {
    let cases = [
        ("{{x}}{{  x.y}}", "{{ x }}{{ x.y }}"),
        ("{{# a }}{{ /a }}{{^ a}}{{/ a }}", "{{#a}}{{/a}}{{^a}}{{/a}}"),
        ("{{{x}}}{{& x}}", "{{{x}}}{{& x}}"),
        ("{{!x}}{{!-- x --}}{{!}}", "{{! x }}{{!-- x --}}{{!}}"),
        ("{{=<% %>=}}<%x%> {{x}}", "{{=<% %>=}}<% x %> {{x}}"),
        ("{{\nx}}", "{{\nx}}"),
    ];
    for (before, after) in cases {
        let file = |template: &str| format!("---\ntemplate: mustache\n---\nuser:\n{template}");
        assert_eq!(formatted("x.prompty", &file(before)).text, file(after));
        assert_eq!(formatted("x.prompty", &file(after)).text, file(after));
    }
}

#[test]
fn yaml_has_one_style() {
    let cases = [
        ("name:   x\ninputs:\n- name:  a\n  kind: string\n", "name: x\ninputs:\n  - name: a\n    kind: string\n"),
        (
            "metadata:\n    a:\n        - 1\n        -   - 2\n            - 3\n",
            "metadata:\n  a:\n    - 1\n    - - 2\n      - 3\n",
        ),
        ("metadata: {a: 1,b:   [ 1,2 ], \"c\":3,d: , e : 4 }\n", "metadata: {a: 1, b: [1, 2], \"c\": 3, d: , e: 4}\n"),
        ("name: x # a\n#b\n\n\n\n  # c\ndescription: y   \n\n", "name: x  # a\n#b\n\n# c\ndescription: y\n"),
        ("extra:\n- a\n# about b\n- b\n# end\n", "extra:\n  - a\n  # about b\n  - b\n  # end\n"),
        (
            "metadata:\n    a: |\n          x\n            y  \n\n           \n          z\n    b: 1\n",
            "metadata:\n  a: |\n        x\n          y  \n\n         \n        z\n  b: 1\n",
        ),
        (
            "metadata:\n    a: >2-\n       x\n    b: |+\n      y\n\n\n\n    c: 1\n",
            "metadata:\n  a: >2-\n     x\n  b: |+\n    y\n\n\n\n  c: 1\n",
        ),
        (
            "metadata:\n    a: one\n      two\n\n\n      three # c\n    b: 'x\n      y'\n",
            "metadata:\n  a: one\n    two\n\n\n    three  # c\n  b: 'x\n    y'\n",
        ),
        (
            "metadata:\n    a:\n        plain\n      text\n    b: [1,\n       2 , # c\n   3]\n",
            "metadata:\n  a:\n    plain\n   text\n  b: [1,\n     2,  # c\n   3]\n",
        ),
        (
            "metadata:\n    x: &a   {b: 1}\n    y:   *a\n    z: !!str   1\n",
            "metadata:\n  x: &a {b: 1}\n  y: *a\n  z: !!str 1\n",
        ),
        (
            "metadata:\n  a: ${env:X}\n  'b' :  \"${env:Y:d  e}\"\n",
            "metadata:\n  a: ${env:X}\n  'b': \"${env:Y:d  e}\"\n",
        ),
        ("  name: x\n  model:\n       id: y\n", "name: x\nmodel:\n  id: y\n"),
        (
            "name: a#b\ndescription: 'c # d'  # e\nmetadata: {f: g#h, i: j} # k\n",
            "name: a#b\ndescription: 'c # d'  # e\nmetadata: {f: g#h, i: j}  # k\n",
        ),
    ];
    for (before, after) in cases {
        let file = |yaml: &str| format!("---\n{yaml}---\nuser:\nHi");
        assert_eq!(formatted("x.prompty", &file(before)).text, file(after));
        assert_eq!(formatted("x.prompty", &file(after)).text, file(after));
        let windows = |yaml: &str| file(yaml).replace('\n', "\r\n");
        assert_eq!(formatted("x.prompty", &windows(before)).text, windows(after));
    }
}

#[test]
fn what_is_not_understood_stays() {
    for yaml in
        ["? name\n: x\n", "metadata:\n  - [a]: b\n", "name:  x\n...\n", "metadata:\n\t a: 1\n", "metadata: {? a : 1}\n"]
    {
        let file = format!("---\n{yaml}---\nuser:\nHi {{{{x}}}}");
        if let Ok(result) = format(&SourceFile::new("x.prompty", file.as_str())) {
            assert_eq!(result.text, file.replace("{{x}}", "{{ x }}"));
            assert!(result.note.is_some());
        }
    }
}

#[test]
fn byte_order_marks_and_final_newlines_stay() {
    for (before, after) in [
        ("\u{feff}---\nname:  x\n---\nuser:\n{{a}}", "\u{feff}---\nname: x\n---\nuser:\n{{ a }}"),
        ("---\nname:  x\n---\n\n\nuser:\n{{a}}\n\n", "---\nname: x\n---\n\n\nuser:\n{{ a }}\n\n"),
        ("+++  \nname:  x\n+++ \nuser:\nHi ", "+++  \nname: x\n+++ \nuser:\nHi "),
        ("---\n# x\n---\nHi", "---\n# x\n---\nHi"),
        ("---\n---\n", "---\n---\n"),
        ("", ""),
    ] {
        assert_eq!(formatted("x.prompty", before).text, after);
    }
    let yaml = "name:  a\nrole: user\nbody: |\n    {{x}}\nvariables:\n    x: {type: string, trusted: false}";
    let expected = "name: a\nrole: user\nbody: |\n    {{ x }}\nvariables:\n  x: {type: string, trusted: false}";
    assert_eq!(formatted("a.yaml", &format!("\u{feff}{yaml}")).text, format!("\u{feff}{expected}"));
}

#[test]
fn hashes_change_with_templates_only() {
    let changed = |text: &str| {
        let Formatted { changed, hashes, .. } = formatted("x.prompty", text);
        (changed, hashes.is_some_and(|hashes| hashes.before != hashes.after))
    };
    assert_eq!(changed("---\nname: x\n---\nuser:\nHi"), (false, false));
    assert_eq!(changed("---\nname:  x\n---\nuser:\nHi"), (true, false));
    assert_eq!(changed("---\nname: x\n---\nuser:\n{{a}}"), (true, true));
    let source = SourceFile::new("x.prompty", "---\nname:  x\n---\nuser:\n{{a}}");
    let result = format_with(&source, &front_matter_only()).expect("it is valid");
    assert_eq!(result.text, "---\nname: x\n---\nuser:\n{{a}}");
}

#[test]
fn files_that_do_not_load_have_an_error() {
    let list = "---\ndescription:\n- ${env:A}\n---\nHi";
    for text in ["---\nname: [\n---\nHi", "{{ x", "{% include 'a' %}", "---\nname: x\n", list] {
        let error = format(&SourceFile::new("x.prompty", text)).expect_err("it is not valid");
        assert!(matches!(error, FormatError::Invalid(_)), "{text}: {error}");
    }
    // The template of another engine stays as it is.
    let other = "---\nname:  x\ntemplate: {format: liquid}\n---\n{{x}}{% y";
    assert_eq!(formatted("x.prompty", other).text, other.replace("  x", " x"));
}

#[test]
fn long_files_take_linear_time() {
    let many = 20_000;
    let yaml = format!("---\nextra:\n{}---\n", "- {a: 1,b: [ 2 ]} # c\n".repeat(many));
    assert!(formatted("x.prompty", &yaml).changed);
    let comments = format!("---\nname: x\n{}---\n", "  # c\n\n\n".repeat(many));
    assert!(formatted("x.prompty", &comments).changed);
    assert!(template(&"{{x}}{%set y=1%} ".repeat(many)).len() > 16 * many);
    let list = format!("{{{{ [{}] }}}}", "x,".repeat(many));
    assert!(template(&list).len() > 3 * many);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn generated_templates_are_formatted_safely(
        source in grammar::block(2, &grammar::Exprs::nested(2)).strategy(),
        spaces in prop::collection::vec(prop::sample::select(vec![" ", "  ", "\n", "\t", " \n  ", "\r\n"]), 1..8),
    ) {
        prop_assume!(!source.trim_start().starts_with("---") && !source.trim_start().starts_with("+++"));
        let mut index = 0;
        let tokens = parse_jinja(&source).tokens;
        let spaced: String = tokens.iter().map(|token| {
            index += 1;
            match token.kind {
                TokenKind::Whitespace => spaces[index % spaces.len()],
                _ => &source[token.span().range()],
            }
        }).collect();
        for text in [&source, &spaced] {
            match format(&SourceFile::new("x.prompty", text.as_str())) {
                Ok(result) => prop_assert_eq!(&template(&result.text), &result.text),
                Err(error) => prop_assert!(matches!(error, FormatError::Invalid(_)), "{}\n{}", error, text),
            }
        }
    }

    #[test]
    fn generated_declarations_are_formatted_safely(yaml in r#"(name|metadata|a|b|[xy]|- |: |:|\n|\n  |\n    |  |[{}\[\],#&*!|>'"?-]| #c){0,30}"#) {
        let file = format!("---\nmetadata:\n  k: {yaml}\n---\nHi");
        match format(&SourceFile::new("x.prompty", file.as_str())) {
            Ok(result) => prop_assert_eq!(&formatted("x.prompty", &result.text).text, &result.text),
            Err(error) => prop_assert!(matches!(error, FormatError::Invalid(_)), "{}\n{}", error, file),
        }
    }
}
