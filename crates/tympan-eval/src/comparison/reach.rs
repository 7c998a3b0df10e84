//! Differences between the reach maps of two versions: which inputs newly reach which messages.

use indexmap::IndexMap;
use tympan_core::spec::role::Role;
use tympan_core::template::flow::How;
use tympan_lint::{ReachMap, Target, how_str};

/// A change of how an input reaches messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachChange {
    /// The template: `default`, or the name of a variant.
    pub template: String,
    /// The messages that it reaches.
    pub target: ReachTarget,
    /// The name of the input.
    pub input: String,
    /// How it reached them before, or `None` if it did not.
    pub before: Option<InputPath>,
    /// How it reaches them now, or `None` if it does not.
    pub after: Option<InputPath>,
}

/// What an input reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReachTarget {
    /// The messages of this role.
    Role(Role),
    /// Messages of any role.
    AnyRole,
    /// The messages of a thread input.
    Thread(String),
    /// A parameter of a tool, which the application passes.
    Parameter {
        /// The tool.
        tool: String,
        /// The parameter.
        parameter: String,
    },
}

impl ReachTarget {
    /// Returns whether the target has the instructions for the model.
    pub fn is_instruction(&self) -> bool {
        matches!(self, Self::AnyRole | Self::Role(Role::System | Role::Developer))
    }
}

/// The strongest way in which an input reaches something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputPath {
    /// As text, only through a filter, or only by deciding.
    pub how: How,
    /// Whether the text of the input counts as the author's.
    pub trusted: bool,
    /// Whether it reaches an attribute of a role marker.
    pub in_marker: bool,
}

impl InputPath {
    /// Returns whether this way gives the input more influence than another one.
    fn is_stronger_than(&self, other: &Self) -> bool {
        self.how < other.how || (self.in_marker && !other.in_marker) || (!self.trusted && other.trusted)
    }

    fn and(self, other: Self) -> Self {
        Self {
            how: self.how.min(other.how),
            trusted: self.trusted && other.trusted,
            in_marker: self.in_marker || other.in_marker,
        }
    }
}

/// Something that a reviewer should see first: an input that gets more influence on instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachWarning {
    /// What the input reaches.
    pub target: ReachTarget,
    /// The name of the input.
    pub input: String,
    /// How it reached the target before, or `None` if it did not.
    pub before: Option<InputPath>,
    /// How it reaches the target now.
    pub after: InputPath,
}

impl ReachWarning {
    /// Returns the warning as a sentence. The name of the input is written as it is.
    pub fn message(&self) -> String {
        let Self { target, input, before, after } = self;
        let trust = if after.trusted { "trusted" } else { "untrusted" };
        let place = match target {
            ReachTarget::Role(role) => format!("the {} message", role.as_str()),
            _ => "messages of any role".to_owned(),
        };
        let way = |path: &InputPath| match (path.how, path.in_marker) {
            (_, true) => "in a role marker",
            (How::Text, _) => "as text",
            (How::Filtered, _) => "through a filter",
            (How::Decides, _) => "by deciding",
        };
        match before {
            None => format!("the {trust} input `{input}` newly reaches {place} {}", way(after)),
            Some(before) if before.trusted && !after.trusted && way(before) == way(after) => {
                format!("the input `{input}`, which reaches {place} {}, is no longer trusted", way(after))
            }
            Some(before) => {
                format!("the {trust} input `{input}` now reaches {place} {}, and before {}", way(after), way(before))
            }
        }
    }
}

/// The template, the target and the input.
type Key = (String, ReachTarget, String);

/// The ways of inputs, in order.
type Paths = IndexMap<Key, InputPath>;

/// Compares two reach maps.
pub(super) fn compare(before: &ReachMap, after: &ReachMap) -> Vec<ReachChange> {
    let (old, new) = (paths(before), paths(after));
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    let changes = keys.map(|key| {
        let (template, target, input) = key.clone();
        ReachChange { template, target, input, before: old.get(key).copied(), after: new.get(key).copied() }
    });
    changes.filter(|change| change.before != change.after).collect()
}

/// Returns the inputs that have more influence on instructions than before. A new variant with the same inputs as
/// others does not count.
pub(super) fn warnings(before: &ReachMap, after: &ReachMap) -> Vec<ReachWarning> {
    let (old, new) = (instructions(before), instructions(after));
    let changed = new.into_iter().filter_map(|(key, after)| {
        let before = old.get(&key).copied();
        let (_, target, input) = key;
        let is_worse = before.is_none_or(|before| after.is_stronger_than(&before));
        is_worse.then_some(ReachWarning { target, input, before, after })
    });
    let mut warnings: Vec<_> = changed.collect();
    warnings.sort_by_key(|warning| (warning.after.trusted, warning.before.is_some()));
    warnings
}

/// Returns the ways into instructions, of all templates together.
fn instructions(map: &ReachMap) -> Paths {
    let mut all = Paths::new();
    for ((_, target, input), path) in paths(map) {
        if target.is_instruction() {
            add(&mut all, (String::new(), target, input), path);
        }
    }
    all
}

fn paths(map: &ReachMap) -> Paths {
    let mut paths = Paths::new();
    for message in &map.messages {
        let target = match &message.target {
            Target::Role(role) => ReachTarget::Role(*role),
            Target::Thread(name) => ReachTarget::Thread(name.clone()),
            _ => ReachTarget::AnyRole,
        };
        for input in &message.inputs {
            let path = InputPath { how: input.how, trusted: input.trusted, in_marker: input.in_marker };
            add(&mut paths, (message.template.clone(), target.clone(), input.input.clone()), path);
        }
    }
    for bound in &map.bindings {
        let (tool, parameter) = (bound.tool.clone(), bound.parameter.clone());
        let target = ReachTarget::Parameter { tool, parameter };
        let path = InputPath { how: How::Text, trusted: bound.trusted, in_marker: false };
        add(&mut paths, (String::new(), target, bound.input.clone()), path);
    }
    paths
}

fn add(paths: &mut Paths, key: Key, path: InputPath) {
    paths.entry(key).and_modify(|known| *known = known.and(path)).or_insert(path);
}

/// Returns the word for a target: a role, `any`, `thread` or `parameter`.
pub(super) fn target_str(target: &ReachTarget) -> &'static str {
    match target {
        ReachTarget::Role(role) => role.as_str(),
        ReachTarget::AnyRole => "any",
        ReachTarget::Thread(_) => "thread",
        ReachTarget::Parameter { .. } => "parameter",
    }
}

/// Returns a way as JSON.
pub(super) fn path_json(path: &InputPath) -> serde_json::Value {
    serde_json::json!({ "how": how_str(path.how), "trusted": path.trusted, "in_marker": path.in_marker })
}
