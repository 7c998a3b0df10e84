"""The native part of the package `tympan`."""

import os
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Optional, TypeVar, Union, final, overload

from typing_extensions import Self, Unpack, disjoint_base

from tympan._options import ModelCallOptions, RuntimeOptions, TraceBackend, TraceStatus
from tympan._rendered import Rendered
from tympan._tool import Tool

_T = TypeVar("_T")
_Path = Union[str, os.PathLike[str]]
# A Pydantic model, a dataclass or a `TypedDict`: the class; or `False` if inputs are validated elsewhere.
_Validator = Union[type, Literal[False], None]
# What `prepare` returned, or plain data of the same form.
_Messages = Sequence[Union[Message, Mapping[str, Any]]]
# A step of an answer: text, what a `Stream` gives, or data of the same form.
_Step = Union[str, Delta, Mapping[str, Any]]
_Answer = Union[str, Mapping[str, Any], Iterator[_Step], AsyncIterator[_Step]]
_Provider = Callable[[ModelCall], Union[_Answer, Awaitable[_Answer]]]
_Tools = Sequence[Tool[..., Any]]
_ToolHandler = Callable[[dict[str, Any], dict[str, Any]], Union[_Tools, Awaitable[_Tools]]]

__all__ = [
    "CancelToken",
    "Composition",
    "Delta",
    "Event",
    "Finding",
    "Message",
    "ModelCall",
    "Part",
    "Prompt",
    "Property",
    "RenderedCore",
    "Run",
    "Runtime",
    "Segment",
    "Steering",
    "Stream",
    "TurnRun",
    "Usage",
    "__version__",
    "_set_default",
    "bind_tools",
    "parse_text",
    "pre_render",
    "to_json",
]

__version__: Final[str]

def to_json(value: Any, /) -> str:
    """A value as the engine sees it, as JSON. It is for those who wonder what a value becomes."""

def parse_text(
    text: str, *, nonce: Optional[str] = None, threads: Optional[Mapping[str, _Messages]] = None
) -> list[Message]:
    """Splits a text that was rendered elsewhere into messages. All of it counts as the author's, so that this is only
    safe with a `nonce` that `pre_render` wrote into the markers, or with text that no input had a part in. `threads`
    are messages by the word that stands for them in the text, or by the name of their input. By name, the 16 digits in
    that word have to be the `nonce`, if there is one.
    """

def pre_render(template: str, nonce: str) -> str:
    """Writes a nonce into every role marker of a template, for callers who render it elsewhere."""

def _set_default(runtime: Runtime) -> None: ...
def bind_tools(
    prompt: Prompt, tools: Union[Mapping[str, Callable[..., Any]], Sequence[Callable[..., Any]]]
) -> dict[str, Callable[..., Any]]:
    """Puts functions and the tools that a prompt declares together: each has to have a declaration of its name, and
    takes what that declares.
    """

@final
class Prompt:
    """A prompt: its declarations and its template. It can be used from any thread, and is best loaded once."""

    @staticmethod
    def from_yaml(text: str, /, *, validator: _Validator = None) -> Prompt:
        """A prompt from a definition in YAML."""
    @staticmethod
    def from_json(text: str, /, *, validator: _Validator = None) -> Prompt:
        """A prompt from a definition in JSON."""
    @staticmethod
    def from_toml(text: str, /, *, validator: _Validator = None) -> Prompt:
        """A prompt from a definition in TOML."""
    @staticmethod
    def from_definition(definition: Any, /, *, validator: _Validator = None) -> Prompt:
        """A prompt from a definition as data: a dict, or `PromptDefinition` of the module `tympan.definition`."""
    @property
    def validator(self) -> _Validator:
        """What validates the inputs: a class, `False` if that is done elsewhere, or `None`."""
    @property
    def name(self) -> Optional[str]:
        """The prompt's name."""
    @property
    def description(self) -> Optional[str]:
        """What the prompt is for."""
    @property
    def role(self) -> Optional[str]:
        """Who says the text, where the prompt says so for all of it."""
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
        """What the author keeps with the prompt."""
    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that it declares, as data. Credentials read `[REDACTED]`."""
    @property
    def directive(self) -> Optional[dict[str, Any]]:
        """The metadata of the directive that it was made from; `None` if it was none."""
    @property
    def variants(self) -> list[str]:
        """The names of the templates: `default`, then the variants."""
    @property
    def validation_required(self) -> list[str]:
        """The names of the inputs that callers have to validate before they render."""
    @property
    def output_model(self) -> Optional[str]:
        """A name of the caller's for what the model should answer with."""
    @property
    def template_hash(self) -> str:
        """The SHA-256 of the default template's source."""
    @property
    def definition_hash(self) -> str:
        """The SHA-256 of everything that decides what a model sees."""
    @property
    def warnings(self) -> list[Finding]:
        """What was worth knowing when the prompt was read."""
    def variant_hash(self, variant: Optional[str] = None) -> str:
        """The SHA-256 of the source of a variant's template."""
    def variant_metadata(self, variant: str, /) -> dict[str, Any]:
        """What the author keeps with a variant; the default one has what the prompt has."""
    def get_source(self, variant: Optional[str] = None) -> str:
        """The template of a variant."""
    def render(
        self,
        inputs: Any = None,
        *,
        variant: Optional[str] = None,
        guard: Union[bool, str, None] = None,
        strict: Optional[bool] = None,
        lenient: Optional[bool] = None,
    ) -> Rendered:
        """Renders the prompt."""
    def messages(self, rendered: Rendered, /) -> list[Message]:
        """Makes messages of a rendered text."""
    def check(self) -> list[Finding]:
        """Looks for what is worth knowing: variables that nothing uses, untrusted text in a system message, …"""
    def derive(self, fields: Any, /, *, merge: bool = True) -> Prompt:
        """A prompt that differs from this one by some fields of its definition. With `merge`, maps keep the entries
        that are not named, and `None` removes an entry. The validator stays, and has to cover the new prompt too.
        """
    def provenance_attributes(self, rendered: Rendered, /) -> dict[str, str]:
        """What telemetry wants to know of a render."""
    def to_dict(self) -> dict[str, Any]:
        """The prompt as data, under the names of the Prompty specification. Credentials read `[REDACTED]`."""

@final
class Property:
    """The declaration of an input or an output."""

    @property
    def name(self) -> str:
        """Its name; empty for what is in a list."""
    @property
    def kind(self) -> str:
        """Its kind: `string`, `integer`, `float`, `boolean`, `array`, `object`, `thread`, `image`, `file` or `audio`."""
    @property
    def kinds(self) -> list[str]:
        """All of its kinds, where it has several."""
    @property
    def description(self) -> Optional[str]:
        """What it is."""
    @property
    def required(self) -> Optional[bool]:
        """Whether it has to be given; `None` if nobody says."""
    @property
    def default(self) -> Any:
        """What it is if it is not given."""
    @property
    def example(self) -> Any:
        """An example of it."""
    @property
    def enum_values(self) -> Optional[list[Any]]:
        """The values that it can have, if they are listed."""
    @property
    def items(self) -> Optional[Property]:
        """What the items of a list are."""
    @property
    def properties(self) -> list[Property]:
        """What is in a map."""
    @property
    def trusted(self) -> bool:
        """Whether its text counts as the author's own."""
    @property
    def strict(self) -> bool:
        """Whether text in it that looks like a role marker is an error."""
    @property
    def validation_required(self) -> bool:
        """Whether callers have to validate it before they render."""

@final
class Finding:
    """Something that is worth knowing about a prompt, or wrong with it."""

    @property
    def code(self) -> str:
        """A short stable name."""
    @property
    def severity(self) -> Literal["warning", "error"]:
        """`warning` or `error`."""
    @property
    def message(self) -> str:
        """What was expected and what was found."""
    @property
    def help(self) -> Optional[str]:
        """What to do about it."""
    @property
    def fix(self) -> Optional[str]:
        """What to write in the place of what is there, where that is clear."""
    @property
    def line(self) -> Optional[int]:
        """The line, from 1."""
    @property
    def column(self) -> Optional[int]:
        """The column, from 1."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class RenderedCore:
    """What a rendered text knows besides its text."""

    @property
    def segments(self) -> list[Segment]:
        """The text in segments that each know who wrote them."""
    @property
    def name(self) -> Optional[str]:
        """The name of the prompt."""
    @property
    def variant(self) -> str:
        """The variant that was rendered."""
    @property
    def template_hash(self) -> str:
        """The SHA-256 of the template's source."""
    @property
    def render_hash(self) -> str:
        """The SHA-256 of the text."""
    @property
    def advisory(self) -> Optional[str]:
        """What a model is to be told about the guard, if it was on."""

@final
class Segment:
    """A part of a rendered text that one interpolation, or the author, wrote."""

    @property
    def text(self) -> str:
        """The text."""
    @property
    def origins(self) -> list[str]:
        """The names of the inputs that wrote it; none if the author did."""
    @property
    def trusted(self) -> bool:
        """Whether it counts as the author's own."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Message:
    """One message of a conversation."""

    def __new__(cls, role: str, content: Any, metadata: Optional[Mapping[str, Any]] = None) -> Self: ...
    @property
    def role(self) -> str:
        """Who speaks: `system`, `developer`, `user`, `assistant` or `tool`."""
    @property
    def content(self) -> list[Part]:
        """What is said, part by part."""
    @property
    def text(self) -> str:
        """The text parts joined."""
    @property
    def metadata(self) -> Optional[dict[str, Any]]:
        """Attributes of the role marker, calls of tools, and what else belongs to the message."""
    def to_dict(self) -> dict[str, Any]:
        """The message as plain data: `role`, `content` as a list of parts, and `metadata` if there is any."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Part:
    """A piece of a message's content."""

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
        """`text`, `image`, `audio` or `file`."""
    @property
    def value(self) -> str:
        """The text, or an address, or base64 data."""
    @property
    def media_type(self) -> Optional[str]:
        """The MIME type, of what is no text."""
    @property
    def detail(self) -> Optional[str]:
        """How closely to look at a picture: `auto`, `low` or `high`."""
    @property
    def file_name(self) -> Optional[str]:
        """What a document is called."""
    def to_dict(self) -> dict[str, Any]:
        """The part as plain data."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Composition:
    """Prompts one after the other, each with its own inputs."""

    def __new__(cls) -> Self: ...
    def push(self, prompt: Prompt, inputs: Any = None, *, variant: Optional[str] = None) -> None:
        """Adds a prompt at the end."""
    def render(self, *, guard: Union[bool, str, None] = None) -> list[Rendered]:
        """Renders every prompt."""
    def messages(self, *, guard: Union[bool, str, None] = None) -> list[Message]:
        """Renders every prompt and joins their messages."""
    def __len__(self) -> int: ...

@final
class ModelCall:
    """What a provider is asked."""

    @property
    def prompt(self) -> Prompt:
        """The prompt, with its model, its tools and its outputs."""
    @property
    def messages(self) -> list[Message]:
        """The conversation."""
    @property
    def options(self) -> ModelCallOptions:
        """What the caller wants to be different from what the prompt says: `provider`, `model`, `api_type`,
        `base_url`, `api_key`; and `functions` besides those that the prompt declares.
        """
    @property
    def stream(self) -> bool:
        """Whether the caller would like the answer step by step. A whole one will do."""

@disjoint_base
class Runtime:
    """Options and registries. The class `Runtime` of the package adds to it what waits."""

    def __new__(cls, **options: Unpack[RuntimeOptions]) -> Self: ...
    def load(self, path: _Path, /, *, validator: _Validator = None) -> Prompt:
        """Loads a prompt file: `.prompty`, a definition (`.yaml`, `.yml`, `.json`, `.toml`) or a directive (`.md`)."""
    def load_str(
        self, text: str, name: str = ..., base_dir: _Path = ..., *, validator: _Validator = None
    ) -> Prompt:
        """Loads a prompt from the text of a prompt file."""
    def validate_inputs(self, prompt: Prompt, inputs: Any = None) -> dict[str, Any]:
        """Fills in defaults and checks that nothing required is missing."""
    def render(
        self,
        prompt: Prompt,
        inputs: Any = None,
        *,
        variant: Optional[str] = None,
        guard: Union[bool, str, None] = None,
        strict: Optional[bool] = None,
        lenient: Optional[bool] = None,
    ) -> Rendered:
        """Makes text of the template."""
    def parse(self, prompt: Prompt, rendered: Rendered) -> list[Message]:
        """Makes messages of what `render` returned."""
    def prepare(self, prompt: Prompt, inputs: Any = None) -> list[Message]:
        """`render` and `parse`."""
    def register_tool(self, name: str, function: Callable[..., Any]) -> None:
        """Registers what runs the tool of this name, for all prompts that declare it."""
    def get_tool(self, name: str, /) -> Optional[Callable[..., Any]]:
        """What is registered to run the tool of this name."""
    def clear_tools(self) -> None:
        """Forgets all tools."""
    def register_tool_handler(self, kind: str, handler: _ToolHandler, /) -> None:
        """Registers what makes tools of all declarations of a kind: it gets the declaration and the inputs as data,
        and returns a list of `Tool`, now or later. The kind `*` stands for all that have nobody else.
        """
    def get_tool_handler(self, kind: str, /) -> Optional[_ToolHandler]:
        """What is registered for the tools of this kind."""
    def clear_tool_handlers(self) -> None:
        """Forgets all handlers of tools."""
    def register_renderer(self, kind: str, renderer: Callable[[str, dict[str, Any]], str], /) -> None:
        """Registers what renders templates of a format: it gets the template and the inputs, and returns text. Who
        wrote what in it is not known, so all of it counts as untrusted but for the role markers.
        """
    def register_parser(self, kind: str, parser: Callable[[Prompt, Rendered], _Messages], /) -> None:
        """Registers what makes messages of rendered text: it gets the prompt and what `render` returned, and returns
        messages, or plain data of the same form.
        """
    def register_provider(self, name: str, provider: _Provider, /) -> None:
        """Registers what serves the models of a provider: it gets a `ModelCall`, and returns a text, a dict, or an
        iterator over the steps of the answer, now or later.
        """
    def get_provider(self, name: str, /) -> Optional[_Provider]:
        """What is registered as the provider of this name."""
    def register_connection(self, name: str, connection: Mapping[str, Any], /) -> None:
        """Registers a connection for prompts whose own is `{kind: reference, name: …}`."""
    def get_connection(self, name: str, /) -> Optional[dict[str, Any]]:
        """The connection of this name. Credentials read `[REDACTED]`."""
    def clear_connections(self) -> None:
        """Forgets all connections."""
    def add_trace_backend(self, name: str, backend: TraceBackend, /) -> None:
        """Adds somebody who is told of what this runtime does, in place of any other of this name: `{"tracy":
        folder}`, `{"console": True}` for standard error, `{"otel": {"endpoint": address}}`, or a function that gets
        each trace as data when it is over, in a thread of its own.
        """
    def remove_trace_backend(self, name: str, /) -> bool:
        """Removes somebody who was told. Whether there was one, is what it returns."""
    def flush_traces(self, timeout: float = 5.0) -> bool:
        """Waits until all that is known so far has been told, and for no more than so many seconds. Returns whether
        it has.
        """
    def trace_status(self) -> list[TraceStatus]:
        """How those who are told are doing: `name`, `dropped`, `failed` and `last_error` of each."""
    def _load(self, path: _Path, validator: _Validator = None) -> Future[Prompt]: ...
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
class Run:
    """What a call of a model came to."""

    @property
    def result(self) -> Any:
        """The result: a text, what the prompt's outputs declare, calls of tools, vectors or pictures."""
    @property
    def kind(self) -> str:
        """What the result is: `text`, `structured`, `tool_calls`, `embedding`, `embeddings`, `image` or `images`."""
    @property
    def problems(self) -> list[str]:
        """What is wrong with a structured result, by the prompt's outputs."""
    @property
    def usage(self) -> Optional[Usage]:
        """What it cost, in tokens."""
    @property
    def model(self) -> Optional[str]:
        """The model that answered."""
    @property
    def id(self) -> Optional[str]:
        """The provider's name for the answer."""
    @property
    def finish_reason(self) -> Optional[str]:
        """Why the model stopped."""
    def cast(self, type: type[_T], /) -> _T:
        """The result as a value of a type: a Pydantic model, a dataclass, a `TypedDict`, an enumeration, …"""

@final
class TurnRun:
    """What a turn came to."""

    @property
    def run(self) -> Run:
        """The last answer, with the tokens of that answer alone."""
    @property
    def result(self) -> Any:
        """The result of the last answer."""
    @property
    def usage(self) -> Usage:
        """The tokens of all answers."""
    @property
    def rounds(self) -> int:
        """How many answers the model gave."""
    @property
    def messages(self) -> list[Message]:
        """The conversation, with the last answer."""
    @property
    def resumed_records(self) -> Optional[int]:
        """How many records its journal had, if it was resumed."""
    def cast(self, type: type[_T], /) -> _T:
        """As `Run.cast`."""

@final
class Usage:
    """Tokens that went in and came out."""

    @property
    def input_tokens(self) -> int:
        """Tokens of the request, those from a cache included."""
    @property
    def output_tokens(self) -> int:
        """Tokens of the answer, those of its thinking included."""
    @property
    def total_tokens(self) -> int:
        """Both."""
    @property
    def cached_input_tokens(self) -> int:
        """Tokens of the request that came from the provider's cache."""
    @property
    def cache_write_tokens(self) -> int:
        """Tokens of the request that were written to the provider's cache."""
    @property
    def reasoning_tokens(self) -> int:
        """Tokens of the answer that were spent on thinking."""
    def to_dict(self) -> dict[str, int]:
        """The numbers as plain data, without those that are 0 and rarely anything else."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Stream:
    """An answer that is still arriving: an iterator, and an async iterator, over its steps."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Delta: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Future[Delta]: ...
    def finish(self) -> Run:
        """The result, once all has arrived. Steps that nobody has asked for are skipped."""
    def finish_async(self) -> Future[Run]:
        """The async twin of `finish`."""
    def close(self) -> None:
        """Stops the model."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        *_exception: Union[type[BaseException], BaseException, TracebackType, None],
    ) -> None: ...

@final
class Delta:
    """A step of an answer."""

    @property
    def kind(self) -> Literal["text", "thinking", "tool_call", "tool_arguments", "usage"]:
        """What: `text`, `thinking`, `tool_call`, `tool_arguments` or `usage`."""
    @property
    def text(self) -> str:
        """More text, thoughts, or arguments; empty if the step is something else."""
    @property
    def index(self) -> Optional[int]:
        """Which call of a tool: 0 for the first."""
    @property
    def id(self) -> Optional[str]:
        """The provider's name for a call that begins."""
    @property
    def name(self) -> Optional[str]:
        """The tool of a call that begins."""
    @property
    def usage(self) -> Optional[Usage]:
        """What the answer has cost so far."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Event:
    """Something that has happened in a turn."""

    @property
    def kind(self) -> str:
        """What: `token`, `thinking`, `status`, `tool_call_start`, `tool_result`, `messages_updated`, `error`, `done`,
        `cancelled`, `compaction_start`, `compaction_complete` or `compaction_failed`.
        """
    @property
    def data(self) -> dict[str, Any]:
        """More about it; the guide has a table."""

@final
class CancelToken:
    """Stops a turn, from any thread."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None:
        """Stops what it was given to, at once and for good."""
    @property
    def is_cancelled(self) -> bool:
        """Whether it has been used."""

@final
class Steering:
    """Messages of the user's for a turn that is under way."""

    def __new__(cls) -> Self: ...
    def send(self, message: str, /) -> None:
        """Adds a message; the model gets it in the next round."""
    @property
    def has_pending(self) -> bool:
        """Whether a message waits."""
