//! Thresholds that the number of repetitions cannot support.

use std::collections::HashSet;

use tympan_core::diagnostic::Severity;

use crate::finding::{Finding, Findings};
use crate::rule::{FixAvailability, Group, Rule};
use crate::suite::SuiteContext;

pub(crate) static RULE: Rule = Rule {
    code: "TY514",
    name: "unsupported_threshold",
    group: Group::Tests,
    severity: Severity::Warning,
    fix: FixAvailability::Never,
    summary: "Reports a `pass` that a case cannot show with its number of repetitions, even if all of them pass. The \
        lower end of the Wilson interval at 95 % has to reach it.",
    why: "Few repetitions pass by chance: 5 of 5 is also likely if the model succeeds in 60 % of all cases.",
    example: "cases:\n  - repeat: 5\n    pass: 0.8\n    expect: [{result: {contains: Oslo}}]",
    how_to_fix: "Set `repeat` to the number that the message names, or lower `pass`.",
    check: None,
};

/// The square of the quantile of the normal distribution that leaves 2.5 % on each side.
const Z_SQUARED: f64 = 1.959_963_984_540_054 * 1.959_963_984_540_054;

pub(super) fn check(context: &SuiteContext<'_>, findings: &mut Findings) {
    let (defaults, mut seen) = (&context.suite.defaults, HashSet::new());
    for case in &context.cases {
        let settings = &case.case.settings;
        // Without `pass`, all repetitions have to pass, and nothing is claimed about others.
        let Some(pass) = settings.pass.or(defaults.pass).filter(|pass| *pass < 1.0) else { continue };
        let repeat = settings.repeat.or(defaults.repeat).unwrap_or(1);
        let shown = lower_bound(repeat);
        let written = case.field.get("pass").or_else(|| case.field.get("repeat"));
        let written = written.or_else(|| context.root.get("defaults")?.get("pass"));
        let Some(span) = written.map(|field| field.span).filter(|_| shown < pass) else { continue };
        if !seen.insert(span) {
            continue;
        }
        let message = format!(
            "{repeat} repetition{} cannot show a pass rate of {}: {repeat} of {repeat} shows only {}",
            if repeat == 1 { "" } else { "s" },
            percent(pass),
            percent(shown),
        );
        let help = format!("set `repeat` to at least {}, or `pass` to at most {:.2}", needed(pass), floor(shown));
        findings.push(Finding::new(&RULE, span, message).with_help(help));
    }
}

/// Returns the lower end of the Wilson interval if all of `n` repetitions pass.
fn lower_bound(n: u32) -> f64 {
    f64::from(n) / (f64::from(n) + Z_SQUARED)
}

/// Returns the least number of repetitions that can show a pass rate.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion of large numbers saturates")]
fn needed(pass: f64) -> u32 {
    let mut n = (pass * Z_SQUARED / (1.0 - pass)).floor().max(1.0) as u32;
    while lower_bound(n) < pass && n < u32::MAX {
        n += 1;
    }
    n
}

fn percent(share: f64) -> String {
    let percent = (share * 1000.0).round() / 10.0;
    if percent.fract() == 0.0 || percent < 99.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

fn floor(share: f64) -> f64 {
    (share * 100.0).floor() / 100.0
}

#[cfg(test)]
mod tests {
    use super::{lower_bound, needed};

    /// The values are those of `statsmodels.stats.proportion.proportion_confint(n, n, method="wilson")`.
    #[test]
    fn the_lower_end_is_that_of_the_wilson_interval() {
        for (n, expected) in [(1, 0.206_549), (5, 0.565_518), (10, 0.722_467), (20, 0.838_875), (100, 0.963_007)] {
            assert!((lower_bound(n) - expected).abs() < 1e-6, "{n}: {}", lower_bound(n));
        }
    }

    #[test]
    fn the_number_that_is_needed_is_the_least() {
        for pass in [0.01, 0.5, 0.565_518, 0.8, 0.9, 0.95, 0.99, 0.999] {
            let n = needed(pass);
            assert!(lower_bound(n) >= pass && (n == 1 || lower_bound(n - 1) < pass), "{pass}: {n}");
        }
        assert_eq!(needed(0.8), 16);
    }
}
