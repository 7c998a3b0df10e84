//! `tympan diff`: compares two versions of a prompt.

mod show;
mod source;

use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::format::Format;
use tympan::load::{References, directory_of};
use tympan::spec::PromptKind;
use tympan::{Error, Inputs, LoadOptions, Prompt, RenderOptions, Runtime, RuntimeOptions};
use tympan_eval::comparison::{PromptVersion, compare};
use tympan_lint::check_file;

use self::source::Source;
use crate::args::{DiffArgs, InputArgs};
use crate::excerpt::Finding;
use crate::project::Project;
use crate::prompt_file::{self, is_stdin};
use crate::report::{self, Failure, Form, finding_json};
use crate::rows::Rows;
use crate::{color, inputs, json, output};

/// The exit status for errors, as `diff` has it.
const TROUBLE: u8 = 2;

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
    let [before, after] = &sources;
    let before = load(args, &project, before, quiet)?;
    let after = load(args, &project, after, quiet)?;
    check_variant(args, [&before.version.written, &after.version.written])?;
    let compared = compare(&before.version, &after.version, &project.settings.models)?;
    let errors: Vec<_> = before.errors.iter().chain(&after.errors).collect();
    if args.json {
        let mut report = json!({ "before": sources[0].name, "after": sources[1].name });
        let errors: Json = errors.iter().map(|error| finding_json(&Finding::of_error(error))).collect();
        let mut parts = [compared.to_json(&before.version, &after.version), json!({ "errors": errors })];
        if compared.is_equal() && !before.errors.is_empty() | !after.errors.is_empty() {
            // Nobody knows whether the messages are.
            parts[0]["equal"] = Json::Null;
        }
        for part in parts {
            if let (Json::Object(report), Json::Object(part)) = (&mut report, part) {
                report.extend(part);
            }
        }
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        let names = [&*sources[0].name, &*sources[1].name];
        let versions = [&before.version, &after.version];
        let colors = output::looks().colors;
        let text = show::comparison(&compared, names, versions, colors);
        output::print(&Rows::hanging_deeply(output::stdout_width()).lay_out(&text))?;
        if colors && !quiet && !text.is_empty() {
            output::print_error(&color::legend());
        }
        errors.iter().for_each(|error| report::show_error(error));
    }
    Ok(match (errors.is_empty(), compared.is_equal()) {
        (false, _) => ExitCode::from(TROUBLE),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::FAILURE,
    })
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
fn check_variant(args: &DiffArgs, versions: [&Prompt; 2]) -> Result<(), Failure> {
    let Some(variant) = &args.variant else { return Ok(()) };
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

fn load(args: &DiffArgs, project: &Project, source: &Source, quiet: bool) -> Result<Loaded, Failure> {
    let directory = directory_of(&source.file);
    let load =
        |runtime: &Runtime| match Format::from_name(source.text.name()).or(Format::of_content(source.text.text())) {
            Some(Format::Definition(syntax)) => Prompt::from_definition_source(source.text.clone(), syntax),
            _ => runtime.load_str(source.text.text(), source.text.name(), directory),
        };
    let written = load(&prompt_file::runtime_as_written(&args.env.files))?;
    // Both versions make the same random choices.
    let options = RuntimeOptions { seed: Some(0), ..RuntimeOptions::default() };
    let runtime = prompt_file::runtime(&source.file, prompt_file::deferred(args.env.over(options)), quiet);
    let prompt = load(&runtime)?;
    let references = LoadOptions { file_roots: args.env.files.allow_dir.clone(), ..LoadOptions::default() };
    let options = project.settings.options(&project.relative(&source.path));
    let findings = check_file(&source.text, &mut References::new(directory, &references), &options).findings;
    let inputs = inputs_of(&args.inputs, &prompt)?;
    let (mut renders, mut errors) = (Vec::new(), Vec::new());
    for variant in prompt.arms().filter(|arm| args.variant.as_ref().is_none_or(|variant| variant == arm)) {
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
fn inputs_of(args: &InputArgs, prompt: &Prompt) -> Result<Inputs, Failure> {
    let has_own = args.inputs.is_some() || !args.set.is_empty();
    let args = InputArgs { set: args.set.clone(), inputs: args.inputs.clone(), sample: args.sample || !has_own };
    let mut inputs = inputs::collect(&args, prompt)?;
    // The template of a `.prompty` file can use inputs that are not declared.
    if prompt.kind() != PromptKind::Prompty {
        inputs.retain(|name, _| prompt.variables().iter().any(|input| input.name == *name));
    }
    Ok(inputs)
}
