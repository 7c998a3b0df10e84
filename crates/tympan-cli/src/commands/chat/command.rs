//! The commands of a chat.

use tympan::diagnostic::guess_name;

/// A command for the chat itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Retry,
    Undo,
    Clear,
    Save,
    SaveOver,
    Tools,
    Usage,
    Quit,
}

impl Command {
    /// All commands, in the order of the help.
    pub(super) const ALL: [Self; 9] = [
        Self::Help,
        Self::Retry,
        Self::Undo,
        Self::Clear,
        Self::Save,
        Self::SaveOver,
        Self::Tools,
        Self::Usage,
        Self::Quit,
    ];

    /// Returns the name, without the slash.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::Retry => "retry",
            Self::Undo => "undo",
            Self::Clear => "clear",
            Self::Save => "save",
            Self::SaveOver => "save!",
            Self::Tools => "tools",
            Self::Usage => "usage",
            Self::Quit => "quit",
        }
    }

    /// Returns the placeholder for the argument in the help.
    const fn argument(self) -> &'static str {
        match self {
            Self::Save | Self::SaveOver => " FILE",
            _ => "",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Help => "show this help",
            Self::Retry => "ask the last question again",
            Self::Undo => "remove the last question and its response",
            Self::Clear => "start a new conversation",
            Self::Save => "save the conversation to a new file: JSON, or Markdown if the name ends in .md",
            Self::SaveOver => "like /save, but replace an existing file",
            Self::Tools => "list the tools of the prompt and the programs that run them",
            Self::Usage => "show tokens and cost so far",
            Self::Quit => "leave (same as Ctrl-D)",
        }
    }

    /// Finds a command by name.
    ///
    /// # Errors
    /// Returns a message for the user if there is no such command.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        if let Some(command) = Self::ALL.into_iter().find(|command| command.name() == name) {
            return Ok(command);
        }
        let near = guess_name(name, Self::ALL.iter().map(|command| command.name()));
        let hint = near.map_or_else(|| "/help lists all commands".to_owned(), |near| format!("did you mean /{near}?"));
        Err(format!("unknown command /{name} ({hint}); to ask a question that starts with a slash, type two slashes"))
    }
}

/// Returns the help text.
pub(super) fn help() -> String {
    let mut out = String::new();
    for command in Command::ALL {
        let usage = format!("/{}{}", command.name(), command.argument());
        out.push_str(&format!("{usage:<12}  {}\n", command.about()));
    }
    out.push_str(
        "\nEnd a line with \\ to continue it on the next line, or put several lines between two lines of \
            \"\"\".\n//text asks /text. Ctrl-C stops a response.\n",
    );
    out
}
