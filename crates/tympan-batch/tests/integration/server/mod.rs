//! A server with the batch APIs of OpenAI and Anthropic, on a real socket, with programmable faults.
#![allow(dead_code, reason = "each test uses a part of it")]

mod answers;
mod http;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value as Json, json};

use self::http::Request;

/// Changes the lines of a file with results.
type Edit = Box<dyn Fn(Vec<String>) -> Vec<String> + Send + Sync>;

/// What goes wrong. A number is how often.
#[derive(Default)]
pub(crate) struct Faults {
    /// Requests are refused with the status 429.
    pub(crate) busy: usize,
    /// Uploads fail with the status 500.
    pub(crate) failed_uploads: usize,
    /// The connection is closed after a batch was created, and before the response.
    pub(crate) lost_responses: usize,
    /// The status 500 is returned after a batch was created.
    pub(crate) failed_responses: usize,
    /// A batch is refused with the status 400.
    pub(crate) refused: usize,
    /// The state of a batch is requested, and nobody knows the batch.
    pub(crate) unknown: usize,
    /// The state of a batch is requested, and it has not ended.
    pub(crate) polls: usize,
    /// A download ends early.
    pub(crate) truncated: usize,
    /// The rows that fail when they are sent for the first time.
    pub(crate) failing: BTreeSet<u64>,
    /// The rows that expire when they are sent for the first time.
    pub(crate) expiring: BTreeSet<u64>,
    /// Why all batches fail as a whole.
    pub(crate) broken: Option<String>,
    /// Batches fail because too many requests are waiting.
    pub(crate) queue_full: usize,
    /// Changes the results.
    pub(crate) edit: Option<Edit>,
    /// Where every request is redirected to.
    pub(crate) redirect: Option<String>,
    /// Whether the list of batches does not exist.
    pub(crate) no_list: bool,
    /// The text of error responses.
    pub(crate) error_text: String,
}

/// A batch of requests.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) id: String,
    /// The body of the request that created it, without the requests.
    pub(crate) created: Json,
    /// The requests, in the order of the file.
    pub(crate) requests: Vec<Json>,
    pub(crate) is_anthropic: bool,
    pub(crate) is_cancelled: bool,
    /// Whether the queue had no room for the batch.
    pub(crate) is_refused: bool,
    /// How often the state is still requested before the batch has ended.
    pub(crate) polls: usize,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) faults: Faults,
    /// The methods and paths of all requests.
    pub(crate) log: Vec<String>,
    /// The heads of all requests.
    pub(crate) heads: Vec<String>,
    /// The uploaded files, and the results.
    files: BTreeMap<String, Vec<u8>>,
    pub(crate) batches: Vec<Batch>,
    /// How often each request was sent.
    pub(crate) sent: BTreeMap<String, usize>,
}

/// The server.
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

/// What a request is answered with.
enum Reply {
    Json(u16, Json),
    Lines(Vec<u8>),
    /// Lines, of which only a part is sent.
    Truncated(Vec<u8>),
    Redirect(String),
    Busy,
    Close,
}

impl Server {
    pub(crate) fn start(faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
        let state = Arc::new(Mutex::new(State { faults, ..State::default() }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { url, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how often a request to a path was made.
    pub(crate) fn count(&self, request: &str) -> usize {
        self.state().log.iter().filter(|line| line.as_str() == request).count()
    }

    /// Returns how often each request was sent in a batch.
    pub(crate) fn sent(&self) -> BTreeMap<String, usize> {
        self.state().sent.clone()
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let Some(request) = http::read(&mut stream) else { return };
    let reply = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        state.log.push(format!("{} {path}", request.method));
        state.heads.push(request.head.clone());
        state.reply(&request, &path)
    };
    match reply {
        Reply::Json(status, body) => {
            http::write(&mut stream, status, "", "application/json", body.to_string().as_bytes())
        }
        Reply::Lines(body) => http::write(&mut stream, 200, "", "application/octet-stream", &body),
        Reply::Truncated(body) => http::write_part(&mut stream, &body),
        Reply::Redirect(to) => http::write(&mut stream, 307, &format!("location: {to}\r\n"), "text/plain", b""),
        Reply::Busy => {
            http::write(
                &mut stream,
                429,
                "retry-after-ms: 1\r\n",
                "application/json",
                b"{\"error\":{\"message\":\"busy\"}}",
            );
        }
        Reply::Close => {}
    }
}

/// Takes one from a counter, unless it is zero.
fn take(counter: &mut usize) -> bool {
    let is_left = *counter > 0;
    *counter -= usize::from(is_left);
    is_left
}

impl State {
    fn reply(&mut self, request: &Request, path: &str) -> Reply {
        if let Some(to) = &self.faults.redirect {
            return Reply::Redirect(format!("{to}{}", request.path));
        }
        if take(&mut self.faults.busy) {
            return Reply::Busy;
        }
        let path = path.strip_prefix("/v1/").unwrap_or_default();
        let parts: Vec<_> = path.split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("POST", ["files"]) => self.upload(request),
            ("POST", ["batches"]) => self.create(request),
            ("GET", ["batches"]) => self.list(request),
            ("GET", ["batches", id]) | ("GET", ["messages", "batches", id]) => self.status(id),
            ("POST", ["batches", id, "cancel"]) | ("POST", ["messages", "batches", id, "cancel"]) => {
                let found = self.batches.iter_mut().find(|batch| batch.id == *id);
                found.into_iter().for_each(|batch| batch.is_cancelled = true);
                self.status(id)
            }
            ("GET", ["files", id, "content"]) => match self.files.get(*id).cloned() {
                Some(content) => self.lines(content),
                None => self.error(404),
            },
            ("POST", ["messages", "batches"]) => self.create_messages(request),
            ("GET", ["messages", "batches", id, "results"]) => match self.files.get(&format!("{id}-output")).cloned() {
                Some(content) => self.lines(content),
                None => self.error(404),
            },
            _ => self.error(404),
        }
    }

    fn error(&self, status: u16) -> Reply {
        Reply::Json(status, json!({ "error": { "message": format!("refused {}", self.faults.error_text) } }))
    }

    fn lines(&mut self, content: Vec<u8>) -> Reply {
        if take(&mut self.faults.truncated) { Reply::Truncated(content) } else { Reply::Lines(content) }
    }

    fn upload(&mut self, request: &Request) -> Reply {
        if take(&mut self.faults.failed_uploads) {
            return self.error(500);
        }
        let Some(content) = http::uploaded(request) else { return self.error(400) };
        let id = format!("file-{}", self.files.len() + 1);
        self.files.insert(id.clone(), content);
        Reply::Json(200, json!({ "id": id, "object": "file", "purpose": "batch" }))
    }

    fn create(&mut self, request: &Request) -> Reply {
        if take(&mut self.faults.refused) {
            return self.error(400);
        }
        let created: Json = serde_json::from_slice(&request.body).expect("the body is JSON");
        let file = created["input_file_id"].as_str().and_then(|id| self.files.get(id));
        let Some(content) = file else { return self.error(404) };
        let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let requests = lines.map(|line| serde_json::from_slice(line).expect("each line is JSON")).collect();
        self.add(created, requests, false)
    }

    fn create_messages(&mut self, request: &Request) -> Reply {
        if take(&mut self.faults.refused) {
            return self.error(400);
        }
        let mut created: Json = serde_json::from_slice(&request.body).expect("the body is JSON");
        let requests = created["requests"].take().as_array().cloned().expect("there are requests");
        self.add(created, requests, true)
    }

    fn add(&mut self, created: Json, requests: Vec<Json>, is_anthropic: bool) -> Reply {
        let is_refused = take(&mut self.faults.queue_full);
        for request in requests.iter().filter(|_| !is_refused) {
            let id = request["custom_id"].as_str().expect("each request has an identifier");
            *self.sent.entry(id.to_owned()).or_default() += 1;
        }
        let id = format!("batch_{}", self.batches.len() + 1);
        let polls = self.faults.polls;
        let batch = Batch { id: id.clone(), created, requests, is_anthropic, is_cancelled: false, is_refused, polls };
        self.batches.push(batch);
        if take(&mut self.faults.lost_responses) {
            return Reply::Close;
        }
        if take(&mut self.faults.failed_responses) { self.error(500) } else { self.shown(&id) }
    }

    fn status(&mut self, id: &str) -> Reply {
        if take(&mut self.faults.unknown) {
            return self.error(404);
        }
        let Some(index) = self.batches.iter().position(|batch| batch.id == id) else { return self.error(404) };
        if !take(&mut self.batches[index].polls) {
            self.finish(index);
        }
        self.shown(id)
    }

    /// Returns a page of the list, newest first.
    fn list(&self, request: &Request) -> Reply {
        if self.faults.no_list {
            return self.error(404);
        }
        let after = request.path.split("after=").nth(1);
        // Pages are small, so that tests need several.
        let mut newest = self.batches.iter().rev().skip_while(|batch| after.is_some_and(|after| batch.id != after));
        if after.is_some() {
            newest.next();
        }
        let all: Vec<_> = newest.collect();
        let page: Vec<_> = all.iter().take(2).map(|batch| self.to_json(batch)).collect();
        Reply::Json(200, json!({ "object": "list", "data": page, "has_more": all.len() > 2 }))
    }

    fn shown(&self, id: &str) -> Reply {
        match self.batches.iter().find(|batch| batch.id == id) {
            Some(batch) => Reply::Json(200, self.to_json(batch)),
            None => self.error(404),
        }
    }
}
