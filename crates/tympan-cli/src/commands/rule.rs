//! `tympan rule`: explains the rules of `check`.

use serde_json::{Value as Json, json};
use tympan_lint::{RULES, Rule, rule};

use crate::args::RuleArgs;
use crate::report::Failure;
use crate::{json, output};

pub(super) fn run(args: &RuleArgs) -> Result<(), Failure> {
    let text = match &args.rule {
        Some(wanted) => {
            let rule = rule(wanted).map_err(|unknown| Failure::Usage(unknown.to_string()))?;
            if args.json { json::pretty(&to_json(rule)) + "\n" } else { rule.page() }
        }
        None if args.json => json::pretty(&RULES.iter().map(|rule| to_json(rule)).collect::<Json>()) + "\n",
        None if args.all => RULES.iter().map(|rule| rule.page()).collect::<Vec<_>>().join("\n"),
        None => list(),
    };
    Ok(output::print(&text)?)
}

/// Formats all rules as a table.
fn list() -> String {
    let width = RULES.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let row = |rule: &&Rule| {
        let (code, name, group, severity) = (rule.code, rule.name, rule.group.as_str(), rule.severity.as_str());
        format!("{code}  {name:width$}  {group:11}  {severity}\n")
    };
    RULES.iter().map(row).collect()
}

fn to_json(rule: &Rule) -> Json {
    json!({
        "code": rule.code,
        "name": rule.name,
        "group": rule.group.as_str(),
        "severity": rule.severity.as_str(),
        "fix": rule.fix.as_str(),
        "summary": rule.summary,
        "why": rule.why,
        "example": rule.example,
        "how_to_fix": rule.how_to_fix,
    })
}
