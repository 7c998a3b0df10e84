//! Files of git revisions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};
use tympan_eval::revision::{Repository, RevisionError};
use tympan_runtime::load::DEFAULT_MAX_FILE_BYTES;

use super::{blocking, path_of};
use crate::access::query_value;
use crate::failure::{Answer, Failure};
use crate::project::FileKind;
use crate::server::App;

/// The maximum length of the name of a revision, in bytes.
const MAX_NAME: usize = 200;

/// Answers with the text that a file has in a git revision.
pub(crate) async fn revision(State(app): State<Arc<App>>, uri: Uri) -> Answer<Json<Value>> {
    let path = path_of(&uri)?;
    let name = query_value(&uri, "rev").filter(|name| is_name(name)).ok_or_else(|| {
        Failure::invalid("the address has no valid `rev`")
            .with_help("a revision is a branch, a tag, a commit, or `HEAD~1`")
    })?;
    blocking(move || {
        let failed = |error: RevisionError| {
            let failure = Failure::invalid(error.message);
            Failure { code: "revision", help: error.help, ..failure }
        };
        let repository = Repository::containing(app.project.root()).map_err(failed)?;
        let revision = repository.revision(&name).map_err(failed)?;
        let text = revision.text(&repository.prefix().join(path.as_str()), DEFAULT_MAX_FILE_BYTES).map_err(failed)?;
        let text = text.ok_or_else(|| Failure::not_found("the revision does not have the file"))?;
        // The history of a repository has other files as well.
        if FileKind::of(&path, &text).is_none() {
            return Err(Failure::forbidden("not a file that the studio shows"));
        }
        Ok(Json(json!({"text": text, "revision": name, "commit": revision.commit()})))
    })
    .await
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-~^@{}".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('-') && name.bytes().all(is_allowed)
}
