//! Prints the memory usage per stream as JSON, with a thousand streams open in one process.
//!
//! The server is a separate process, so that its memory is not counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use tokio::task::JoinSet;
use tympan::net::client::{HttpClient, HttpOptions, ProxyPolicy};
use tympan::wire::{Protocol, WireRequest};
use tympan_bench::Result;

/// The number of streams that are open at the same time.
const STREAMS: usize = 1000;

/// The number of events per stream.
const EVENTS: usize = 200;

/// An event of typical size.
const EVENT: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
     \"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";

/// The maximum memory usage per stream.
const MAX_BYTES: u64 = 64 << 10;

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let mut server = Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
    let mut port = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut port)?;
    let measured = measure(port.trim());
    server.kill()?;
    let (open, peak) = measured?;
    println!("{{\"streams\":{STREAMS},\"bytes_per_open_stream\":{open},\"bytes_per_stream_at_peak\":{peak}}}");
    if peak > MAX_BYTES { Err(format!("more than {MAX_BYTES} bytes a stream").into()) } else { Ok(()) }
}

/// Returns the bytes per stream: with all of them open, and at the peak.
fn measure(port: &str) -> Result<(u64, u64)> {
    let client = HttpClient::new(HttpOptions { proxy: ProxyPolicy::None, ..HttpOptions::default() })?;
    let request = WireRequest {
        protocol: Protocol::OpenAiChat,
        stream: true,
        method: "POST",
        url: format!("http://127.0.0.1:{port}/v1/chat/completions"),
        headers: Vec::new(),
        body: "{}".to_owned(),
    };
    // Allocate threads and everything else that is only needed once.
    drop(client.stream(request.clone()).wait()?);
    let before = memory("VmRSS:")?;
    let tasks: Vec<_> = (0..STREAMS).map(|_| client.stream(request.clone())).collect();
    let streams = tasks.into_iter().map(|task| Ok(task.wait()?)).collect::<Result<Vec<_>>>()?;
    let open = memory("VmRSS:")?;
    let received = tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let mut all = JoinSet::new();
        for mut stream in streams {
            all.spawn(async move {
                let mut received = 0;
                while let Some(Ok(piece)) = stream.next().await {
                    received += piece.len();
                }
                received
            });
        }
        all.join_all().await
    });
    if received.iter().any(|received| *received != EVENT.len() * (EVENTS + 1)) {
        return Err("an answer is not complete".into());
    }
    let each = |after: u64| after.saturating_sub(before) / STREAMS as u64;
    Ok((each(open), each(memory("VmHWM:")?)))
}

/// Returns a memory statistic of this process, in bytes.
fn memory(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("the system does not say")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// Starts every answer immediately, and continues all of them after the last request has arrived.
fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    begin(listener.accept()?.0)?;
    let mut streams = Vec::new();
    for socket in listener.incoming().take(STREAMS) {
        streams.push(begin(socket?)?);
    }
    for _ in 0..EVENTS {
        for stream in &mut streams {
            write!(stream, "{:x}\r\n{EVENT}\r\n", EVENT.len())?;
        }
    }
    for stream in &mut streams {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

fn begin(mut socket: TcpStream) -> Result<TcpStream> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        let mut piece = [0; 1024];
        let count = socket.read(&mut piece)?;
        request.extend_from_slice(&piece[..count]);
        if count == 0 {
            return Err("a request is not complete".into());
        }
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    write!(socket, "{head}{:x}\r\n{EVENT}\r\n", EVENT.len())?;
    Ok(socket)
}
