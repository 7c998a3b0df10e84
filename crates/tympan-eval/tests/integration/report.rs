//! Reports about the saved runs in `fixtures/report`.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use tympan_eval::baseline::Baseline;
use tympan_eval::report::{Format, ReportOptions, Summary, UnknownFormat, writer};
use tympan_eval::saved_run::SavedRun;
use tympan_eval::statistics::Confidence;
use tympan_eval::{CaseResult, Verdict};

fn results(name: &str) -> Vec<CaseResult> {
    let name = format!("report/{name}.jsonl");
    SavedRun::new(name.as_str(), crate::read(&name).as_bytes()).map(|result| result.expect("a result")).collect()
}

fn summary(results: &[CaseResult]) -> Summary {
    let mut summary = Summary::default();
    results.iter().for_each(|result| summary.add(result));
    summary.seconds = 12.5;
    summary
}

fn report_with(format: Format, options: &ReportOptions, results: &[CaseResult], summary: &Summary) -> String {
    let mut out = Vec::new();
    let mut report = writer(format, options, &mut out).expect("a report");
    results.iter().for_each(|result| report.case(result).expect("a case"));
    report.finish(summary).expect("the end");
    String::from_utf8(out).expect("UTF-8")
}

fn report(format: Format, results: &[CaseResult]) -> String {
    report_with(format, &ReportOptions::default(), results, &summary(results))
}

/// The run of a project, compared with an older one.
fn compared_run() -> (Vec<CaseResult>, Summary) {
    let results = results("run");
    let before = crate::read("report/before.jsonl");
    let mut comparer = Baseline::read("before.jsonl", before.as_bytes()).expect("a baseline").compare();
    results.iter().for_each(|result| comparer.add(result));
    let mut summary = summary(&results);
    summary.comparison = Some(comparer.finish(Confidence::P95));
    (results, summary)
}

/// Returns the data of a page.
fn data(page: &str) -> &str {
    let (_, data) = page.split_once("<script id=\"data\" type=\"application/json\">").expect("the data");
    data.split_once("</script>").expect("the end of the data").0
}

#[test]
fn reports_look_as_their_snapshots_say() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(crate::fixture("report/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let (run, run_summary) = compared_run();
    let hostile = results("hostile");
    settings.bind(|| {
        for format in [Format::Junit, Format::Tap, Format::Github, Format::Markdown] {
            let report_of_run = report_with(format, &ReportOptions::default(), &run, &run_summary);
            insta::assert_snapshot!(format!("run.{format}"), report_of_run);
            insta::assert_snapshot!(format!("hostile.{format}"), report(format, &hostile));
        }
        insta::assert_snapshot!("hostile.html-data", data(&report(Format::Html, &hostile)));
        let summary = report_with(Format::JsonLines, &ReportOptions::default(), &[], &run_summary);
        insta::assert_snapshot!("run.json-lines-summary", summary);
    });
}

#[test]
fn json_lines_can_be_read_again_without_a_loss() {
    for name in ["run", "hostile"] {
        let results = results(name);
        let text = report(Format::JsonLines, &results);
        let again: Vec<CaseResult> =
            SavedRun::new(name, text.as_bytes()).map(|result| result.expect("a result")).collect();
        assert_eq!(again, results);
        let lines: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), results.len() + 1);
        assert!(lines[..results.len()].iter().all(|line| line["kind"] == "case"));
        assert_eq!(lines[results.len()]["kind"], "summary");
        let summary: Summary = serde_json::from_value(lines[results.len()].clone()).expect("a summary");
        assert_eq!((summary.cases(), summary.seconds), (results.len(), 12.5));
        assert!(!text.contains(|char: char| char != '\n' && (char.is_control() || char == '\u{202e}')));
    }
}

/// Every line is part of what its format allows, whatever the results contain.
#[test]
fn no_text_breaks_out_of_its_line() {
    let hostile = results("hostile");
    let github = report(Format::Github, &hostile);
    let is_command = |line: &str| {
        ["::error title=", "::warning title=", "::notice title="].iter().any(|start| line.starts_with(start))
    };
    assert!(github.lines().all(is_command), "{github}");
    let failures: usize = hostile.iter().map(|result| result.failures().count().max(1)).sum();
    // One case passes, and a notice is at the end.
    assert_eq!(github.lines().filter(|line| line.starts_with("::error")).count(), failures - 1);

    let tap = report(Format::Tap, &hostile);
    let points = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    let blocks = tap.lines().filter(|line| *line == "  ---").count();
    let ends = tap.lines().filter(|line| *line == "  ...").count();
    let others = tap.lines().filter(|line| line.starts_with("    ") || line.starts_with("  ")).count();
    assert_eq!((points, blocks, ends), (hostile.len(), hostile.len() - 1, hostile.len() - 1));
    assert_eq!(tap.lines().count(), points + others + 3, "{tap}");
    assert!(!tap.lines().any(|line| !line.starts_with(' ') && line.contains(" # ")), "{tap}");

    for format in [Format::Github, Format::Tap, Format::Junit, Format::Markdown] {
        let text = report(format, &hostile);
        let is_unsafe = |char: char| {
            (char.is_control() && !matches!(char, '\n' | '\t')) || matches!(char, '\u{202e}' | '\u{2028}' | '\u{ffff}')
        };
        assert!(!text.contains(is_unsafe), "{format}");
        // Long texts are shortened: the file has half a megabyte of them.
        assert!(text.len() < 150_000, "{format}: {}", text.len());
    }
}

#[test]
fn junit_is_xml_with_one_suite_per_file() {
    let (run, summary) = compared_run();
    for results in [run, results("hostile")] {
        let text = report_with(Format::Junit, &ReportOptions::default(), &results, &summary);
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let named = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
        let mut files: Vec<&str> = results.iter().map(|result| result.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        assert_eq!(named("testsuite").count(), files.len());
        assert_eq!(named("testcase").count(), results.len());
        let failed = results.iter().filter(|result| result.verdict == Verdict::Failed).count();
        let not_run = results.iter().filter(|result| result.verdict == Verdict::NotRun).count();
        assert_eq!(named("failure").count() + named("error").count(), failed + not_run);
    }
}

#[test]
fn cases_that_may_be_missing_are_skipped() {
    let mut options = ReportOptions::default();
    let results = results("run");
    let reports = |options: &ReportOptions| {
        [Format::Junit, Format::Tap, Format::Github, Format::Markdown]
            .map(|format| report_with(format, options, &results, &summary(&results)))
    };
    let count = |text: &str, part: &str| text.matches(part).count();
    let [junit, tap, github, markdown] = reports(&options);
    let no_cassette = "there is no cassette";
    assert_eq!((count(&junit, "<skipped"), count(&tap, "# SKIP")), (1, 1));
    assert_eq!((count(&github, no_cassette), count(&markdown, no_cassette)), (2, 2));
    options.allow_missing = true;
    let [junit, tap, github, markdown] = reports(&options);
    assert_eq!((count(&junit, "<skipped"), count(&tap, "# SKIP")), (3, 3));
    assert_eq!((count(&github, no_cassette), count(&markdown, no_cassette)), (0, 0));
}

#[test]
fn the_page_allows_nothing_but_its_own_script_and_style() {
    let mut options = ReportOptions::default();
    options.title = "</title><script>{{data}} & \u{202e}".to_owned();
    let hostile = results("hostile");
    let page = report_with(Format::Html, &options, &hostile, &summary(&hostile));
    let between = |start: &str, end: &str| {
        let (_, rest) = page.split_once(start).unwrap_or_else(|| panic!("the page has no {start}"));
        rest.split_once(end).expect("the end").0
    };
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let script = between("</script>\n<script>", "</script>");
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(script),
        hash(between("<style>", "</style>"))
    );
    assert_eq!(between("Content-Security-Policy\" content=\"", "\">"), policy);
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    assert_eq!(between("<title>", "</title>"), r"&lt;/title&gt;&lt;script&gt;{{data}} &amp; \u{202e}");
    assert!(!data(&page).contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\u{202e}']));
    let json: Json = serde_json::from_str(data(&page)).expect("JSON");
    assert_eq!(json["cases"].as_array().map(Vec::len), Some(hostile.len()));
    assert_eq!(json["cases"][0]["name"], hostile[0].name);
    // Nothing is loaded, and no text is parsed as HTML or as a program.
    for word in
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "import(", "fetch("]
    {
        assert!(!script.contains(word), "{word}");
    }
    assert!(!page.contains("src=") || data(&page).contains("src="), "nothing is loaded");
}

/// An output that counts what it gets, and fails after a number of bytes.
struct Counter {
    bytes: usize,
    flushes: usize,
    room: usize,
}

impl Write for &mut Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes + bytes.len() > self.room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        Ok(())
    }
}

#[test]
fn lines_are_flushed_one_by_one() {
    let results = results("run");
    for format in [Format::JsonLines, Format::Tap, Format::Github] {
        let mut counter = Counter { bytes: 0, flushes: 0, room: usize::MAX };
        let mut report = writer(format, &ReportOptions::default(), &mut counter).expect("a report");
        results.iter().for_each(|result| report.case(result).expect("a case"));
        drop(report);
        assert_eq!(counter.flushes, results.len(), "{format}");
        assert!(counter.bytes > 1000, "{format}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let results = results("run");
    let write = |format: Format, room: usize| {
        let mut counter = Counter { bytes: 0, flushes: 0, room };
        let mut report = writer(format, &ReportOptions::default(), &mut counter)?;
        results.iter().try_for_each(|result| report.case(result))?;
        report.finish(&summary(&results))
    };
    for format in Format::ALL {
        let size = report(format, &results).len();
        assert!(write(format, size).is_ok(), "{format}");
        for room in [0, size / 2, size - 1] {
            let error = write(format, room).expect_err("an error");
            assert!(error.to_string().contains("no storage space"), "{format}: {error}");
        }
    }
}

#[test]
fn a_run_without_cases_has_a_report() {
    for format in Format::ALL {
        let text = report(format, &[]);
        assert!(text.ends_with('\n'), "{format}");
        assert!(format == Format::Junit || format == Format::Html || text.contains("0"), "{format}: {text}");
    }
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    let error = "xml".parse::<Format>().expect_err("an error");
    assert_eq!(error, UnknownFormat("xml".to_owned()));
    assert_eq!(
        error.to_string(),
        "unknown format of a report: `xml`; expected one of json-lines, junit, tap, github, markdown, html"
    );
}

#[test]
fn summaries_count_everything() {
    let (run, summary) = compared_run();
    assert_eq!(summary.counts(), "20 passed, 6 failed, 2 not run, 1 skipped");
    assert_eq!((summary.cases(), summary.attempts), (run.len(), 169));
    assert!(!summary.is_success(true));
    assert_eq!(summary.all_pass.len(), 10);
    assert!(summary.all_pass.windows(2).all(|pair| pair[0].mean >= pair[1].mean && pair[1].cases == 16));
    let one_missing = Summary::default();
    assert!(one_missing.is_success(false));
    assert_eq!(one_missing.counts(), "0 cases");
}
