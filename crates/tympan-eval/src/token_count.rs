//! The tokens of a rendered prompt, by message and by who wrote the text.
//!
//! A text is counted as a whole, because a token can contain text of several writers: in `Hello, {{ name }}`, the space
//! and the beginning of the name are one token. Each token belongs to the writer of most of its bytes. If there are
//! several, it belongs to an input before it belongs to the author, and to the first of them. So the tokens of all
//! writers add up to the tokens of the message.

use std::ops::Range;

use serde_json::{Value as Json, json};
use tympan_core::chat::message::{ContentPart, TextPart};
use tympan_core::chat::rendered::InputTable;
use tympan_core::chat::text_segment::TextSegment;
use tympan_core::spec::ToolKind;
use tympan_core::spec::role::Role;
use tympan_core::text::origin::Origin;
use tympan_core::wire::Function;
use tympan_core::wire::catalog::{ModelData, Price};
use tympan_core::wire::response::Usage;
use tympan_core::{Message, Prompt, Rendered, Result};
use tympan_runtime::model::tokens::{Encoding, MEDIA_TOKENS, MESSAGE_TOKENS, text_ranges};

/// The tokens of a rendered prompt.
///
/// ```
/// use tympan_core::{Prompt, inputs};
/// use tympan_eval::TokenCount;
///
/// let prompt = Prompt::from_prompty("system:\nBe brief.\n\nuser:\nMy name is {{ name }}.")?;
/// let rendered = prompt.render(inputs! { name: "Ada Lovelace" })?;
/// let count = TokenCount::of(&prompt, &rendered, "gpt-4o")?;
/// let by_writer: Vec<_> = count.writers().iter().map(|part| (part.inputs.join("+"), part.tokens)).collect();
/// assert_eq!(by_writer, [(String::new(), 7), ("name".to_owned(), 4)]);
/// assert_eq!(count.total(), 7 + 4 + count.overhead());
/// # Ok::<(), tympan_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenCount {
    /// Whether the text is counted with the vocabulary of the model, and there is nothing but text. If not, the numbers
    /// are estimates.
    pub is_exact: bool,
    /// The name of the vocabulary.
    pub encoding: &'static str,
    /// The messages, in order.
    pub messages: Vec<MessageTokens>,
    /// The estimated tokens of the functions that the prompt declares as tools. Tools of servers are not counted.
    pub tools: usize,
    /// The estimated tokens of the schema of the prompt's outputs.
    pub outputs: usize,
    /// The tokens of the beginning that no input touches, which a provider can cache.
    pub cacheable: usize,
    /// The number of images, audio and documents, which count as [`MEDIA_TOKENS`] each.
    pub media: usize,
}

/// The tokens of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageTokens {
    /// The role.
    pub role: Role,
    /// The tokens of the content, by writer: the author first, then the inputs in the order of the text.
    pub parts: Vec<WriterTokens>,
    /// The estimated tokens that the provider adds for the role.
    pub overhead: usize,
}

/// The tokens of text with the same origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterTokens {
    /// The inputs that wrote the text, or none if the author did.
    pub inputs: Vec<String>,
    /// Whether the text counts as the author's own.
    pub trusted: bool,
    /// The number of tokens.
    pub tokens: usize,
}

impl TokenCount {
    /// Counts the tokens of a rendered prompt for a model. The vocabulary of other models than OpenAI's is not known,
    /// so their count is an estimate with the newest vocabulary of OpenAI.
    ///
    /// # Errors
    /// Returns an error if the engine does not have the prompt's parser.
    pub fn of(prompt: &Prompt, rendered: &Rendered, model: &str) -> Result<Self> {
        let encoding = Encoding::of_model(model);
        let messages = Traced::messages(prompt, rendered)?;
        let counter = Counter { encoding, inputs: rendered.inputs() };
        let outputs = &prompt.spec().outputs;
        let media = messages.iter().map(Traced::media).sum();
        Ok(Self {
            is_exact: Encoding::of_known_model(model).is_some() && media == 0,
            encoding: encoding.as_str(),
            cacheable: counter.cacheable(&messages),
            media,
            messages: messages.iter().map(|message| counter.message(message)).collect(),
            tools: prompt.spec().tools.iter().filter_map(function).map(|function| counter.function(&function)).sum(),
            outputs: if outputs.is_empty() {
                0
            } else {
                encoding.count(&Function::of_properties("", None, outputs).parameters.to_string())
            },
        })
    }

    /// Returns the number of all tokens.
    pub fn total(&self) -> usize {
        self.messages.iter().map(MessageTokens::total).sum::<usize>() + self.tools + self.outputs
    }

    /// Returns the estimated tokens that the provider adds for the roles of the messages.
    pub fn overhead(&self) -> usize {
        self.messages.iter().map(|message| message.overhead).sum()
    }

    /// Estimates the cost of these tokens as input, in US dollars.
    pub fn cost(&self, price: &Price) -> f64 {
        price.cost(&Usage { input_tokens: self.total() as u64, ..Usage::default() })
    }

    /// Returns the tokens of all messages by writer: the author first, then the inputs in the order of the text.
    pub fn writers(&self) -> Vec<WriterTokens> {
        let mut writers: Vec<WriterTokens> = Vec::new();
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            match writers.iter_mut().find(|writer| writer.inputs == part.inputs) {
                Some(writer) => writer.tokens += part.tokens,
                None => writers.push(part.clone()),
            }
        }
        writers.sort_by_key(|writer| !writer.inputs.is_empty());
        writers
    }
}

impl TokenCount {
    /// Converts the count to JSON. A `share` is relative to all tokens.
    pub fn to_json(&self) -> Json {
        let share = |tokens: usize| share(tokens, self.total());
        let writer = |part: &WriterTokens| {
            let WriterTokens { inputs, trusted, tokens } = part;
            json!({ "inputs": inputs, "trusted": trusted, "tokens": tokens, "share": share(*tokens) })
        };
        let message = |message: &MessageTokens| {
            json!({
                "role": message.role,
                "tokens": message.total(),
                "share": share(message.total()),
                "writers": message.parts.iter().map(writer).collect::<Json>(),
                "overhead": message.overhead,
            })
        };
        json!({
            "exact": self.is_exact,
            "encoding": self.encoding,
            "tokens": self.total(),
            "messages": self.messages.iter().map(message).collect::<Json>(),
            "writers": self.writers().iter().map(writer).collect::<Json>(),
            "overhead": self.overhead(),
            "tools": self.tools,
            "outputs": self.outputs,
            "media": self.media,
            "cacheable": { "tokens": self.cacheable, "share": share(self.cacheable) },
        })
    }
}

impl TokenCount {
    /// Returns the part of a model's context window that the tokens take, if its size is known.
    pub fn context_share(&self, data: &ModelData) -> Option<f64> {
        let context = usize::try_from(data.context?).ok()?;
        Some(share(self.total(), context))
    }

    /// Converts the count for a model to JSON, with what is known about the model. Prices are in US dollars.
    pub fn to_json_for(&self, model: Option<&str>, data: &ModelData) -> Json {
        let price = data.price.map(|price| {
            json!({
                "input": price.input,
                "output": price.output,
                "cached_input": price.cached_input,
                "cache_write": price.cache_write,
            })
        });
        let cost = data.price.map(|price| self.cost(&price));
        let more = json!({
            "context": data.context,
            "context_share": self.context_share(data),
            "max_output": data.max_output,
            "price": price,
            "cost": cost,
            "cost_of_1000_calls": cost.map(|cost| cost * 1000.0),
        });
        let mut json = json!({ "model": model });
        for part in [self.to_json(), more] {
            if let (Json::Object(json), Json::Object(part)) = (&mut json, part) {
                json.extend(part);
            }
        }
        json
    }
}

/// Returns a part of a whole as a number from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "nobody uses so many tokens")]
pub fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl MessageTokens {
    /// Returns the number of all tokens of the message.
    pub fn total(&self) -> usize {
        self.parts.iter().map(|part| part.tokens).sum::<usize>() + self.overhead
    }
}

/// A message with the origin of its text.
struct Traced {
    message: Message,
    segments: Vec<Vec<TextSegment>>,
    /// The length of the beginning that no input touches.
    stable: usize,
}

impl Traced {
    /// Returns the messages for a model, with the guard's advisory among its instructions.
    fn messages(prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Self>> {
        let segmented = prompt.messages_with_segments(rendered)?.into_iter().zip(prompt.stable_prefixes(rendered)?);
        let traced = segmented.map(|(found, stable)| Self { message: found.message, segments: found.segments, stable });
        let mut traced: Vec<_> = traced.collect();
        if let Some(guard) = rendered.guard() {
            let mut messages: Vec<_> = traced.iter().map(|traced| traced.message.clone()).collect();
            guard.insert_into(&mut messages);
            let same = messages.iter().zip(&traced).take_while(|(now, then)| **now == then.message).count();
            // Without a role for it, there is no message to add.
            if messages.len() > traced.len() {
                let message = messages.swap_remove(same);
                let stable = message.to_text().len();
                let segments = vec![vec![TextSegment { range: 0..stable, origin: Origin::AUTHOR }]];
                traced.insert(same, Self { message, segments, stable });
            }
        }
        Ok(traced)
    }

    /// Returns the number of images, audio and documents.
    fn media(&self) -> usize {
        let media = self.message.content.iter().map(|part| match part {
            ContentPart::Text(text) => text.anchors.len(),
            _ => 1,
        });
        media.sum()
    }

    /// Returns the parts of the content with their segments.
    fn parts(&self) -> impl Iterator<Item = (&ContentPart, &[TextSegment])> {
        let none: &[TextSegment] = &[];
        let segments = self.segments.iter().map(Vec::as_slice).chain(std::iter::repeat(none));
        self.message.content.iter().zip(segments)
    }
}

struct Counter<'r> {
    encoding: Encoding,
    inputs: &'r InputTable,
}

impl Counter<'_> {
    fn message(&self, traced: &Traced) -> MessageTokens {
        let mut tally = Tally::default();
        for (part, segments) in traced.parts() {
            match part {
                ContentPart::Text(text) => self.text(text, segments, &mut tally),
                _ => tally.add(segments.first().map_or(self.all_inputs(), |segment| segment.origin), MEDIA_TOKENS),
            }
        }
        if let Some(calls) = traced.message.metadata.as_ref().and_then(|metadata| metadata.get("tool_calls")) {
            // Only a thread has tool calls, so all of the message has one origin.
            let origin = traced.segments.iter().flatten().next().map_or(self.all_inputs(), |segment| segment.origin);
            tally.add(origin, self.encoding.count(&calls.to_string()));
        }
        let mut parts: Vec<_> = tally.0.into_iter().map(|(origin, tokens)| self.writer(origin, tokens)).collect();
        parts.sort_by_key(|part| !part.inputs.is_empty());
        MessageTokens { role: traced.message.role, parts, overhead: MESSAGE_TOKENS }
    }

    /// Returns the origin of something whose inputs are not recorded: all of them, so that it is not the author's.
    fn all_inputs(&self) -> Origin {
        (0..self.inputs.inputs().len()).map(Origin::input).collect()
    }

    fn writer(&self, origin: Origin, tokens: usize) -> WriterTokens {
        let inputs = self.inputs.names(origin).map(str::to_owned).collect();
        WriterTokens { inputs, trusted: self.inputs.is_trusted(origin), tokens }
    }

    fn text(&self, text: &TextPart, segments: &[TextSegment], tally: &mut Tally) {
        for range in text_ranges(text) {
            let ends = self.token_ends(text, &range);
            let mut start = range.start;
            let mut first = segments.partition_point(|segment| segment.range.end <= start);
            for end in ends {
                while segments.get(first).is_some_and(|segment| segment.range.end <= start) {
                    first += 1;
                }
                tally.add(writer_of(&segments[first..], &(start..end)), 1);
                start = end;
            }
        }
        for anchor in &text.anchors {
            let at = segments.partition_point(|segment| segment.range.end <= anchor.range.start);
            tally.add(segments.get(at).map_or(self.all_inputs(), |segment| segment.origin), MEDIA_TOKENS);
        }
    }

    /// Returns where the tokens of a range of a text end, as positions in the text.
    fn token_ends(&self, text: &TextPart, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let start = range.start;
        let part = text.value.get(range.clone()).unwrap_or_default();
        self.encoding.token_ends(part).into_iter().map(move |end| start + end)
    }

    /// Returns the tokens of the beginning that no input touches.
    fn cacheable(&self, messages: &[Traced]) -> usize {
        let mut tokens = 0;
        for traced in messages {
            let [ContentPart::Text(text)] = &*traced.message.content else { break };
            let ends = self.encoding.token_ends(&text.value);
            tokens += ends.partition_point(|end| *end <= traced.stable);
            if traced.stable < text.value.len() {
                break;
            }
            tokens += MESSAGE_TOKENS;
        }
        tokens
    }

    fn function(&self, function: &Function) -> usize {
        let Function { name, description, parameters, .. } = function;
        let text = serde_json::json!({ "name": name, "description": description, "parameters": parameters });
        self.encoding.count(&text.to_string())
    }
}

/// Returns the function that a tool declares, as the model sees it: without the parameters that the application binds.
fn function(tool: &tympan_core::spec::Tool) -> Option<Function> {
    let ToolKind::Function { parameters, .. } = &tool.kind else { return None };
    let is_bound = |name: &str| tool.bindings.iter().any(|binding| binding.parameter == name);
    let parameters: Vec<_> = parameters.iter().filter(|parameter| !is_bound(&parameter.name)).cloned().collect();
    Some(Function::of_properties(&*tool.name, tool.description.clone(), &parameters))
}

/// Returns who wrote most of the bytes of a token. `segments` starts with the segment that contains its first byte.
fn writer_of(segments: &[TextSegment], token: &Range<usize>) -> Origin {
    let mut bytes = Tally::default();
    for segment in segments.iter().take_while(|segment| segment.range.start < token.end) {
        let (start, end) = (segment.range.start.max(token.start), segment.range.end.min(token.end));
        bytes.add(segment.origin, end.saturating_sub(start));
    }
    // Of several maxima, `max_by_key` would return the last.
    let most = bytes.0.iter().rev().max_by_key(|(origin, bytes)| (*bytes, !origin.is_author()));
    most.map_or(Origin::AUTHOR, |(origin, _)| *origin)
}

/// Numbers by origin, in the order in which the origins were added.
#[derive(Default)]
struct Tally(Vec<(Origin, usize)>);

impl Tally {
    fn add(&mut self, origin: Origin, number: usize) {
        match self.0.iter_mut().find(|(own, _)| *own == origin) {
            Some((_, sum)) => *sum += number,
            None => self.0.push((origin, number)),
        }
    }
}
