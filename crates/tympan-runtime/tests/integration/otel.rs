//! Spans of a run whose collector does not answer.

use std::net::TcpListener;
use std::time::Duration;

use tympan_runtime::trace::{OtelBackend, OtelOptions, Tracer};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn a_collector_that_is_not_there_is_no_error_of_the_run() {
    for endpoint in [format!("http://{}", free_port()), format!("https://{}", free_port()), "nonsense".to_owned()] {
        let tracer = Tracer::default();
        let options = OtelOptions { timeout: Duration::from_millis(200), ..OtelOptions::new(endpoint.clone()) };
        tracer.add("otel", OtelBackend::new(options)).expect("there are threads");
        drop(tracer.start("run"));
        assert!(tracer.flush(LONG));
        let status = &tracer.status()[0];
        assert_eq!(status.failed, 1, "{endpoint}");
        assert_ne!(status.last_error.as_deref(), Some("the backend panicked"), "{endpoint}");
    }
}

/// The client blocks, which must not affect async code.
#[test]
fn a_backend_can_be_added_where_async_code_runs() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let tracer = Tracer::default();
        let options =
            OtelOptions { timeout: Duration::from_millis(200), ..OtelOptions::new(format!("http://{}", free_port())) };
        tracer.add("otel", OtelBackend::new(options)).expect("there are threads");
        drop(tracer.start("run"));
        assert!(tracer.flush(LONG));
        assert_ne!(tracer.status()[0].last_error.as_deref(), Some("the backend panicked"));
    });
}
