//! Bodies of the type `multipart/form-data`, and the files in them.
//!
//! A model names files; it never writes their content. A name is that of a rich input of the prompt, or a path below one
//! of the folders that the host allowed. The prompt's own folder is not one of them: it often contains a `.env` file.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::Value as Json;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::text::hash::sha256_hex;
use tympan_core::{Inputs, Prompt};

use crate::file::read;
use crate::load::LoadOptions;
use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::serialize::plain;

/// The content type of a file whose type is unknown.
const UNKNOWN_TYPE: &str = "application/octet-stream";
/// The maximum size of a body, in bytes.
const MAX_BODY: usize = 64 << 20;
/// The types of files by their extensions.
const TYPES: [(&str, &str); 18] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("pdf", "application/pdf"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("csv", "text/csv"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
];

/// The files that requests may carry.
#[derive(Clone, Debug, Default)]
pub(super) struct Uploads {
    /// The rich inputs of the prompt.
    inputs: HashMap<String, Json>,
    roots: Vec<PathBuf>,
    max_bytes: u64,
}

/// A file.
struct Upload {
    name: String,
    content_type: String,
    content: Vec<u8>,
}

impl Uploads {
    pub(super) fn new(prompt: &Prompt, inputs: &Inputs, options: &LoadOptions) -> Self {
        let is_rich = |kind| matches!(kind, PropertyKind::Image | PropertyKind::File | PropertyKind::Audio);
        let rich = prompt.spec().inputs.iter().filter(|input| is_rich(input.kind));
        let inputs = rich.filter_map(|input| Some((input.name.clone(), inputs.get(&input.name)?.clone()))).collect();
        Self { inputs, roots: options.file_roots.clone(), max_bytes: options.max_file_bytes }
    }

    fn find(&self, name: &str) -> Result<Upload, Reason> {
        match self.inputs.get(name) {
            Some(value) => of_input(name, value),
            None => self.read(name),
        }
    }

    /// Reads a file below one of the roots. The path is opened in a single step that no link can escape.
    fn read(&self, written: &str) -> Result<Upload, Reason> {
        let missing = || {
            let mut names: Vec<_> = self.inputs.keys().map(|name| format!("`{name}`")).collect();
            names.sort();
            let inputs = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
            format!("expected the name of an input that holds a file ({inputs}), or a path below an allowed folder")
        };
        let path = Path::new(written);
        let relative = |root: &Path| match path.is_absolute() {
            true => path.strip_prefix(root).ok().map(Path::to_path_buf),
            false => Some(path.to_path_buf()),
        };
        for root in &self.roots {
            let Some(relative) = relative(root).filter(|relative| is_plain(relative)) else { continue };
            let Ok(dir) = Dir::open_ambient_dir(root, ambient_authority()) else { continue };
            let Ok(file) = read::open_beneath(&dir, &relative) else { continue };
            let name = relative.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let content_type = type_of(&name).to_owned();
            return Ok(Upload { content: self.content(file)?, content_type, name });
        }
        Err(missing())
    }

    fn content(&self, file: File) -> Result<Vec<u8>, Reason> {
        let mut content = Vec::new();
        file.take(self.max_bytes + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
        match content.len() as u64 > self.max_bytes {
            true => Err(format!("the file is larger than {} bytes", self.max_bytes)),
            false => Ok(content),
        }
    }
}

/// Returns whether a path has only names, and none of a hidden file or folder: these often contain credentials.
fn is_plain(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some()
        && components.all(|component| match component {
            Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
            _ => false,
        })
}

fn type_of(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    TYPES.iter().find(|(known, _)| *known == extension).map_or(UNKNOWN_TYPE, |(_, content_type)| content_type)
}

/// Converts a rich input: base64 or a `data:` URI, possibly in a map with its type and file name.
fn of_input(name: &str, value: &Json) -> Result<Upload, Reason> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str());
    let given = value.as_str().or_else(|| text(&["value", "source", "data"])).ok_or("the input has no content")?;
    if given.starts_with("http://") || given.starts_with("https://") {
        return Err(format!("the input `{}` is a URL, and only content can be uploaded", shown(name)));
    }
    let (own_type, data) = match given.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((own_type, data)) => (own_type.split(';').next().filter(|own| !own.is_empty()), data),
        None => (None, given),
    };
    let content = STANDARD.decode(data).map_err(|_| format!("the input `{}` is not base64", shown(name)))?;
    let file_name = text(&["filename", "fileName"]).unwrap_or(name).to_owned();
    let content_type = own_type.or_else(|| text(&["mediaType", "media_type"]));
    let content_type = content_type.unwrap_or_else(|| type_of(&file_name)).to_owned();
    Ok(Upload { name: file_name, content_type, content })
}

/// Builds a body with a part for each member, and its content type. `files` names the members that are files, with the
/// type that each has to have, if any.
pub(super) fn multipart(
    value: &Json,
    files: &[(String, Option<String>)],
    uploads: &Uploads,
) -> Result<(String, Vec<u8>), Reason> {
    let map = value.as_object().ok_or("a form must be a map")?;
    let mut parts = Vec::new();
    for (name, value) in map {
        let file = files.iter().find(|(file, _)| file == name);
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for item in items.iter().filter(|item| !item.is_null()) {
            let made = match file {
                Some((_, only)) => file_part(name, item, only.as_deref(), uploads),
                None => text_part(name, item),
            };
            parts.push(made.map_err(|reason| format!("`{}`: {reason}", shown(name)))?);
        }
    }
    if parts.iter().map(|(head, content)| head.len() + content.len()).sum::<usize>() > MAX_BODY {
        return Err(format!("the files are larger than {MAX_BODY} bytes together"));
    }
    let boundary = boundary(&parts);
    let mut body = Vec::new();
    for (head, content) in parts {
        body.extend(format!("--{boundary}\r\n{head}\r\n").bytes());
        body.extend(content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), body))
}

/// Returns a boundary that the parts do not contain: nobody can write a text that contains its own hash.
fn boundary(parts: &[(String, Vec<u8>)]) -> String {
    let all: Vec<u8> = parts.iter().flat_map(|(head, content)| head.bytes().chain(content.iter().copied())).collect();
    let mut hash = sha256_hex(&all);
    hash.truncate(40);
    format!("tympan-{hash}")
}

/// Returns the headers and the content of a part that is a file.
fn file_part(name: &str, value: &Json, only: Option<&str>, uploads: &Uploads) -> Result<(String, Vec<u8>), Reason> {
    let written = value.as_str().ok_or("expected the name of a file")?;
    let upload = uploads.find(written)?;
    let content_type = only.unwrap_or(&upload.content_type);
    let is_type = content_type.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let content_type = if is_type { content_type } else { UNKNOWN_TYPE };
    let (name, file_name) = (escaped(name), escaped(&upload.name));
    let head = format!(
        "Content-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\nContent-Type: {content_type}\r\n"
    );
    Ok((head, upload.content))
}

/// Returns the headers and the content of a part that is text, or JSON if it is a list or a map.
fn text_part(name: &str, value: &Json) -> Result<(String, Vec<u8>), Reason> {
    let disposition = format!("Content-Disposition: form-data; name=\"{}\"\r\n", escaped(name));
    match value {
        Json::Object(_) | Json::Array(_) => {
            Ok((disposition + "Content-Type: application/json\r\n", value.to_string().into_bytes()))
        }
        _ => Ok((disposition, plain(value)?.into_bytes())),
    }
}

/// Escapes a name for a header, as browsers do.
fn escaped(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A").replace('\0', "%00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn uploads(root: &Path) -> Uploads {
        let inputs = [
            ("photo".to_owned(), json!("data:image/png;base64,aGk=")),
            (
                "report".to_owned(),
                json!({ "value": "aGk=", "mediaType": "application/pdf", "filename": "a\"\r\nb.pdf" }),
            ),
            ("remote".to_owned(), json!("https://example.com/a.png")),
        ];
        Uploads { inputs: inputs.into(), roots: vec![root.to_path_buf()], max_bytes: 100 }
    }

    fn built(value: &Json, uploads: &Uploads) -> Result<String, Reason> {
        let files = [("file".to_owned(), None), ("picture".to_owned(), Some("image/x-own".to_owned()))];
        let (content_type, body) = multipart(value, &files, uploads)?;
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").expect("it has one");
        Ok(String::from_utf8(body).expect("it is text").replace(boundary, "B").replace("\r\n", "|"))
    }

    #[test]
    fn every_member_is_a_part() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("in")).expect("it can be made");
        std::fs::write(root.path().join("in/notes.txt"), "notes").expect("it can be written");
        let uploads = uploads(root.path());
        let value = json!({ "n": 5, "t": ["a", "b\r\n--x"], "m": { "k": [1] }, "none": null, "q\"": true });
        let expected = "--B|Content-Disposition: form-data; name=\"n\"||5|\
            --B|Content-Disposition: form-data; name=\"t\"||a|--B|Content-Disposition: form-data; name=\"t\"||b|--x|\
            --B|Content-Disposition: form-data; name=\"m\"|Content-Type: application/json||{\"k\":[1]}|\
            --B|Content-Disposition: form-data; name=\"q%22\"||true|--B--|";
        assert_eq!(built(&value, &uploads).as_deref(), Ok(expected));
        let path = root.path().join("in/notes.txt").display().to_string();
        for name in ["in/notes.txt", path.as_str()] {
            let expected = "--B|Content-Disposition: form-data; name=\"file\"; filename=\"notes.txt\"|\
                Content-Type: text/plain||notes|--B--|";
            assert_eq!(built(&json!({ "file": name }), &uploads).as_deref(), Ok(expected));
        }
        let expected = "--B|Content-Disposition: form-data; name=\"picture\"; filename=\"photo\"|\
            Content-Type: image/x-own||hi|--B|Content-Disposition: form-data; name=\"file\"; \
            filename=\"a%22%0D%0Ab.pdf\"|Content-Type: application/pdf||hi|--B--|";
        assert_eq!(built(&json!({ "picture": "photo", "file": ["report"] }), &uploads).as_deref(), Ok(expected));
    }

    #[test]
    fn only_files_that_somebody_allowed_are_read() {
        let outer = tempfile::tempdir().expect("a folder");
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join(".ssh")).expect("it can be made");
        for name in ["secret.txt", "root/.env", "root/.ssh/key", "root/large.txt"] {
            std::fs::write(outer.path().join(name), "x".repeat(101)).expect("it can be written");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(outer.path().join("secret.txt"), root.join("link.txt")).expect("it can be made");
        let outside = outer.path().join("secret.txt").display().to_string();
        for name in [
            "../secret.txt",
            "in/../../secret.txt",
            "link.txt",
            outside.as_str(),
            "/etc/passwd",
            ".env",
            ".ssh/key",
            "",
            ".",
            "missing.txt",
            "large.txt",
            "remote",
        ] {
            let refused = built(&json!({ "file": name }), &uploads(&root)).expect_err(name);
            assert!(refused.starts_with("`file`: ") && !refused.contains("xxx"), "{name}: {refused}");
        }
        assert!(built(&json!({ "file": "secret.txt" }), &Uploads::default()).is_err());
        assert!(built(&json!([1]), &Uploads::default()).is_err());
        assert!(built(&json!({ "file": 5 }), &Uploads::default()).is_err());
    }
}
