//! `[policy.tools]` in `tympan.toml`: the policy for tool calls, as a project tightens it.

use toml::de::{DeTable, DeValue};
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::turn::flow::policy::EffectDecisions;
use tympan_core::turn::{Decision, Exception, PolicyMode, ToolPolicy};

use crate::settings::{Section, Settings, SettingsError, syntax_error};

/// Where settings belong that allow more.
const ELSEWHERE: &str = "write it to `[policy.tools]` in `tympan/config.toml` in your configuration directory";

impl Settings {
    /// Reads only `[policy.tools]` of a settings file, for commands that need nothing else of it. Mistakes in other
    /// sections are ignored.
    ///
    /// The result says nothing about what the file does not mention, so it is useful only for
    /// [`ToolPolicy::tightened`].
    ///
    /// # Errors
    /// Returns every mistake in the section, or the syntax error of the file.
    pub fn parse_tool_policy(source: &SourceFile) -> Result<Option<ToolPolicy>, Vec<SettingsError>> {
        let table = DeTable::parse(source.text()).map_err(|error| vec![syntax_error(&error)])?;
        let mut errors = Vec::new();
        let mut root = Section::new("", table.get_ref(), &mut errors);
        let policy = root.table("policy");
        let tools = policy.and_then(|table| Section::new("policy", table, &mut errors).table("tools"));
        let policy = tools.map(|table| read(table, &mut errors));
        errors.sort_by_key(|error| error.span.start);
        if errors.is_empty() { Ok(policy) } else { Err(errors) }
    }
}

/// Reads the section. What it does not mention is as loose as possible, so that it tightens nothing.
pub(crate) fn read(table: &DeTable<'_>, errors: &mut Vec<SettingsError>) -> ToolPolicy {
    let mut section = Section::new("policy.tools", table, errors);
    for key in ["destinations", "trusted_values"] {
        section.refuse(key);
    }
    let mode = section.mode();
    let values = section.decision("values").unwrap_or_default();
    let extraction_bits = section.extraction_bits();
    let (untrusted, confidential) = (section.table("untrusted"), section.table("confidential"));
    let exceptions = section.tables("exceptions");
    section.finish();
    let mut cells = |name: &'static str, table: Option<&DeTable<'_>>| {
        let Some(table) = table else { return NONE };
        let mut section = Section::new(name, table, errors);
        let [read, write, external] =
            ["read", "write", "external"].map(|key| section.decision(key).unwrap_or_default());
        section.finish();
        EffectDecisions { read, write, external }
    };
    let untrusted = cells("policy.tools.untrusted", untrusted);
    let confidential = cells("policy.tools.confidential", confidential);
    let exceptions = exceptions.into_iter().filter_map(|table| {
        let mut section = Section::new("policy.tools.exceptions", table, errors);
        let (tool, parameter) = (section.required("tool"), section.string("parameter"));
        let decision = section.required_decision();
        section.finish();
        Some(Exception { tool: tool?, parameter, decision: decision? })
    });
    let exceptions = exceptions.collect();
    let (destinations, trusted_values) = (Vec::new(), Vec::new());
    let restrictions = Vec::new();
    ToolPolicy {
        mode,
        untrusted,
        confidential,
        values,
        destinations,
        trusted_values,
        exceptions,
        restrictions,
        extraction_bits,
    }
}

/// Decisions that tighten nothing.
const NONE: EffectDecisions =
    EffectDecisions { read: Decision::Allow, write: Decision::Allow, external: Decision::Allow };

impl Section<'_, '_> {
    /// Reports a key that only a user can set.
    fn refuse(&mut self, key: &'static str) {
        if let Some((_, span)) = self.get(key) {
            self.loosens(&format!("`{key}`"), span, ELSEWHERE);
        }
    }

    fn loosens(&mut self, what: &str, span: Span, help: &str) {
        let message = format!("{what} loosens the policy for tools, so a project cannot set it");
        self.error(span, message, Some(help.to_owned()));
    }

    fn mode(&mut self) -> PolicyMode {
        const KEY: &str = "mode";
        let Some((value, span)) = self.get(KEY) else { return PolicyMode::Off };
        match value.as_str() {
            Some("strict") => return PolicyMode::Strict,
            Some("default") => return PolicyMode::Default,
            Some("off") => self.loosens("`mode = \"off\"`", span, &format!("pass `--tool-policy off`, or {ELSEWHERE}")),
            _ => self.unknown(KEY, value, span, "`strict` or `default`"),
        }
        PolicyMode::Off
    }

    /// Returns what happens to a call. A project cannot allow anything.
    fn decision(&mut self, key: &'static str) -> Option<Decision> {
        let (value, span) = self.get(key)?;
        match value.as_str() {
            Some("ask") => return Some(Decision::Ask),
            Some("deny") => return Some(Decision::Deny),
            Some("allow") => self.loosens(&format!("`{key} = \"allow\"`"), span, ELSEWHERE),
            _ => self.unknown(key, value, span, "`ask` or `deny`"),
        }
        None
    }

    fn required_decision(&mut self) -> Option<Decision> {
        const KEY: &str = "decision";
        if self.get(KEY).is_none() {
            self.missing(KEY);
            return None;
        }
        self.decision(KEY)
    }

    fn required(&mut self, key: &'static str) -> Option<String> {
        if self.get(key).is_none() {
            self.missing(key);
            return None;
        }
        self.string(key)
    }

    fn extraction_bits(&mut self) -> u32 {
        const KEY: &str = "extraction_bits";
        let most = ToolPolicy::default().extraction_bits;
        let Some((value, span)) = self.get(KEY) else { return u32::MAX };
        let number = value.as_integer().and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok());
        match number {
            Some(bits) if bits <= most => return bits,
            Some(bits) => self.loosens(&format!("`{KEY} = {bits}` (the default is {most})"), span, ELSEWHERE),
            None => self.expected(KEY, span, &format!("a number from 0 to {most}"), value),
        }
        u32::MAX
    }

    fn unknown(&mut self, key: &str, value: &DeValue<'_>, span: Span, expected: &str) {
        match value.as_str() {
            Some(word) => self.error(span, format!("`{key}`: expected {expected}, found `{word}`"), None),
            None => self.expected(key, span, expected, value),
        }
    }
}
