//! A server with programmable faults, on real sockets and with its own threads.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) mod client;
pub(crate) mod tls;

/// A connection that can be read and written.
pub(crate) trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

/// A server on a free port.
pub(crate) struct Server {
    pub(crate) port: u16,
    scheme: &'static str,
    state: Arc<State>,
    left: Receiver<()>,
}

#[derive(Default)]
struct State {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    written: AtomicUsize,
}

/// A received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Everything up to the blank line.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A request, and the connection to answer it on.
pub(crate) struct Exchange<'a> {
    pub(crate) request: Request,
    /// The number of earlier requests to the server.
    pub(crate) number: usize,
    wire: &'a mut dyn Wire,
    socket: &'a TcpStream,
    /// Whether another request may follow on the connection.
    open: bool,
    state: &'a State,
    left: &'a Sender<()>,
}

impl Exchange<'_> {
    /// Writes and flushes bytes. Bytes that the client does not read are lost.
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let bytes = bytes.as_ref();
        self.state.written.fetch_add(bytes.len(), Ordering::SeqCst);
        self.wire.write_all(bytes).and_then(|()| self.wire.flush()).is_ok()
    }

    /// Writes a complete response.
    pub(crate) fn answer(&mut self, status: u16, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        self.write(format!("HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\n\r\n", body.len()));
        self.write(body);
    }

    /// Writes a complete JSON response.
    pub(crate) fn json(&mut self, body: &str) {
        self.answer(200, "Content-Type: application/json\r\n", body);
    }

    /// Starts a response with events.
    pub(crate) fn events(&mut self) {
        self.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    }

    /// Writes a chunk of a chunked response.
    pub(crate) fn chunk(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let bytes = bytes.as_ref();
        let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.write(framed)
    }

    /// Ends a chunked response.
    pub(crate) fn end(&mut self) {
        self.write("0\r\n\r\n");
    }

    /// Sends nothing more until the client disconnects, and reports that.
    pub(crate) fn stall(&mut self) {
        let mut sink = [0; 1024];
        while matches!(self.wire.read(&mut sink), Ok(count) if count > 0) {}
        self.open = false;
        let _ = self.left.send(());
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(&mut self) {
        socket2::SockRef::from(self.socket).set_linger(Some(Duration::ZERO)).expect("the option exists");
        self.open = false;
    }

    /// Closes the connection normally.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }
}

impl Server {
    /// Starts a server that handles every request in the same way.
    pub(crate) fn start(answer: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static) -> Self {
        Self::start_with("http", |stream| Ok(Box::new(stream)), answer)
    }

    /// Starts a server with a layer on top of its sockets.
    pub(crate) fn start_with(
        scheme: &'static str,
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Wire>> + Send + Sync + 'static,
        answer: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(State::default());
        let (sender, left) = mpsc::channel();
        let shared = Arc::new((wrap, answer));
        let server = Self { port, scheme, state: Arc::clone(&state), left };
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                state.connections.fetch_add(1, Ordering::SeqCst);
                let (state, sender, shared) = (Arc::clone(&state), sender.clone(), Arc::clone(&shared));
                thread::spawn(move || {
                    let (wrap, answer) = &*shared;
                    serve(socket, &state, &sender, wrap, answer);
                });
            }
        });
        server
    }

    /// Returns an address of the server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.port)
    }

    /// Returns the number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns the received requests.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("nobody panicked").clone()
    }

    /// Returns the number of bytes sent to clients.
    pub(crate) fn written(&self) -> usize {
        self.state.written.load(Ordering::SeqCst)
    }

    /// Waits until a client has disconnected while the server stalls.
    pub(crate) fn wait_until_left(&self) {
        self.left.recv().expect("the server runs");
    }
}

fn serve(
    socket: TcpStream,
    state: &State,
    left: &Sender<()>,
    wrap: &dyn Fn(TcpStream) -> io::Result<Box<dyn Wire>>,
    answer: &dyn Fn(&mut Exchange<'_>),
) {
    let _ = socket.set_nodelay(true);
    let Ok(copy) = socket.try_clone() else { return };
    let Ok(mut wire) = wrap(socket) else { return };
    while let Ok(Some(request)) = read_request(&mut *wire) {
        let number = {
            let mut requests = state.requests.lock().expect("nobody panicked");
            requests.push(request.clone());
            requests.len() - 1
        };
        let mut exchange = Exchange { request, number, wire: &mut *wire, socket: &copy, open: true, state, left };
        answer(&mut exchange);
        if !exchange.open {
            return;
        }
    }
}

fn read_request(wire: &mut dyn Wire) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        match wire.read(&mut piece)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = Request { head, body: String::new() };
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        match wire.read(&mut piece)? {
            0 => return Ok(None),
            count => body.extend_from_slice(&piece[..count]),
        }
    }
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(request))
}
