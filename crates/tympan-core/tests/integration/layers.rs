//! The layers of the engine: which module may use which, computed from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules at the root of the engine. Each may use only itself and those before it.
const ORDER: [&str; 13] = [
    "json",
    "text",
    "diagnostic",
    "error",
    "secret",
    "spec",
    "format",
    "template",
    "chat",
    "prompt",
    "directive",
    "wire",
    "turn",
];

/// The modules of a crate by their paths (`chat::guard`), with the sources of each. Tests are left out.
fn modules(crate_name: &str) -> BTreeMap<Vec<String>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_name).join("src");
    let mut modules = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the sources are there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(module) = module_of(&root, &path) {
                #[expect(clippy::disallowed_methods, reason = "a test reads the sources")]
                let source = std::fs::read_to_string(&path).expect("a source");
                modules.insert(module, code_of(&source));
            }
        }
    }
    assert!(modules.len() > 20, "only {} modules of {crate_name} were found", modules.len());
    modules
}

fn module_of(root: &Path, path: &Path) -> Option<Vec<String>> {
    let inner: PathBuf = path.strip_prefix(root).expect("below the root").with_extension("");
    let mut parts: Vec<String> = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.extension()? != "rs" || parts == ["lib"] || parts.last()? == "tests" {
        return None;
    }
    if parts.last()? == "mod" {
        parts.pop();
    }
    Some(parts)
}

/// A source without its comments and unit tests.
fn code_of(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The modules that a module uses: every path in it that begins with `crate`, `super` or `self`.
fn uses(module: &[String], code: &str, modules: &BTreeMap<Vec<String>, String>) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':') {
                continue;
            }
            let mut base = module.to_vec();
            let mut rest = &code[at..];
            if let Some(behind) = rest.strip_prefix("crate::") {
                (base, rest) = (Vec::new(), behind);
            } else if let Some(behind) = rest.strip_prefix("self::") {
                rest = behind;
            } else {
                while let Some(behind) = rest.strip_prefix("super::") {
                    base.pop();
                    rest = behind;
                }
            }
            collect(base, rest, modules, &mut found);
        }
    }
    found.remove(module);
    found
}

/// Follows a path, and the names in braces at its end, to the modules that they are in.
fn collect(
    mut path: Vec<String>,
    rest: &str,
    modules: &BTreeMap<Vec<String>, String>,
    found: &mut BTreeSet<Vec<String>>,
) {
    let mut rest = rest;
    loop {
        let end = rest.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        path.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(behind) => rest = behind,
            None => {
                rest = "";
                break;
            }
        }
    }
    if let Some(names) = rest.strip_prefix('{').and_then(|names| names.split_once('}')) {
        for name in names.0.split(',') {
            collect(path.clone(), name.trim(), modules, found);
        }
        return;
    }
    while !path.is_empty() && !modules.contains_key(&path) {
        path.pop();
    }
    if !path.is_empty() {
        found.insert(path);
    }
}

#[test]
fn no_module_uses_one_of_a_later_layer() {
    let modules = modules("tympan-core");
    let layer = |module: &[String]| {
        let root = &module[0];
        ORDER.iter().position(|name| name == root).unwrap_or_else(|| panic!("`{root}` has no place in the order"))
    };
    let mut edges = 0;
    for (module, code) in &modules {
        for used in uses(module, code, &modules) {
            edges += 1;
            assert!(layer(&used) <= layer(module), "{} uses {}", module.join("::"), used.join("::"));
        }
    }
    assert!(edges > 300, "only {edges} uses were found");
}

/// Folders are rooms: two modules of one room may talk to each other only in one direction.
#[test]
fn no_modules_use_each_other_in_a_circle() {
    let modules = modules("tympan-core");
    let room = |module: &[String]| module.iter().take(2).cloned().collect::<Vec<_>>();
    let mut graph: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (module, code) in &modules {
        let used = uses(module, code, &modules).into_iter().map(|used| room(&used));
        // The root of a folder declares its parts and re-exports them; its parts may use what it defines.
        let own = room(module);
        graph
            .entry(own.clone())
            .or_default()
            .extend(used.filter(|used| *used != own && !(own.len() == 1 && used[0] == own[0])));
    }
    // Whatever uses nothing that is left cannot be in a circle.
    loop {
        let done: Vec<_> = graph.iter().filter(|(_, used)| used.is_empty()).map(|(room, _)| room.clone()).collect();
        if done.is_empty() {
            break;
        }
        graph.retain(|room, _| !done.contains(room));
        graph.values_mut().for_each(|used| used.retain(|room| !done.contains(room)));
    }
    let circle: Vec<_> = graph.keys().map(|room| room.join("::")).collect();
    assert!(circle.is_empty(), "these modules use each other in a circle: {}", circle.join(", "));
}

/// `docs/ARCHITECTURE.md` lists every module once, in the first column of the tables below the crate's heading.
#[test]
fn the_architecture_page_lists_every_module_once() {
    #[expect(clippy::disallowed_methods, reason = "a test reads a page")]
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ARCHITECTURE.md")).expect("the page");
    for crate_name in ["tympan-core", "tympan-runtime", "tympan-batch", "tympan-eval"] {
        let heading = format!("\n## {crate_name}\n");
        let (_, below) = page.split_once(&heading).unwrap_or_else(|| panic!("the page has no heading {crate_name}"));
        let section = below.split("\n## ").next().unwrap_or_default();
        let first_column = |line: &str| {
            let cell = line.strip_prefix("| `")?.split_once("` |")?.0.to_owned();
            Some(cell)
        };
        let mut listed: Vec<String> = section.lines().filter_map(first_column).collect();
        listed.sort();
        let expected: Vec<String> = modules(crate_name).into_keys().map(|module| module.join("::")).collect();
        let missing: Vec<_> = expected.iter().filter(|module| !listed.contains(module)).collect();
        assert!(missing.is_empty(), "not on the page, under {crate_name}: {missing:?}");
        let unknown: Vec<_> = listed.iter().filter(|module| !expected.contains(module)).collect();
        assert!(unknown.is_empty(), "on the page, but not in {crate_name}: {unknown:?}");
        let mut once = listed.clone();
        once.dedup();
        assert_eq!(once.len(), listed.len(), "a module of {crate_name} is listed twice");
    }
}
