//! Converts operations to functions.
//!
//! A function takes one map, with a member for each parameter and `body` for the body. Each member has the name of its
//! parameter. If two parameters of an operation have the same name, the later one is prefixed with its location:
//! `query_id`.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value as Json, json};
use tympan_core::JsonMap;
use tympan_core::wire::Function;
use url::Url;

use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::document::{Document, DocumentOperation, is_true, text_of};
use crate::tool::openapi::request::{MAX_ADDRESS, is_reserved, is_straight};
use crate::tool::openapi::schema::{Bounds, Schemas, bounded_text, described};
use crate::tool::openapi::security::{self, KeyPlace, Security, is_token};
use crate::tool::openapi::serialize::Style;
use crate::tool::openapi::server::ServerLocation;

/// The maximum length of the names of functions and parameters, in characters. Providers do not accept longer ones.
const MAX_NAME: usize = 64;
/// The maximum length of a function's description, in characters.
const MAX_DESCRIPTION: usize = 1_000;
/// The maximum number of parameters of an operation.
const MAX_PARAMETERS: usize = 100;
/// The description of a file for the model.
const FILE_HELP: &str = "The file: the name of an input that holds one, or a path below an allowed folder.";
/// The member that contains the body.
pub(super) const BODY: &str = "body";
/// The characters that must be percent-encoded in a path.
const NOT_IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// An operation that can be called.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) function: Function,
    pub(super) method: Method,
    pub(super) base: Url,
    pub(super) path: Vec<PathPart>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) security: Security,
}

/// A piece of a path.
#[derive(Clone, Debug)]
pub(super) enum PathPart {
    /// Percent-encoded text.
    Text(String),
    /// A parameter, by its index.
    Parameter(usize),
}

/// The location of a parameter, in the order in which names are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

impl Location {
    const ALL: [Self; 4] = [Self::Path, Self::Query, Self::Header, Self::Cookie];

    fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|location| location.as_str() == name)
    }
}

/// A parameter of an operation.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// The member of the arguments.
    pub(super) argument: String,
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) style: Style,
    pub(super) explode: bool,
}

/// The format of a body.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Json {
        content_type: String,
    },
    /// A form. Some members may have a style of their own.
    Form {
        styles: Vec<(String, Style, bool)>,
    },
    /// A form with a part for each member. Some members are files, which may have to be of a certain type.
    Multipart {
        files: Vec<(String, Option<String>)>,
    },
}

/// Converts an operation to a function.
///
/// # Errors
/// Returns the reason if the operation is not supported.
pub(super) fn read(
    document: Document<'_>,
    written: &DocumentOperation<'_>,
    name: String,
    location: &ServerLocation,
    bounds: &mut Bounds,
) -> Result<Operation, Reason> {
    if written.path.len() > MAX_ADDRESS {
        return Err(format!("the path is longer than {MAX_ADDRESS} bytes"));
    }
    let base = location.of_operation(written.item, written.operation)?;
    let security = security::of(document, written.operation)?;
    let mut schemas = Schemas::new(document, bounds);
    let mut arguments = Arguments::default();
    let body = written.operation.get("requestBody");
    let body = body.map(|body| read_body(document, body, &mut schemas, &mut arguments)).transpose()?.flatten();
    let parameters = read_parameters(document, written, &security, &mut schemas, &mut arguments)?;
    let path = read_path(written.path, &parameters)?;
    let function =
        Function { name, description: Some(description(written)), parameters: arguments.into_schema(), strict: false };
    let method = Method::from_bytes(written.method.to_uppercase().as_bytes()).map_err(|_| "unknown HTTP method")?;
    Ok(Operation { function, method, base, path, parameters, body, security })
}

/// The members of a function's arguments.
#[derive(Default)]
struct Arguments {
    properties: JsonMap,
    required: Vec<String>,
}

impl Arguments {
    fn add(&mut self, name: String, schema: Json, is_required: bool) {
        if is_required {
            self.required.push(name.clone());
        }
        self.properties.insert(name, schema);
    }

    /// Returns a name that no other member has.
    fn free_name(&self, name: &str, location: Location) -> String {
        let wanted = [safe_name(name), safe_name(&format!("{}_{name}", location.as_str()))];
        let numbered = (2_usize..).map(|number| numbered(&wanted[1], number));
        let mut names = wanted.iter().cloned().chain(numbered);
        names.find(|name| !self.properties.contains_key(name)).unwrap_or_default()
    }

    fn into_schema(self) -> Json {
        let mut schema = json!({ "type": "object", "properties": self.properties });
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        // Undeclared members have no place in the request.
        schema["additionalProperties"] = json!(false);
        schema
    }
}

/// Converts a name to one that providers accept: letters, digits, `_` and `-`.
pub(super) fn safe_name(name: &str) -> String {
    let safe = |char: char| if char.is_ascii_alphanumeric() || matches!(char, '_' | '-') { char } else { '_' };
    let name: String = name.chars().map(safe).take(MAX_NAME).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// Appends a number to a name.
pub(super) fn numbered(name: &str, number: usize) -> String {
    let end = format!("_{number}");
    let begin: String = name.chars().take(MAX_NAME - end.len()).collect();
    begin + &end
}

fn description(written: &DocumentOperation<'_>) -> String {
    let mut texts: Vec<&str> = ["summary", "description"]
        .into_iter()
        .filter_map(|key| text_of(written.operation, key))
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(|text| &text[..text.floor_char_boundary(8 * MAX_DESCRIPTION)])
        .collect();
    texts.dedup();
    if is_true(written.operation, "deprecated") {
        texts.insert(0, "Deprecated.");
    }
    let text = if texts.is_empty() { written.label() } else { texts.join("\n\n") };
    bounded_text(&text, MAX_DESCRIPTION)
}

fn read_parameters<'d>(
    document: Document<'d>,
    written: &DocumentOperation<'d>,
    security: &Security,
    schemas: &mut Schemas<'d, '_>,
    arguments: &mut Arguments,
) -> Result<Vec<Parameter>, Reason> {
    let mut found: Vec<(Location, &str, &Json)> = Vec::new();
    let mut seen = HashSet::new();
    // The parameters of an operation override those of its path.
    for level in [written.operation, written.item] {
        let listed = level.get("parameters").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        // Parameters that the model cannot set do not count toward the limit, but the list itself is limited too.
        if listed.len() > 10 * MAX_PARAMETERS {
            return Err(too_many_parameters());
        }
        // Many paths may refer to the same list, so reading it counts as work each time.
        schemas.look_at(8 * listed.len());
        if schemas.is_exhausted() {
            return Err("the document is too complex".to_owned());
        }
        for parameter in listed {
            let parameter = document.resolve(parameter)?;
            let name = text_of(parameter, "name").filter(|name| !name.is_empty()).ok_or("parameter without a name")?;
            let location = text_of(parameter, "in").and_then(Location::from_name);
            let location = location.ok_or_else(|| format!("parameter `{}`: unknown `in`", shown(name)))?;
            if seen.insert((location, name)) && is_settable(location, name, written, security) {
                found.push((location, name, parameter));
            }
        }
    }
    if found.len() > MAX_PARAMETERS {
        return Err(too_many_parameters());
    }
    found.sort_by_key(|(location, ..)| *location);
    let mut parameters = Vec::new();
    for (location, name, parameter) in found {
        let argument = arguments.free_name(name, location);
        let (style, explode) = style(parameter, location)?;
        let schema = parameter.get("schema").or_else(|| json_content(parameter)?.1.get("schema"));
        let schema = schema.map(|schema| schemas.convert(schema)).transpose()?.unwrap_or_else(|| json!({}));
        let is_required = location == Location::Path || is_true(parameter, "required");
        arguments.add(argument.clone(), described(schema, parameter), is_required);
        parameters.push(Parameter { argument, name: name.to_owned(), location, style, explode });
    }
    Ok(parameters)
}

fn too_many_parameters() -> Reason {
    format!("more than {MAX_PARAMETERS} parameters")
}

/// Returns whether a model may set a parameter. Parameters that control the HTTP request or carry credentials are not
/// settable, and neither are path parameters that do not appear in the path.
fn is_settable(location: Location, name: &str, written: &DocumentOperation<'_>, security: &Security) -> bool {
    match (location, &security.place) {
        (Location::Path, _) => written.path.contains(&format!("{{{name}}}")),
        (Location::Query, Some(KeyPlace::Query(key))) => key != name,
        (Location::Cookie, Some(KeyPlace::Cookie(key))) if key == name => false,
        (Location::Header, Some(KeyPlace::Header(key))) if key.as_str().eq_ignore_ascii_case(name) => false,
        (Location::Header, _) => is_token(name) && !is_reserved(&name.to_ascii_lowercase()),
        (Location::Cookie, _) => is_token(name),
        (Location::Query, _) => true,
    }
}

fn style(parameter: &Json, location: Location) -> Result<(Style, bool), Reason> {
    if parameter.get("schema").is_none() && parameter.get("content").is_some() {
        let is_json = json_content(parameter).is_some();
        return if is_json { Ok((Style::Json, false)) } else { Err("parameter with unsupported `content`".into()) };
    }
    let style = match text_of(parameter, "style") {
        Some(name) => Style::from_name(name),
        None if matches!(location, Location::Query | Location::Cookie) => Some(Style::Form),
        None => Some(Style::Simple),
    };
    let fits = |style: &Style| match location {
        Location::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Location::Header => *style == Style::Simple,
        Location::Cookie => *style == Style::Form,
        Location::Query => !matches!(style, Style::Simple | Style::Label | Style::Matrix),
    };
    let style = style.filter(fits).ok_or("parameter with an invalid `style`")?;
    let explode = parameter.get("explode").and_then(Json::as_bool).unwrap_or(style == Style::Form);
    Ok((style, explode))
}

/// Returns the JSON content with its type.
fn json_content(of: &Json) -> Option<(&str, &Json)> {
    let content = of.get("content").and_then(Json::as_object)?;
    let is = |wanted: fn(&str) -> bool| content.iter().find(|(name, _)| wanted(&essence(name)));
    let exact = is(|name| name == "application/json");
    let found = exact.or_else(|| is(|name| name.ends_with("+json") || matches!(name, "*/*" | "application/*")));
    found.map(|(name, media)| (name.as_str(), media))
}

/// Returns a content type without its parameters.
pub(super) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn read_body<'d>(
    document: Document<'d>,
    body: &'d Json,
    schemas: &mut Schemas<'d, '_>,
    arguments: &mut Arguments,
) -> Result<Option<Body>, Reason> {
    let body = document.resolve(body)?;
    let form = |wanted: &str| {
        let content = body.get("content").and_then(Json::as_object)?;
        content.iter().find(|(name, _)| essence(name) == wanted)
    };
    let multipart = form("multipart/form-data").filter(|_| json_content(body).is_none());
    let form = form("application/x-www-form-urlencoded");
    if let (Some((_, media)), None) = (multipart, form) {
        return read_multipart(document, body, media, schemas, arguments).map(Some);
    }
    let (read, media) = match (json_content(body), form) {
        (Some((name, media)), _) => {
            let is_exact = !name.contains('*') && HeaderValue::from_str(name).is_ok();
            let content_type = if is_exact { name } else { "application/json" };
            (Body::Json { content_type: content_type.to_owned() }, media)
        }
        (None, Some((_, media))) => (Body::Form { styles: form_styles(media) }, media),
        (None, None) if is_true(body, "required") => {
            return Err("the body is neither JSON nor a form".to_owned());
        }
        (None, None) => return Ok(None),
    };
    let schema = media.get("schema").map(|schema| schemas.convert(schema)).transpose()?;
    arguments.add(BODY.to_owned(), described(schema.unwrap_or_else(|| json!({})), body), is_true(body, "required"));
    Ok(Some(read))
}

/// Reads a body of the type `multipart/form-data`. The model writes the name of each file instead of its content.
fn read_multipart<'d>(
    document: Document<'d>,
    body: &'d Json,
    media: &'d Json,
    schemas: &mut Schemas<'d, '_>,
    arguments: &mut Arguments,
) -> Result<Body, Reason> {
    let written = media.get("schema").map(|schema| document.resolve(schema)).transpose()?;
    let encodings = media.get("encoding");
    let mut schema =
        media.get("schema").map(|schema| schemas.convert(schema)).transpose()?.unwrap_or_else(|| json!({}));
    let mut files = Vec::new();
    for (name, member) in schema.get_mut("properties").and_then(Json::as_object_mut).into_iter().flatten() {
        let written = written.and_then(|written| written.get("properties")?.get(name));
        let written = written.map(|written| document.resolve(written)).transpose()?;
        let content_type = encodings.and_then(|all| text_of(all.get(name)?, "contentType"));
        if is_file(member, written, content_type) {
            *member = file_schema(member);
        } else if member
            .get("items")
            .is_some_and(|items| is_file(items, written.and_then(|all| all.get("items")), None))
        {
            if let Some(items) = member.get_mut("items") {
                *items = file_schema(items);
            }
        } else {
            continue;
        }
        let only = content_type.filter(|only| !only.contains(['*', ',']) && HeaderValue::from_str(only).is_ok());
        files.push((name.clone(), only.map(str::to_owned)));
    }
    arguments.add(BODY.to_owned(), described(schema, body), is_true(body, "required"));
    Ok(Body::Multipart { files })
}

/// Returns whether a member of a form is a file, from its converted schema, its schema as written, and its encoding.
fn is_file(schema: &Json, written: Option<&Json>, content_type: Option<&str>) -> bool {
    let is_binary = text_of(schema, "format") == Some("binary");
    // OpenAPI 3.1 describes content that is not encoded as text by its type alone.
    let has_type = written.is_some_and(|written| {
        text_of(written, "contentMediaType").is_some() && written.get("contentEncoding").is_none()
    });
    let is_media = content_type.is_some_and(|content_type| {
        let kind = essence(content_type.split(',').next().unwrap_or_default());
        let is_text =
            kind.starts_with("text/") || kind.ends_with("json") || kind == "application/x-www-form-urlencoded";
        kind.contains('/') && !is_text
    });
    is_binary || has_type || is_media
}

/// Returns the schema of the name that a model writes for a file.
fn file_schema(schema: &Json) -> Json {
    let own = text_of(schema, "description").map(|text| format!("{} ", text.trim())).unwrap_or_default();
    json!({ "type": "string", "description": format!("{own}{FILE_HELP}") })
}

fn form_styles(media: &Json) -> Vec<(String, Style, bool)> {
    let encodings = media.get("encoding").and_then(Json::as_object);
    let read = |(name, encoding): (&String, &Json)| {
        let style = Style::from_name(text_of(encoding, "style")?)?;
        let explode = encoding.get("explode").and_then(Json::as_bool).unwrap_or(style == Style::Form);
        Some((name.clone(), style, explode))
    };
    encodings.into_iter().flatten().filter_map(read).collect()
}

fn read_path(path: &str, parameters: &[Parameter]) -> Result<Vec<PathPart>, Reason> {
    let text = |text: &str| PathPart::Text(utf8_percent_encode(text, NOT_IN_PATHS).to_string());
    let mut pieces = Vec::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("unclosed brace in the path")?;
        let of_path = |parameter: &Parameter| parameter.location == Location::Path && parameter.name == name;
        let index = parameters.iter().position(of_path);
        let index = index.ok_or_else(|| format!("undeclared path parameter `{}`", shown(name)))?;
        pieces.extend([text(before), PathPart::Parameter(index)]);
        rest = after;
    }
    pieces.push(text(rest));
    let example: String =
        pieces.iter().map(|piece| if let PathPart::Text(text) = piece { text } else { "x" }).collect();
    if is_straight(&example) { Ok(pieces) } else { Err("the path contains `.` or `..` segments".to_owned()) }
}
