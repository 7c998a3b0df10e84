//! Tympan for Python: the native module `tympan._native`.
//!
//! This module only converts values and calls the engine. All decisions are made in `tympan` and `tympan-runtime`.
#![warn(missing_docs)]

use pyo3::prelude::*;

mod arrow;
mod check;
mod composition;
mod errors;
mod events;
mod hooks;
mod inputs;
mod loader;
mod message;
mod pickle;
mod prompt;
mod registry;
mod rendered;
mod results;
mod runtime;
mod stream;
mod test_file;
mod threads;
mod tool;
mod validator;
mod values;
mod work;

/// Converting values allocates many small objects. With the system's allocator, that takes as long as everything else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native part of the package `tympan`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<prompt::Prompt>()?;
    module.add_class::<prompt::Property>()?;
    module.add_class::<prompt::Finding>()?;
    module.add_class::<rendered::RenderedCore>()?;
    module.add_class::<rendered::Segment>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<message::Part>()?;
    module.add_class::<arrow::ArrowStream>()?;
    module.add_class::<composition::Composition>()?;
    module.add_class::<loader::PromptLoader>()?;
    module.add_class::<runtime::Runtime>()?;
    module.add_class::<registry::ModelCall>()?;
    module.add_class::<results::ModelInfo>()?;
    module.add_class::<results::Run>()?;
    module.add_class::<results::TurnRun>()?;
    module.add_class::<results::Usage>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<stream::Delta>()?;
    module.add_class::<events::Event>()?;
    module.add_class::<hooks::CancelToken>()?;
    module.add_class::<hooks::Steering>()?;
    module.add_class::<test_file::TestFile>()?;
    module.add_function(wrap_pyfunction!(check::check_file, module)?)?;
    module.add_function(wrap_pyfunction!(check::check_str, module)?)?;
    module.add_function(wrap_pyfunction!(tool::bind_tools, module)?)?;
    module.add_function(wrap_pyfunction!(values::to_json, module)?)?;
    module.add_function(wrap_pyfunction!(rendered::parse_text, module)?)?;
    module.add_function(wrap_pyfunction!(rendered::pre_render, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::_set_default, module)?)?;
    threads::register(module)
}
