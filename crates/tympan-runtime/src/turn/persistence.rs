//! Turns with a journal: persisting and restoring them.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use serde_json::Value as Json;
use tympan_core::spec::Secret;
use tympan_core::turn::{InputEvent, Next, ToolRun, Turn, TurnEvent};
use tympan_core::{Error, Inputs, Kind, Prompt, Redactor, Result};

use crate::file::time::UtcTime;
use crate::host::runtime::{Runtime, system_entropy};
use crate::model::credentials::Purpose;
use crate::model::run::RunOptions;
use crate::model::token::Tokens;
use crate::net::io;
use crate::turn::journal::{
    Fingerprint, Header, Journal, JournalWriter, Record, StartedTool, mismatch, parsed, without_header,
};
use crate::turn::settings::TurnSettings;

/// The persistence of a turn. Without a journal, nothing is persisted.
pub(super) struct Persistence {
    /// The turn's unique ID.
    pub(super) id: String,
    writer: Option<Writer>,
    /// Records that are not on disk yet.
    pending: Vec<Vec<u8>>,
    /// The tools that had started before the crash. If one of them still has to run, its outcome is unknown.
    begun: HashSet<(u32, usize)>,
    /// The final event of a turn that was already over, for the current listener.
    end: Option<TurnEvent>,
    /// How long the turn had been running before the crash.
    before: Duration,
    since: Instant,
    /// Removes secrets from records, because a provider may echo the key that it was sent.
    redactor: RecordRedactor,
}

/// Removes secrets from the records of a journal: those that are known from the start, and access tokens as they are
/// issued.
pub(super) struct RecordRedactor {
    redactor: Redactor,
    tokens: Tokens,
    /// The number of issued tokens that the redactor knows.
    seen: usize,
}

impl RecordRedactor {
    fn json(&mut self, record: Json) -> Json {
        let (new, count) = self.tokens.issued_since(self.seen);
        self.redactor.register_all(new.iter().filter(|token| is_long(token)));
        self.seen = count;
        self.redactor.known_json(record)
    }
}

fn is_long(secret: &Secret) -> bool {
    secret.expose().trim().len() >= MIN_SECRET_BYTES
}

/// The minimum size, in bytes, of secrets that are removed from records. Keys are longer; ordinary words may be
/// shorter.
const MIN_SECRET_BYTES: usize = 8;

/// Creates a redactor for everything that must not appear in a journal.
pub(super) fn redactor(runtime: &Runtime, prompt: &Prompt, run: &RunOptions) -> RecordRedactor {
    let secrets = match runtime.credentials(prompt, run, Purpose::Send) {
        Ok(credentials) => credentials.secrets(prompt, run, run.base_url.as_deref().unwrap_or_default()),
        // Any problem with the credentials is reported when the model is called, if they are needed at all.
        Err(_) => prompt.secrets().into_iter().chain(run.api_key.clone()).collect(),
    };
    let mut redactor = Redactor::new(false);
    redactor.register_all(secrets.iter().filter(|secret| is_long(secret)));
    RecordRedactor { redactor, tokens: runtime.tokens().clone(), seen: 0 }
}

/// Creates a redactor for a turn without a journal, which records nothing.
pub(super) fn no_redactor(runtime: &Runtime) -> RecordRedactor {
    RecordRedactor { redactor: Redactor::default(), tokens: runtime.tokens().clone(), seen: 0 }
}

/// The writer of a journal. The mutex is never contended. It makes any writer `Sync`, so that a turn can move between
/// threads even while part of it is borrowed.
type Writer = Mutex<Box<dyn JournalWriter>>;

/// An open journal from which to restore a turn.
pub(super) struct OpenJournal {
    pub(super) header: Header,
    records: Vec<Record>,
    pub(super) resumed: Resumed,
    writer: Box<dyn JournalWriter>,
}

/// What the journal of a resumed turn contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumed {
    /// The number of records.
    pub records: usize,
    /// The size of an incomplete record at the end, in bytes. It has been removed; nothing had acted on it yet.
    pub torn_bytes: u64,
}

impl OpenJournal {
    /// Opens a journal for exclusive use.
    pub(super) async fn open(journal: &Journal) -> Result<Self> {
        let store = journal.store();
        let (stored, writer) = io::blocking(move || store.open()).await??;
        let mut records = stored.records.iter().enumerate();
        let (_, first) = records.next().ok_or_else(without_header)?;
        let header = parsed(first, 0)?;
        let records = records.map(|(number, record)| parsed(record, number)).collect::<Result<_>>()?;
        let resumed = Resumed { records: stored.records.len(), torn_bytes: stored.torn_bytes };
        Ok(Self { header, records, resumed, writer })
    }
}

impl Persistence {
    fn new(id: String, writer: Option<Box<dyn JournalWriter>>, redactor: RecordRedactor) -> Self {
        let writer = writer.map(Mutex::new);
        let (pending, begun) = (Vec::new(), HashSet::new());
        Self { id, writer, pending, begun, end: None, before: Duration::ZERO, since: Instant::now(), redactor }
    }

    /// Starts a turn, and its journal if there is one.
    pub(super) async fn begin(
        turn: &mut Turn,
        prompt: &Prompt,
        inputs: &Inputs,
        fingerprint: Option<Fingerprint>,
        settings: &TurnSettings,
        redactor: RecordRedactor,
    ) -> Result<Self> {
        let id = format!("{:016x}{:016x}", system_entropy()?, system_entropy()?);
        let Some((journal, fingerprint)) = settings.journal.as_ref().zip(fingerprint) else {
            return Ok(Self::new(id, None, redactor));
        };
        let mut header = Header {
            turn: id.clone(),
            began: UtcTime::from(SystemTime::now()).to_string(),
            prompt: prompt.source().name().to_owned(),
            inputs: inputs.clone(),
            provider: None,
            model: None,
            api_type: None,
            base_url: None,
            steering: settings.steering.drain(),
            fingerprint,
            host: journal.host().clone(),
        };
        header.set_run(&settings.run);
        let (first, store) = (encoded(&header)?, journal.store());
        let writer = io::blocking(move || store.create(&first)).await??;
        start(turn, header.steering)?;
        Ok(Self::new(id, Some(writer), redactor))
    }

    /// Restores a turn to its previous state.
    pub(super) fn restore(
        turn: &mut Turn,
        journal: OpenJournal,
        fingerprint: &Fingerprint,
        redactor: RecordRedactor,
    ) -> Result<Self> {
        let OpenJournal { header, records, writer, .. } = journal;
        header.fingerprint.check(fingerprint)?;
        let mut persistence = Self::new(header.turn, Some(writer), redactor);
        persistence.before = records.iter().filter_map(Record::time).max().unwrap_or_default();
        start(turn, header.steering)?;
        let (records, was_failing) = without_failures(records);
        let mut is_legacy = header.fingerprint.is_legacy();
        if is_legacy {
            turn.begin_legacy();
        }
        for record in records {
            if matches!(record, Record::PolicyApplied) {
                persistence.end_legacy(turn);
                is_legacy = false;
            }
            persistence.replay(turn, record)?;
        }
        if is_legacy {
            persistence.end_legacy(turn);
            persistence.add(&Record::<InputEvent>::PolicyApplied)?;
        }
        if was_failing {
            persistence.add(&Record::<InputEvent>::CalledAgain)?;
        }
        // Earlier listeners have already received these events. A new listener only needs the final one.
        let is_end = |event: &TurnEvent| matches!(event, TurnEvent::Done { .. } | TurnEvent::Cancelled);
        persistence.end = turn.take_events().pop().filter(is_end);
        Ok(persistence)
    }

    /// Applies the policy to what a turn does from now on.
    fn end_legacy(&self, turn: &mut Turn) {
        let round = turn.iterations();
        turn.end_legacy(|index| self.begun.contains(&(round, index)));
    }

    fn replay(&mut self, turn: &mut Turn, record: Record) -> Result<()> {
        match record {
            Record::Event { event, .. } => turn.feed(event).map_err(|error| match error.kind() {
                Kind::NotAsked => {
                    mismatch(format_args!("the turn no longer takes the recorded steps: {}", error.message()))
                }
                _ => error,
            }),
            Record::Started { tools } => {
                let Next::Run(runs) = turn.next() else {
                    return Err(mismatch(
                        "the turn no longer takes the recorded steps: it does not run a tool where \
                        one was started",
                    ));
                };
                let is_running = |tool: &StartedTool| {
                    runs.iter().any(|run| (run.round, run.index, &run.name) == (tool.round, tool.index, &tool.name))
                };
                match tools.iter().all(is_running) {
                    true => self.begun.extend(tools.into_iter().map(|tool| (tool.round, tool.index))),
                    false => {
                        return Err(mismatch(
                            "the turn no longer takes the recorded steps: another tool was \
                        started",
                        ));
                    }
                }
                Ok(())
            }
            Record::CalledAgain | Record::PolicyApplied => Ok(()),
        }
    }

    /// Returns how long the turn has been running, not counting the time between the crash and the resumption.
    pub(super) fn elapsed(&self) -> Duration {
        self.before.saturating_add(self.since.elapsed())
    }

    /// Returns the idempotency key of a tool run, which is the same every time.
    pub(super) fn key(&self, run: &ToolRun) -> String {
        format!("{}-{}-{}", self.id, run.round, run.index)
    }

    /// Returns the final event of a turn that was already over when it was resumed. Later calls return `None`.
    pub(super) fn take_end(&mut self) -> Option<TurnEvent> {
        self.end.take()
    }

    /// Returns whether a tool had started before the crash.
    pub(super) fn is_in_flight(&self, run: &ToolRun) -> bool {
        self.begun.contains(&(run.round, run.index))
    }

    /// Adds a record of the event that the turn is about to receive.
    pub(super) fn record(&mut self, event: &InputEvent) -> Result<()> {
        let at = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.add(&Record::Event { at, event })
    }

    /// Adds a record of the tools that are about to run, except those that had already started.
    pub(super) fn start(&mut self, runs: &[ToolRun]) -> Result<()> {
        let started = |run: &ToolRun| {
            let (round, index, name) = (run.round, run.index, run.name.clone());
            StartedTool { round, index, name, key: self.key(run) }
        };
        let tools: Vec<_> = runs.iter().filter(|run| !self.is_in_flight(run)).map(started).collect();
        if tools.is_empty() { Ok(()) } else { self.add(&Record::<InputEvent>::Started { tools }) }
    }

    fn add<E: Serialize>(&mut self, record: &Record<E>) -> Result<()> {
        if self.writer.is_some() {
            let record = serde_json::to_value(record).map_err(unwritable)?;
            self.pending.push(encoded(&self.redactor.json(record))?);
        }
        Ok(())
    }

    /// Waits until all added records are on disk.
    pub(super) async fn commit(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (records, writer) = (std::mem::take(&mut self.pending), self.writer.take());
        let Some(mut writer) = writer else { return Ok(()) };
        let (writer, committed) = io::blocking(move || {
            let committed = writer.get_mut().unwrap_or_else(PoisonError::into_inner).commit(&records);
            (writer, committed)
        })
        .await?;
        self.writer = Some(writer);
        committed
    }
}

/// Starts the first round. Later steering messages then always belong to the next round, whenever the turn is polled.
fn start(turn: &mut Turn, steering: Vec<String>) -> Result<()> {
    steering.into_iter().try_for_each(|text| turn.steer(text))?;
    turn.next();
    Ok(())
}

fn is_failure(record: &Record) -> bool {
    matches!(record, Record::Event { event: InputEvent::Failed { .. } | InputEvent::Waited, .. })
}

/// Removes model failures that the turn had not recovered from, so that the call is retried with all its attempts. Also
/// returns whether there were such failures at the end.
fn without_failures(records: Vec<Record>) -> (Vec<Record>, bool) {
    let mut counted: Vec<Record> = Vec::with_capacity(records.len());
    for record in records {
        match record {
            Record::CalledAgain => while counted.pop_if(|last| is_failure(last)).is_some() {},
            record => counted.push(record),
        }
    }
    let all = counted.len();
    while counted.pop_if(|last| is_failure(last)).is_some() {}
    let was_failing = counted.len() < all;
    (counted, was_failing)
}

fn encoded(record: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(record).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(Kind::InvalidJournal, error)
}
