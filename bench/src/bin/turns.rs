//! Prints the cost of the tool loop as JSON: the time per round compared with the same calls made by hand, the memory
//! usage over ten thousand rounds, and the time to cancel a turn, whatever it waits for.
//!
//! The model is a function that answers immediately, so that only the loop is measured.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::future::BoxFuture;
use peak_alloc::PeakAlloc;
use tympan::turn::{ContextBudget, TurnOptions};
use tympan::wire::response::{Answer, Output, Response, ToolCall};
use tympan::{Inputs, Message, Prompt, Role};
use tympan::{ModelCall, Provider, Reply, RunOptions, Runtime, TurnRun, TurnSettings, tool};
use tympan_bench::Result;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The rounds of a timed turn.
const ROUNDS: usize = 500;
/// The number of repetitions. The best one counts, because other programs run on the machine too.
const REPEATS: usize = 20;
/// The rounds of a turn whose memory usage is measured.
const MANY_ROUNDS: usize = 10_000;
/// The number of concurrent tool calls.
const AT_ONCE: usize = 200;
/// The maximum cost of a round in addition to the calls, in microseconds.
const MAX_MICROSECONDS: f64 = 50.0;
/// The maximum memory that ten thousand rounds may retain in addition to the conversation.
const MAX_KEPT: usize = 256 << 10;

/// The maximum time to cancel a turn.
const MAX_STOP_MILLISECONDS: f64 = 10.0;

/// A model that calls tools for this many rounds and then answers.
struct Model {
    rounds: usize,
    at_once: usize,
    asked: AtomicUsize,
}

impl Model {
    fn answer(&self) -> Response {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = match asked < self.rounds {
            true => {
                let call = |index| ToolCall {
                    id: format!("call_{asked}_{index}"),
                    name: "look".to_owned(),
                    arguments: r#"{"city":"Paris","days":3}"#.to_owned(),
                };
                Answer { tool_calls: (0..self.at_once).map(call).collect(), ..Answer::default() }
            }
            false => Answer { text: "Done.".to_owned(), ..Answer::default() },
        };
        Response { output: Output::Answer(answer), ..Response::default() }
    }
}

impl Provider for Model {
    fn call<'a>(&'a self, _: ModelCall<'a>) -> BoxFuture<'a, tympan::Result<Reply>> {
        Box::pin(std::future::ready(Ok(Reply::Whole(self.answer()))))
    }
}

fn main() -> Result<()> {
    let by_hand = best(by_hand)?;
    let by_turn = best(|| turn(ROUNDS, 1, TurnOptions::default()).map(drop))?;
    let overhead = (by_turn - by_hand) / ROUNDS as f64;
    let started = Instant::now();
    let run = turn(1, AT_ONCE, TurnOptions { parallel_tool_calls: true, ..TurnOptions::default() })?;
    let at_once = started.elapsed().as_secs_f64() * 1e3;
    if run.messages.iter().filter(|message| message.role == Role::Tool).count() != AT_ONCE {
        return Err("a result is missing".into());
    }
    drop(run);
    let (kept, budgeted) = (kept()?, growth_with_a_budget()?);
    let [model, tool, backoff] = [stopping(Waits::Model)?, stopping(Waits::Tool)?, stopping(Waits::Backoff)?];
    let slowest = model.max(tool).max(backoff);
    println!(
        "{{\"overhead_per_round_us\":{overhead:.1},\"by_hand_per_round_us\":{:.1},\"tools_at_once\":{AT_ONCE},\
         \"tools_at_once_ms\":{at_once:.1},\"rounds\":{MANY_ROUNDS},\"bytes_kept_besides_conversation\":{kept},\
         \"bytes_more_at_the_last_round_with_a_budget\":{budgeted},\
         \"stop_ms\":{{\"model\":{model:.2},\"tool\":{tool:.2},\"backoff\":{backoff:.2}}}}}",
        by_hand / ROUNDS as f64,
    );
    match () {
        () if overhead > MAX_MICROSECONDS => Err(format!("more than {MAX_MICROSECONDS} µs a round").into()),
        () if kept.max(budgeted) > MAX_KEPT => Err(format!("more than {MAX_KEPT} bytes are kept").into()),
        () if slowest > MAX_STOP_MILLISECONDS => Err(format!("more than {MAX_STOP_MILLISECONDS} ms to stop").into()),
        () => Ok(()),
    }
}

/// Returns the shortest time of some work, in microseconds.
fn best(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let started = Instant::now();
        work()?;
        best = best.min(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(best)
}

fn prompt() -> Result<Prompt> {
    let text = "---\nmodel: { provider: bench }\ntools:\n  - name: look\n    kind: function\n    parameters:\n      \
        - { name: city, kind: string, required: true }\n      - { name: days, kind: integer }\n---\nuser:\nGo.\n";
    Ok(tympan::load_str(text, "bench.prompty", ".")?)
}

fn runtime(rounds: usize, at_once: usize) -> Runtime {
    let runtime = Runtime::default();
    runtime.register_provider("bench", Arc::new(Model { rounds, at_once, asked: AtomicUsize::new(0) }));
    runtime.register_tool("look", tool::function_async(|_| async { Ok::<_, String>("clear, 21 degrees") }));
    runtime
}

/// Runs a turn of this many rounds, with this many concurrent tool calls.
fn turn(rounds: usize, at_once: usize, options: TurnOptions) -> Result<TurnRun> {
    let turn = TurnOptions { max_iterations: u32::MAX, ..options };
    let settings = TurnSettings { turn, ..TurnSettings::default() };
    Ok(runtime(rounds, at_once).turn(&prompt()?, &Inputs::new(), &settings)?)
}

/// Makes the same calls without the loop: a model, a tool on the driver, and a list of messages.
fn by_hand() -> Result<()> {
    let (runtime, prompt, options) = (runtime(ROUNDS, 1), prompt()?, RunOptions::default());
    let provider = runtime.get_provider("bench").ok_or("no provider")?;
    let mut messages = runtime.prepare(&prompt, &Inputs::new())?;
    tympan::net::io::wait(async {
        loop {
            let call = ModelCall { prompt: &prompt, messages: &messages, options: &options, stream: false };
            let Reply::Whole(response) = provider.call(call).await? else { return Err("a stream".into()) };
            let Output::Answer(answer) = response.output else { return Err("no answer".into()) };
            if answer.tool_calls.is_empty() {
                return Ok(());
            }
            messages.push(Message::text(Role::Assistant, answer.text));
            for call in answer.tool_calls {
                let _arguments: serde_json::Value = serde_json::from_str(&call.arguments)?;
                let result = tympan::net::io::spawn(async { Ok("clear, 21 degrees".to_owned()) }).await?;
                messages.push(Message::text(Role::Tool, result));
            }
        }
    })
}

/// Returns the bytes that ten thousand rounds retain in addition to the conversation.
fn kept() -> Result<usize> {
    drop(turn(10, 1, TurnOptions::default())?);
    let before = HEAP.current_usage();
    let TurnRun { messages, .. } = turn(MANY_ROUNDS, 1, TurnOptions::default())?;
    let after = HEAP.current_usage();
    let again = messages.clone();
    let conversation = HEAP.current_usage() - after;
    drop((messages, again));
    Ok((after - before).saturating_sub(conversation))
}

/// Returns the growth of memory between the thousandth and the ten thousandth round, with a limited conversation.
fn growth_with_a_budget() -> Result<usize> {
    let runtime = runtime(MANY_ROUNDS, 1);
    let samples = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
    let seen = samples.clone();
    let look = tool::function_async(move |_| {
        let round = seen.0.fetch_add(1, Ordering::Relaxed) + 1;
        match round {
            1000 => seen.1.store(HEAP.current_usage(), Ordering::Relaxed),
            MANY_ROUNDS => seen.2.store(HEAP.current_usage(), Ordering::Relaxed),
            _ => {}
        }
        std::future::ready(Ok::<_, String>("clear, 21 degrees"))
    });
    runtime.register_tool("look", look);
    let context_budget = Some(ContextBudget::Chars(20_000));
    let turn = TurnOptions { max_iterations: u32::MAX, context_budget, ..TurnOptions::default() };
    runtime.turn(&prompt()?, &Inputs::new(), &TurnSettings { turn, ..TurnSettings::default() })?;
    Ok(samples.2.load(Ordering::Relaxed).saturating_sub(samples.1.load(Ordering::Relaxed)))
}

/// What a turn waits for when it is cancelled.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    Model,
    Tool,
    Backoff,
}

/// A model that never answers, calls a tool that never ends, or always fails. It signals when it is called.
struct Slow(Waits, Mutex<Sender<()>>);

impl Slow {
    fn tell(&self) {
        // Nobody listens after the end of the turn.
        let _ = self.1.lock().map(|told| told.send(()));
    }
}

impl Provider for Slow {
    fn call<'a>(&'a self, _: ModelCall<'a>) -> BoxFuture<'a, tympan::Result<Reply>> {
        match self.0 {
            Waits::Model => {
                self.tell();
                Box::pin(std::future::pending())
            }
            Waits::Tool => {
                let model = Model { rounds: 1, at_once: 1, asked: AtomicUsize::new(0) };
                Box::pin(async move { Ok(Reply::Whole(model.answer())) })
            }
            Waits::Backoff => {
                self.tell();
                let error = tympan::Error::new(tympan::Kind::ProviderUnavailable, "not now");
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}

/// Returns the longest time from a cancellation to the end of a turn, in milliseconds.
fn stopping(waits: Waits) -> Result<f64> {
    let mut slowest: f64 = 0.0;
    for _ in 0..REPEATS {
        let (told, waiting) = channel();
        let slow = Arc::new(Slow(waits, Mutex::new(told)));
        let runtime = Runtime::default();
        runtime.register_provider("bench", slow.clone());
        let look = tool::function_async(move |_| {
            slow.tell();
            std::future::pending::<std::result::Result<String, String>>()
        });
        runtime.register_tool("look", look);
        let settings = TurnSettings::default();
        let cancel = settings.cancel.clone();
        let stopper = std::thread::spawn(move || {
            waiting.recv().ok()?;
            let stopped = Instant::now();
            cancel.cancel();
            Some(stopped)
        });
        let error = runtime.turn(&prompt()?, &Inputs::new(), &settings).err().ok_or("it was not stopped")?;
        let ended = Instant::now();
        if error.kind() != tympan::Kind::Cancelled {
            return Err(error.into());
        }
        let stopped = stopper.join().ok().flatten().ok_or("nobody stopped it")?;
        slowest = slowest.max((ended - stopped).as_secs_f64() * 1e3);
    }
    Ok(slowest)
}
