//! Tests of the runtime through its public interface, in one program: linking many takes longer than running them.

mod advisory;
mod attacks;
mod attacks_bounds;
mod cassette;
mod defer_env;
mod definition;
mod directive;
mod echo;
mod endpoints;
mod faults;
mod flow;
mod host_data;
mod http;
mod http_attacks;
mod journal;
#[cfg(unix)]
mod journal_kill;
mod journal_secrets;
mod journal_store;
mod journals;
#[cfg(unix)]
mod keys;
mod load;
mod load_attacks;
#[cfg(unix)]
mod load_files;
mod loader;
mod mcp;
mod mcp_double;
mod mcp_flow;
mod mcp_http;
mod openapi_cases;
mod openapi_faults;
#[cfg(feature = "otel")]
mod otel;
mod parity;
mod pipeline;
mod policy;
#[cfg(unix)]
mod programs;
mod redaction;
mod run;
mod run_keys;
mod run_stream;
mod run_traces;
mod runs;
#[cfg(unix)]
mod safe_files;
mod services;
mod shared;
mod spending;
mod surface;
mod tokens;
mod tool_policy;
mod tools;
mod trace;
mod turn;
mod turn_attacks;
mod turn_budget;
mod turn_context;
mod turn_socket;
