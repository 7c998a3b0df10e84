//! Changes of files that somebody else made.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::response::Response;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, recommended_watcher};
use serde_json::json;
use tokio::sync::{broadcast, mpsc};
use tympan_runtime::file::walk::is_skipped;

use crate::failure::{Answer, Failure};
use crate::project::{FileKind, Project, RelativePath};
use crate::server::App;
use crate::stream::Events;

/// The number of changes that wait for a page. A page that misses some is told to look at everything again.
const QUEUED: usize = 256;

/// The maximum number of files whose last hash is remembered.
const MAX_KNOWN: usize = 10_000;

/// A change: the path, and the new hash if the file exists.
type Change = (RelativePath, Option<String>);

/// The hashes that pages already know.
type Known = Arc<Mutex<HashMap<RelativePath, String>>>;

/// Watches the files of a project.
pub(crate) struct Changes {
    sender: broadcast::Sender<Change>,
    known: Known,
    /// Ends the watching when it is dropped. `None` if the system cannot watch the directory.
    _watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Starts to watch. Must be called inside of a tokio runtime.
    pub(crate) fn watch(project: Arc<Project>) -> Self {
        let (sender, _) = broadcast::channel(QUEUED);
        let known = Known::default();
        let (paths, changed) = mpsc::channel::<PathBuf>(QUEUED);
        let watched = project.root().to_owned();
        let watcher = recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            if !matches!(event.kind, EventKind::Access(_)) {
                // If nobody reads them, the oldest changes are enough: the rest is read with them.
                event.paths.into_iter().for_each(|path| drop(paths.try_send(path)));
            }
        });
        let watcher = watcher.and_then(|mut watcher| {
            watcher.watch(&watched, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        let changes = Self { sender: sender.clone(), known: known.clone(), _watcher: watcher.ok() };
        tokio::spawn(report(project, changed, sender, known));
        changes
    }

    /// Records that a page is about to write a file, so that this is not a change of somebody else.
    pub(crate) fn expect(&self, path: &RelativePath, hash: &str) {
        remember(&self.known, path, Some(hash));
    }

    /// Records that a page did not write a file after all.
    pub(crate) fn forget(&self, path: &RelativePath) {
        remember(&self.known, path, None);
    }
}

/// Reads the files that have changed, and reports them.
async fn report(
    project: Arc<Project>,
    mut changed: mpsc::Receiver<PathBuf>,
    sender: broadcast::Sender<Change>,
    known: Known,
) {
    while let Some(path) = changed.recv().await {
        let Some(path) = relative(project.root(), &path) else { continue };
        let (project, known, target) = (project.clone(), known.clone(), path.clone());
        let read = move || {
            let hash = project.read(&target).ok().map(|(_, text)| text.hash);
            remember(&known, &target, hash.as_deref()).then_some(hash)
        };
        if let Ok(Some(hash)) = tokio::task::spawn_blocking(read).await {
            // Without pages, nobody has to know.
            let _ = sender.send((path, hash));
        }
    }
}

/// Returns the path of a file that the studio may show.
fn relative(root: &Path, path: &Path) -> Option<RelativePath> {
    let path = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
    let path = RelativePath::parse(&path).filter(FileKind::may_be)?;
    let is_generated = path.parents().any(is_skipped);
    (!is_generated).then_some(path)
}

/// Remembers the hash of a file, and returns whether it is new.
fn remember(known: &Known, path: &RelativePath, hash: Option<&str>) -> bool {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    match hash {
        None => {
            known.remove(path);
            true
        }
        Some(hash) if known.get(path).is_some_and(|known| known == hash) => false,
        Some(hash) => {
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(path.clone(), hash.to_owned());
            true
        }
    }
}

/// Answers with a stream of changes.
pub(crate) async fn events(State(app): State<Arc<App>>) -> Answer<Response> {
    let mut changes = app.changes.sender.subscribe();
    if app.changes.sender.receiver_count() > app.limits().connections {
        return Err(Failure::busy("too many pages watch the files"));
    }
    let (events, response) = Events::new(app.limits().queued_events);
    tokio::spawn(async move {
        if events.send("ready", json!({})).is_err() {
            return;
        }
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = events.closed() => return,
            };
            let sent = match change {
                Ok((path, hash)) => {
                    events.send_when_read("changed", json!({"path": path.as_str(), "hash": hash})).await
                }
                Err(broadcast::error::RecvError::Lagged(_)) => events.send_when_read("missed", json!({})).await,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            if sent.is_err() {
                return;
            }
        }
    });
    Ok(response)
}
