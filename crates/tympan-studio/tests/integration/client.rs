//! A server for a test, and a client that sends exactly what it is told.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tympan_studio::{Studio, StudioOptions};

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(25);

/// A prompt that needs no key.
pub(crate) const ECHO: &str =
    "---\nmodel: {id: echo, provider: echo}\ninputs: [{name: q, kind: string}]\n---\nuser:\n{{ q }}";

/// A running studio.
pub(crate) struct Server {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a studio with these files.
    pub(crate) fn start(files: &[(&str, &str)]) -> Self {
        Self::with(files, |_| {})
    }

    /// Starts a studio with other options.
    pub(crate) fn with(files: &[(&str, &str)], change: impl FnOnce(&mut StudioOptions)) -> Self {
        let folder = TempDir::new().expect("there is a temporary directory");
        for (path, text) in files {
            write(folder.path(), path, text);
        }
        let mut options = StudioOptions::new(folder.path());
        change(&mut options);
        let (stop, stopped) = oneshot::channel();
        let (started, start) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            tokio.expect("it is built").block_on(async {
                let studio = Studio::bind(options).await.expect("it is bound");
                started.send((studio.address().port(), studio.url())).expect("the test waits");
                studio.serve(async { drop(stopped.await) }).await;
            });
        });
        let (port, url) = start.recv().expect("it starts");
        Self { folder, port, url, stop: Some(stop), thread: Some(thread) }
    }

    /// Writes a file, as another program.
    pub(crate) fn write(&self, path: &str, text: &str) {
        write(self.folder.path(), path, text);
    }

    /// Returns the text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join(path)).ok()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it answers");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is set");
        stream.set_write_timeout(Some(PATIENCE)).expect("it is set");
        stream
    }

    /// Sends bytes, and returns the response.
    pub(crate) fn send(&self, request: &[u8]) -> Response {
        let mut stream = self.connect();
        // The server may refuse the rest of a request.
        let _ = stream.write_all(request);
        Response::read(stream)
    }

    /// Sends a request with the headers that every browser sends, and others.
    pub(crate) fn request(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        self.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    /// Opens the address that was printed, and returns the cookie.
    pub(crate) fn log_in(&self) -> String {
        let target = &self.url[self.url.find("/?").expect("it has a token")..];
        let response = self.request("GET", target, &[], "");
        assert_eq!(response.status, 200, "{}", response.body);
        let cookie = response.header("set-cookie").expect("it sets one");
        cookie.split(';').next().expect("it has a value").to_owned()
    }

    /// Returns a page of this server.
    pub(crate) fn page(&self) -> Page<'_> {
        Page { server: self, cookie: self.log_in() }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || !matches!(ended, Some(Err(_))), "the server panicked");
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("it has a parent")).expect("it is created");
    fs::write(path, text).expect("it is written");
}

/// A page with a session.
pub(crate) struct Page<'s> {
    pub(crate) server: &'s Server,
    pub(crate) cookie: String,
}

impl Page<'_> {
    pub(crate) fn get(&self, target: &str) -> Response {
        self.server.request("GET", target, &[("Cookie", &self.cookie), ("Sec-Fetch-Site", "same-origin")], "")
    }

    pub(crate) fn send(&self, method: &str, target: &str, body: &Json) -> Response {
        let origin = self.server.origin();
        let headers = [("Cookie", self.cookie.as_str()), ("Origin", &origin), ("Sec-Fetch-Site", "same-origin")];
        self.server.request(method, target, &headers, &body.to_string())
    }

    pub(crate) fn post(&self, target: &str, body: &Json) -> Response {
        self.send("POST", target, body)
    }

    /// Sends a request and returns its events as they arrive.
    pub(crate) fn stream(&self, method: &str, target: &str, body: &Json) -> EventStream {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = self.server.connect();
        let (origin, cookie) = (self.server.origin(), &self.cookie);
        let host = format!("127.0.0.1:{}", self.server.port);
        let head = format!(
            "{method} {target} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\nOrigin: {origin}\r\nCookie: {cookie}\r\n"
        );
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("it is sent");
        EventStream { stream, text: String::new() }
    }
}

/// A response with everything in it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Response {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A server that does not want to read more closes the connection.
        match stream.read_to_end(&mut bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the server does not answer: {}", String::from_utf8_lossy(&bytes))
            }
            _ => {}
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Server-sent events.
pub(crate) struct EventStream {
    stream: TcpStream,
    text: String,
}

impl EventStream {
    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<(String, Json)> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(event) = event(&block) {
                    return Some(event);
                }
                continue;
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).expect("it arrives in time");
            if read == 0 || self.text.contains("\r\n0\r\n") {
                return None;
            }
            self.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    /// Returns the data of the next event with this name.
    pub(crate) fn until(&mut self, name: &str) -> Json {
        let mut before = Vec::new();
        while let Some((found, data)) = self.next() {
            if found == name {
                return data;
            }
            before.push((found, data));
        }
        panic!("there is no `{name}`: {before:?} {}", self.text)
    }
}

/// Reads an event. The lines around it are those of chunks.
fn event(block: &str) -> Option<(String, Json)> {
    let value = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((value("event:")?.to_owned(), serde_json::from_str(value("data:")?).ok()?))
}
