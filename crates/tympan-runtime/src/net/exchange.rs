//! A request and its response, over HTTP or from a cassette.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use tympan_core::wire::WireRequest;
use tympan_core::{Error, Redactor, Result};

use crate::model::cassette::{self, Cassette, Recorded};
use crate::model::spending::Reservation;
use crate::net::client::{ByteStream, Content, HttpClient};

/// A received response.
pub(crate) enum Received {
    /// A complete response.
    Whole(Whole),
    /// A streamed response.
    Stream(Chunks),
}

/// A complete response.
pub(crate) struct Whole {
    /// The body.
    pub(crate) body: Vec<u8>,
    recording: Option<(Recording, Recorded)>,
}

impl Whole {
    /// Records the response, if recording is enabled. Call this once the response is known to be valid and not an
    /// error.
    ///
    /// # Errors
    /// Returns an error if [`cassette::record`] does.
    pub(crate) fn keep(self) -> Result<()> {
        self.recording.map_or(Ok(()), |(recording, recorded)| recording.keep(recorded))
    }
}

/// Sends a request, or looks up its response in a cassette.
///
/// # Errors
/// Returns an error if [`HttpClient::send`] or [`cassette::replay`] does.
pub(crate) async fn exchange(
    client: impl FnOnce() -> Result<HttpClient>,
    cassette: Option<&Cassette>,
    request: WireRequest,
    reservation: Option<&Arc<Reservation>>,
    redactor: &Redactor,
) -> Result<Received> {
    let recording = match cassette {
        Some(Cassette::Replay(directory)) => {
            return Ok(replayed(cassette::replay(directory, &request, &|json| redactor.json(&json))?));
        }
        Some(Cassette::Record(directory)) => Some((directory.clone(), request.clone())),
        None => None,
    };
    let recording = recording.map(|(directory, request)| Recording {
        directory,
        request,
        redactor: redactor.clone(),
        chunks: Vec::new(),
    });
    let failed = |error: &Error| {
        if let Some(reservation) = reservation {
            reservation.fail(error);
        }
    };
    if !request.stream {
        let response = client()?.send_within(request, reservation.cloned()).await.inspect_err(failed)?;
        return Ok(whole(response.status, response.content_type, response.body, recording));
    }
    let stream = client()?.stream_within(request, reservation.cloned()).await.inspect_err(failed)?;
    if stream.content() == Content::EventStream {
        return Ok(Received::Stream(Chunks { source: Source::Http(stream), recording }));
    }
    // Some servers do not stream, even if the request asks for it.
    let (status, content_type) = (stream.status(), stream.content_type().map(str::to_owned));
    let mut chunks = Chunks { source: Source::Http(stream), recording: None };
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
    }
    Ok(whole(status, content_type, body, recording))
}

fn whole(status: u16, content_type: Option<String>, body: Vec<u8>, recording: Option<Recording>) -> Received {
    let recording = recording.map(|recording| (recording, Recorded::whole(status, content_type, &body)));
    Received::Whole(Whole { body, recording })
}

fn replayed(recorded: Recorded) -> Received {
    let is_stream = matches!(recorded.content, cassette::Content::Chunks(_));
    let pieces = recorded.pieces();
    match is_stream {
        true => Received::Stream(Chunks { source: Source::Cassette(pieces.into_iter()), recording: None }),
        false => Received::Whole(Whole { body: pieces.concat(), recording: None }),
    }
}

/// The chunks of a streamed response.
pub(crate) struct Chunks {
    source: Source,
    recording: Option<Recording>,
}

#[expect(clippy::large_enum_variant, reason = "there is one for each answer, and it stays where it is")]
enum Source {
    Http(ByteStream),
    Cassette(std::vec::IntoIter<Vec<u8>>),
}

impl Chunks {
    /// Returns the next chunk; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let chunk = match &mut self.source {
            Source::Http(stream) => stream.next().await?.map(|bytes| bytes.to_vec()),
            Source::Cassette(chunks) => Ok(chunks.next()?),
        };
        if let (Some(recording), Ok(chunk)) = (&mut self.recording, &chunk) {
            recording.chunks.push(chunk.clone());
        }
        Some(chunk)
    }

    /// Records the response, if recording is enabled. Call this once the response is known to be complete.
    ///
    /// # Errors
    /// Returns an error if [`cassette::record`] does.
    pub(crate) fn keep(self) -> Result<()> {
        let (Some(recording), Source::Http(stream)) = (self.recording, &self.source) else { return Ok(()) };
        let content_type = stream.content_type().map(str::to_owned);
        let recorded = Recorded::streamed(stream.status(), content_type, &recording.chunks);
        recording.keep(recorded)
    }
}

/// A recording in progress, and where to save it once it is complete.
struct Recording {
    directory: PathBuf,
    request: WireRequest,
    redactor: Redactor,
    chunks: Vec<Vec<u8>>,
}

impl Recording {
    fn keep(self, recorded: Recorded) -> Result<()> {
        let scrub = |json: Json| self.redactor.json(&json);
        cassette::record(&self.directory, &self.request, recorded, &scrub)
    }
}
