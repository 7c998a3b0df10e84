//! Connections: accepted one by one, and not more than allowed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::options::Limits;

/// The pause after an error of the listener, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// The maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// Answers connections until `stopped` says so.
pub(crate) async fn accept(listener: TcpListener, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (router, mut stopped) = (router.clone(), stopped.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = answer(stream, router, limits) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            drop(place);
        });
    }
}

/// Answers the requests of a connection.
async fn answer(stream: TcpStream, router: Router, limits: Limits) -> Result<(), hyper::Error> {
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.request_time).max_buf_size(MAX_HEAD);
    let service = TowerToHyperService::new(router);
    builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await
}
