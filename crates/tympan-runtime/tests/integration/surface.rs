//! Rust has everything that the packages for other languages have: the names of `fixtures/bindings/surface.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;
use syn::{Fields, ImplItem, Item, Type, Visibility};

/// Names that differ in Rust: a free function, a type, or a member of a type.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("check", "Prompt::check"),
    ("check_file", "check_path"),
    ("list_models", "Runtime::list_models"),
    ("list_models_async", "Runtime::list_models_async"),
    ("load_str", "Runtime::load_str"),
    ("map_arrow", "TableStream"),
    ("Prompt.map_arrow", "TableStream"),
    ("Runtime.map_arrow", "TableStream"),
    ("stream", "Runtime::stream"),
    ("stream_async", "Runtime::stream_async"),
    // A function is a tool by itself, and its types are its schema.
    ("tool", "Tool"),
    ("Confidential", "ToolOutput"),
    ("Confidential.value", "ToolOutput::content"),
    ("Delta.id", "Delta::ToolCall"),
    ("Delta.index", "Delta::ToolCall"),
    ("Delta.name", "Delta::ToolCall"),
    ("Delta.text", "Delta::Text"),
    ("Delta.usage", "Delta::Usage"),
    ("Finding", "Diagnostic"),
    ("Finding.line", "SourceFile::line_column"),
    ("Finding.column", "SourceFile::line_column"),
    ("Finding.rule", "Rule::code"),
    ("Event", "AgentEvent"),
    ("Part", "ContentPart"),
    ("Part.detail", "MediaPart::detail"),
    ("Part.file_name", "MediaPart::file_name"),
    ("Part.kind", "ContentPart::Text"),
    ("Part.media_type", "MediaPart::media_type"),
    ("Part.value", "MediaPart::value"),
    ("Prompt.description", "PromptSpec::description"),
    ("Prompt.from_definition", "Prompt::new"),
    ("Prompt.inputs", "Prompt::variables"),
    ("Prompt.outputs", "PromptSpec::outputs"),
    ("Prompt.tools", "PromptSpec::tools"),
    // A type that derives it contains its rules.
    ("Prompt.validator", "Validated"),
    ("Prompt.variants", "Prompt::arms"),
    ("Rendered.advisory", "Rendered::guard"),
    ("Run.kind", "Outcome::kind"),
    ("Run.problems", "Outcome::problems"),
    ("Run.result", "Run::outcome"),
    ("Runtime.add_trace_backend", "Tracer::add"),
    ("Runtime.invoke_agent", "invoke_agent"),
    ("Runtime.invoke_agent_async", "invoke_agent_async"),
    ("Runtime.flush_traces", "Tracer::flush"),
    ("Runtime.remove_trace_backend", "Tracer::remove"),
    ("Runtime.trace_status", "Tracer::status"),
    ("Segment.origins", "Segment::origin"),
    ("Segment.trusted", "Rendered::is_trusted"),
    ("Stream", "ResponseStream"),
    // Dropping a stream closes it.
    ("Stream.close", "ResponseStream"),
    ("Tool.description", "Function::description"),
    ("Tool.idempotent", "Tool::is_idempotent"),
    ("Tool.name", "Function::name"),
    ("Tool.server", "OpenTool::server"),
    ("Tool.server_flow", "OpenTool::flow"),
    ("TurnRun.cast", "Run::cast"),
    ("TurnRun.result", "Run::outcome"),
    ("TurnRun.resumed_records", "Resumed::records"),
    ("TympanError", "Error"),
    ("TympanError.column", "Error::line_column"),
    ("TympanError.file", "Error::source_file"),
    ("TympanError.line", "Error::line_column"),
];

/// Public names: free functions, types, and the members of types as `Type::member`.
#[derive(Default)]
struct Public(BTreeSet<String>);

impl Public {
    fn read_folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                file.items.iter().for_each(|item| self.read(item));
            }
        }
    }

    fn read(&mut self, item: &Item) {
        match item {
            Item::Fn(function) if is_public(&function.vis) => self.add(&function.sig.ident),
            Item::Struct(found) if is_public(&found.vis) => {
                self.add(&found.ident);
                if let Fields::Named(fields) = &found.fields {
                    let public = fields.named.iter().filter(|field| is_public(&field.vis));
                    public.flat_map(|field| &field.ident).for_each(|name| self.add_member(&found.ident, name));
                }
            }
            Item::Enum(found) if is_public(&found.vis) => {
                self.add(&found.ident);
                found.variants.iter().for_each(|variant| self.add_member(&found.ident, &variant.ident));
            }
            Item::Trait(found) if is_public(&found.vis) => {
                self.add(&found.ident);
                for item in &found.items {
                    if let syn::TraitItem::Fn(function) = item {
                        self.add_member(&found.ident, &function.sig.ident);
                    }
                }
            }
            Item::Impl(found) if found.trait_.is_none() => self.read_impl(found),
            _ => {}
        }
    }

    fn read_impl(&mut self, found: &syn::ItemImpl) {
        let Type::Path(path) = &*found.self_ty else { return };
        let Some(owner) = path.path.segments.last().map(|segment| &segment.ident) else { return };
        for item in &found.items {
            if let ImplItem::Fn(function) = item
                && is_public(&function.vis)
            {
                self.add_member(owner, &function.sig.ident);
            }
        }
    }

    fn add(&mut self, name: &syn::Ident) {
        self.0.insert(name.to_string());
    }

    fn add_member(&mut self, owner: &syn::Ident, name: &syn::Ident) {
        self.0.insert(format!("{owner}::{name}"));
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the names that all packages have: functions, types, and members as `Type.member`.
fn surface(root: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root.join("fixtures/bindings/surface.json")).expect("the list of names");
    let surface: Json = serde_json::from_str(&text).expect("JSON");
    let functions: Vec<String> = serde_json::from_value(surface["functions"].clone()).expect("names");
    let mut names: BTreeSet<String> = functions.into_iter().collect();
    for group in ["classes", "records"] {
        let types: BTreeMap<String, Vec<String>> = serde_json::from_value(surface[group].clone()).expect("types");
        for (name, members) in types {
            names.extend(members.iter().map(|member| format!("{name}.{member}")));
            names.insert(name);
        }
    }
    names
}

#[test]
fn rust_has_what_the_packages_for_other_languages_have() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut public = Public::default();
    for folder in ["tympan/src", "tympan-batch/src", "tympan-core/src", "tympan-lint/src", "tympan-runtime/src"] {
        public.read_folder(&root.join("crates").join(folder));
    }
    let other_names: BTreeMap<_, _> = OTHER_NAMES.iter().copied().collect();
    let names = surface(&root);
    let is_missing = |name: &&String| {
        let here = other_names.get(name.as_str()).map_or_else(|| own_name(name, &other_names), |&here| here.to_owned());
        !public.0.contains(&here)
    };
    let missing: Vec<_> = names.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "Rust lacks these, or has them under other names: {missing:?}");
    let unused: Vec<_> = other_names.keys().filter(|name| !names.contains(**name)).collect();
    assert!(unused.is_empty(), "nobody has these any more: {unused:?}");
}

/// Returns the Rust name of a member that has the same name in a type that may have another.
fn own_name(name: &str, other_names: &BTreeMap<&str, &str>) -> String {
    match name.split_once('.') {
        Some((owner, member)) => format!("{}::{member}", other_names.get(owner).unwrap_or(&owner)),
        None => name.to_owned(),
    }
}
