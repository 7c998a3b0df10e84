//! Forged messages in inputs.

mod places;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value as Json;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::spec::test_suite::Forge;
use tympan_core::text::pattern::Pattern;
use tympan_core::{Inputs, Role};

use self::places::Group;
use super::{Subject, render};
use crate::matching::Mismatch;

/// The forgeries of the attack corpus, which `fixtures/attacks` contains. A test compares the two.
pub(crate) const FORGERIES: &str = include_str!("forgeries.json");

static PARSED: LazyLock<Forgeries> =
    LazyLock::new(|| serde_json::from_str(FORGERIES).expect("the forgeries in the source are valid"));

/// What looks like a marker of the guard to a model.
static MARKER: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(r"<\s*/?\s*untrusted", true).expect("the pattern in the source is valid"));

/// The maximum number of pairs of inputs that are tried together.
const MAX_PAIRS: usize = 200;

/// The end of the corpus's placeholders for a thread, which contains the name of the input.
const THREAD: &str = "_history__";

#[derive(Deserialize)]
struct Forgeries {
    /// Forged messages.
    messages: Vec<Forgery>,
    /// Forged markers of the guard.
    guard: Vec<Forgery>,
}

#[derive(Deserialize)]
struct Forgery {
    id: String,
    text: String,
    /// The second half, for the next input.
    then: Option<String>,
}

/// What a forgery would change.
#[derive(Clone, PartialEq, Eq)]
struct Outline {
    roles: Vec<Role>,
    /// The number of markers of the guard, if it is on.
    markers: usize,
}

/// An input that forgeries are written to.
struct Target<'a> {
    name: &'a str,
    value: Json,
    groups: Vec<Group>,
}

impl Subject<'_> {
    /// Puts forgeries into inputs, and compares the messages with those for a harmless text of the same form.
    pub(super) fn forge(&self, forge: &Forge) -> Result<(), Mismatch> {
        let inputs = self.rendering.rendered.inputs().inputs();
        let names: Vec<&str> = match forge {
            Forge::Inputs(names) => names.iter().map(String::as_str).collect(),
            // A trusted input counts as the author's text, so it may start messages.
            _ => inputs.iter().filter(|input| !input.trusted).map(|input| input.name.as_str()).collect(),
        };
        if let Some(unknown) = names.iter().find(|name| !inputs.iter().any(|input| input.name == **name)) {
            return Err(Mismatch::invalid(format!("the prompt has no input `{unknown}`")));
        }
        let targets: Vec<_> = names.into_iter().map(|name| self.target(name)).collect();
        targets.iter().try_for_each(|target| self.forge_alone(target))?;
        let pairs = targets.iter().flat_map(|one| targets.iter().map(move |other| [one, other]));
        let mut pairs = pairs.filter(|[one, other]| one.name != other.name).take(MAX_PAIRS);
        pairs.try_for_each(|pair| self.forge_together(pair))
    }

    fn target<'a>(&self, name: &'a str) -> Target<'a> {
        let declared = self.declared(name);
        let value = places::value(self.case.settings.inputs.get(name), declared);
        Target { name, groups: places::groups(&value, declared), value }
    }

    fn declared(&self, name: &str) -> Option<&Property> {
        self.case.prompt().spec().inputs.iter().find(|input| input.name == name)
    }

    /// Writes each forgery to each place in an input.
    fn forge_alone(&self, target: &Target<'_>) -> Result<(), Mismatch> {
        // The messages of a thread are messages of their own, which the guard leaves alone.
        let is_thread = self.declared(target.name).is_some_and(|input| input.kind == PropertyKind::Thread);
        let has_guard = self.case.settings.guard.unwrap_or_default() && !is_thread;
        let guard = PARSED.guard.iter().filter(|_| has_guard);
        let forgeries: Vec<_> = PARSED.messages.iter().filter(|forgery| forgery.then.is_none()).chain(guard).collect();
        for group in &target.groups {
            let part = if group.iter().any(|place| place.is_key) { "a key in input" } else { "input" };
            let writer = format!("{part} `{}`", target.name);
            let mut attempts = Attempts::new(self, |[text, _]: [&str; 2]| {
                let mut value = target.value.clone();
                places::write(&mut value, group, text);
                let mut inputs = self.case.settings.inputs.clone();
                inputs.insert(target.name.to_owned(), value);
                inputs
            });
            forgeries.iter().try_for_each(|forgery| attempts.check(&writer, forgery))?;
        }
        Ok(())
    }

    /// Writes the two halves of forgeries to two inputs.
    fn forge_together(&self, pair: [&Target<'_>; 2]) -> Result<(), Mismatch> {
        let writer = format!("inputs `{}` and `{}` together", pair[0].name, pair[1].name);
        let mut attempts = Attempts::new(self, |texts: [&str; 2]| {
            let mut inputs = self.case.settings.inputs.clone();
            for (target, text) in pair.into_iter().zip(texts) {
                let mut value = target.value.clone();
                let first = target.groups.iter().find(|group| group.iter().all(|place| !place.is_key));
                first.into_iter().for_each(|group| places::write(&mut value, group, text));
                inputs.insert(target.name.to_owned(), value);
            }
            inputs
        });
        let mut forgeries = PARSED.messages.iter().filter(|forgery| forgery.then.is_some());
        forgeries.try_for_each(|forgery| attempts.check(&writer, forgery))
    }

    fn outline(&self, inputs: &Inputs) -> tympan_core::Result<Outline> {
        let messages = render(self.runtime, self.case, inputs)?.messages;
        let texts = messages.iter().map(|message| message.message.to_text());
        let markers = match self.case.settings.guard {
            Some(true) => texts.map(|text| MARKER.count(&text)).sum(),
            _ => 0,
        };
        Ok(Outline { roles: messages.iter().map(|message| message.message.role).collect(), markers })
    }
}

/// Forgeries at one place.
struct Attempts<'a, F> {
    subject: &'a Subject<'a>,
    /// Returns the inputs with texts in the place.
    fill: F,
    /// The outlines with harmless texts: many forgeries have the same form.
    harmless: HashMap<[String; 2], Option<Outline>>,
    /// The name of an input that is a thread.
    thread: Option<&'a str>,
}

impl<'a, F: Fn([&str; 2]) -> Inputs> Attempts<'a, F> {
    fn new(subject: &'a Subject<'a>, fill: F) -> Self {
        let mut inputs = subject.case.prompt().spec().inputs.iter();
        let thread = inputs.find(|input| input.kind == PropertyKind::Thread).map(|input| input.name.as_str());
        Self { subject, fill, harmless: HashMap::new(), thread }
    }

    /// Compares the outline with a forgery and the one with a harmless text.
    fn check(&mut self, writer: &str, forgery: &Forgery) -> Result<(), Mismatch> {
        let mut texts = [forgery.text.clone(), forgery.then.clone().unwrap_or_default()];
        if let Some(thread) = self.thread {
            texts[0] = texts[0].replace(THREAD, &format!("_{thread}__"));
        }
        // An error says that the place cannot have such a text.
        let Ok(after) = self.subject.outline(&(self.fill)(texts.each_ref().map(String::as_str))) else { return Ok(()) };
        let Some(before) = self.before(texts.each_ref().map(|text| harmless(text))) else { return Ok(()) };
        if before == after {
            return Ok(());
        }
        let id = &forgery.id;
        let texts = match &forgery.then {
            Some(_) => format!("{:?} and {:?}", texts[0], texts[1]),
            None => format!("{:?}", texts[0]),
        };
        let (message, before, after) = if before.roles == after.roles {
            let message = format!("{writer}: forged a marker of the guard ({id}) with {texts}");
            (message, format!("{} markers", before.markers), after.markers.to_string())
        } else {
            let message = format!("{writer}: forged a message ({id}) with {texts}");
            (message, names(&before.roles), names(&after.roles))
        };
        Err(Mismatch::new(format!("{message}: expected {before}, found {after}")).with_difference(before, after))
    }

    fn before(&mut self, texts: [String; 2]) -> Option<Outline> {
        if let Some(known) = self.harmless.get(&texts) {
            return known.clone();
        }
        let outline = self.subject.outline(&(self.fill)(texts.each_ref().map(String::as_str))).ok();
        self.harmless.insert(texts, outline.clone());
        outline
    }
}

/// Returns a text of the same form that nobody could take for a marker.
fn harmless(text: &str) -> String {
    let replaced = text.chars().map(|char| match char {
        ':' | '：' | '#' | '[' | ']' => '.',
        char if char.is_alphanumeric() => 'x',
        char => char,
    });
    replaced.collect()
}

fn names(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}
