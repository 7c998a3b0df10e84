//! Streamed answers: the rate at which events and deltas are read, and whether it depends on the length of the stream.

use crate::Result;
use crate::measure::{Effort, time};
use crate::row::{Operation, Row, RowName};
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, StreamExt, stream};
use std::convert::Infallible;
use std::sync::Arc;
use tympan::wire::{DEFAULT_MAX_EVENT_BYTES, Protocol, SseDecoder, StreamDecoder};

/// The sizes of the streams, in MB.
pub const SIZES: [usize; 3] = [1, 4, 16];

/// The size of the chunks, about as much as a network delivers at a time.
const PIECE: usize = 16 << 10;

/// The rate of a row on a stream of one size.
#[derive(Debug)]
pub struct StreamRate {
    /// The name of the row.
    pub name: RowName,
    /// The size of the stream, in MB.
    pub megabytes: usize,
    /// The input rate.
    pub megabytes_per_second: f64,
}

/// Measures all rows on all sizes.
pub fn rates(effort: Effort) -> Result<Vec<StreamRate>> {
    let mut rates = Vec::new();
    for megabytes in SIZES {
        let text = chat_stream(megabytes * 1_000_000);
        let rows = rows(&text)?;
        let timings = time(&rows, effort, || {});
        rates.extend(rows.iter().zip(timings).map(|(row, timing)| StreamRate {
            name: row.name,
            megabytes,
            megabytes_per_second: text.len() as f64 * 1e3 / timing.ns,
        }));
    }
    Ok(rates)
}

/// Creates a stream of about this many bytes, in OpenAI's chat format.
pub fn chat_stream(bytes: usize) -> Arc<str> {
    let mut text = String::with_capacity(bytes + 512);
    let chunk = |content: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-9aUVZ1yzw3KuJGxTqNnQxLkLx2RhO\",\"object\":\"chat.completion.chunk\",\
             \"created\":1760000000,\"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\
             \"system_fingerprint\":\"fp_560af6e559\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{content}\"}},\
             \"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"k2Jd9x\"}}\n\n"
        )
    };
    let chunks = [" the", " answer", ",\\n", " grüße", " \\\"quoted\\\"", " 42"].map(chunk);
    for chunk in chunks.iter().cycle() {
        if text.len() + chunk.len() > bytes {
            break;
        }
        text.push_str(chunk);
    }
    text.push_str("data: [DONE]\n\n");
    text.into()
}

/// Returns the rows, after checking that they count the same events.
fn rows(text: &Arc<str>) -> Result<Vec<Row>> {
    let events = text.matches("\n\n").count();
    let (ours, theirs, answers) = (text.clone(), text.clone(), text.clone());
    let rows = [
        ("tympan", "events", Operation::new(move || our_events(&ours), |n| Some(n.to_string()))?),
        ("eventsource-stream", "events", Operation::new(move || their_events(&theirs), |n| Some(n.to_string()))?),
        // The last event ends the answer and contains no delta.
        ("tympan", "chat", Operation::new(move || our_deltas(&answers), |n| Some((n + 1).to_string()))?),
    ];
    let rows = rows.map(|(library, operation, ready)| Row::counting(RowName { library, operation }, ready, events));
    rows.into_iter().collect()
}

fn our_events(text: &str) -> Result<usize> {
    let mut events = 0;
    let mut decoder = SseDecoder::new(DEFAULT_MAX_EVENT_BYTES);
    for piece in text.as_bytes().chunks(PIECE) {
        decoder.push(piece, |_| {
            events += 1;
            Ok(())
        })?;
    }
    Ok(events)
}

fn our_deltas(text: &str) -> Result<usize> {
    let mut deltas = Vec::new();
    let mut count = 0;
    let mut decoder = StreamDecoder::new(Protocol::OpenAiChat);
    for piece in text.as_bytes().chunks(PIECE) {
        decoder.push(piece, &mut deltas)?;
        count += deltas.drain(..).count();
    }
    decoder.finish()?;
    Ok(count)
}

fn their_events(text: &str) -> Result<usize> {
    let pieces = stream::iter(text.as_bytes().chunks(PIECE).map(Ok::<_, Infallible>));
    // The stream is in memory, so it never waits.
    let events = pieces.eventsource().filter(|event| std::future::ready(event.is_ok())).count().now_or_never();
    Ok(events.ok_or("the stream waits")?)
}
