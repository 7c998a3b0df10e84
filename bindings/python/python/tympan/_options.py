"""The options of runtimes, calls and turns. The guide describes each option. Times are in seconds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Literal, Mapping, Optional, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from tympan._native import CancelToken, Event, Message, Prompt, Steering

Path = Union[str, "os.PathLike[str]"]
# Functions by name, or a list of functions.
Tools = Union[Mapping[str, Callable[..., Any]], Sequence[Callable[..., Any]]]
# `True` allows, and `False` or a text denies; the text is the reason. `None` allows for judges and denies for
# `approve`.
Verdict = Union[bool, str, None]
# The summarizer of messages that no longer fit: the turn's model, a function, or another prompt.
Compact = Union[bool, Callable[[list["Message"]], Union[str, Awaitable[str]]], "Prompt", None]


class Limits(TypedDict, total=False):
    """The limits of rendering."""

    steps: int
    output_bytes: int
    operation_bytes: int
    total_bytes: int
    call_depth: int


class EnvFile(TypedDict):
    """The variables of a file, such as a `.env` file. An address from such a file receives no key from elsewhere."""

    name: str
    variables: dict[str, str]


class LoadOptions(TypedDict, total=False):
    """What prompt files may access while they are loaded."""

    env: Union[bool, list[str]]
    # Whether references to variables that are not set remain unresolved, until something needs their values.
    defer_env: bool
    env_vars: dict[str, str]
    env_files: list[EnvFile]
    env_defaults: dict[str, str]
    file_roots: list[Path]
    max_file_bytes: int
    directive_instruction: str


class HttpOptions(TypedDict, total=False):
    """How providers are called."""

    connect_timeout: float
    first_byte_timeout: float
    idle_timeout: float
    total_timeout: float
    max_retries: int
    max_retry_wait: float
    max_response_bytes: int
    proxy: Union[bool, str]
    user_agent: str
    extra_roots: str


class Cassette(TypedDict, total=False):
    """The directory to record exchanges with providers to, or to replay them from. Set only one of the two."""

    record: Path
    replay: Path


class TraceOptions(TypedDict, total=False):
    """What traces leave out."""

    mask_untrusted: bool
    redact_values: bool
    max_value_bytes: int


class ToolAddresses(TypedDict, total=False):
    """The addresses that tools may call."""

    allow_private: bool
    allow_hosts: list[str]


class GuardOptions(TypedDict, total=False):
    """The options of the guard."""

    advisory: str
    #: The role of the message that carries the advisory. `None` does not send it.
    role: Optional[Literal["system", "developer", "user"]]


class Policy(TypedDict):
    """The roles whose messages may contain text of untrusted inputs."""

    untrusted: list[Literal["system", "developer", "user", "assistant", "tool"]]


class RuntimeOptions(TypedDict, total=False):
    """The options of a runtime, which apply to all prompts."""

    strict: bool
    lenient: bool
    #: Whether an optional input without a value is an error if the template uses it.
    strict_inputs: bool
    guard: Union[bool, str, GuardOptions]
    #: Text of untrusted inputs in messages of other roles is an error.
    policy: Policy
    #: Whether the values of inputs must match their declared kinds and enums.
    kinds: Literal["off", "warn", "error"]
    limits: Limits
    thread_roles: Literal["any", "no_instructions"]
    load: LoadOptions
    http: HttpOptions
    cassette: Cassette
    trace: TraceOptions
    tool_addresses: ToolAddresses
    allow_endpoints: list[str]
    #: The seed of the template filter `random`. Without one, a template that uses it is an error.
    seed: int


class RunOptions(TypedDict, total=False):
    """Overrides of the prompt's model settings."""

    provider: str
    model: str
    api_type: str
    base_url: str
    api_key: str


class Prices(TypedDict):
    """The prices of a million tokens."""

    input: float
    output: float


class TokenBudget(TypedDict, total=False):
    """A token budget for a model."""

    tokens: int
    model: str


class TurnHooks(TypedDict, total=False):
    """The hooks of a turn: functions that it calls, and objects that control it from elsewhere."""

    tools: Optional[Tools]
    on_event: Optional[Callable[[Event], object]]
    approve: Optional[Callable[[ToolRun], Union[Verdict, Awaitable[Verdict]]]]
    judge_input: Optional[Callable[[list[Message]], Verdict]]
    judge_output: Optional[Callable[[Message], Verdict]]
    judge_tool: Optional[Callable[[ToolRun], Verdict]]
    cancel: Optional[CancelToken]
    steering: Optional[Steering]
    compact: Compact


class TurnOptions(TurnHooks, total=False):
    """The options of a turn."""

    run: RunOptions
    max_iterations: int
    max_llm_retries: int
    max_model_calls: int
    max_tokens: int
    max_cost: float
    prices: Prices
    max_time: float
    max_tool_calls: int
    max_result_bytes: int
    parallel_tool_calls: bool
    context_budget: Union[int, TokenBudget]
    guard: Union[bool, str, GuardOptions]
    tool_timeout: float
    approve_all: bool
    journal: Path
    turn_number: int


class ModelCallOptions(RunOptions, total=False):
    """The options that a custom provider receives."""

    functions: list[dict[str, Any]]


class TracyBackend(TypedDict):
    """Writes each trace to a file in a folder."""

    tracy: Path


class ConsoleBackend(TypedDict):
    """Writes traces to standard error."""

    console: Literal[True]


class OtelCollector(TypedDict, total=False):
    """The address of an OpenTelemetry collector, and what is sent to it."""

    endpoint: str
    headers: dict[str, str]
    service_name: str
    timeout: float
    content: bool


class OtelBackend(TypedDict):
    """Sends spans to an OpenTelemetry collector."""

    otel: OtelCollector


TraceBackend = Union[TracyBackend, ConsoleBackend, OtelBackend, Callable[[dict[str, Any]], object]]


class TraceStatus(TypedDict):
    """The status of a trace backend."""

    name: str
    dropped: int
    failed: int
    last_error: Optional[str]


class ToolRun(TypedDict):
    """A tool call, as passed to `approve` and `judge_tool`."""

    id: str
    name: str
    round: int
    index: int
    arguments: dict[str, object]
