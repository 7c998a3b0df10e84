//! Any bytes as a model's answer: whole, or as a stream, which reads the same however it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tympan::turn::outcome;
use tympan::wire::response::{Delta, Response};
use tympan::wire::{self, Protocol, StreamDecoder};
use tympan::{Outcome, Prompt, Result};

const PROTOCOLS: [Protocol; 5] = [
    Protocol::OpenAiChat,
    Protocol::OpenAiResponses,
    Protocol::OpenAiEmbeddings,
    Protocol::OpenAiImages,
    Protocol::AnthropicMessages,
];

// The first byte chooses the protocol and the size of the pieces.
fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let protocol = PROTOCOLS[usize::from(choice % 5)];
    let piece = usize::from(choice / 5) + 1;
    let whole = stream(protocol, bytes, bytes.len().max(1));
    let cut = stream(protocol, bytes, piece);
    assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
    if let (deltas, Ok(response)) = &whole {
        check(deltas, response);
    }
    let _ = wire::decode_error(protocol, 500, bytes);
    if let Ok(result) = outcome::process(&Prompt::from_spec(Default::default()), protocol, bytes) {
        assert!(!matches!(result, Outcome::Structured(_)), "no outputs are declared");
    }
});

fn stream(protocol: Protocol, bytes: &[u8], piece: usize) -> (Vec<Delta>, Result<Response>) {
    let mut deltas = Vec::new();
    let mut decoder = StreamDecoder::new(protocol);
    for piece in bytes.chunks(piece) {
        if let Err(error) = decoder.push(piece, &mut deltas) {
            assert!(error.message().len() < 2000 && error.partial_text().is_some());
            return (deltas, Err(error));
        }
    }
    (deltas, decoder.finish())
}

/// Every delta names a call that has begun.
fn check(deltas: &[Delta], response: &Response) {
    let mut calls = 0;
    for delta in deltas {
        match delta {
            Delta::ToolCall { index, .. } => calls = calls.max(index + 1),
            Delta::ToolArguments { index, .. } => assert!(*index < calls, "{response:?}"),
            _ => {}
        }
    }
}
