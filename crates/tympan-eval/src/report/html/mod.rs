//! Results as one page that needs nothing but a browser.
//!
//! The page consists of `page.html` with `page.css`, `charts.js` and `page.js` in it, and of the results as JSON in a script element
//! that browsers do not execute. Its policy allows that one script and that one style by their hashes and nothing else,
//! and the script only ever sets text. The results are written as they come in.

mod view;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::escape::{json_for_html, visible_line};
use super::{Report, ReportOptions, Summary};
use crate::CaseResult;
use view::CaseView;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("charts.js"), include_str!("page.js"));

/// Where the results are in the page.
const DATA: &str = "{{data}}";

pub(super) struct Html<W> {
    out: W,
    is_empty: bool,
    end: &'static str,
}

impl<W: Write> Html<W> {
    pub(super) fn new(options: &ReportOptions, mut out: W) -> io::Result<Self> {
        let (start, end) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
        let title = visible_line(&options.title);
        // The title is last: what it contains is not replaced any more.
        let start = start
            .replace("{{style_hash}}", &hash(STYLE))
            .replace("{{script_hash}}", &hash(SCRIPT))
            .replace("{{style}}", STYLE)
            .replace("{{title}}", &text(&title));
        out.write_all(start.as_bytes())?;
        let options = serde_json::json!({ "title": title, "allow_missing": options.allow_missing });
        write!(out, "{{\"options\":{},\n\"cases\":[", json_for_html(&options.to_string()))?;
        Ok(Self { out, is_empty: true, end })
    }
}

impl<W: Write> Report for Html<W> {
    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        let json = serde_json::to_string(&CaseView::of(result))?;
        let separator = if self.is_empty { "\n" } else { ",\n" };
        self.is_empty = false;
        write!(self.out, "{separator}{}", json_for_html(&json))
    }

    fn finish(mut self: Box<Self>, summary: &Summary) -> io::Result<()> {
        let summary = serde_json::to_string(summary)?;
        write!(self.out, "],\n\"summary\":{}}}", json_for_html(&summary))?;
        self.out.write_all(self.end.replace("{{script}}", SCRIPT).as_bytes())?;
        self.out.flush()
    }
}

/// Returns the hash of a script or style, as a policy names it.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// Returns a text for the inside of an element.
fn text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
