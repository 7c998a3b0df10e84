//! The workloads: the same work in each library's dialect.

use crate::Result;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The directory of the workloads: `bench/data`, or the value of `TYMPAN_WORKLOADS` at build time.
pub const DIR: &str = env!("TYMPAN_BENCH_DATA");

/// The names of the workloads on disk.
pub const NAMES: [&str; 3] = ["w1", "w2", "w3"];

/// The name of the workload that [`large`] creates.
pub const LARGE: &str = "1 MiB";

/// A workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name, such as `w1`.
    pub name: String,
    /// A prompt file for Prompty. A history is a `thread`.
    pub prompty: String,
    /// The bare template. A history is a loop.
    pub jinja: String,
    /// A prompt definition for prompting-press.
    pub press: String,
    /// The inputs.
    pub inputs: Map<String, Value>,
    /// The expected text.
    pub expected: String,
}

impl Workload {
    /// Reads a workload from [`DIR`].
    pub fn read(name: &str) -> Result<Workload> {
        let read = |extension: &str| {
            let path = Path::new(DIR).join(format!("{name}.{extension}"));
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        Ok(Workload {
            name: name.to_owned(),
            prompty: read("prompty")?,
            jinja: read("jinja")?,
            press: read("press.yaml")?,
            inputs: serde_json::from_str(&read("json")?)?,
            expected: read("expected.txt")?,
        })
    }

    /// Returns the workload of this name, from disk or generated.
    pub fn named(name: &str) -> Result<Workload> {
        if name == LARGE { Ok(large()) } else { Workload::read(name) }
    }

    /// Returns a `.prompty` file with the *bare* template, for comparisons with template engines. It loops over the
    /// history like the engines' templates, instead of inserting it as a thread.
    pub fn bare_prompty(&self) -> String {
        let mut file = format!("---\nname: {}\nmodel: gpt-4o\ninputs:\n", self.name.replace(' ', "_"));
        for (name, value) in &self.inputs {
            let kind = kind_of(value);
            // Writing to a string cannot fail.
            let _ = writeln!(file, "  - name: {name}\n    kind: {kind}");
        }
        file.push_str("---\n");
        file.push_str(&self.jinja);
        file
    }

    /// Returns the prompt definition with all inputs untrusted, so that the guard has something to do.
    pub fn untrusted_press(&self) -> String {
        self.press.replace("trusted: true", "trusted: false")
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) | Value::Null => "string",
    }
}

/// Reads all workloads on disk.
pub fn workloads() -> Result<Vec<Workload>> {
    NAMES.iter().map(|name| Workload::read(name)).collect()
}

/// Creates a workload with a value of 1 MiB in a short template, which mostly measures copying.
pub fn large() -> Workload {
    let line = "The tide turned at 05:40, and the ferry to Ærø left with “three” crates of café cups.\n";
    let mut value = String::with_capacity(1 << 20);
    while value.len() + line.len() < 1 << 20 {
        value.push_str(line);
    }
    value.extend(std::iter::repeat_n('.', (1 << 20) - value.len()));

    let jinja = "system:\nSummarise what follows.\n\nuser:\n{{ text }}".to_owned();
    let expected = jinja.replace("{{ text }}", &value);
    let front = "name: large\nmodel: gpt-4o\ninputs:\n  - name: text\n    kind: string\n";
    Workload {
        name: LARGE.to_owned(),
        prompty: format!("---\n{front}---\n{jinja}\n"),
        press: format!(
            "name: large\nrole: user\nbody: {}\nvariables:\n  text: {{ type: string, trusted: true }}\n",
            Value::from(jinja.as_str())
        ),
        jinja,
        inputs: Map::from_iter([("text".to_owned(), Value::String(value))]),
        expected,
    }
}

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
