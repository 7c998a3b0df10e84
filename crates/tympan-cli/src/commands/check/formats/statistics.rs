//! The number of findings of each rule.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tympan_lint::RULES;

use super::text::summary;
use crate::args::OutputFormat;
use crate::commands::check::Report;
use crate::json;

/// Formats the number of findings of each rule, the most frequent ones first: as a table, or as JSON.
pub(in crate::commands::check) fn statistics(report: &Report, format: OutputFormat) -> String {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for (_, finding) in report.findings() {
        let (count, fixable) = counts.entry(finding.rule.code).or_default();
        *count += 1;
        *fixable += usize::from(finding.fix.as_ref().is_some_and(|fix| fix.safe));
    }
    let mut rows: Vec<_> = RULES.iter().filter_map(|rule| Some((rule, *counts.get(rule.code)?))).collect();
    rows.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    if !format.is_for_people() {
        let rows = rows.iter().map(|(rule, (count, fixable))| {
            json!({ "rule": rule.code, "code": rule.name, "count": count, "fixable": fixable })
        });
        return json::pretty(&rows.collect::<Json>()) + "\n";
    }
    let width = rows.iter().map(|(_, (count, _))| count.to_string().len()).max().unwrap_or_default();
    let rows = rows.iter().map(|(rule, (count, fixable))| {
        let mark = if *fixable > 0 { "[*]" } else { "[ ]" };
        format!("{count:>width$}  {}  {mark} {}\n", rule.code, rule.name)
    });
    rows.collect::<String>() + &summary(report)
}
