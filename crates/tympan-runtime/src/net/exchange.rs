//! One request and its answer: over HTTP, or from a cassette.

use std::path::PathBuf;

use serde_json::Value as Json;
use tympan_core::Redactor;
use tympan_core::Result;
use tympan_core::wire::WireRequest;

use crate::model::cassette::{self, Cassette, Recorded};
use crate::net::client::{ByteStream, Content, HttpClient};

/// What an answer comes in.
pub(crate) enum Received {
    /// All at once.
    Whole(Whole),
    /// Piece by piece.
    Stream(Chunks),
}

/// An answer that came all at once.
pub(crate) struct Whole {
    /// What it said.
    pub(crate) body: Vec<u8>,
    recording: Option<(Recording, Recorded)>,
}

impl Whole {
    /// Keeps it, if it is to be kept, now that it is known to be an answer, and no error.
    ///
    /// # Errors
    /// As [`cassette::record`].
    pub(crate) fn keep(self) -> Result<()> {
        self.recording.map_or(Ok(()), |(recording, recorded)| recording.keep(recorded))
    }
}

/// Sends a request, or looks it up.
///
/// # Errors
/// As [`HttpClient::send`] and [`cassette::replay`].
pub(crate) async fn exchange(
    client: impl FnOnce() -> Result<HttpClient>,
    cassette: Option<&Cassette>,
    request: WireRequest,
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
    if !request.stream {
        let response = client()?.send(request).await?;
        return Ok(whole(response.status, response.content_type, response.body, recording));
    }
    let stream = client()?.stream(request).await?;
    if stream.content() == Content::EventStream {
        return Ok(Received::Stream(Chunks { source: Source::Http(stream), recording }));
    }
    // Some servers do not stream, whatever they are asked.
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

/// The pieces of a streamed answer.
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
    /// The next piece; `None` after the last.
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

    /// Keeps what was received, if it is to be kept, now that it is known to be whole.
    ///
    /// # Errors
    /// As [`cassette::record`].
    pub(crate) fn keep(self) -> Result<()> {
        let (Some(recording), Source::Http(stream)) = (self.recording, &self.source) else { return Ok(()) };
        let content_type = stream.content_type().map(str::to_owned);
        let recorded = Recorded::streamed(stream.status(), content_type, &recording.chunks);
        recording.keep(recorded)
    }
}

/// What has come so far, and where it goes once it is whole.
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
