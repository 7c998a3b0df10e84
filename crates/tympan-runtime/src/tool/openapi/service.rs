//! A service: the operations of a document as functions, and the requests for their calls.

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;
use tympan_core::wire::Function;
use tympan_core::{Error, JsonMap, Kind, Result};
use url::Url;

use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::document::{Document, DocumentOperation, unusable};
use crate::tool::openapi::operation::{self, Operation, numbered, safe_name};
use crate::tool::openapi::request::ServiceRequest;
use crate::tool::openapi::schema::Bounds;
use crate::tool::openapi::server::ServerLocation;
use crate::tool::openapi::upload::Uploads;

/// The maximum number of functions of a service. Providers do not accept more.
const MAX_FUNCTIONS: usize = 128;
/// The maximum number of operations in a document.
const MAX_OPERATIONS: usize = 2_000;
/// The maximum number of names to list in an error.
const MAX_LISTED: usize = 10;

/// The options for building a service from a document.
#[derive(Clone, Debug, Default)]
pub struct ServiceOptions {
    /// The name of the document in errors.
    pub name: String,
    /// The URL of the connection. It overrides the document's servers, whose path is used if this URL has none.
    pub endpoint: Option<Url>,
    /// The values of variables in the URLs of the document's servers. Other variables have their defaults.
    pub variables: JsonMap,
    /// The URL that the document was fetched from, for resolving relative servers.
    pub address: Option<Url>,
    /// The operations to convert to functions: by `operationId`, as `GET /path`, or by the name of the function. `None`
    /// converts all.
    pub operations: Option<Vec<String>>,
    /// A prefix for the names of the functions.
    pub prefix: String,
}

/// The operations of an OpenAPI document as functions.
///
/// A service does no I/O. It describes what a model may call and builds the request for each call.
#[derive(Clone, Debug)]
pub struct Service {
    base: Url,
    operations: Vec<Operation>,
    left_out: Vec<LeftOut>,
}

/// An operation that was not converted to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The method and the path.
    pub operation: String,
    /// The reason.
    pub reason: String,
}

impl Service {
    /// Builds a service from a document.
    ///
    /// # Errors
    /// Returns an error if the document is not OpenAPI 3.0 or 3.1, if it does not specify a server, if it lacks a
    /// requested operation or server variable, or if it has no usable operations or too many.
    pub fn new(document: &Json, options: &ServiceOptions) -> Result<Self> {
        let document = Document::new(document).map_err(|reason| unusable(&options.name, reason))?;
        let (endpoint, address) = (options.endpoint.as_ref(), options.address.as_ref());
        let location = ServerLocation::new(document, endpoint, address, &options.variables)?;
        let mut choice = Choice::new(options);
        let mut names = HashMap::new();
        let mut bounds = Bounds::default();
        let mut service = Self { base: location.base.clone(), operations: Vec::new(), left_out: Vec::new() };
        for (index, written) in document.operations().enumerate() {
            if index == MAX_OPERATIONS {
                return Err(unusable(&options.name, format_args!("more than {MAX_OPERATIONS} operations")));
            }
            let name = free_name(&written, &options.prefix, &mut names);
            if choice.takes(&written, &name) {
                let read = operation::read(document, &written, name, &location, &mut bounds);
                service.add(&written, read, options)?;
            }
        }
        choice.check(document)?;
        service.check(&options.name)?;
        Ok(service)
    }

    fn add(
        &mut self,
        written: &DocumentOperation<'_>,
        read: Result<Operation, Reason>,
        options: &ServiceOptions,
    ) -> Result<()> {
        match read {
            Ok(operation) => self.operations.push(operation),
            Err(reason) if options.operations.is_some() => {
                return Err(unusable(&options.name, format_args!("{}: {reason}", written.label())));
            }
            Err(reason) => self.left_out.push(LeftOut { operation: written.label(), reason }),
        }
        if self.operations.len() > MAX_FUNCTIONS {
            let details = format_args!("more than {MAX_FUNCTIONS} operations, which is too many for a model");
            return Err(unusable(&options.name, details).with_help("list the operations to offer: `operations: [...]`"));
        }
        Ok(())
    }

    fn check(&self, name: &str) -> Result<()> {
        if !self.operations.is_empty() {
            return Ok(());
        }
        let why = self.left_out.first().map(|first| format!("; {}: {}", first.operation, first.reason));
        Err(unusable(name, format_args!("no usable operation{}", why.unwrap_or_default())))
    }

    /// Returns the base URL of the operations.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Returns the functions that a model may call, in the order of the document.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.operations.iter().map(|operation| &operation.function)
    }

    /// Returns the operations that were not converted to functions, with the reasons.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Builds the request for a call of a function, without the key. No files are available to it.
    ///
    /// # Errors
    /// Returns an error if the function does not exist or the arguments are invalid.
    pub fn request(&self, function: &str, arguments: &JsonMap) -> Result<ServiceRequest> {
        let found = self.operations.iter().find(|operation| operation.function.name == function);
        let found = found.ok_or_else(|| Error::new(Kind::ToolNotRegistered, shown(function)))?;
        found.request(arguments, &Uploads::default())
    }

    pub(super) fn into_operations(self) -> Vec<Operation> {
        self.operations
    }
}

/// Returns a unique name for the function of an operation. `names` maps each name in use to the next number to append
/// to it.
fn free_name(written: &DocumentOperation<'_>, prefix: &str, names: &mut HashMap<String, usize>) -> String {
    let own = written.id().map(|id| beginning(id).to_owned()).unwrap_or_else(|| {
        let path = beginning(written.path).replace(['{', '}'], "");
        let words = path.split('/').filter(|word| !word.is_empty());
        std::iter::once(written.method).chain(words).collect::<Vec<_>>().join("_")
    });
    let wanted = safe_name(&format!("{prefix}{own}"));
    let mut name = wanted.clone();
    while names.contains_key(&name) {
        let number = names.entry(wanted.clone()).or_insert(2);
        name = numbered(&wanted, *number);
        *number += 1;
    }
    names.insert(name.clone(), 2);
    name
}

/// Truncates a name to a length that is more than enough for the name of a function.
fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(1024)]
}

/// The operations that were requested.
struct Choice<'o> {
    wanted: Option<HashSet<&'o str>>,
    in_order: &'o [String],
    found: HashSet<&'o str>,
    name: &'o str,
}

impl<'o> Choice<'o> {
    fn new(options: &'o ServiceOptions) -> Self {
        let wanted = options.operations.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let in_order = options.operations.as_deref().unwrap_or_default();
        Self { wanted, in_order, found: HashSet::new(), name: &options.name }
    }

    fn takes(&mut self, written: &DocumentOperation<'_>, name: &str) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        let label = written.label();
        let names = [Some(name), Some(&label), written.id()];
        let matching: Vec<_> = names.into_iter().flatten().filter_map(|name| wanted.get(name).copied()).collect();
        self.found.extend(&matching);
        !matching.is_empty()
    }

    fn check(&self, document: Document<'_>) -> Result<()> {
        let Some(missing) = self.in_order.iter().find(|name| !self.found.contains(name.as_str())) else {
            return Ok(());
        };
        let names: Vec<_> = document
            .operations()
            .take(MAX_LISTED)
            .map(|written| format!("`{}`", written.id().map_or_else(|| written.label(), shown)))
            .collect();
        let details = format_args!("{} has no operation `{}`", shown(self.name), shown(missing));
        Err(Error::new(Kind::ToolMismatch, details).with_help(format!("available operations: {}", names.join(", "))))
    }
}
