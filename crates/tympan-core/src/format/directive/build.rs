//! Builds the prompt for a directive.

use std::ops::Range;

use indexmap::IndexMap;

/// The default text at the start of the prompt.
pub const INSTRUCTION: &str = "Execute the directive as specified now.";

/// The tool that a model calls to return the results of a directive.
pub const RETURN_TOOL: &str = "rye/agent/threads/directive_return";

/// The parts of a prompt. Empty parts are left out, and nothing else from a directive is included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts<'a> {
    /// The text at the start of the prompt.
    pub instruction: &'a str,
    /// The name of the directive.
    pub name: &'a str,
    /// The description of the directive.
    pub description: &'a str,
    /// The text before the metadata. Signatures and headings are removed from it.
    pub preamble: &'a str,
    /// The steps.
    pub body: &'a str,
    /// The names and descriptions of the outputs. If a description is empty, the name is used.
    pub outputs: &'a [(&'a str, &'a str)],
}

/// Builds the prompt: the parts that are not empty, separated by blank lines.
///
/// ```
/// use tympan::format::directive::{INSTRUCTION, Parts, build_prompt};
///
/// let parts = Parts { instruction: INSTRUCTION, name: "greet", body: "Say hello.", ..Parts::default() };
/// let prompt = "Execute the directive as specified now.\n\n<directive name=\"greet\">\n\nSay hello.\n\n</directive>";
/// assert_eq!(build_prompt(&parts), prompt);
/// ```
pub fn build_prompt(parts: &Parts<'_>) -> String {
    build(parts).text
}

/// A prompt, and the positions of the author's text in it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Built {
    pub(super) text: String,
    /// For each line of the preamble: its range in the prompt, and its start in the preamble.
    pub(super) preamble: Vec<(Range<usize>, usize)>,
    /// The range of the steps in the prompt, and their start in the body.
    pub(super) body: (Range<usize>, usize),
}

pub(super) fn build(parts: &Parts<'_>) -> Built {
    let Parts { instruction, name, description, .. } = *parts;
    let mut built = Built { text: instruction.to_owned(), ..Built::default() };
    match (name.is_empty(), description.is_empty()) {
        (false, false) => {
            built.part(&format!("<directive name=\"{name}\">\n<description>{description}</description>"));
        }
        (false, true) => {
            built.part(&format!("<directive name=\"{name}\">"));
        }
        (true, false) => {
            built.part(&format!("<directive>\n<description>{description}</description>"));
        }
        (true, true) => {}
    }
    built.add_preamble(parts.preamble);
    let body = parts.body.trim();
    let end = built.text.len();
    built.body = (end..end, 0);
    if !body.is_empty() {
        built.body = (built.part(body), parts.body.len() - parts.body.trim_start().len());
    }
    if let Some(instruction) = return_instruction(parts.outputs) {
        built.part(&instruction);
    }
    if !name.is_empty() || !description.is_empty() {
        built.part("</directive>");
    }
    built
}

impl Built {
    /// Appends a part after a blank line, and returns its range.
    fn part(&mut self, part: &str) -> Range<usize> {
        self.text.push_str("\n\n");
        let start = self.text.len();
        self.text.push_str(part);
        start..self.text.len()
    }

    /// Appends the lines of the preamble that are neither signatures nor headings.
    fn add_preamble(&mut self, preamble: &str) {
        let lines = kept_lines(preamble);
        // Trim the remaining lines as a whole, even where removed lines surrounded them.
        let is_blank = |line: &&(usize, &str)| line.1.trim().is_empty();
        let first = lines.iter().take_while(is_blank).count();
        let last = lines.len() - lines.iter().rev().take_while(is_blank).count();
        let Some(lines) = lines.get(first..last).filter(|lines| !lines.is_empty()) else { return };
        self.text.push_str("\n\n");
        for (index, (at, line)) in lines.iter().enumerate() {
            let (mut at, mut line) = (*at, *line);
            if index == 0 {
                at += line.len() - line.trim_start().len();
                line = line.trim_start();
            }
            if index + 1 == lines.len() {
                line = line.trim_end();
            }
            let start = self.text.len();
            self.text.push_str(line);
            self.preamble.push((start..self.text.len(), at));
            if index + 1 < lines.len() {
                self.text.push('\n');
            }
        }
    }
}

/// Returns the lines of a preamble that are neither signatures nor headings, with their offsets.
fn kept_lines(preamble: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let lines = preamble.split('\n').map(|line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    });
    let is_kept = |line: &str| !line.starts_with("<!-- rye:signed:") && !line.starts_with("# ");
    lines.filter(|(_, line)| is_kept(line.trim())).collect()
}

/// Returns the instruction to call `directive_return`, if there are any outputs.
fn return_instruction(outputs: &[(&str, &str)]) -> Option<String> {
    // A repeated name stays in its first position and gets the last description.
    let fields: IndexMap<&str, &str> = outputs.iter().filter(|(name, _)| !name.is_empty()).copied().collect();
    if fields.is_empty() {
        return None;
    }
    let fields: Vec<_> = fields.iter().map(|(name, description)| field(name, description)).collect();
    Some(format!(
        "When you have completed all steps, return structured results:\n\
         `rye_execute(item_type=\"tool\", item_id=\"{RETURN_TOOL}\", parameters={{{}}})`",
        fields.join(", ")
    ))
}

fn field(name: &str, description: &str) -> String {
    format!("\"{name}\": \"{}\"", placeholder(name, description))
}

/// Returns the placeholder for a value in the instruction.
pub(crate) fn placeholder(name: &str, description: &str) -> String {
    format!("<{}>", if description.is_empty() { name } else { description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The documented algorithm, line by line, without the tracking of positions.
    fn as_documented(parts: &Parts<'_>) -> String {
        let Parts { name, description, .. } = *parts;
        let mut sections = vec![parts.instruction.to_owned()];
        if !name.is_empty() && !description.is_empty() {
            sections.push(format!("<directive name=\"{name}\">\n<description>{description}</description>"));
        } else if !name.is_empty() {
            sections.push(format!("<directive name=\"{name}\">"));
        } else if !description.is_empty() {
            sections.push(format!("<directive>\n<description>{description}</description>"));
        }
        let preamble = parts.preamble.trim();
        if !preamble.is_empty() {
            let starts = |line: &str| line.trim().starts_with("<!-- rye:signed:") || line.trim().starts_with("# ");
            let lines: Vec<&str> = preamble.split('\n').filter(|line| !starts(line)).collect();
            let clean = lines.join("\n").trim().to_owned();
            if !clean.is_empty() {
                sections.push(clean);
            }
        }
        let body = parts.body.trim();
        if !body.is_empty() {
            sections.push(body.to_owned());
        }
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for (name, description) in parts.outputs {
            if name.is_empty() {
                continue;
            }
            match fields.iter_mut().find(|field| field.0 == *name) {
                Some(field) => field.1 = description,
                None => fields.push((name, description)),
            }
        }
        if !fields.is_empty() {
            let or = |name: &str, description: &str| {
                if description.is_empty() { name.to_owned() } else { description.to_owned() }
            };
            let fields: Vec<_> = fields.iter().map(|(k, v)| format!("\"{k}\": \"<{}>\"", or(k, v))).collect();
            sections.push(format!(
                "When you have completed all steps, return structured results:\n`rye_execute(item_type=\"tool\", \
                 item_id=\"rye/agent/threads/directive_return\", parameters={{{}}})`",
                fields.join(", ")
            ));
        }
        if !name.is_empty() || !description.is_empty() {
            sections.push("</directive>".to_owned());
        }
        sections.join("\n\n")
    }

    const RETURN: &str = "When you have completed all steps, return structured results:\n`rye_execute(item_type=\"tool\", \
                          item_id=\"rye/agent/threads/directive_return\", parameters=";

    /// The cases that the documented algorithm distinguishes.
    #[test]
    fn the_document_s_cases() {
        let outputs = [
            (vec![], None),
            (
                vec![("directive_path", "Path to the created file"), ("signed", "Whether signing succeeded")],
                Some(
                    "{\"directive_path\": \"<Path to the created file>\", \"signed\": \"<Whether signing succeeded>\"}",
                ),
            ),
            (
                vec![("score", "Numeric score 0-100"), ("tier", "hot, warm, cold")],
                Some("{\"score\": \"<Numeric score 0-100>\", \"tier\": \"<hot, warm, cold>\"}"),
            ),
            (vec![("count", "")], Some("{\"count\": \"<count>\"}")),
            (vec![("", "nothing has this name")], None),
            (vec![("a", "first"), ("b", ""), ("a", "last")], Some("{\"a\": \"<last>\", \"b\": \"<b>\"}")),
        ];
        let names = [
            ("n", "d", Some("<directive name=\"n\">\n<description>d</description>")),
            ("n", "", Some("<directive name=\"n\">")),
            ("", "d", Some("<directive>\n<description>d</description>")),
            ("", "", None),
        ];
        let preambles = [
            ("", None),
            ("\n \n", None),
            ("# Title\n", None),
            (
                "<!-- rye:signed:a:b:c:d -->\n# Title\n\nWhat it is for.\n\n  # Indented\nMore.\n\n",
                Some("What it is for.\n\nMore."),
            ),
            ("## Kept\n#Kept\n  # Gone\n# ", Some("## Kept\n#Kept\n#")),
        ];
        for (outputs, fields) in &outputs {
            for (name, description, opening) in names {
                for (preamble, clean) in preambles {
                    for body in ["", " \n", "\n1. Do it.\n   Well.\n"] {
                        let parts = Parts { instruction: INSTRUCTION, name, description, preamble, body, outputs };
                        let returns = fields.map(|fields| format!("{RETURN}{fields})`"));
                        let body = Some(body.trim()).filter(|body| !body.is_empty());
                        let closing = opening.map(|_| "</directive>");
                        let expected = [Some(INSTRUCTION), opening, clean, body, returns.as_deref(), closing];
                        let expected: Vec<&str> = expected.into_iter().flatten().collect();
                        assert_eq!(build_prompt(&parts), expected.join("\n\n"), "{parts:?}");
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn it_is_built_as_the_document_builds_it(
            name in "[a-z\"<]{0,3}",
            description in "[a-z <>]{0,5}",
            preamble in r"(# |#|<!-- rye:signed:|\n|\r|[a-c ]){0,12}",
            body in r"(\n|[a-c #]){0,6}",
            outputs in prop::collection::vec(("[ab]{0,1}", "[xy]{0,2}"), 0..4),
        ) {
            let outputs: Vec<_> = outputs.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let parts = Parts {
                instruction: INSTRUCTION, name: &name, description: &description, preamble: &preamble, body: &body,
                outputs: &outputs,
            };
            let built = build(&parts);
            prop_assert_eq!(&built.text, &as_documented(&parts));
            // The reported positions are correct.
            for (range, at) in &built.preamble {
                prop_assert_eq!(&built.text[range.clone()], &preamble[*at..*at + range.len()]);
            }
            let (range, at) = &built.body;
            prop_assert_eq!(&built.text[range.clone()], &body[*at..*at + range.len()]);
        }
    }
}
