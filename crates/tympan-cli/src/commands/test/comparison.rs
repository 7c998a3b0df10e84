//! Comparisons with a saved run, and with the prompts of a git revision.

use std::fs::File;
use std::io::BufReader;

use anstyle::{AnsiColor, Style};
use tympan_eval::CaseResult;
use tympan_eval::baseline::{Baseline, Comparer, Comparison};
use tympan_eval::statistics::{Change, Confidence, McNemar, MeanChange};

use crate::args::TestArgs;
use crate::color::styled;
use crate::escape::visible_line;
use crate::output::Looks;
use crate::report::Failure;

const BETTER: Style = AnsiColor::Green.on_default().bold();
const WORSE: Style = AnsiColor::Red.on_default().bold();

/// The maximum number of cases in a list.
const MAX_LISTED: usize = 20;

/// Reads the saved run that the command line names.
pub(super) fn start(args: &TestArgs) -> Result<Option<Comparer>, Failure> {
    let Some(path) = &args.comparison.baseline else { return Ok(None) };
    let unreadable =
        |reason: &dyn std::fmt::Display| Failure::Usage(format!("--baseline {}: {reason}", path.display()));
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let baseline = Baseline::read(&path.display().to_string(), BufReader::new(file));
    Ok(Some(baseline.map_err(|error| Failure::Usage(format!("--baseline: {error}")))?.compare()))
}

/// Compares results with those of the same cases before.
pub(in crate::commands) fn compare(before: Vec<CaseResult>) -> Comparer {
    let mut text = Vec::new();
    for result in &before {
        // Results are plain data, which can always be written.
        text.extend(serde_json::to_vec(result).unwrap_or_default());
        text.push(b'\n');
    }
    Baseline::read("the revision", text.as_slice()).unwrap_or_default().compare()
}

/// Ends a comparison.
pub(in crate::commands) fn finish(comparer: Comparer) -> Comparison {
    comparer.finish(Confidence::P95)
}

/// Describes a comparison for people.
pub(super) fn shown(comparison: &Comparison, with: &str, looks: Looks) -> String {
    let (improved, regressed) = (comparison.improved.len(), comparison.regressed.len());
    let same = comparison.pairs - improved - regressed - comparison.other.len();
    let mut out = format!("\nCompared with {}: ", visible_line(with));
    let style = |style: Style| if looks.colors { style } else { Style::new() };
    styled(&mut out, &format!("{regressed} worse"), style(if regressed > 0 { WORSE } else { Style::new() }));
    out.push_str(", ");
    styled(&mut out, &format!("{improved} better"), style(if improved > 0 { BETTER } else { Style::new() }));
    out.push_str(&format!(", {same} the same\n"));
    if comparison.varying > 0 {
        out.push_str(&varying(comparison, style));
    }
    list(&mut out, "worse", &comparison.regressed);
    list(&mut out, "better", &comparison.improved);
    list(&mut out, "only before", &comparison.only_before);
    list(&mut out, "only now", &comparison.only_now);
    for change in comparison.other.iter().take(MAX_LISTED) {
        let (before, now) = (change.before.as_str(), change.now.as_str());
        out.push_str(&format!("  {before} before, {now} now: {}\n", visible_line(&change.id)));
    }
    out
}

/// Describes what the cases show whose results may vary. In all other cases, every change is real.
fn varying(comparison: &Comparison, style: impl Fn(Style) -> Style) -> String {
    let cases = if comparison.varying == 1 { "case" } else { "cases" };
    let McNemar { improved, regressed, p, change, .. } = comparison.verdicts;
    let mut out = format!("  {} {cases} with answers of a model, which vary: ", comparison.varying);
    let (word, color) = verdict(change);
    styled(&mut out, word, style(color));
    out.push_str(&format!(" ({regressed} worse, {improved} better; McNemar's test, p = {p:.3})\n"));
    for (name, mean) in [("pass rate", &comparison.pass_rates), ("score", &comparison.scores)] {
        if let Some(mean) = mean {
            out.push_str(&mean_line(name, mean));
        }
    }
    out
}

fn mean_line(name: &str, mean: &MeanChange) -> String {
    let (low, high) = (mean.interval.low, mean.interval.high);
    let word = verdict(mean.change).0;
    format!("  {name}: {:+.3} on average, between {low:+.3} and {high:+.3} with 95 % confidence: {word}\n", mean.mean)
}

const fn verdict(change: Change) -> (&'static str, Style) {
    match change {
        Change::Better => ("better", BETTER),
        Change::Worse => ("worse", WORSE),
        _ => ("no difference shown", Style::new().bold()),
    }
}

fn list(out: &mut String, what: &str, ids: &[String]) {
    for id in ids.iter().take(MAX_LISTED) {
        out.push_str(&format!("  {what}: {}\n", visible_line(id)));
    }
    if ids.len() > MAX_LISTED {
        out.push_str(&format!("  {what}: {} more\n", ids.len() - MAX_LISTED));
    }
}
