//! What the commands of a chat do.

use std::path::Path;

use tympan::spec::{Tool, ToolKind};

use super::command::{self, Command};
use super::{Chat, labels, save};
use crate::commands::inspect::table;
use crate::output;
use crate::report::Failure;

impl Chat<'_> {
    /// Executes a command.
    pub(super) fn obey(&mut self, command: Command, argument: &str) -> Result<(), Failure> {
        match command {
            Command::Help => output::print_error(&command::help()),
            Command::Retry => match self.unanswered.take().or_else(|| self.conversation.take_last()) {
                Some(question) => self.ask(question)?,
                None => self.complain("no question to repeat"),
            },
            Command::Undo => {
                let undone = self.unanswered.take().or_else(|| self.conversation.take_last());
                match undone {
                    Some(Some(question)) => self.say(&format!("removed: {question}")),
                    Some(None) => self.say("removed: the question of the prompt"),
                    None => self.complain("no question to remove"),
                }
            }
            Command::Clear => {
                self.conversation.clear();
                self.unanswered = None;
                self.begin()?;
            }
            Command::Save | Command::SaveOver => self.save(Path::new(argument), command == Command::SaveOver)?,
            Command::Tools => self.list_tools(),
            Command::Usage => self.say(&self.totals.shown()),
            // Handled by the loop that reads lines.
            Command::Quit => {}
        }
        Ok(())
    }

    fn save(&self, path: &Path, replaces: bool) -> Result<(), Failure> {
        if path.as_os_str().is_empty() {
            self.complain("/save needs a file name");
            return Ok(());
        }
        let messages = self.conversation.transcript(self.runtime)?;
        let shown = path.display();
        match save::save(path, &messages.messages, replaces) {
            Ok(()) => {
                self.say(&format!("saved {} messages to {shown}", messages.messages.len()));
                if let Err(error) = labels::save(&messages) {
                    self.complain(&format!("cannot save where the messages came from: {error}"));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.complain(&format!("{shown} already exists; /save! {shown} replaces it"));
            }
            Err(error) => self.complain(&format!("cannot write {shown}: {error}")),
        }
        Ok(())
    }

    fn list_tools(&self) {
        let rows: Vec<_> = self.prompt.spec().tools.iter().map(|tool| self.tool_row(tool)).collect();
        if rows.is_empty() {
            return self.say("the prompt declares no tools");
        }
        let mut out = String::new();
        table(&mut out, "tools", &["NAME", "KIND", "RUN BY", "DESCRIPTION"], rows);
        output::print_error(out.trim_start());
    }

    fn tool_row(&self, tool: &Tool) -> Vec<String> {
        let program = self.programs.commands.get(&tool.name).cloned();
        let runs = program.unwrap_or_else(|| match &tool.kind {
            ToolKind::Mcp { server_name, .. } => server_name.as_ref().unwrap_or(&tool.name).clone(),
            ToolKind::Prompty { path, .. } => path.clone().unwrap_or_default(),
            _ => String::new(),
        });
        vec![tool.name.clone(), tool.kind.as_str().to_owned(), runs, tool.description.clone().unwrap_or_default()]
    }
}
