//! The addresses in messages of the language server.

use std::path::Path;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::{Value as Json, json};

use crate::project::RelativePath;

/// The members that contain an address.
const MEMBERS: [&str; 5] = ["uri", "targetUri", "oldUri", "newUri", "baseUri"];

/// The members whose members are named by addresses.
const MAPS: [&str; 2] = ["changes", "relatedDocuments"];

/// The address of the project, as the page sees it.
const VIRTUAL: &str = "file:///";

/// The characters that are escaped in an address, besides those that are not ASCII.
const ESCAPED: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'|')
    .add(b'\\');

/// Converts the addresses in messages.
pub(super) struct Addresses {
    /// The address of the project on this machine, with a slash at its end.
    real: String,
}

impl Addresses {
    pub(super) fn new(root: &Path) -> Self {
        let path = root.to_string_lossy().replace('\\', "/");
        let path = utf8_percent_encode(path.trim_matches('/'), &ESCAPED).to_string();
        let slash = if path.is_empty() { "" } else { "/" };
        Self { real: format!("{VIRTUAL}{path}{slash}") }
    }

    /// Makes the project the only folder of a session, whatever the page says.
    pub(super) fn set_root(&self, initialize: &mut Json) {
        let root = self.real.trim_end_matches('/');
        if let Some(params) = initialize.get_mut("params").and_then(Json::as_object_mut) {
            params.remove("rootPath");
            params.insert("rootUri".to_owned(), root.into());
            params.insert("workspaceFolders".to_owned(), json!([{"uri": root, "name": "project"}]));
        }
    }

    /// Converts the addresses of the page. Returns whether all of them are in the project.
    pub(super) fn to_real(&self, json: &mut Json) -> bool {
        let mut is_inside = true;
        convert(json, &mut |address| {
            let real = self.real_of(address);
            is_inside &= real.is_some();
            real
        });
        is_inside
    }

    /// Converts the addresses of the server.
    pub(super) fn to_virtual(&self, json: &mut Json) {
        convert(json, &mut |address| Some(format!("{VIRTUAL}{}", address.strip_prefix(&self.real)?)));
    }

    fn real_of(&self, address: &str) -> Option<String> {
        let path = percent_decode_str(address.strip_prefix(VIRTUAL)?).decode_utf8().ok()?;
        // The folder itself.
        if path.is_empty() {
            return Some(self.real.trim_end_matches('/').to_owned());
        }
        let path = RelativePath::parse(&path)?;
        Some(format!("{}{}", self.real, utf8_percent_encode(path.as_str(), &ESCAPED)))
    }
}

/// Replaces every address in a message. Those without a replacement stay as they are. Texts are never searched.
fn convert(json: &mut Json, replace: &mut dyn FnMut(&str) -> Option<String>) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(|item| convert(item, replace)),
        Json::Object(map) => {
            for (name, value) in map.iter_mut() {
                if let Json::String(address) = value
                    && MEMBERS.contains(&name.as_str())
                {
                    if let Some(new) = replace(address) {
                        *address = new;
                    }
                    continue;
                }
                if let Json::Object(named) = value
                    && MAPS.contains(&name.as_str())
                {
                    *named = std::mem::take(named)
                        .into_iter()
                        .map(|(key, value)| (replace(&key).unwrap_or(key), value))
                        .collect();
                }
                convert(value, replace);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_converted_in_both_directions() {
        let addresses = Addresses::new(Path::new("/home/a b/prompts"));
        let text = "file:///x.prompty stays";
        let page = json!({
            "params": {"textDocument": {"uri": "file:///d/%C3%A4 b.prompty", "text": text}},
            "edit": {"changes": {"file:///x.prompty": [{"newText": text}]}, "documentChanges": [{"oldUri": "file:///a"}]},
        });
        let mut json = page.clone();
        assert!(addresses.to_real(&mut json));
        assert_eq!(json["params"]["textDocument"]["uri"], "file:///home/a%20b/prompts/d/%C3%A4%20b.prompty");
        assert_eq!(json["params"]["textDocument"]["text"], text);
        assert!(json["edit"]["changes"]["file:///home/a%20b/prompts/x.prompty"].is_array());
        addresses.to_virtual(&mut json);
        assert_eq!(json["params"]["textDocument"]["uri"], "file:///d/%C3%A4%20b.prompty");
        assert_eq!(json["edit"], page["edit"]);
    }

    #[test]
    fn addresses_outside_of_the_project_are_noticed() {
        let addresses = Addresses::new(Path::new("/home/prompts"));
        for address in [
            "file:///../x",
            "file:///%2e%2e/x",
            "file:////etc/passwd",
            "file:///a/../../x",
            "file:///.env",
            "file:///a/%2Egit/config",
            "http://x/a",
            "file://host/a",
            "a.prompty",
            "file:///a%00",
            "file:///%2Fetc",
        ] {
            assert!(!addresses.to_real(&mut json!({"params": [{"uri": address}]})), "{address}");
            assert!(!addresses.to_real(&mut json!({"edit": {"changes": {address: []}}})), "{address}");
        }
        let mut initialize = json!({"method": "initialize", "params": {"rootPath": "/", "rootUri": "file:///"}});
        assert!(addresses.to_real(&mut initialize));
        addresses.set_root(&mut initialize);
        let folder = json!({"uri": "file:///home/prompts", "name": "project"});
        assert_eq!(initialize["params"], json!({"rootUri": "file:///home/prompts", "workspaceFolders": [folder]}));
    }
}
