//! `tympan keygen`: generates a key for signing directives.

use tympan::directive::signature::TrustedKey;
use tympan::file::keys::{generate_key, write_signing_key, write_trusted_key};

use crate::args::KeygenArgs;
use crate::escape::visible_line;
use crate::output;
use crate::report::Failure;

pub(super) fn run(args: &KeygenArgs) -> Result<(), Failure> {
    let key = generate_key()?;
    let trusted = TrustedKey::new(key.public_key(), args.owner.clone());
    write_signing_key(&args.file, &key)?;
    let Some(folder) = &args.trust else { return Ok(output::print(&trusted.to_toml())?) };
    let public = write_trusted_key(folder, &trusted)?;
    let (private, public) = (args.file.display().to_string(), public.display().to_string());
    let text = format!(
        "fingerprint: {}\nprivate key: {} (keep it secret)\npublic key:  {}\n",
        trusted.fingerprint(),
        visible_line(&private),
        visible_line(&public)
    );
    Ok(output::print(&text)?)
}
