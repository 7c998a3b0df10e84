//! A grammar for generating templates.
//!
//! It is typed, so that most templates render. It uses these inputs: the strings `s` and `q`, the integers `n` and `k`,
//! the float `f`, the boolean `t`, none as `z`, the lists `w` of strings and `l` of integers, the map `m` of integers,
//! the map `u` with a `name` and an `age`, and the list `d` of such maps. `nope` does not exist. Where a value becomes
//! part of a text (`~`, `join`, `upper`, …), the grammar uses only strings and integers. Fallbacks are literals,
//! because `default` and macros evaluate them only if necessary. Texts are trimmed before `int`, which ignores
//! white space around a number, as in Jinja2, but not in minijinja. Keys are texts, because `**` converts them to text, and
//! minijinja does not.

mod rule;

use rule::Form;
pub(crate) use rule::Rule;

/// One of several rules, each with its weight.
macro_rules! choice {
    ($($weight:expr => $rule:expr),+ $(,)?) => { Rule::from(Form::Choice(vec![$(($weight, $rule)),+])) };
}

/// Expressions by the type of their values.
#[derive(Clone)]
pub(crate) struct Exprs {
    text: Rule,
    int: Rule,
    float: Rule,
    truth: Rule,
    ints: Rule,
    texts: Rule,
    maps: Rule,
    pub(crate) any: Rule,
}

fn one_of(texts: &'static [&'static str]) -> Rule {
    Form::Text(texts).into()
}

/// Fills the holes of a pattern with expressions, in parentheses if precedence might matter.
fn fill(patterns: &'static [&'static str], holes: [&Rule; 3]) -> Rule {
    Form::Pattern(patterns, holes.map(Rule::clone)).into()
}

impl Exprs {
    fn leaves() -> Self {
        let text =
            one_of(&["s", "q", "'ab'", "'Žlutý kůň'", "''", "' x y '", "u.name", "d[0].name", "w[0]", "'a,b,c'"]);
        let int = one_of(&["n", "k", "0", "1", "-3", "7", "u.age", "l[0]", "m['a']", "100"]);
        let float = one_of(&["f", "1.5", "-0.25", "2.0"]);
        let truth = one_of(&["t", "true", "false", "n", "s", "z is none", "nope is defined", "nope"]);
        let ints = one_of(&[
            "l",
            "[1, 2, 3]",
            "[]",
            "range(4)",
            "range(1, 9, 3)",
            "m.values()",
            "[n, k]",
            "dict(**m).values()",
        ]);
        let texts = one_of(&[
            "w",
            "['b', 'a']",
            "m | list",
            "['x', s]",
            "s.split()",
            "d | map(attribute='name')",
            "dict(**m) | list",
        ]);
        let maps = one_of(&[
            "m",
            "u",
            "{'a': n}",
            "{'k': s, 'l': l}",
            "d[0]",
            "{}",
            "dict(a=n, b=s)",
            "dict(**m)",
            "dict(**u)",
        ]);
        let rare = one_of(&["z", "none", "nope", "l[99]", "u.nope", "(1, 'a')", "v", "[z, t]"]);
        let any = choice![
            1 => text.clone(), 1 => int.clone(), 1 => float.clone(), 1 => truth.clone(), 1 => ints.clone(),
            1 => texts.clone(), 1 => maps.clone(), 1 => rare
        ];
        Self { text, int, float, truth, ints, texts, maps, any }
    }

    /// Generates expressions with at most this many nested operations.
    pub(crate) fn nested(depth: usize) -> Self {
        if depth == 0 {
            return Self::leaves();
        }
        let leaves = Self::leaves();
        let inner = Self::nested(depth - 1);
        let text = choice![1 => leaves.text.clone(), 3 => inner.texts_made()];
        let int = choice![1 => leaves.int.clone(), 3 => inner.ints_made()];
        let float = choice![1 => leaves.float.clone(), 3 => inner.floats_made()];
        let truth = choice![1 => leaves.truth.clone(), 3 => inner.truths_made()];
        let ints = choice![1 => leaves.ints.clone(), 3 => inner.int_lists_made()];
        let texts = choice![1 => leaves.texts.clone(), 3 => inner.text_lists_made()];
        let maps = choice![3 => leaves.maps.clone(), 1 => inner.maps_made()];
        let any = choice![
            2 => leaves.any, 3 => text.clone(), 3 => int.clone(), 1 => float.clone(), 2 => truth.clone(),
            2 => ints.clone(), 2 => texts.clone(), 1 => maps.clone(), 3 => inner.others_made()
        ];
        Self { text, int, float, truth, ints, texts, maps, any }
    }

    fn texts_made(&self) -> Rule {
        let filters = &[
            "($a) | upper",
            "($a) | lower",
            "($a) | capitalize",
            "($a) | title",
            "($a) | trim",
            "($a) | trim($b)",
            "($a) | replace($b, $c)",
            "($a) | indent(2)",
            "($a) | indent(1, true, true)",
            "($a) | reverse",
            "($a) | string",
            "($a) | e",
            "($a) | urlencode",
            "($a) ~ ($b)",
            "($a) + ($b)",
            "($a) ~ ($b) ~ ($c)",
            "($a) | default(0)",
            "($a).upper()",
            "($a).lower()",
            "($a).strip()",
            "($a).lstrip($b)",
            "($a).replace($b, $c)",
            "($a).title()",
            "($a).capitalize()",
            "($a)[1:]",
            "($a)[:-1]",
            "($a)[::-1]",
            "($a)[0]",
            "($a) | first",
            "($a) | last",
            "'%s-%s' | format($a, $b)",
            "'{}{}'.format($a, $b)",
        ];
        choice![
            6 => fill(filters, [&self.text, &self.text, &self.text]),
            1 => fill(&["$a ~ $b", "($a) * 2", "($b | abs) ~ $a"], [&self.text, &self.int, &self.int]),
            1 => fill(&["(($a) if ($b) else ($c))"], [&self.text, &self.truth, &self.text]),
            2 => fill(&["($a) | join($b)", "($a) | join", "($b).join($a)", "($a) | sort | join($b)"],
                      [&self.texts, &self.text, &self.text]),
            1 => fill(&["($a) | join($b)", "($a) | first ~ $b"], [&self.ints, &self.text, &self.text]),
            1 => fill(&["($a) | tojson"], [&self.any, &self.text, &self.text]),
        ]
    }

    fn ints_made(&self) -> Rule {
        let numeric = &[
            "($a) + ($b)",
            "($a) - ($b)",
            "($a) * ($b)",
            "($a) // ($b)",
            "($a) % ($b)",
            "-($a)",
            "($a) | abs",
            "($a) ** 2",
            "($a) | round",
            "($a) | default(0)",
            "(($a) if ($a) > ($b) else ($c))",
            "($a) and ($b)",
            "($a) or ($b)",
            "$a - $b * $c",
            "$a + $b // ($c)",
        ];
        choice![
            6 => fill(numeric, [&self.int, &self.int, &self.int]),
            2 => fill(&["($a) | sum", "($a) | list | length", "($a) | min", "($a) | max", "($a) | first", "($a) | last",
                        "(($a) | list)[0]", "(($a) | list).count($b)"], [&self.ints, &self.int, &self.int]),
            2 => fill(&["($a) | length", "($a).find($b)", "($a).count($b)", "($a) | trim | int(0)", "($a).rfind($b)"],
                      [&self.text, &self.text, &self.text]),
            1 => fill(&["($a) | int", "($a) | round | int", "($a) | round(0, 'floor') | int"],
                      [&self.float, &self.float, &self.float]),
        ]
    }

    fn floats_made(&self) -> Rule {
        let numeric = &[
            "($a) + ($b)",
            "($a) - ($b)",
            "($a) * ($b)",
            "($a) / ($b)",
            "($a) // ($b)",
            "($a) % ($b)",
            "-($a)",
            "($a) | abs",
            "($a) | round(1)",
            "($a) | round(1, 'ceil')",
            "($c) / ($a)",
            "($c) | float",
            "($c) + ($a)",
        ];
        fill(numeric, [&self.float, &self.float, &self.int])
    }

    fn truths_made(&self) -> Rule {
        let of_any = &[
            "($a) == ($b)",
            "($a) != ($b)",
            "not ($a)",
            "($a) and ($b)",
            "($a) or ($b)",
            "($a) is defined",
            "($a) is none",
            "($a) is string",
            "($a) is number",
            "($a) is integer",
            "($a) is float",
            "($a) is mapping",
            "($a) is boolean",
            "($a) is true",
            "($a) is undefined",
            "($a) is sequence",
            "($a) < ($b)",
            "($a) >= ($b)",
            "($a) is eq($b)",
            "($a) is ne($b)",
            "($a) is lt($b)",
            "($a) is ge($b)",
        ];
        choice![
            4 => fill(of_any, [&self.any, &self.any, &self.any]),
            2 => fill(&["($a) < ($b)", "($a) <= ($b) < ($c)", "($a) is odd", "($a) is even", "($a) is divisibleby(3)"],
                      [&self.int, &self.int, &self.int]),
            2 => fill(&["($a) in ($b)", "($a) not in ($b)", "($a).startswith($b)", "($a).endswith($b)", "($a) is upper",
                        "($a) is lower", "($a).isalpha()", "($a).isdigit()", "($a) is startingwith($b)"],
                      [&self.text, &self.text, &self.text]),
            1 => fill(&["($a) in ($b)", "($a) not in ($c)"], [&self.text, &self.maps, &self.texts]),
            1 => fill(&["($a) in (($b) | list)", "($b) is iterable"], [&self.int, &self.ints, &self.ints]),
        ]
    }

    fn int_lists_made(&self) -> Rule {
        let lists = &[
            "($a) | list",
            "($a) | sort",
            "($a) | sort(reverse=true)",
            "($a) | reverse | list",
            "($a) | unique | list",
            "($a) | select('odd') | list",
            "($a) | reject('even') | list",
            "($a) | map('abs') | list",
            "($a) | select('>', $c) | list",
            "((($a) | list) + (($b) | list)) | list",
            "($a) | chain($b) | list",
            "(($a) | list)[1:]",
            "(($a) | list)[::-1] | list",
            "((($a) | list) * 2) | list",
            "[$c, $c]",
            "($a) | select | list",
        ];
        fill(lists, [&self.ints, &self.ints, &self.int])
    }

    fn text_lists_made(&self) -> Rule {
        let lists = &[
            "($a) | list",
            "($a) | sort",
            "($a) | sort(case_sensitive=true)",
            "($a) | reverse | list",
            "($a) | unique | list",
            "($a) | map('upper') | list",
            "($a) | map('replace', $c, 'x') | list",
            "($c).split($c)",
            "($c).split(',')",
            "($c) | list",
            "($c) | split | list",
            "($c) | lines",
            "(($a) | list)[:2]",
            "[$c, 'z']",
            "($c).splitlines()",
            "($a) | select('ne', $c) | list",
        ];
        fill(lists, [&self.texts, &self.texts, &self.text])
    }

    fn maps_made(&self) -> Rule {
        choice![
            1 => fill(
                &[
                    "{'a': $a, 'b': $b}",
                    "{($a) ~ '': $b}",
                    "dict($c, x=$b)",
                    "dict(**$c)",
                    "dict(x=$b, **$c)",
                    "dict(**{$a ~ '': $b})"
                ],
                [&self.text, &self.any, &self.maps]
            ),
            1 => fill(
                &["($a) | min(attribute='age')", "($a) | first", "($a)[-1]"],
                [&one_of(&["d", "[u]", "d | sort(attribute='name')"]), &self.text, &self.text]
            ),
        ]
    }

    /// Generates values of all kinds, and operations that they may not support. Sums and repetitions of lists are lists,
    /// as in Jinja2, but iterables in minijinja, so they are converted to lists. `last` and `reverse` of a map exist in
    /// Jinja2, but not in minijinja.
    fn others_made(&self) -> Rule {
        let wild = &[
            "(($a) + ($b)) | list",
            "(($a) * ($b)) | list",
            "-($a)",
            "($a) | length",
            "($a) | first",
            "($a).name",
            "($a)['a']",
            "($a)[$b]",
            "[$a, $b]",
            "($a, $b)",
            "($a) | list",
            "(($a) if ($b) else ($c))",
            "($a) | default(0)",
            "($a) | default(0, true)",
            "($a) | bool",
            "($a) | abs",
            "($a) | sort",
            "($a) | int",
            "($a) | float",
            "($a)[1:]",
            "($a)[$b:]",
            "($a) | unique",
            "($a) | max",
        ];
        // Not texts: the left operand would become part of a text.
        let containers =
            choice![1 => self.ints.clone(), 1 => self.texts.clone(), 1 => self.maps.clone(), 1 => self.int.clone()];
        choice![
            3 => fill(wild, [&self.any, &self.any, &self.any]),
            1 => fill(&["($a) in ($b)"], [&self.any, &containers, &self.any]),
            1 => fill(&["($a) | items", "($a).items() | list", "($a).keys() | list", "($a).get($b)", "($a).get($b, $c)",
                        "($a) | dictsort", "($a)[$b]", "($a) | length", "($a) | list"], [&self.maps, &self.text, &self.any]),
            1 => fill(&["($a) | batch(2)", "($a) | slice(2)", "($a) | batch(3, $b)", "($a) | slice(3, $b)", "($a) | zip($c)"],
                      [&self.ints, &self.int, &self.texts]),
            1 => one_of(&["d | map(attribute='age') | list", "d | selectattr('age', 'gt', 30) | list",
                          "d | groupby('age')", "d | sort(attribute='age,name')", "d | rejectattr('name') | list",
                          "d | sum(attribute='age')", "d | unique(attribute='age') | list", "d"]),
        ]
    }
}

fn statement(content: Rule) -> Rule {
    tag("{%", "%}", content)
}

fn tag(open: &'static str, close: &'static str, content: Rule) -> Rule {
    Form::Tag([open, close], content).into()
}

fn end(name: &'static [&'static str; 1]) -> Rule {
    statement(one_of(name))
}

fn literal_text() -> Rule {
    one_of(&[
        "a",
        " b ",
        "\n",
        "x: ",
        "  \n  ",
        "ž",
        "{ }",
        "# h\n",
        ".",
        "\n\n",
        "{# c #}",
        "{%- raw %} {{ x }}{% endraw %}",
    ])
}

fn in_a_row(rules: Vec<Rule>) -> Rule {
    Form::Sequence(rules).into()
}

/// Generates the text of a template, with statements nested at most this deep.
pub(crate) fn block(depth: usize, exprs: &Exprs) -> Rule {
    let output = tag("{{", "}}", exprs.any.clone());
    let set = statement(fill(&["set v = $a"], [&exprs.any, &exprs.any, &exprs.any]));
    let simple = choice![3 => literal_text(), 4 => output, 1 => set];
    let statement = if depth == 0 { simple } else { choice![2 => simple, 3 => nested(depth - 1, exprs)] };
    Form::Repeat(statement).into()
}

fn nested(depth: usize, exprs: &Exprs) -> Rule {
    let body = block(depth, exprs);
    let head = |patterns, holes| statement(fill(patterns, holes));
    let Exprs { text, int, truth, ints, texts, any, .. } = exprs;
    let item = tag(
        "{{",
        "}}",
        one_of(&["x", "x", "y", "loop.index", "loop.first", "loop.depth0", "loop.cycle(1, 2)", "loop.changed(x)"]),
    );
    let known = tag(
        "{{",
        "}}",
        one_of(&[
            "loop.last",
            "loop.length",
            "loop.revindex",
            "loop.previtem | default('-')",
            "loop.nextitem is defined",
        ]),
    );
    let leave =
        one_of(&["", "", "{% if loop.index == 2 %}{% break %}{% endif %}", "{% if x == 1 %}{% continue %}{% endif %}"]);
    let each =
        head(&["for x in $a", "for x in $b", "for x in $a if x is odd", "for x in $b if $c"], [ints, texts, truth]);
    let each_of_list = head(&["for x in ($a) | list", "for x in ($b) | list if $c"], [ints, texts, truth]);
    let with_else = in_a_row(vec![end(&["else"]), body.clone()]);
    choice![
        3 => in_a_row(vec![head(&["if $a"], [truth, any, any]), body.clone(), end(&["endif"])]),
        2 => in_a_row(vec![head(&["if $a"], [any, any, any]), body.clone(), head(&["elif $a"], [truth, any, any]), body.clone(), with_else.clone(), end(&["endif"])]),
        2 => in_a_row(vec![each, item.clone(), leave.clone(), body.clone(), end(&["endfor"])]),
        2 => in_a_row(vec![each_of_list, item.clone(), known, leave, body.clone(), with_else, end(&["endfor"])]),
        1 => in_a_row(vec![end(&["for x, y in (m | items)"]), item, body.clone(), end(&["endfor"])]),
        1 => in_a_row(vec![head(&["with v = $a", "with v = $a, y = $b"], [any, any, any]), body.clone(), end(&["endwith"])]),
        1 => in_a_row(vec![end(&["set v"]), body.clone(), end(&["endset"]), tag("{{", "}}", one_of(&["v", "v | upper"]))]),
        1 => in_a_row(vec![head(&["filter upper", "filter replace($a, $b)", "filter trim | title", "filter indent(2)"], [text, text, text]), body.clone(), end(&["endfilter"])]),
        1 => in_a_row(vec![head(&["macro h(x, y=7)"], [int, any, any]), body.clone(), end(&["endmacro"]), tag("{{", "}}", fill(&["h($a)", "h($a, $b)", "h(y=$b)"], [any, any, any]))]),
        1 => in_a_row(vec![end(&["macro g()"]), one_of(&["<{{ caller() }}>"]), end(&["endmacro"]), end(&["call g()"]), body.clone(), end(&["endcall"])]),
        1 => in_a_row(vec![end(&["set ns = namespace(**m)"]), end(&["for x in ns | list | sort"]), tag("{{", "}}", one_of(&["x", "x | upper", "ns[x]"])), body.clone(), end(&["endfor"])]),
        1 => in_a_row(vec![head(&["set ns = namespace(c=$a)"], [int, any, any]), end(&["for x in range(3)"]), head(&["set ns.c = ns.c + ($a)"], [int, any, any]), body, end(&["endfor"]), tag("{{", "}}", one_of(&["ns.c"]))]),
    ]
}
