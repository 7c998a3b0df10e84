//! The server: its state, its routes, and its life.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use axum::routing::{any, get, post};
use axum::{Router, middleware};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::api::run::Runs;
use crate::api::watch::Changes;
use crate::failure::Failure;
use crate::options::{Limits, StudioOptions};
use crate::project::Project;
use crate::session::Session;
use crate::{access, api, assets, connection};

/// The state that all requests share.
pub(crate) struct App {
    pub(crate) options: StudioOptions,
    pub(crate) port: u16,
    pub(crate) session: Session,
    pub(crate) project: Arc<Project>,
    pub(crate) runs: Runs,
    /// The places for runs and tests.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) lsp_places: Arc<Semaphore>,
    pub(crate) changes: Changes,
}

impl App {
    pub(crate) fn limits(&self) -> &Limits {
        &self.options.limits
    }
}

/// A server that is ready to answer.
pub struct Studio {
    app: Arc<App>,
    listener: TcpListener,
}

impl std::fmt::Debug for Studio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Studio").field("port", &self.app.port).finish_non_exhaustive()
    }
}

impl Studio {
    /// Opens the directory, and listens on the loopback address.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read, or if the port is taken.
    pub async fn bind(options: StudioOptions) -> io::Result<Self> {
        let project = Arc::new(Project::open(&options.root)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
        let port = listener.local_addr()?.port();
        let changes = Changes::watch(project.clone());
        let app = App {
            port,
            session: Session::new(port)?,
            project,
            runs: Runs::default(),
            places: Arc::new(Semaphore::new(options.limits.runs)),
            lsp_places: Arc::new(Semaphore::new(options.limits.lsp_sessions)),
            changes,
            options,
        };
        Ok(Self { app: Arc::new(app), listener })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.app.port).into()
    }

    /// Returns the address to open in a browser, with the token. The token works once.
    pub fn url(&self) -> String {
        let token = self.app.session.token().unwrap_or_default();
        format!("http://127.0.0.1:{}/?token={token}", self.app.port)
    }

    /// Answers requests until `stop` is ready. Runs that are not finished are stopped.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let router = router(self.app.clone());
        let limits = *self.app.limits();
        let accepting = connection::accept(self.listener, router, limits, stopped);
        tokio::pin!(accepting);
        tokio::select! {
            () = &mut accepting => {}
            () = stop => {}
        }
        stopping.send_replace(true);
        self.app.runs.stop_all();
    }
}

/// Returns the routes. Every request is checked before it gets to one of them.
fn router(app: Arc<App>) -> Router {
    let not_found = || async { Failure::not_found("there is no such address") };
    Router::new()
        .route("/", get(index))
        .route("/assets/{*path}", get(assets::asset))
        .route("/api/project", get(api::files::project))
        .route("/api/file", get(api::files::read).put(api::files::write))
        .route("/api/samples", get(api::files::samples))
        .route("/api/watch", get(api::watch::events))
        .route("/api/lsp", any(api::lsp::connect))
        .route("/api/run", post(api::run::start))
        .route("/api/approve", post(api::run::approve))
        .route("/api/stop", post(api::run::stop))
        .route("/api/count", post(api::count::count))
        .route("/api/test", post(api::test::start))
        .route("/api/diff", get(api::diff::revision))
        .route("/api/trace", get(api::trace::trace))
        .route("/api/journal", get(api::journal::journal))
        .fallback(not_found)
        .method_not_allowed_fallback(not_found)
        .layer(middleware::from_fn_with_state(app.clone(), access::check))
        .with_state(app)
}

/// Answers with the page.
async fn index(State(app): State<Arc<App>>) -> Html<String> {
    let (title, read_only) = (app.project.name(), app.options.read_only);
    Html(assets::index(&json!({"mode": "studio", "title": title, "read_only": read_only})))
}
