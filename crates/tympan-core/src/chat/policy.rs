//! Policies: the roles whose messages may contain text of untrusted inputs.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::message::{RichInput, RichValue};
use super::rendered::{InputTable, Rendered};
use super::scan::for_each_marker;
use crate::diagnostic::listed;
use crate::error::{Error, Kind, Result};
use crate::spec::role::Role;
use crate::spec::schema::PropertyKind;
use crate::text::origin::Origin;

/// The roles whose messages may contain text of untrusted inputs.
///
/// ```
/// use tympan::{Policy, Prompt, RenderOptions, Role, inputs};
///
/// let prompt = Prompt::from_prompty("system:\nBe {{ tone }}.\n\nuser:\n{{ question }}")?;
/// let options = RenderOptions { policy: Some(Policy::new([Role::User])), ..Default::default() };
/// let error = prompt.render_with(inputs! { tone: "brief", question: "Why?" }, &options).expect_err("not in a system message");
/// assert_eq!(error.code(), "policy_violation");
/// assert_eq!(error.line_column().map(|at| at.line), Some(2));
/// # Ok::<(), tympan::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// A bit for each of [`ROLES`].
    untrusted: u8,
}

const ROLES: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];

impl Policy {
    /// Creates a policy that allows text of untrusted inputs in messages of these roles only.
    pub fn new(untrusted: impl IntoIterator<Item = Role>) -> Self {
        Self { untrusted: untrusted.into_iter().map(bit).fold(0, |bits, bit| bits | bit) }
    }

    /// Returns whether messages of a role may contain text of untrusted inputs.
    pub fn allows(self, role: Role) -> bool {
        self.untrusted & bit(role) != 0
    }

    /// Returns the roles that it allows.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        ROLES.into_iter().filter(move |role| self.allows(*role))
    }

    /// Returns the policy that allows what both policies allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { untrusted: self.untrusted & other.untrusted }
    }

    /// Returns the roles for messages: `user and assistant messages`.
    fn description(self) -> String {
        let roles: Vec<_> = self.roles().map(Role::as_str).collect();
        match &roles[..] {
            [] => "no messages".to_owned(),
            [role] => format!("{role} messages only"),
            roles => format!("{} messages only", listed(roles.iter().copied())),
        }
    }

    /// Returns the error for text of an untrusted input in a message of this role.
    pub(crate) fn violation(self, input: &str, role: Role) -> Error {
        let details = format!(
            "untrusted input `{input}` is in a {} message, and the policy allows it in {}",
            role.as_str(),
            self.description()
        );
        Error::new(Kind::PolicyViolation, details).with_help(
            "move it to a message of another role; if your application writes it, declare it with `trusted: true`",
        )
    }
}

fn bit(role: Role) -> u8 {
    match role {
        Role::System => 1,
        Role::Developer => 2,
        Role::User => 4,
        Role::Assistant => 8,
        Role::Tool => 16,
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.roles().map(Role::as_str)).finish()
    }
}

impl<'de> Deserialize<'de> for Policy {
    /// Reads a map with the list `untrusted`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Data {
            untrusted: Vec<String>,
        }
        let roles = Data::deserialize(deserializer)?.untrusted;
        let role = |name: String| {
            let unknown =
                || format!("untrusted: expected {}, found `{name}`", listed(ROLES.map(Role::as_str).into_iter()));
            Role::from_name(&name).ok_or_else(|| D::Error::custom(unknown()))
        };
        roles.into_iter().map(role).collect::<Result<Vec<_>, _>>().map(Self::new)
    }
}

/// Text of an untrusted input in a message that may not contain it.
pub(crate) struct Violation {
    pub(crate) role: Role,
    /// The name of the input.
    pub(crate) input: String,
}

impl Rendered {
    /// Returns an error if a message contains text of an untrusted input, and the policy does not allow that for its
    /// role. `role` is the role of the only message, or `None` if role markers split the text.
    ///
    /// # Errors
    /// Returns an error if there is such a message. It names the input, and does not quote it.
    pub fn check_policy(&self, role: Option<Role>, policy: Policy) -> Result<()> {
        match self.find_violation(role, policy) {
            Some(Violation { role, input }) => Err(policy.violation(&input, role)),
            None => Ok(()),
        }
    }

    pub(crate) fn find_violation(&self, role: Option<Role>, policy: Policy) -> Option<Violation> {
        if !self.inputs.has_untrusted() || ROLES.into_iter().all(|role| policy.allows(role)) {
            return None;
        }
        // Text in front of the first marker is a system message. The attributes of a marker belong to its message.
        let mut sections = vec![(0, role.unwrap_or(Role::System))];
        if role.is_none() {
            for_each_marker(self, |line, marker| sections.push((line.start, marker.role)));
        }
        let rich = self.rich_places();
        let mut pieces = self.traced.ranges().filter(|(range, origin)| {
            !range.is_empty()
                && !self.inputs.is_trusted(*origin)
                && !rich.iter().any(|place| place.range == *range && is_thread(&place.input))
        });
        let text = pieces.find_map(|(range, origin)| {
            let section = sections.partition_point(|(start, _)| *start <= range.start).saturating_sub(1);
            let (_, role) = sections[section];
            (!policy.allows(role)).then(|| Violation { role, input: untrusted_name(&self.inputs, origin) })
        });
        text.or_else(|| self.find_in_threads(policy))
    }

    fn find_in_threads(&self, policy: Policy) -> Option<Violation> {
        let content = self.rich.as_deref()?;
        let mut threads = content.places.iter().map(|place| &place.input).chain(&content.appended);
        threads.find_map(|input| {
            let trusted = self.inputs.inputs().iter().any(|known| known.name == input.name && known.trusted);
            let RichValue::Thread(messages) = &input.value else { return None };
            let message = messages.iter().find(|message| !trusted && !policy.allows(message.role))?;
            Some(Violation { role: message.role, input: input.name.clone() })
        })
    }
}

fn is_thread(input: &RichInput) -> bool {
    input.kind == PropertyKind::Thread
}

/// Returns the name of an untrusted input that contributed to a text.
fn untrusted_name(inputs: &InputTable, origin: Origin) -> String {
    let names =
        inputs.names(origin).filter(|name| inputs.inputs().iter().any(|input| input.name == *name && !input.trusted));
    { names }.next().unwrap_or_default().to_owned()
}
