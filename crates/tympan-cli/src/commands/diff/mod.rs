//! `tympan diff`: compares two versions of a prompt.

mod show;
mod source;
mod verdicts;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::format::Format;
use tympan::load::{References, directory_of};
use tympan::spec::PromptKind;
use tympan::{Error, Inputs, LoadOptions, Prompt, RenderOptions, Runtime, RuntimeOptions};
use tympan_eval::baseline::Comparison as Verdicts;
use tympan_eval::comparison::{Comparison, PromptVersion, compare};
use tympan_lint::check_file;

use self::source::Source;
use crate::args::{DiffArgs, EnvArgs, InputArgs, TestArgs};
use crate::escape::visible_line;
use crate::excerpt::Finding;
use crate::project::Project;
use crate::prompt_file::{self, is_stdin};
use crate::report::{self, Failure, Form, finding_json};
use crate::rows::Rows;
use crate::{color, inputs, json, output};

/// The exit status for errors, as `diff` has it.
const TROUBLE: u8 = 2;

/// The maximum number of prompts whose differences `tympan test --against` shows.
const MAX_PROMPTS: usize = 10;

pub(super) fn run(args: &DiffArgs, quiet: bool) -> Result<ExitCode, Failure> {
    match run_inner(args, quiet) {
        Ok(status) => Ok(status),
        // The status of an error in a prompt would be that of a difference.
        Err(failure) => {
            report::failure(&failure, if args.json { Form::Json } else { Form::Human });
            Ok(ExitCode::from(TROUBLE))
        }
    }
}

fn run_inner(args: &DiffArgs, quiet: bool) -> Result<ExitCode, Failure> {
    check_stdin(args)?;
    let project = Project::find(&args.settings)?;
    let sources = [Source::open(&args.before)?, Source::open(&args.after)?];
    let options = DiffOptions {
        project: &project,
        env: &args.env,
        inputs: &args.inputs,
        cases: Inputs::new(),
        variant: args.variant.as_deref(),
        quiet,
    };
    let compared = Compared::new(&sources, &options, true)?;
    if args.json {
        output::print(&(json::pretty(&compared.to_json(&sources)) + "\n"))?;
    } else {
        print(&compared.shown(&sources), quiet)?;
        compared.errors().for_each(report::show_error);
    }
    Ok(match (compared.errors().next(), compared.differences.is_equal()) {
        (Some(_), _) => ExitCode::from(TROUBLE),
        (None, true) => ExitCode::SUCCESS,
        (None, false) => ExitCode::FAILURE,
    })
}

/// Prints differences, with a legend of the colors.
fn print(text: &str, quiet: bool) -> Result<(), Failure> {
    output::print(&Rows::hanging_deeply(output::stdout_width()).lay_out(text))?;
    if output::looks().colors && !quiet && !text.is_empty() {
        output::print_error(&color::legend());
    }
    Ok(())
}

/// Prints what changed in the prompts of test files since a revision, apart from the verdicts of their cases. The messages
/// are those for the inputs of the first case.
pub(super) fn since(changed: &[ChangedPrompt], args: &TestArgs, project: &Project, quiet: bool) -> Result<(), Failure> {
    let mut text = String::new();
    for prompt in changed.iter().take(MAX_PROMPTS) {
        let sources = [Source::open(&prompt.before)?, Source::open(&prompt.after)?];
        let options = DiffOptions {
            project,
            env: &args.env,
            inputs: &InputArgs { set: Vec::new(), inputs: None, sample: true },
            cases: prompt.inputs.clone(),
            variant: None,
            quiet: true,
        };
        let compared = Compared::new(&sources, &options, false)?;
        text.push('\n');
        text.push_str(&compared.shown(&sources));
        if let Some(error) = compared.errors().next() {
            text.push_str(&format!("\nnote: not all messages are compared: {}\n", visible_line(error.message())));
        }
    }
    if changed.len() > MAX_PROMPTS {
        text.push_str(&format!("\nand {} more prompts changed\n", changed.len() - MAX_PROMPTS));
    }
    print(&text, quiet)
}

/// A prompt that changed since a revision.
pub(super) struct ChangedPrompt {
    /// The version before, as `REV:PATH`.
    pub(super) before: PathBuf,
    /// The file.
    pub(super) after: PathBuf,
    /// The inputs to compare messages for, besides the declared examples.
    pub(super) inputs: Inputs,
}

/// How versions are compared.
struct DiffOptions<'a> {
    project: &'a Project,
    env: &'a EnvArgs,
    inputs: &'a InputArgs,
    /// Inputs that replace the declared examples.
    cases: Inputs,
    variant: Option<&'a str>,
    quiet: bool,
}

/// Two versions and their differences.
struct Compared {
    before: Loaded,
    after: Loaded,
    differences: Comparison,
    verdicts: Option<Verdicts>,
}

impl Compared {
    fn new(sources: &[Source; 2], options: &DiffOptions<'_>, has_tests: bool) -> Result<Self, Failure> {
        let (before, after) = (load(options, &sources[0])?, load(options, &sources[1])?);
        check_variant(options.variant, [&before.version.written, &after.version.written])?;
        let differences = compare(&before.version, &after.version, &options.project.settings.models)?;
        let verdicts = match has_tests && !differences.is_equal() {
            true => verdicts::compare(sources, [&before.version.prompt, &after.version.prompt], options),
            false => None,
        };
        Ok(Self { before, after, differences, verdicts })
    }

    fn errors(&self) -> impl Iterator<Item = &Error> {
        self.before.errors.iter().chain(&self.after.errors)
    }

    fn to_json(&self, sources: &[Source; 2]) -> Json {
        let mut report = json!({ "before": sources[0].name, "after": sources[1].name });
        let errors: Json = self.errors().map(|error| finding_json(&Finding::of_error(error))).collect();
        let more = json!({ "tests": self.verdicts.as_ref().map(verdicts::to_json), "errors": errors });
        let mut parts = [self.differences.to_json(&self.before.version, &self.after.version), more];
        if self.differences.is_equal() && self.errors().next().is_some() {
            // Nobody knows whether the messages are.
            parts[0]["equal"] = Json::Null;
        }
        for part in parts {
            if let (Json::Object(report), Json::Object(part)) = (&mut report, part) {
                report.extend(part);
            }
        }
        report
    }

    fn shown(&self, sources: &[Source; 2]) -> String {
        let names = [&*sources[0].name, &*sources[1].name];
        let versions = [&self.before.version, &self.after.version];
        show::comparison(&self.differences, self.verdicts.as_ref(), names, versions, output::looks().colors)
    }
}

/// Standard input can be read only once.
fn check_stdin(args: &DiffArgs) -> Result<(), Failure> {
    if is_stdin(&args.before) && is_stdin(&args.after) {
        return Err(Failure::Usage("only one of the versions can be read from standard input".to_owned()));
    }
    if args.inputs.inputs.as_deref().is_some_and(is_stdin) {
        return Err(Failure::Usage("--inputs: both versions need the inputs, so they must be a file".to_owned()));
    }
    Ok(())
}

/// A variant that only one version has is a difference, and one that neither has is a mistake.
fn check_variant(variant: Option<&str>, versions: [&Prompt; 2]) -> Result<(), Failure> {
    let Some(variant) = variant else { return Ok(()) };
    let [before, after] = versions;
    if before.arms().chain(after.arms()).any(|arm| arm == variant) {
        return Ok(());
    }
    after.variant_hash(Some(variant)).map_err(|error| prompt_file::in_prompt(error, after))?;
    Ok(())
}

/// A version, and the errors of rendering it.
struct Loaded {
    version: PromptVersion,
    errors: Vec<Error>,
}

fn load(options: &DiffOptions<'_>, source: &Source) -> Result<Loaded, Failure> {
    let DiffOptions { project, env, .. } = options;
    let directory = directory_of(&source.file);
    let load =
        |runtime: &Runtime| match Format::from_name(source.text.name()).or(Format::of_content(source.text.text())) {
            Some(Format::Definition(syntax)) => Prompt::from_definition_source(source.text.clone(), syntax),
            _ => runtime.load_str(source.text.text(), source.text.name(), directory),
        };
    let written = load(&prompt_file::runtime_as_written(&env.files))?;
    // Both versions make the same random choices.
    let seeded = RuntimeOptions { seed: Some(0), ..RuntimeOptions::default() };
    let runtime = prompt_file::runtime(&source.file, prompt_file::deferred(env.over(seeded)), options.quiet);
    let prompt = load(&runtime)?;
    let references = LoadOptions { file_roots: env.files.allow_dir.clone(), ..LoadOptions::default() };
    let settings = project.settings.options(&project.relative(&source.path));
    let findings = check_file(&source.text, &mut References::new(directory, &references), &settings).findings;
    let inputs = inputs_of(options, &prompt)?;
    let (mut renders, mut errors) = (Vec::new(), Vec::new());
    for variant in prompt.arms().filter(|arm| options.variant.is_none_or(|variant| variant == *arm)) {
        let options = RenderOptions { variant: Some(variant), ..runtime.render_options() };
        match runtime.render_with(&prompt, &inputs, &options) {
            Ok(rendered) => renders.push((variant.to_owned(), rendered)),
            Err(error) => errors.push(prompt_file::in_prompt(error, &prompt)),
        }
    }
    // The same input is missing in all variants.
    errors.dedup_by(|next, error| next.message() == error.message());
    Ok(Loaded { version: PromptVersion { written, prompt, renders, findings }, errors })
}

/// Returns the inputs for a version: the examples that it declares, unless the command line has other inputs. Only
/// those that it knows count, because the other version may have other inputs.
fn inputs_of(options: &DiffOptions<'_>, prompt: &Prompt) -> Result<Inputs, Failure> {
    let args = options.inputs;
    let has_own = args.inputs.is_some() || !args.set.is_empty();
    let args = InputArgs { set: args.set.clone(), inputs: args.inputs.clone(), sample: args.sample || !has_own };
    let mut inputs = inputs::collect(&args, prompt)?;
    inputs.extend(options.cases.clone());
    // The template of a `.prompty` file can use inputs that are not declared.
    if prompt.kind() != PromptKind::Prompty {
        inputs.retain(|name, _| prompt.variables().iter().any(|input| input.name == *name));
    }
    Ok(inputs)
}
