//! `docs/guide/rules.md` is generated from the table of rules.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tympan_lint::{Group, RULES, Rule};

use crate::fixtures::read;

const INTRODUCTION: &str = "\
# Rules

`tympan check` applies these rules to prompt files. Each rule has a code, such as `TY101`, and a name, such as
`undeclared_variable`. Both are stable: a code is never used for another rule. In the output of `check --json`, `rule`
is the code and `code` is the name. `tympan rule TY101` prints the section of a rule.

Errors make `check` fail, and warnings do not. A fix is a change that `tympan check --fix` or an editor can apply.

<!-- Generated from the table in crates/tympan-lint by `make generate`. -->
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in Group::ALL {
        let rules = || RULES.iter().filter(move |rule| rule.group == group);
        let _ = write!(page, "\n## {}\n\n{}\n\n", capitalized(group.as_str()), group.summary());
        page.push_str("| code | name | severity | fix |\n|---|---|---|---|\n");
        for Rule { code, name, severity, fix, .. } in rules() {
            let anchor = format!("{}-{name}", code.to_lowercase());
            let _ = writeln!(page, "| [{code}](#{anchor}) | `{name}` | {} | {} |", severity.as_str(), fix.as_str());
        }
        rules().for_each(|rule| section(rule, &mut page));
    }
    page
}

/// Writes the page of a rule as a section.
fn section(rule: &Rule, page: &mut String) {
    let Rule { code, name, summary, why, example, how_to_fix, .. } = rule;
    let fence = if example.contains("```") { "````" } else { "```" };
    let _ = write!(
        page,
        "\n### {code} {name}\n\n{summary}\n\n**Why it matters.** {why}\n\n{fence}text\n{example}\n{fence}\n\n\
        **How to fix.** {how_to_fix}\n"
    );
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/rules.md")
}

#[test]
fn the_page_is_current() {
    assert!(read(&path()).text() == page(), "docs/guide/rules.md is out of date: run `make generate`");
}

/// Writes the page; `make generate` runs this.
#[test]
#[ignore = "changes a file"]
fn write_the_page() {
    #[expect(clippy::disallowed_methods, reason = "a test writes the page that it generates")]
    std::fs::write(path(), page()).expect("it can be written");
}
