//! Rules whose findings the engine and the runtime report themselves, while they load a prompt or prepare a request.

pub(super) mod directives;
pub(super) mod files;
pub(super) mod front_matter;
pub(super) mod prompts;
pub(super) mod tests;

/// Declares rules: name of the static, code, name, group, severity and fix, then the four sections of the page.
macro_rules! reported {
    ($($id:ident $code:literal $name:literal $group:ident $severity:ident $fix:ident
        $summary:literal $why:literal $example:literal $how_to_fix:literal;)*) => {$(
        pub(in crate::rules) static $id: crate::rule::Rule = crate::rule::Rule {
            code: $code,
            name: $name,
            group: crate::rule::Group::$group,
            severity: tympan_core::diagnostic::Severity::$severity,
            fix: crate::rule::FixAvailability::$fix,
            summary: $summary,
            why: $why,
            example: $example,
            how_to_fix: $how_to_fix,
            check: None,
        };
    )*};
}

use reported;
