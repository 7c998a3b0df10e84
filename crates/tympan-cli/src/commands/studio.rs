//! `tympan studio`: a local web page.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use serde_json::json;
use tympan::file::write;
use tympan::wire::catalog::Catalog;
use tympan::{EnvPolicy, Error, Kind, LoadOptions, Prompt, Result, Runtime, RuntimeOptions};
use tympan_studio::export::export;
use tympan_studio::{Host, Studio, StudioOptions, Tools};

use crate::args::StudioArgs;
use crate::escape::visible_line;
use crate::project::Project;
use crate::report::{Failure, warn_plainly};
use crate::{config, json, output, prompt_file, tools};

pub(super) fn run(args: &StudioArgs, quiet: bool) -> std::result::Result<ExitCode, Failure> {
    let failed = |error: io::Error| {
        let directory = visible_line(&args.directory.display().to_string());
        Failure::Usage(format!("{directory}: {error}"))
    };
    if !args.directory.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::NotADirectory, "expected a folder with prompts")));
    }
    if let Some(target) = &args.export {
        return write_site(args, target);
    }
    let mut options = StudioOptions::new(&args.directory);
    options.read_only = args.read_only;
    options.port = args.port;
    options.host = Arc::new(CommandHost::new(args, quiet)?);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(async {
        let studio = Studio::bind(options).await.map_err(failed)?;
        let page = show_address(&studio, args, quiet)?;
        studio.serve(async { drop(tokio::signal::ctrl_c().await) }).await;
        drop(page);
        Ok(ExitCode::SUCCESS)
    })
}

/// Writes a static site.
fn write_site(args: &StudioArgs, target: &Path) -> std::result::Result<ExitCode, Failure> {
    let shown = visible_line(&target.display().to_string());
    let exported =
        export(&args.directory, target).map_err(|error| Failure::Usage(format!("--export {shown}: {error}")))?;
    let text = match args.json {
        true => json::line(&json!({"directory": target, "index": exported.index, "files": exported.files})),
        false => format!("{} files written to {shown}; serve it with any web server\n", exported.files),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the address, and opens it in a browser.
fn show_address(studio: &Studio, args: &StudioArgs, quiet: bool) -> std::result::Result<Option<OpenedPage>, Failure> {
    let url = studio.url();
    if args.json {
        output::print(&json::line(&json!({"url": url, "port": studio.address().port()})))?;
        return Ok(None);
    }
    output::print(&format!("{url}\n"))?;
    if !quiet {
        output::print_error("The address works once. Press Ctrl-C to stop the studio.\n");
    }
    if args.no_open {
        return Ok(None);
    }
    let page = OpenedPage::open(&url, studio.address().port());
    if page.is_none() && !quiet {
        warn_plainly("no_browser", "no browser was found; open the address yourself");
    }
    Ok(page)
}

/// A file that leads a browser to the address. Other users of this machine can see the arguments of programs, but not this
/// file. It is removed when this is dropped.
struct OpenedPage(PathBuf);

impl OpenedPage {
    fn open(url: &str, port: u16) -> Option<Self> {
        let mut opener = opener()?;
        let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let name = format!("tympan-studio-{}-{port}.html", std::process::id());
        let path = folder.unwrap_or_else(std::env::temp_dir).join(name);
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
            <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>Tympan Studio</title>\
            <p><a href=\"{url}\">Open the studio</a></p>\n"
        );
        write::create(&path, page.as_bytes(), 0o600).ok()?;
        let page = Self(path);
        let mut child =
            opener.arg(&page.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        // Nobody waits for a browser, but its opener must not stay behind as a zombie.
        std::thread::spawn(move || child.wait());
        Some(page)
    }
}

impl Drop for OpenedPage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the program of this system that opens files, or `None` if there is no screen.
fn opener() -> Option<Command> {
    if cfg!(windows) {
        return Some(Command::new("explorer"));
    }
    if cfg!(target_os = "macos") {
        return Some(Command::new("open"));
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_screen.then(|| Command::new("xdg-open"))
}

/// Runs prompts as `tympan run` does.
struct CommandHost {
    /// What the command line allows.
    options: RuntimeOptions,
    credential_command: Option<String>,
    tools: Option<PathBuf>,
    catalog: Catalog,
    /// Where variables come from, with those of `.env` files.
    variables: LoadOptions,
}

impl CommandHost {
    fn new(args: &StudioArgs, quiet: bool) -> std::result::Result<Self, Failure> {
        let mut options = args.endpoint.over(RuntimeOptions::default());
        if !args.allow_env.is_empty() {
            options.load.env = EnvPolicy::allow(&args.allow_env);
        }
        let beside = prompt_file::runtime(&args.directory.join("prompt"), options.clone(), quiet);
        let host = Self {
            variables: beside.options().load.clone(),
            options: RuntimeOptions { tool_policy: args.policy.policy()?, ..options },
            credential_command: args.credentials.credential_command.clone(),
            tools: args.tools.clone(),
            catalog: Project::catalog()?,
        };
        // Mistakes of the command line and of the configuration are reported before anything starts.
        config::register_credentials(&Runtime::default(), host.credential_command.as_deref())?;
        Ok(host)
    }
}

impl Host for CommandHost {
    fn runtime(&self, prompt: &Path, options: RuntimeOptions) -> Runtime {
        let RuntimeOptions { load, tool_policy, allow_endpoints, .. } = self.options.clone();
        let load = LoadOptions { defer_env: options.load.defer_env, ..load };
        let options = RuntimeOptions { load, tool_policy, allow_endpoints, ..options };
        let runtime = prompt_file::runtime(prompt, options, true);
        // They were registered before without an error.
        let _ = config::register_credentials(&runtime, self.credential_command.as_deref());
        runtime
    }

    fn tools(&self, runtime: &Runtime, prompt: &Prompt) -> Result<Tools> {
        let help = "start the studio with `--tools FILE`, which names the program that runs it";
        let programs =
            tools::of_prompt(self.tools.as_deref(), runtime, prompt, help).map_err(|failure| match failure {
                Failure::Engine(error) => error,
                Failure::Usage(message) => Error::new(Kind::InvalidInput, message),
                Failure::Settings(..) | Failure::Output(_) => {
                    Error::new(Kind::InvalidInput, "the tools cannot be read")
                }
            })?;
        Ok(Tools::new(programs.runs, programs.flows))
    }

    fn catalog(&self) -> Catalog {
        self.catalog.clone()
    }

    fn has_variable(&self, name: &str) -> bool {
        self.variables.variable(name).is_some_and(|(value, _)| !value.is_empty())
    }
}
