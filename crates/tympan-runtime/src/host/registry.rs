//! The renderers, parsers, functions, providers, connections and tools that a host has registered.

use std::sync::Arc;
#[cfg(feature = "agent")]
use std::time::Duration;

use serde_json::Value as Json;
use tympan_core::Result;
use tympan_core::spec::Connection;
use tympan_core::template::functions::{FunctionArgs, FunctionError};

use crate::host::runtime::{Parser, Renderer, Runtime};
#[cfg(feature = "providers")]
use crate::model::provider::Provider;
#[cfg(feature = "providers")]
use crate::model::token::CredentialProvider;
#[cfg(feature = "agent")]
use crate::tool::{CredentialCommand, Tool, ToolHandler};

impl Runtime {
    /// Registers a renderer for templates of this format, replacing any existing one.
    pub fn register_renderer(&self, kind: impl Into<String>, renderer: impl Renderer + 'static) {
        self.shared.renderers.insert(kind.into(), Arc::new(renderer));
    }

    /// Registers a parser of this kind, replacing any existing one.
    pub fn register_parser(&self, kind: impl Into<String>, parser: impl Parser + 'static) {
        self.shared.parsers.insert(kind.into(), Arc::new(parser));
    }

    /// Registers a filter for the templates of this runtime, `{{ value|name(…) }}`, replacing any existing one of this
    /// name. The first argument is the value. The origin of the result is the union of the origins of all arguments.
    ///
    /// ```
    /// use serde_json::json;
    /// use tympan_core::Prompt;
    /// use tympan_runtime::Runtime;
    ///
    /// let runtime = Runtime::default();
    /// runtime.register_filter("initials", |args| {
    ///     let name = args.value().as_str().ok_or("expected a name")?;
    ///     Ok(name.split(' ').filter_map(|word| word.chars().next()).collect::<String>().into())
    /// })?;
    /// let source = "{name: a, role: user, body: '{{ who|initials }}', variables: {who: {type: string, trusted: false}}}";
    /// let prompt = Prompt::from_yaml(source)?;
    /// assert_eq!(runtime.render(&prompt, &json!({"who": "Ada Lovelace"}))?.text(), "AL");
    /// # Ok::<(), tympan_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in filter.
    pub fn register_filter(
        &self,
        name: impl Into<String>,
        filter: impl Fn(&FunctionArgs) -> Result<Json, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        self.shared.functions.add_filter(name, filter)
    }

    /// Registers a test for the templates of this runtime, `{% if value is name(…) %}`, replacing any existing one of
    /// this name. The first argument is the value.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in test.
    pub fn register_test(
        &self,
        name: impl Into<String>,
        test: impl Fn(&FunctionArgs) -> Result<bool, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        self.shared.functions.add_test(name, test)
    }

    /// Registers a function for the templates of this runtime, `{{ name(…) }}`, replacing any existing one of this
    /// name. A macro or a declared input of the same name hides it.
    ///
    /// # Errors
    /// Returns an error if the name is not an identifier or is that of a built-in function.
    pub fn register_function(
        &self,
        name: impl Into<String>,
        function: impl Fn(&FunctionArgs) -> Result<Json, FunctionError> + Send + Sync + 'static,
    ) -> Result<()> {
        self.shared.functions.add_function(name, function)
    }

    #[cfg(feature = "providers")]
    /// Registers a provider of this name, replacing any existing one, including a built-in one.
    pub fn register_provider(&self, name: impl Into<String>, provider: impl Provider + 'static) {
        self.shared.providers.insert(name.into(), Arc::new(provider));
    }

    #[cfg(feature = "providers")]
    /// Returns the provider that the host has registered under this name.
    pub fn get_provider(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.shared.providers.get(name)
    }

    #[cfg(feature = "providers")]
    /// Registers a credential provider for connections of this kind, such as `foundry`, `oauth` or `anonymous`,
    /// replacing any existing one. `*` matches all kinds without a provider of their own, except `key` and `anonymous`.
    pub fn register_credential_provider(&self, kind: impl Into<String>, provider: impl CredentialProvider + 'static) {
        self.shared.credential_providers.insert(kind.into(), Arc::new(provider));
        self.shared.tokens.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers a program that prints an access token, as a credential provider for connections of this kind; see
    /// [`CredentialCommand`](crate::tool::CredentialCommand).
    ///
    /// # Errors
    /// Returns an error if the command is empty, or if its program is a relative path.
    pub fn register_credential_command(
        &self,
        kind: impl Into<String>,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.register_credential_provider(kind, CredentialCommand::new(command, timeout)?);
        Ok(())
    }

    #[cfg(feature = "providers")]
    /// Returns the credential provider that the host has registered for a kind of connections.
    pub fn get_credential_provider(&self, kind: &str) -> Option<Arc<dyn CredentialProvider>> {
        self.shared.credential_providers.get(kind)
    }

    #[cfg(feature = "providers")]
    /// Removes all credential providers and the tokens that they returned.
    pub fn clear_credential_providers(&self) {
        self.shared.credential_providers.clear();
        self.shared.tokens.clear();
    }

    /// Registers a connection for prompts that refer to it with `{kind: reference, name: …}`.
    pub fn register_connection(&self, name: impl Into<String>, connection: Connection) {
        self.shared.connections.insert(name.into(), Arc::new(connection));
    }

    /// Returns the connection that the host has registered under this name.
    pub fn get_connection(&self, name: &str) -> Option<Arc<Connection>> {
        self.shared.connections.get(name)
    }

    /// Removes all registered connections.
    pub fn clear_connections(&self) {
        self.shared.connections.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers the implementation of the tool of this name, replacing any existing one. Only prompts that declare the
    /// tool can use it.
    pub fn register_tool(&self, name: impl Into<String>, tool: impl Tool + 'static) {
        self.shared.tools.insert(name.into(), Arc::new(tool));
    }

    #[cfg(feature = "agent")]
    /// Returns the implementation that the host has registered for the tool of this name.
    pub fn get_tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.shared.tools.get(name)
    }

    #[cfg(feature = "agent")]
    /// Removes all registered tools.
    pub fn clear_tools(&self) {
        self.shared.tools.clear();
    }

    #[cfg(feature = "agent")]
    /// Registers a handler, which converts all tools of a kind to functions. It replaces any existing handler,
    /// including a built-in one. `*` matches all custom kinds without a handler of their own.
    pub fn register_tool_handler(&self, kind: impl Into<String>, handler: impl ToolHandler + 'static) {
        self.shared.tool_handlers.insert(kind.into(), Arc::new(handler));
    }

    #[cfg(feature = "agent")]
    /// Returns the handler that the host has registered for a kind of tools.
    pub fn get_tool_handler(&self, kind: &str) -> Option<Arc<dyn ToolHandler>> {
        self.shared.tool_handlers.get(kind)
    }

    #[cfg(feature = "agent")]
    /// Removes all registered tool handlers.
    pub fn clear_tool_handlers(&self) {
        self.shared.tool_handlers.clear();
    }
}
