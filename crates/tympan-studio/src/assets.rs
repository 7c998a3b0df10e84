//! The files of the page, which are part of the program.

use std::borrow::Cow;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;

use crate::failure::Failure;

/// The files below `assets`, by path, sorted.
pub(crate) static ASSETS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page.
const INDEX: &str = "index.html";

/// The element of the page that contains its configuration.
const CONFIG: (&str, &str) = ("<script type=\"application/json\" id=\"tympan-config\">", "</script>");

/// Returns a file.
pub(crate) fn find(path: &str) -> Option<&'static [u8]> {
    ASSETS.binary_search_by_key(&path, |(name, _)| *name).ok().map(|index| ASSETS[index].1)
}

/// Answers with a file. Its name changes with its contents, so browsers never ask for it twice.
pub(crate) async fn asset(Path(path): Path<String>) -> Response {
    match find(&format!("assets/{path}")) {
        Some(bytes) => {
            let headers =
                [(CONTENT_TYPE, content_type(&path)), (CACHE_CONTROL, "private, max-age=31536000, immutable")];
            (headers, bytes).into_response()
        }
        None => Failure::not_found("there is no such file").into_response(),
    }
}

/// Returns the page with a configuration.
pub(crate) fn index(config: &Json) -> String {
    let page = find(INDEX).map(String::from_utf8_lossy).unwrap_or(Cow::Borrowed(""));
    // Nothing in JSON can end a script element if it has no `<`.
    let config = config.to_string().replace('<', "\\u003c");
    let (start, end) = CONFIG;
    let place = page.find(start).map(|at| at + start.len());
    let place = place.and_then(|at| Some((at, at + page[at..].find(end)?)));
    match place {
        Some((from, to)) => format!("{}{config}{}", &page[..from], &page[to..]),
        None => page.into_owned(),
    }
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_cannot_end_its_element() {
        let page = index(&serde_json::json!({"title": "</script><script>alert(1)</script>", "mode": "studio"}));
        assert!(page.contains("\"mode\":\"studio\"") && !page.contains("<script>alert"));
        assert_eq!(page.matches(CONFIG.0).count(), 1, "the page has a place for its configuration");
    }

    #[test]
    fn paths_find_only_files_of_the_page() {
        assert!(find(INDEX).is_some());
        for path in ["", "/", "..", "assets/../index.html", "../Cargo.toml", "index.html/"] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
