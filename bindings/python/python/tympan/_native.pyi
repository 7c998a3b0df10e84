"""The native part of the package `tympan`."""

import os
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Optional, TypeVar, Union, final, overload

from typing_extensions import Self, Unpack, disjoint_base

from tympan._options import (
    ArrowTable,
    Label,
    ModelCallOptions,
    PartLabel,
    Policy,
    RuntimeOptions,
    TableOptions,
    TraceBackend,
    TraceStatus,
)
from tympan._rendered import Rendered
from tympan._tool import Tool

_T = TypeVar("_T")
_Path = Union[str, os.PathLike[str]]
# A Pydantic model, a dataclass or a `TypedDict` class; or `False` if inputs are validated elsewhere.
_Validator = Union[type, Literal[False], None]
# The messages that `prepare` returned, or plain data of the same form.
_Messages = Sequence[Union[Message, Mapping[str, Any]]]
# A delta of an answer: text, an item of a `Stream`, or data of the same form.
_Step = Union[str, Delta, Mapping[str, Any]]
_Answer = Union[str, Mapping[str, Any], Iterator[_Step], AsyncIterator[_Step]]
_Provider = Callable[[ModelCall], Union[_Answer, Awaitable[_Answer]]]
_Token = Union[str, Mapping[str, Any]]
_CredentialProvider = Callable[[dict[str, Any]], Union[_Token, Awaitable[_Token]]]
_Tools = Sequence[Tool[..., Any]]
_ToolHandler = Callable[[dict[str, Any], dict[str, Any]], Union[_Tools, Awaitable[_Tools]]]

__all__ = [
    "ArrowStream",
    "CancelToken",
    "Composition",
    "Delta",
    "Event",
    "Finding",
    "Message",
    "ModelCall",
    "ModelInfo",
    "Part",
    "Prompt",
    "PromptLoader",
    "Property",
    "RenderedCore",
    "Run",
    "Runtime",
    "Segment",
    "Steering",
    "Stream",
    "TestFile",
    "TurnRun",
    "Usage",
    "__version__",
    "_set_default",
    "bind_tools",
    "check_file",
    "check_str",
    "parse_text",
    "pre_render",
    "to_json",
]

__version__: Final[str]

def to_json(value: Any, /) -> str:
    """Returns a value as JSON, as the engine sees it. Useful for finding out how a value is converted."""

def check_file(path: _Path, *, settings: Optional[_Path] = None) -> list[dict[str, Any]]:
    """Checks a prompt file as `tympan check` does, and returns the findings as the command prints them with `--json`."""

def check_str(
    text: str, name: str = ..., base_dir: Optional[_Path] = None, *, settings: Optional[_Path] = None
) -> list[dict[str, Any]]:
    """Checks the text of a prompt file as `tympan check` does. `name` implies its format."""

def parse_text(
    text: str, *, nonce: Optional[str] = None, threads: Optional[Mapping[str, _Messages]] = None
) -> list[Message]:
    """Splits a text that was rendered elsewhere into messages. All of the text counts as the author's, so this is only
    safe with a `nonce` that `pre_render` wrote into the markers, or with text that contains no input. `threads` maps
    the placeholder of a thread in the text, or the name of its input, to messages. With names, the 16 digits in the
    placeholder must match the `nonce`, if there is one.
    """

def pre_render(template: str, nonce: str) -> str:
    """Writes a nonce into every role marker of a template, for callers who render it elsewhere."""

def _set_default(runtime: Runtime) -> None: ...
def bind_tools(
    prompt: Prompt, tools: Union[Mapping[str, Callable[..., Any]], Sequence[Callable[..., Any]]]
) -> dict[str, Callable[..., Any]]:
    """Matches functions with the tools that a prompt declares. Each function needs a declaration of the same name, and
    must accept the declared parameters.
    """

@final
class ArrowStream:
    """A stream of tables that can be read once, by anything that takes `__arrow_c_stream__`: `pyarrow.table(stream)`,
    `polars.DataFrame(stream)`, `duckdb.from_arrow(stream)`. Rows are rendered while it is read.
    """

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    def __arrow_c_schema__(self) -> object:
        """Returns the schema, for libraries that read Arrow."""
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """Returns the stream, for libraries that read Arrow. It can be read once."""

@final
class Prompt:
    """A prompt: its declarations and its template. It can be used from any thread; load it once and reuse it."""

    @staticmethod
    def from_yaml(text: str, /, *, validator: _Validator = None) -> Prompt:
        """Creates a prompt from a definition in YAML."""
    @staticmethod
    def from_json(text: str, /, *, validator: _Validator = None) -> Prompt:
        """Creates a prompt from a definition in JSON."""
    @staticmethod
    def from_toml(text: str, /, *, validator: _Validator = None) -> Prompt:
        """Creates a prompt from a definition in TOML."""
    @staticmethod
    def from_definition(definition: Any, /, *, validator: _Validator = None) -> Prompt:
        """Creates a prompt from a definition as data: a dict, or a `PromptDefinition` from the module
        `tympan.definition`.
        """
    @property
    def validator(self) -> _Validator:
        """The validator of the inputs: a class, `False` if inputs are validated elsewhere, or `None`."""
    @property
    def name(self) -> Optional[str]:
        """The name of the prompt."""
    @property
    def description(self) -> Optional[str]:
        """The description of the prompt."""
    @property
    def role(self) -> Optional[str]:
        """The role of the prompt's text, if the definition declares one."""
    @property
    def body(self) -> str:
        """The default template."""
    @property
    def inputs(self) -> list[Property]:
        """The declared inputs, in order."""
    @property
    def outputs(self) -> list[Property]:
        """The declared outputs, in order."""
    @property
    def metadata(self) -> dict[str, Any]:
        """The custom metadata of the prompt."""
    @property
    def tools(self) -> list[dict[str, Any]]:
        """The declared tools, as data. Credentials are replaced by `[REDACTED]`."""
    @property
    def directive(self) -> Optional[dict[str, Any]]:
        """The metadata of the directive that the prompt was loaded from, or `None` if it is not a directive."""
    @property
    def variants(self) -> list[str]:
        """The names of the templates: `default`, followed by the variants."""
    @property
    def validation_required(self) -> list[str]:
        """The names of the inputs that callers must validate before rendering."""
    @property
    def output_model(self) -> Optional[str]:
        """The caller's name for the type of the model's answer."""
    @property
    def template_hash(self) -> str:
        """The SHA-256 hash of the default template's source."""
    @property
    def definition_hash(self) -> str:
        """The SHA-256 hash of everything that determines what a model sees."""
    @property
    def warnings(self) -> list[Finding]:
        """The warnings from loading the prompt."""
    @property
    def unresolved_env(self) -> list[str]:
        """The environment variables that were not set when the prompt was loaded with `defer_env`."""
    def variant_hash(self, variant: Optional[str] = None) -> str:
        """Returns the SHA-256 hash of a variant's template source."""
    def variant_metadata(self, variant: str, /) -> dict[str, Any]:
        """Returns the custom metadata of a variant. For the default variant, this is the metadata of the prompt."""
    def get_source(self, variant: Optional[str] = None) -> str:
        """Returns the template of a variant."""
    def render(
        self,
        inputs: Any = None,
        *,
        variant: Optional[str] = None,
        guard: Union[bool, str, None] = None,
        policy: Optional[Policy] = None,
        strict: Optional[bool] = None,
        lenient: Optional[bool] = None,
        kinds: Optional[Literal["off", "warn", "error"]] = None,
        strict_inputs: Optional[bool] = None,
        seed: Optional[int] = None,
    ) -> Rendered:
        """Renders the prompt."""
    def messages(self, rendered: Rendered, /) -> list[Message]:
        """Splits a rendered text into messages."""
    def messages_with_segments(self, rendered: Rendered, /) -> list[dict[str, Any]]:
        """Splits a rendered text into messages, as plain data. Every text part has `segments`: `start` and `end` in bytes of
        UTF-8, the names of the inputs that wrote them as `origins`, and whether they are `trusted`.
        """
    def map_arrow(self, table: ArrowTable, /, **options: Unpack[TableOptions]) -> ArrowStream:
        """Renders the prompt for every row of a table. See `Runtime.map_arrow`."""
    def check(self) -> list[Finding]:
        """Checks the prompt and returns warnings, such as unused variables or untrusted text in a system message."""
    def check_schemas(self) -> list[Finding]:
        """Checks the JSON Schemas of tools and outputs. Returns a warning for each schema with keywords that are not
        checked, and for each that the provider cannot enforce although the prompt asks for it.
        """
    def derive(self, fields: Any, /, *, merge: bool = True) -> Prompt:
        """Creates a prompt that differs from this one in some fields of its definition. With `merge`, maps keep the
        entries that are not named, and `None` removes an entry. The validator stays the same and must also cover the
        new prompt.
        """
    def provenance_attributes(self, rendered: Rendered, /) -> dict[str, str]:
        """Returns attributes for telemetry that identify the prompt and the rendered text."""
    def to_dict(self) -> dict[str, Any]:
        """Returns the prompt as data, with the names of the Prompty specification. Credentials are replaced by
        `[REDACTED]`.
        """

@final
class Property:
    """The declaration of an input or an output."""

    @property
    def name(self) -> str:
        """The name. Empty for the items of a list."""
    @property
    def kind(self) -> str:
        """The kind: `string`, `integer`, `float`, `boolean`, `array`, `object`, `thread`, `image`, `file` or `audio`."""
    @property
    def kinds(self) -> list[str]:
        """All kinds, if there are several."""
    @property
    def nullable(self) -> bool:
        """Whether null is a valid value."""
    @property
    def description(self) -> Optional[str]:
        """The description."""
    @property
    def required(self) -> Optional[bool]:
        """Whether a value is required. `None` if not declared."""
    @property
    def default(self) -> Any:
        """The default value."""
    @property
    def example(self) -> Any:
        """An example value."""
    @property
    def enum_values(self) -> Optional[list[Any]]:
        """The allowed values, if they are listed."""
    @property
    def items(self) -> Optional[Property]:
        """The declaration of a list's items."""
    @property
    def properties(self) -> list[Property]:
        """The declarations of a map's entries."""
    @property
    def trusted(self) -> bool:
        """Whether text from this input is trusted like the author's."""
    @property
    def confidential(self) -> bool:
        """Whether the value is confidential, for the policy for tools."""
    @property
    def speaker(self) -> Optional[Literal["user"]]:
        """Who speaks through this input: `user`, which the policy for tools trusts, or `None`."""
    @property
    def strict(self) -> bool:
        """Whether text that looks like a role marker is an error."""
    @property
    def validation_required(self) -> bool:
        """Whether callers must validate the input before rendering."""
    @property
    def schema(self) -> Optional[dict[str, Any]]:
        """The JSON Schema of the object that this property and its siblings belong to, if the declaration says more
        than the other fields can express.
        """

@final
class Finding:
    """A warning or an error in a prompt."""

    @property
    def code(self) -> str:
        """A short, stable name."""
    @property
    def rule(self) -> Optional[str]:
        """The code of the rule, such as `TY101`."""
    @property
    def severity(self) -> Literal["warning", "error"]:
        """`warning` or `error`."""
    @property
    def message(self) -> str:
        """The message."""
    @property
    def help(self) -> Optional[str]:
        """How to fix it."""
    @property
    def fix(self) -> Optional[str]:
        """The replacement text, if there is an obvious one."""
    @property
    def line(self) -> Optional[int]:
        """The line, counted from 1."""
    @property
    def column(self) -> Optional[int]:
        """The column, counted from 1."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RenderedCore:
    """The origins and hashes of a rendered text."""

    @property
    def segments(self) -> list[Segment]:
        """The segments of the text, each with its origins."""
    @property
    def name(self) -> Optional[str]:
        """The name of the prompt."""
    @property
    def variant(self) -> str:
        """The variant that was rendered."""
    @property
    def is_default(self) -> bool:
        """Whether the default variant was rendered."""
    @property
    def template_hash(self) -> str:
        """The SHA-256 hash of the template's source."""
    @property
    def render_hash(self) -> str:
        """The SHA-256 hash of the text."""
    @property
    def advisory(self) -> Optional[str]:
        """The guard's advisory for the model, if the guard was on and the prompt has an untrusted input."""

@final
class Segment:
    """A part of a rendered text that was written by one interpolation or by the author."""

    @property
    def text(self) -> str:
        """The text."""
    @property
    def origins(self) -> list[str]:
        """The names of the inputs that wrote it. Empty if the author did."""
    @property
    def trusted(self) -> bool:
        """Whether it is trusted like the author's text."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Message:
    """A message of a conversation."""

    def __new__(cls, role: str, content: Any, metadata: Optional[Mapping[str, Any]] = None) -> Self: ...
    @property
    def role(self) -> str:
        """The role: `system`, `developer`, `user`, `assistant` or `tool`."""
    @property
    def content(self) -> list[Part]:
        """The parts of the content."""
    @property
    def text(self) -> str:
        """The joined text parts."""
    @property
    def metadata(self) -> Optional[dict[str, Any]]:
        """The attributes of the role marker, tool calls, and other metadata of the message."""
    def to_dict(self) -> dict[str, Any]:
        """Returns the message as plain data: `role`, `content` as a list of parts, and `metadata` if there is any."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Part:
    """A part of a message's content."""

    def __new__(
        cls,
        kind: Literal["text", "image", "audio", "file"],
        value: Union[str, bytes],
        media_type: Optional[str] = None,
        detail: Optional[str] = None,
        file_name: Optional[str] = None,
    ) -> Self: ...
    @property
    def kind(self) -> Literal["text", "image", "audio", "file"]:
        """The kind of part: `text`, `image`, `audio` or `file`."""
    @property
    def value(self) -> str:
        """The text, a URL, or base64 data."""
    @property
    def media_type(self) -> Optional[str]:
        """The MIME type of an image, audio or file."""
    @property
    def detail(self) -> Optional[str]:
        """The level of detail for an image: `auto`, `low` or `high`."""
    @property
    def file_name(self) -> Optional[str]:
        """The name of a file."""
    def to_dict(self) -> dict[str, Any]:
        """Returns the part as plain data."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class PromptLoader:
    """Prompts by name: those in memory, and those in the files of a folder. A folder may contain prompts in every
    format, in subfolders too. A prompt's name is the one that it declares, or else the name of its file without the
    extension. Each call looks for files that are new, changed or gone, and loads only those.
    """

    @staticmethod
    def memory(prompts: Optional[Mapping[str, Prompt]] = None, /) -> PromptLoader:
        """Creates a loader for prompts in memory."""
    @staticmethod
    def folder(path: _Path, /) -> PromptLoader:
        """Creates a loader for the prompts in a folder."""
    def insert(self, name: str, prompt: Prompt, /) -> None:
        """Adds a prompt, replacing any existing one of the same name. It takes precedence over the files of a
        folder.
        """
    def load(self, name: str, /, *, validator: _Validator = None) -> Prompt:
        """Returns the prompt with this name. The validator is for prompts from files; those in memory have their
        own.
        """
    def names(self) -> list[str]:
        """Returns the names of all prompts, sorted. Files that cannot be loaded are left out."""
    def variants(self, name: str, /) -> list[str]:
        """Returns the names of a prompt's variants: `default`, then the others in order."""
    def render(
        self,
        name: str,
        inputs: Any = None,
        /,
        *,
        variant: Optional[str] = None,
        guard: Union[bool, str, None] = None,
        policy: Optional[Policy] = None,
        strict: Optional[bool] = None,
        lenient: Optional[bool] = None,
        kinds: Optional[Literal["off", "warn", "error"]] = None,
        strict_inputs: Optional[bool] = None,
        seed: Optional[int] = None,
    ) -> Rendered:
        """Renders a variant of the prompt with this name."""

@final
class Composition:
    """A sequence of prompts, each with its own inputs."""

    def __new__(cls) -> Self: ...
    def push(self, prompt: Prompt, inputs: Any = None, *, variant: Optional[str] = None) -> None:
        """Appends a prompt."""
    def render(self, *, guard: Union[bool, str, None] = None) -> list[Rendered]:
        """Renders every prompt."""
    def messages(self, *, guard: Union[bool, str, None] = None) -> list[Message]:
        """Renders every prompt and joins their messages."""
    def __len__(self) -> int: ...

@final
class ModelCall:
    """A call to a custom provider."""

    @property
    def prompt(self) -> Prompt:
        """The prompt, with its model, its tools and its outputs."""
    @property
    def messages(self) -> list[Message]:
        """The conversation."""
    @property
    def options(self) -> ModelCallOptions:
        """The caller's overrides of the prompt: `provider`, `model`, `api_type`, `base_url` and `api_key`; and
        `functions` in addition to those that the prompt declares.
        """
    @property
    def stream(self) -> bool:
        """Whether the caller prefers a streamed answer. A complete answer is also accepted."""

@disjoint_base
class Runtime:
    """Options and registries. The package's class `Runtime` adds model calls and async variants."""

    def __new__(cls, **options: Unpack[RuntimeOptions]) -> Self: ...
    def load(self, path: _Path, /, *, validator: _Validator = None) -> Prompt:
        """Loads a prompt file: `.prompty`, a definition (`.yaml`, `.yml`, `.json`, `.toml`) or a directive (`.md`)."""
    def load_str(
        self, text: str, name: str = ..., base_dir: _Path = ..., *, validator: _Validator = None
    ) -> Prompt:
        """Loads a prompt from the text of a prompt file."""
    def validate_inputs(self, prompt: Prompt, inputs: Any = None) -> dict[str, Any]:
        """Fills in default values and checks that no required input is missing."""
    def render(
        self,
        prompt: Prompt,
        inputs: Any = None,
        *,
        variant: Optional[str] = None,
        guard: Union[bool, str, None] = None,
        policy: Optional[Policy] = None,
        strict: Optional[bool] = None,
        lenient: Optional[bool] = None,
        kinds: Optional[Literal["off", "warn", "error"]] = None,
        strict_inputs: Optional[bool] = None,
        seed: Optional[int] = None,
    ) -> Rendered:
        """Renders the template."""
    def parse(self, prompt: Prompt, rendered: Rendered) -> list[Message]:
        """Splits the result of `render` into messages."""
    def prepare(self, prompt: Prompt, inputs: Any = None) -> list[Message]:
        """Renders the template and splits it into messages."""
    def map_arrow(self, prompt: Prompt, table: ArrowTable, /, **options: Unpack[TableOptions]) -> ArrowStream:
        """Renders the prompt for every row of a table, on all cores and without the interpreter's lock. The columns of the
        table become the inputs of the same names. A row that cannot be rendered has only the column `error`.
        """
    def register_tool(self, name: str, function: Callable[..., Any]) -> None:
        """Registers the function for a tool, for all prompts that declare a tool of this name."""
    def get_tool(self, name: str, /) -> Optional[Callable[..., Any]]:
        """Returns the function that is registered for a tool."""
    def clear_tools(self) -> None:
        """Removes all tools."""
    def register_tool_handler(self, kind: str, handler: _ToolHandler, /) -> None:
        """Registers a handler for all tools of a kind. It receives the declaration and the inputs as data, and returns
        a list of `Tool`. It may be async. The kind `*` matches all tools without a handler of their own.
        """
    def get_tool_handler(self, kind: str, /) -> Optional[_ToolHandler]:
        """Returns the handler that is registered for a kind of tools."""
    def clear_tool_handlers(self) -> None:
        """Removes all tool handlers."""
    def register_renderer(
        self, kind: str, renderer: Callable[[str, dict[str, Any]], Union[str, Awaitable[str]]], /
    ) -> None:
        """Registers a renderer for a template format. It receives the template and the inputs, and returns text. The
        origins in this text are unknown, so all of it is untrusted except for the role markers. It may be async: then
        use `render_async` and `prepare_async`.
        """
    def register_filter(self, name: str, filter: Callable[..., Any], /) -> None:
        """Registers a filter for templates. It receives the value and the arguments, and returns plain data. The result
        counts as written by all inputs that contributed to the arguments.
        """
    def register_test(self, name: str, test: Callable[..., object], /) -> None:
        """Registers a test for templates. It receives the value and the arguments, and returns whether it holds."""
    def register_function(self, name: str, function: Callable[..., Any], /) -> None:
        """Registers a function for templates. It receives the arguments, and returns plain data. The result counts as
        written by all inputs that contributed to the arguments.
        """
    def register_parser(self, kind: str, parser: Callable[[Prompt, Rendered], _Messages], /) -> None:
        """Registers a parser for rendered text. It receives the prompt and the result of `render`, and returns messages
        or plain data of the same form.
        """
    def register_provider(self, name: str, provider: _Provider, /) -> None:
        """Registers a custom provider. It receives a `ModelCall`, and returns a text, a dict, or an iterator over the
        deltas of the answer. It may be async.
        """
    def get_provider(self, name: str, /) -> Optional[_Provider]:
        """Returns the provider that is registered under a name."""
    def register_credential_provider(self, kind: str, provider: _CredentialProvider, /) -> None:
        """Registers a credential provider for connections without a key, by their kind: `foundry`, `oauth`,
        `anonymous`. It receives the connection as data, and returns an access token, or a dict with `token` and
        `expires_in`. It may be async. The kind `*` matches all kinds without a provider of their own, except `key` and
        `anonymous`.
        """
    def register_credential_command(self, kind: str, command: Sequence[str], timeout: float = 30.0) -> None:
        """Registers a program that prints an access token, as a credential provider for connections of this kind. It
        runs without a shell, for at most `timeout` seconds.
        """
    def get_credential_provider(self, kind: str, /) -> Optional[_CredentialProvider]:
        """Returns the function that is registered as the credential provider for a kind of connections."""
    def clear_credential_providers(self) -> None:
        """Removes all credential providers, and the tokens that they returned."""
    def register_connection(self, name: str, connection: Mapping[str, Any], /) -> None:
        """Registers a connection for prompts that refer to it with `{kind: reference, name: …}`."""
    def get_connection(self, name: str, /) -> Optional[dict[str, Any]]:
        """Returns the connection that is registered under a name. Credentials are replaced by `[REDACTED]`."""
    def clear_connections(self) -> None:
        """Removes all connections."""
    def add_trace_backend(self, name: str, backend: TraceBackend, /) -> None:
        """Adds a trace backend, replacing any existing one of this name: `{"tracy": folder}`, `{"console": True}` for
        standard error, `{"otel": {"endpoint": address}}`, or a function that receives each finished trace as data, on a
        separate thread.
        """
    def remove_trace_backend(self, name: str, /) -> bool:
        """Removes a trace backend. Returns whether there was one."""
    def flush_traces(self, timeout: float = 5.0) -> bool:
        """Waits until all traces so far are delivered, for at most `timeout` seconds. Returns whether they were."""
    def trace_status(self) -> list[TraceStatus]:
        """Returns the status of the trace backends: `name`, `dropped`, `failed` and `last_error` of each."""
    def _load(self, path: _Path, validator: _Validator = None) -> Future[Prompt]: ...
    def _has_renderer(self, prompt: Prompt) -> bool: ...
    def _render(
        self,
        prompt: Prompt,
        inputs: Any,
        variant: Optional[str],
        guard: Union[bool, str, None],
        policy: Optional[Policy],
        strict: Optional[bool],
        lenient: Optional[bool],
        kinds: Optional[Literal["off", "warn", "error"]],
        strict_inputs: Optional[bool],
        seed: Optional[int],
    ) -> Future[Rendered]: ...
    def _prepare(self, prompt: Prompt, inputs: Any) -> Future[list[Message]]: ...
    @overload
    def _run(self, prompt: Prompt, messages: Any, options: dict[str, Any], is_async: Literal[False]) -> Run: ...
    @overload
    def _run(self, prompt: Prompt, messages: Any, options: dict[str, Any], is_async: Literal[True]) -> Future[Run]: ...
    @overload
    def _stream(self, prompt: Prompt, messages: Any, options: dict[str, Any], is_async: Literal[False]) -> Stream: ...
    @overload
    def _stream(
        self, prompt: Prompt, messages: Any, options: dict[str, Any], is_async: Literal[True]
    ) -> Future[Stream]: ...
    @overload
    def _list_models(
        self, prompt: Optional[Prompt], options: dict[str, Any], is_async: Literal[False]
    ) -> list[ModelInfo]: ...
    @overload
    def _list_models(
        self, prompt: Optional[Prompt], options: dict[str, Any], is_async: Literal[True]
    ) -> Future[list[ModelInfo]]: ...
    def _process(self, prompt: Prompt, body: Any, options: dict[str, Any]) -> Run: ...
    @overload
    def _invoke(self, prompt: Any, inputs: Any, options: dict[str, Any], is_async: Literal[False]) -> Run: ...
    @overload
    def _invoke(self, prompt: Any, inputs: Any, options: dict[str, Any], is_async: Literal[True]) -> Future[Run]: ...
    @overload
    def _turn(
        self, prompt: Any, inputs: Any, options: dict[str, Any], hooks: dict[str, Any], is_async: Literal[False]
    ) -> TurnRun: ...
    @overload
    def _turn(
        self, prompt: Any, inputs: Any, options: dict[str, Any], hooks: dict[str, Any], is_async: Literal[True]
    ) -> Future[TurnRun]: ...
    @overload
    def _resume(
        self, prompt: Any, options: dict[str, Any], hooks: dict[str, Any], is_async: Literal[False]
    ) -> TurnRun: ...
    @overload
    def _resume(
        self, prompt: Any, options: dict[str, Any], hooks: dict[str, Any], is_async: Literal[True]
    ) -> Future[TurnRun]: ...

@final
class ModelInfo:
    """A model, as its provider lists it."""

    @property
    def id(self) -> str:
        """The provider's ID for the model."""
    @property
    def display_name(self) -> Optional[str]:
        """The human-readable name."""
    @property
    def created(self) -> Optional[int]:
        """The creation time, in seconds since the Unix epoch, if the provider reports it."""
    @property
    def owned_by(self) -> Optional[str]:
        """The model's owner."""
    @property
    def context_window(self) -> Optional[int]:
        """The number of tokens that the model can process at once, if the provider reports it."""
    @property
    def input_modalities(self) -> Optional[list[str]]:
        """The kinds of content that the model accepts, such as `text` and `image`, if the provider reports them."""
    @property
    def output_modalities(self) -> Optional[list[str]]:
        """The kinds of content that the model produces, if the provider reports them."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Run:
    """The result of a model call."""

    @property
    def result(self) -> Any:
        """The result: text, data as declared by the prompt's outputs, tool calls, embeddings or images."""
    @property
    def kind(self) -> str:
        """The kind of result: `text`, `structured`, `tool_calls`, `embedding`, `embeddings`, `image` or `images`."""
    @property
    def problems(self) -> list[str]:
        """The mismatches between a structured result and the prompt's outputs."""
    @property
    def usage(self) -> Optional[Usage]:
        """The token usage."""
    @property
    def model(self) -> Optional[str]:
        """The model that answered."""
    @property
    def id(self) -> Optional[str]:
        """The provider's identifier of the answer."""
    @property
    def finish_reason(self) -> Optional[str]:
        """The reason that the model stopped."""
    def cast(self, type: type[_T], /) -> _T:
        """Converts the result to a type: a Pydantic model, a dataclass, a `TypedDict`, an enum, …"""

@final
class TurnRun:
    """The result of a turn."""

    @property
    def run(self) -> Run:
        """The last model call, with the token usage of that call alone."""
    @property
    def result(self) -> Any:
        """The result of the last model call."""
    @property
    def usage(self) -> Usage:
        """The token usage of all model calls."""
    @property
    def rounds(self) -> int:
        """The number of model calls."""
    @property
    def messages(self) -> list[Message]:
        """The conversation, including the last answer."""
    @property
    def labels(self) -> list[list[PartLabel]]:
        """The labels of the messages, in the same order: a list for each message, with the label of each part. Empty if
        the prompt has no tools. To continue the conversation in another turn, pass the messages and their labels to it.
        """
    @property
    def label(self) -> Label:
        """The label of everything that the model had read, and so of its answer."""
    @property
    def resumed_records(self) -> Optional[int]:
        """The number of records in the journal, if the turn was resumed."""
    def cast(self, type: type[_T], /) -> _T:
        """Converts the result to a type: a Pydantic model, a dataclass, a `TypedDict`, an enum, …"""

@final
class Usage:
    """The token usage of a model call or a turn."""

    @property
    def input_tokens(self) -> int:
        """The tokens of the request, including cached ones."""
    @property
    def output_tokens(self) -> int:
        """The tokens of the answer, including reasoning."""
    @property
    def total_tokens(self) -> int:
        """The tokens of the request and the answer."""
    @property
    def cached_input_tokens(self) -> int:
        """The tokens of the request that were read from the provider's cache."""
    @property
    def cache_write_tokens(self) -> int:
        """The tokens of the request that were written to the provider's cache."""
    @property
    def reasoning_tokens(self) -> int:
        """The tokens of the answer that were used for reasoning."""
    def to_dict(self) -> dict[str, int]:
        """Returns the counts as plain data. Counts that are usually 0 are left out if they are 0."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Stream:
    """A streamed answer: an iterator and an async iterator over its deltas."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Delta: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Future[Delta]: ...
    def finish(self) -> Run:
        """Waits for the end of the answer and returns the result. Remaining deltas are skipped."""
    def finish_async(self) -> Future[Run]:
        """The async variant of `finish`."""
    def close(self) -> None:
        """Stops the model."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        *_exception: Union[type[BaseException], BaseException, TracebackType, None],
    ) -> None: ...

@final
class Delta:
    """A delta of a streamed answer."""

    @property
    def kind(self) -> Literal["text", "thinking", "tool_call", "tool_arguments", "usage"]:
        """The kind of delta: `text`, `thinking`, `tool_call`, `tool_arguments` or `usage`."""
    @property
    def text(self) -> str:
        """The next part of the text, the reasoning or the arguments. Empty for other kinds."""
    @property
    def index(self) -> Optional[int]:
        """The index of the tool call, counted from 0."""
    @property
    def id(self) -> Optional[str]:
        """The provider's identifier of a new tool call."""
    @property
    def name(self) -> Optional[str]:
        """The name of the tool of a new tool call."""
    @property
    def usage(self) -> Optional[Usage]:
        """The token usage so far."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Event:
    """An event of a turn."""

    @property
    def kind(self) -> str:
        """The kind of event: `token`, `thinking`, `status`, `tool_call_start`, `policy`, `tool_result`,
        `messages_updated`, `error`, `done`, `cancelled`, `compaction_start`, `compaction_complete` or `compaction_failed`.
        """
    @property
    def data(self) -> dict[str, Any]:
        """The data of the event, as listed in the guide."""

@final
class CancelToken:
    """Cancels a turn, from any thread."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None:
        """Cancels everything that uses this token, immediately and permanently."""
    @property
    def is_cancelled(self) -> bool:
        """Whether the token is cancelled."""

@final
class Steering:
    """A queue of user messages for a running turn."""

    def __new__(cls) -> Self: ...
    def send(self, message: str, /) -> None:
        """Adds a message, which the model receives in the next round."""
    @property
    def has_pending(self) -> bool:
        """Whether a message is pending."""

@final
class TestFile:
    """The cases of a test file, or of a prompt file that contains tests. `tympan.testing` is the public part of it."""

    __test__: bool

    @staticmethod
    def load(
        path: _Path,
        /,
        *,
        live: bool = False,
        record: bool = False,
        accept: bool = False,
        allow_programs: bool = False,
    ) -> Optional[TestFile]:
        """Reads a file and lists its cases. Returns `None` if it is a prompt file without tests."""
    def cases(self) -> list[dict[str, Any]]:
        """Returns the cases in order, each with its `name`, `line` and `id`, and with the reason in `skip` if it is
        skipped.
        """
    def run(self, index: int, /) -> dict[str, Any]:
        """Runs the case with this index and returns its result as `tympan test` writes it with `--output-format
        json-lines`.
        """
