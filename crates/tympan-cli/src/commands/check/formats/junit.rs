//! Findings as JUnit XML: a suite per file, and a failed case per finding.

use quick_junit::{NonSuccessKind, Report as JunitReport, TestCase, TestCaseStatus, TestSuite};
use tympan::text::source::SourceFile;
use tympan_lint::Finding;

use crate::commands::check::Report;

pub(super) fn show(report: &Report) -> String {
    let mut junit = JunitReport::new("tympan check");
    for file in &report.files {
        let name = file.source.name();
        let mut suite = TestSuite::new(name);
        for finding in &file.findings {
            suite.add_test_case(case(&file.source, finding));
        }
        if file.findings.is_empty() {
            let mut passed = TestCase::new("tympan check", TestCaseStatus::success());
            passed.set_classname(name);
            suite.add_test_case(passed);
        }
        junit.add_test_suite(suite);
    }
    junit.to_string().unwrap_or_default()
}

fn case(source: &SourceFile, finding: &Finding) -> TestCase {
    let place = finding.span.map_or_else(String::new, |span| {
        let at = source.line_column(span.start);
        format!("line {}, column {}: ", at.line, at.column)
    });
    let help = finding.help.as_ref().map_or_else(String::new, |help| format!("\nhelp: {help}"));
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(finding.severity.as_str());
    status.set_message(&*finding.message);
    status.set_description(format!("{place}{}{help}", finding.message));
    let mut case = TestCase::new(format!("{} {}", finding.rule.code, finding.rule.name), status);
    case.set_classname(source.name());
    if let Some(span) = finding.span {
        let at = source.line_column(span.start);
        let attributes = [("line", at.line), ("column", at.column)];
        case.extra.extend(attributes.map(|(name, value)| (name.into(), value.to_string().into())));
    }
    case
}
