//! As much of HTTP as the server needs. Each connection has one request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A received request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub(super) fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split(' ').map(str::to_owned);
    let mut request = Request { method: words.next()?, path: words.next()?, head: head.clone(), body: Vec::new() };
    assert!(request.header("transfer-encoding").is_none(), "APIs expect the length of a body: {head}");
    let length = request.header("content-length").map_or(0, |length| length.parse().expect("a number"));
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// Writes a response. Clients may have gone.
pub(super) fn write(stream: &mut TcpStream, status: u16, headers: &str, content_type: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Status\r\n{headers}content-type: {content_type}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// Writes half of a response.
pub(super) fn write_part(stream: &mut TcpStream, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..length / 2]));
}

/// Returns the file in a form with the purpose `batch`.
pub(super) fn uploaded(request: &Request) -> Option<Vec<u8>> {
    let boundary = request.header("content-type")?.strip_prefix("multipart/form-data; boundary=")?;
    let delimiter = format!("--{boundary}");
    let text = String::from_utf8(request.body.clone()).ok()?;
    let mut purpose = None;
    let mut file = None;
    for part in text.split(&delimiter) {
        let Some((head, content)) = part.split_once("\r\n\r\n") else { continue };
        let content = content.strip_suffix("\r\n")?;
        if head.contains("name=\"purpose\"") {
            purpose = Some(content.to_owned());
        } else if head.contains("name=\"file\"; filename=\"") {
            file = Some(content.as_bytes().to_vec());
        }
    }
    (purpose.as_deref() == Some("batch") && text.ends_with("--\r\n")).then_some(file?)
}
