//! Tests that need more than this repository: third-party test vectors next to it, or servers that `make test` installs.
//! If something is missing, its tests are reported as ignored, with the reason. The standard harness cannot do that,
//! because it decides when the program is compiled.

mod agent;
mod conformance;
mod definition;
#[path = "../integration/faults/mod.rs"]
mod faults;
mod load;
#[path = "../integration/mcp_double/mod.rs"]
mod mcp_double;
mod mcp_everything;
mod openapi;
mod otel;
#[path = "../integration/services/mod.rs"]
mod services;
#[path = "../integration/shared/mod.rs"]
mod shared;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test and its name.
type Test = (&'static str, fn());

/// Tests that need the published test vectors.
const VECTORS: &[Test] = &[
    ("agent::agent_vectors_hold", agent::agent_vectors_hold),
    ("conformance::render_vectors_hold", conformance::render_vectors_hold),
    ("conformance::segment_vectors_hold", conformance::segment_vectors_hold),
    ("conformance::parse_vectors_hold", conformance::parse_vectors_hold),
    ("conformance::process_vectors_hold", conformance::process_vectors_hold),
    ("conformance::request_vectors_hold", conformance::request_vectors_hold),
    ("definition::definitions_hold", definition::definitions_hold),
    ("load::load_vectors_hold", load::load_vectors_hold),
];

/// Tests that need OpenTelemetry's collector.
const COLLECTOR: &[Test] = &[("otel::a_collector_understands_the_spans", otel::a_collector_understands_the_spans)];

/// Tests that need FastAPI.
const SERVICE: &[Test] = &[
    ("openapi::a_real_service_understands_the_requests", openapi::a_real_service_understands_the_requests),
    ("openapi::what_a_real_service_answers_reaches_the_model", openapi::what_a_real_service_answers_reaches_the_model),
    ("openapi::a_real_service_gets_its_key_in_every_way", openapi::a_real_service_gets_its_key_in_every_way),
    ("openapi::a_real_document_becomes_functions", openapi::a_real_document_becomes_functions),
];

/// Tests that need the reference MCP server.
const MCP: &[Test] = &[
    (
        "mcp_everything::a_real_server_that_is_a_program_is_understood",
        mcp_everything::a_real_server_that_is_a_program_is_understood,
    ),
    (
        "mcp_everything::a_real_server_at_an_address_is_understood",
        mcp_everything::a_real_server_at_an_address_is_understood,
    ),
    (
        "mcp_everything::a_real_server_that_is_started_anew_is_used_again",
        mcp_everything::a_real_server_that_is_started_anew_is_used_again,
    ),
];

/// Returns the tests, which are ignored unless what they need is `here`.
fn trials(tests: &'static [Test], here: bool, need: &str) -> Vec<Trial> {
    let trial = |&(name, test): &'static Test| {
        let trial = Trial::test(name, move || {
            test();
            Ok(())
        });
        let trial = trial.with_ignored_flag(!here);
        if here { trial } else { trial.with_kind(need) }
    };
    tests.iter().map(trial).collect()
}

fn main() -> ExitCode {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let mut all = trials(VECTORS, shared::conformance_dir().is_dir(), "needs ../shared/conformance");
    all.extend(trials(COLLECTOR, is_set("ROTEL"), "needs ROTEL, run make test"));
    all.extend(trials(SERVICE, is_set("OPENAPI_PYTHON"), "needs OPENAPI_PYTHON, run make test"));
    all.extend(trials(MCP, is_set("MCP_SERVER"), "needs MCP_SERVER, run make test"));
    libtest_mimic::run(&Arguments::from_args(), all).exit_code()
}
