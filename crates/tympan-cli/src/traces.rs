//! Trace backends of a run.

use std::path::Path;
use std::time::Duration;

use tympan::Result;
use tympan::trace::{ConsoleBackend, TracyBackend};
#[cfg(feature = "otel")]
use tympan::trace::{OtelBackend, OtelOptions};
use tympan::{Runtime, Tracer};

/// The maximum time that a command waits at exit for the backends.
const PATIENCE: Duration = Duration::from_secs(5);

/// The traces of a run.
pub(crate) struct Traces(Tracer);

impl Traces {
    /// Waits until all traces are written, for a limited time.
    pub(crate) fn flush(&self) {
        self.0.flush(PATIENCE);
    }
}

/// Adds the backends that the command line and the environment request.
///
/// # Errors
/// Returns an error if the thread of a backend cannot be created.
pub(crate) fn start(runtime: &Runtime, directory: Option<&Path>) -> Result<Traces> {
    let tracer = runtime.tracer();
    match directory {
        Some(path) if path.as_os_str() == "-" => tracer.add("console", ConsoleBackend::new(std::io::stderr()))?,
        Some(path) => tracer.add("tracy", TracyBackend::new(path))?,
        None => {}
    }
    #[cfg(feature = "otel")]
    if let Some(endpoint) = otlp_endpoint() {
        tracer.add("otel", OtelBackend::new(OtelOptions::new(endpoint)))?;
    }
    Ok(Traces(tracer.clone()))
}

#[cfg(feature = "otel")]
/// Returns the address of the collector, from the standard OpenTelemetry environment variables.
fn otlp_endpoint() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return None;
    }
    set("OTEL_EXPORTER_OTLP_ENDPOINT")
}
