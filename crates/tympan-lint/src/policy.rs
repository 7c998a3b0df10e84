//! The policy of a project: where untrusted inputs may go, and what tools may do.

#[cfg(feature = "settings")]
use std::path::Path;

use tympan_core::chat::policy::Policy;
#[cfg(feature = "settings")]
use tympan_core::turn::ToolPolicy;

#[cfg(feature = "settings")]
use crate::glob::Glob;

/// The policy that a check applies to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyCheck {
    /// The roles whose messages untrusted inputs may reach.
    pub policy: Policy,
    /// Whether untrusted inputs may not decide about messages of other roles either. A render enforces the policy for
    /// text only.
    pub decides: bool,
}

impl PolicyCheck {
    /// Creates a check of the text in messages.
    pub fn new(policy: Policy) -> Self {
        Self { policy, decides: false }
    }
}

/// `[policy]` in `tympan.toml`: where untrusted inputs may go, and what tools may do.
///
/// ```
/// use std::path::Path;
/// use tympan_core::Role;
/// use tympan_core::text::source::SourceFile;
/// use tympan_lint::Settings;
///
/// let text = "[policy.messages]\nuntrusted = [\"user\"]\n\n[[policy.paths]]\npath = \"admin/**\"\nuntrusted = []\n";
/// let settings = Settings::parse(&SourceFile::new("tympan.toml", text)).expect("it is valid");
/// let policy = |path: &str| settings.policy.of(Path::new(path)).expect("there is one").policy;
/// assert!(policy("chat.prompty").allows(Role::User));
/// assert!(!policy("admin/chat.prompty").allows(Role::User));
/// ```
#[cfg(feature = "settings")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicySettings {
    /// `[policy.messages]`: the policy of all files.
    pub messages: Option<PolicyCheck>,
    /// `[[policy.paths]]`: the policies of some files, in place of the one of all files. The last match counts.
    pub paths: Vec<(Glob, PolicyCheck)>,
    /// `[policy.tools]`: what tightens the policy for tool calls. It says nothing about what the file does not mention,
    /// so it is useful only for [`ToolPolicy::tightened`].
    pub tools: Option<ToolPolicy>,
}

#[cfg(feature = "settings")]
impl PolicySettings {
    /// Returns the policy of a file. The path is relative to the directory of the settings file.
    pub fn of(&self, path: &Path) -> Option<PolicyCheck> {
        let own = self.paths.iter().rev().find(|(glob, _)| glob.matches(path));
        own.map(|(_, check)| *check).or(self.messages)
    }
}
