//! `tympan man`: generates a manual page.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Args;
use crate::output;
use crate::report::Failure;

pub(super) fn run(command: Option<&str>) -> Result<(), Failure> {
    let mut root = Args::command();
    // Building adds the global options to each subcommand.
    root.build();
    let page = match command {
        None => root,
        Some(name) => {
            let found = root.find_subcommand(name).cloned();
            let found = found.ok_or_else(|| Failure::Usage(format!("man: unknown command `{name}`")))?;
            found.display_name(format!("tympan-{name}"))
        }
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    Ok(output::print(&String::from_utf8_lossy(&text))?)
}
