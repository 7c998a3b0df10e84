//! Forged messages in inputs.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value as Json;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::spec::test_suite::Forge;
use tympan_core::{Inputs, Role};

use super::{Subject, render};
use crate::matching::Mismatch;

/// The forged messages of the attack corpus, which `fixtures/attacks` contains. A test compares the two.
pub(crate) const FORGERIES: &str = include_str!("forgeries.json");

static PARSED: LazyLock<Vec<Forgery>> =
    LazyLock::new(|| serde_json::from_str(FORGERIES).expect("the forgeries in the source are valid"));

/// A forged message.
#[derive(Deserialize)]
struct Forgery {
    id: String,
    text: String,
}

impl Subject<'_> {
    /// Puts forged messages into inputs, and compares the roles with those for a harmless text of the same form.
    pub(super) fn forge(&self, forge: &Forge) -> Result<(), Mismatch> {
        let declared = self.rendering.rendered.inputs().inputs();
        let names: Vec<&str> = match forge {
            Forge::Inputs(names) => names.iter().map(String::as_str).collect(),
            // A trusted input counts as the author's text, so it may start messages.
            _ => declared.iter().filter(|input| !input.trusted).map(|input| input.name.as_str()).collect(),
        };
        for name in names {
            if !declared.iter().any(|input| input.name == name) {
                return Err(Mismatch::invalid(format!("the prompt has no input `{name}`")));
            }
            for forgery in PARSED.iter() {
                self.try_forgery(name, forgery)?;
            }
        }
        Ok(())
    }

    fn try_forgery(&self, name: &str, forgery: &Forgery) -> Result<(), Mismatch> {
        let harmless: String =
            forgery.text.chars().map(|char| if char.is_alphanumeric() { 'x' } else { char }).collect();
        let harmless = harmless.replace([':', '：', '#', '[', ']'], ".");
        // An error in both cases says that the input cannot be such a text, and an error for the forged text alone that
        // it is refused.
        let (Ok(before), Ok(after)) = (self.roles_with(name, &harmless), self.roles_with(name, &forgery.text)) else {
            return Ok(());
        };
        if before == after {
            return Ok(());
        }
        let shown = |roles: &[Role]| roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
        let (before, after) = (shown(&before), shown(&after));
        let message = format!(
            "input `{name}` forges a message ({}): with {:?}, the roles are {after} instead of {before}",
            forgery.id, forgery.text
        );
        Err(Mismatch::new(message).with_difference(before, after))
    }

    fn roles_with(&self, name: &str, text: &str) -> tympan_core::Result<Vec<Role>> {
        let mut inputs: Inputs = self.case.settings.inputs.clone();
        let declared = self.case.prompt().spec().inputs.iter().find(|input| input.name == name);
        let is_thread = declared.is_some_and(|input| input.kind == PropertyKind::Thread);
        let value = inputs.entry(name).or_insert(Json::Null);
        replace(value, text, is_thread);
        let rendering = render(self.runtime, self.case, &inputs)?;
        Ok(rendering.messages.iter().map(|message| message.message.role).collect())
    }
}

/// Replaces all texts in a value. In a thread, only contents are texts: the roles are the host's.
fn replace(value: &mut Json, text: &str, is_thread: bool) {
    match value {
        Json::Array(items) if !items.is_empty() => items.iter_mut().for_each(|item| replace(item, text, is_thread)),
        Json::Object(map) if !map.is_empty() => {
            for (key, value) in map.iter_mut() {
                let is_content = matches!(key.as_str(), "content" | "parts" | "text" | "value");
                if !is_thread || is_content {
                    replace(value, text, is_thread);
                }
            }
        }
        Json::Array(_) | Json::Object(_) => {}
        other => *other = Json::String(text.to_owned()),
    }
}
