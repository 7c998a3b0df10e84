//! Who may use the server: the page that it serves, in the browser of the person who started it, and nobody else.
//!
//! Other pages in the same browser can send requests to this address, and a page whose host name was rebound to the
//! loopback address can even read the responses. So every request has to name this host, and must not come from another
//! origin; everything but the first page needs the cookie of the session.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::failure::Failure;
use crate::server::App;

/// What the page may do. It may not load anything from elsewhere, and no other page may contain it.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self'; worker-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// The headers of all responses.
const HEADERS: [(&str, &str); 8] = [
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
];

/// Checks a request before anything else happens, and adds the headers to its response.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = match decide(&app, &request) {
        Decision::Pass => match read_body(&app, request).await {
            Ok(request) => next.run(request).await,
            Err(failure) => failure.into_response(),
        },
        Decision::Answer(response) => response,
    };
    with_headers(response)
}

fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        // Assets have names that change with their contents, and say themselves how long they are valid.
        let entry = response.headers_mut().entry(HeaderName::from_static(name));
        entry.or_insert(HeaderValue::from_static(value));
    }
    response
}

enum Decision {
    Pass,
    Answer(Response),
}

fn decide(app: &App, request: &Request) -> Decision {
    let (headers, uri) = (request.headers(), request.uri());
    let refused = |status, message: &str| Decision::Answer(Failure::new(status, "refused", message).into_response());
    let Some(host) = own_host(app, headers, uri) else {
        return refused(StatusCode::MISDIRECTED_REQUEST, "this server answers only at the address that it printed");
    };
    if !is_same_origin(request, &host) {
        return refused(StatusCode::FORBIDDEN, "requests from other pages are refused");
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let has_session = app.session.is_in(cookies);
    if request.method() == Method::GET
        && uri.path() == "/"
        && let Some(token) = query_value(uri, "token")
    {
        return Decision::Answer(log_in(app, &token, has_session));
    }
    if has_session {
        return Decision::Pass;
    }
    Decision::Answer(if uri.path() == "/" { page_without_session() } else { no_session() })
}

/// Returns the host that a request names, if it is this server.
fn own_host(app: &App, headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, more) = (hosts.next()?.to_str().ok()?, hosts.next());
    let is_own = |host: &str| ["127.0.0.1", "localhost"].iter().any(|name| host == format!("{name}:{}", app.port));
    let is_target = uri.authority().is_none_or(|authority| authority.as_str() == host);
    (is_own(host) && more.is_none() && is_target).then(|| host.to_owned())
}

/// Returns whether a request comes from a page of this server, or from no page, such as an address that was typed.
fn is_same_origin(request: &Request, host: &str) -> bool {
    let headers = request.headers();
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_socket = headers.contains_key(header::UPGRADE);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin_matches = match (origins.next(), origins.next()) {
        (Some(origin), None) => origin.as_bytes() == format!("http://{host}").as_bytes(),
        (None, _) => is_safe && !is_socket,
        _ => false,
    };
    // A link on another page may lead to the first page, which then shows nothing without the cookie.
    let is_first_page = is_safe && request.uri().path() == "/";
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    origin_matches && (is_first_page || matches!(site, None | Some(b"same-origin" | b"none")))
}

/// Exchanges the token for the cookie, and leads to the page without the token in its address.
///
/// The page leads there itself: after a redirect, browsers do not send a cookie that is `SameSite=Strict` if the first
/// address was opened by another program or page.
fn log_in(app: &App, token: &str, has_session: bool) -> Response {
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" \
        content=\"0;url=/\"><link rel=\"icon\" href=\"data:,\"><title>Tympan Studio</title><p><a href=\"/\">Open the studio</a></p></html>";
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    match app.session.exchange(token).and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        Some(cookie) => ([(header::CONTENT_TYPE, html), (header::SET_COOKIE, cookie)], page).into_response(),
        // The address was opened again, for example from the history.
        None if has_session => ([(header::CONTENT_TYPE, html)], page).into_response(),
        None => page_without_session(),
    }
}

/// Explains how to get a session.
fn page_without_session() -> Response {
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
        content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>Tympan Studio</title><h1>No session</h1><p>This address works once, in one \
        browser. Run <code>tympan studio</code> again, and open the address that it prints.</p></html>";
    (StatusCode::UNAUTHORIZED, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

fn no_session() -> Response {
    Failure::new(StatusCode::UNAUTHORIZED, "no_session", "the request does not belong to a session")
        .with_help("run `tympan studio` again, and open the address that it prints")
        .into_response()
}

/// Reads the body of a request, within the limits of size and time.
async fn read_body(app: &App, request: Request) -> Result<Request, Failure> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(request);
    }
    let limits = app.limits();
    let (head, body) = request.into_parts();
    let too_large = || Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the request is too large");
    let reading = tokio::time::timeout(limits.request_time, axum::body::to_bytes(body, limits.body_bytes));
    let slow = |_| Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request arrives too slowly");
    let bytes = reading.await.map_err(slow)?.map_err(|_| too_large())?;
    Ok(Request::from_parts(head, Body::from(bytes)))
}

/// Returns a value of the query of an address.
pub(crate) fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let mut pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    percent_encoding::percent_decode_str(&value.replace('+', " ")).decode_utf8().ok().map(|value| value.into_owned())
}
