//! Where traces of a run go.

use std::path::Path;
use std::time::Duration;

use tympan::Result;
use tympan::trace::{ConsoleBackend, OtelBackend, OtelOptions, TracyBackend};
use tympan::{Runtime, Tracer};

/// How long a command waits for the backends at its end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The traces of a run.
pub(crate) struct Traces(Tracer);

impl Traces {
    /// Waits until all has been written, within reason.
    pub(crate) fn flush(&self) {
        self.0.flush(PATIENCE);
    }
}

/// Adds the backends that the command line and the environment ask for.
///
/// # Errors
/// The operating system has no thread for one of them.
pub(crate) fn start(runtime: &Runtime, directory: Option<&Path>) -> Result<Traces> {
    let tracer = runtime.tracer();
    match directory {
        Some(path) if path.as_os_str() == "-" => tracer.add("console", ConsoleBackend::new(std::io::stderr()))?,
        Some(path) => tracer.add("tracy", TracyBackend::new(path))?,
        None => {}
    }
    if let Some(endpoint) = otlp_endpoint() {
        tracer.add("otel", OtelBackend::new(OtelOptions::new(endpoint)))?;
    }
    Ok(Traces(tracer.clone()))
}

/// Where a collector listens, as OpenTelemetry's own tools are told.
fn otlp_endpoint() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return None;
    }
    set("OTEL_EXPORTER_OTLP_ENDPOINT")
}
