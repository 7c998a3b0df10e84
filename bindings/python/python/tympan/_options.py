"""The options of runtimes, calls and turns. The guide describes each option. Times are in seconds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Literal, Mapping, Optional, Protocol, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from tympan._native import CancelToken, Event, Message, Prompt, Steering

Path = Union[str, "os.PathLike[str]"]
# Functions by name, or a list of functions.
Tools = Union[Mapping[str, Callable[..., Any]], Sequence[Callable[..., Any]]]
# The messages that `prepare` or a turn returned, or plain data of the same form.
Messages = Sequence[Union["Message", Mapping[str, Any]]]
# `True` allows, and `False` or a text denies; the text is the reason. `None` allows for judges and denies for
# `approve`.
Verdict = Union[bool, str, None]
# The summarizer of messages that no longer fit: the turn's model, a function, or another prompt.
Compact = Union[bool, Callable[[list["Message"]], Union[str, Awaitable[str]]], "Prompt", None]


class ArrowTable(Protocol):
    """A table of any library: pyarrow, Polars, DuckDB, Daft, pandas."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None, /) -> object: ...


class TableOptions(TypedDict, total=False):
    """How a table of rows becomes a table of messages."""

    # The column of the result: a list of `messages`, the `text` before it is split into messages, or the body of a
    # `request`. The name of a provider, such as `openai`, means a request for this provider.
    output: str
    # The columns of inputs, where the names differ.
    map: Mapping[str, str]
    variant: Optional[str]
    # Whether the result has the columns of the table, too. The default is `True`.
    keep_columns: bool
    # Whether the result has the columns `render_hash`, `tokens` and `segments`.
    hashes: bool
    tokens: bool
    origins: bool
    guard: Union[bool, str, None]
    # Whether values must match the kinds of their inputs. The default is `error`.
    kinds: Literal["off", "warn", "error"]
    provider: Optional[str]
    model: Optional[str]
    api_type: Optional[str]
    # The number of threads. 0, the default, uses all cores.
    threads: int


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


class EffectDecisions(TypedDict, total=False):
    """What happens to calls, by the effect of the tool."""

    read: Literal["allow", "ask", "deny"]
    write: Literal["allow", "ask", "deny"]
    external: Literal["allow", "ask", "deny"]


class PolicyException(TypedDict):
    """The decision for one tool, or for one of its parameters, which replaces that of the policy."""

    tool: str
    #: The parameter whose value is judged. Without it, the exception is about what the model has read.
    parameter: NotRequired[str]
    decision: Literal["allow", "ask", "deny"]


class ToolPolicy(TypedDict, total=False):
    """The policy for tool calls: which calls run, which need approval, and which are denied."""

    #: `strict` treats tools without an effect that the application declared as `external`. `off` allows everything.
    mode: Literal["off", "default", "strict"]
    #: The decisions after untrusted content was read.
    untrusted: EffectDecisions
    #: The decisions after confidential content was read.
    confidential: EffectDecisions
    #: The decision if a value that must come from a trusted origin does not.
    values: Literal["allow", "ask", "deny"]
    #: The addresses that confidential data may go to: a whole value, `*@example.com`, or a URL that ends with `/*`.
    destinations: list[str]
    #: Values that count as coming from a trusted origin, for any parameter.
    trusted_values: list[str]
    #: Exceptions for single tools and parameters.
    exceptions: list[PolicyException]
    #: Decisions for single tools and parameters that apply if they are stricter than the rest of the policy.
    restrictions: list[PolicyException]
    #: The number of bits that a turn may extract from untrusted content. The default is 16.
    extraction_bits: int


class ParameterFlow(TypedDict, total=False):
    """What is declared about a parameter of a tool."""

    #: Whether the value must come from a trusted origin.
    trusted_only: bool
    #: Whether the value is an address that data goes to.
    destination: bool


class ToolFlow(TypedDict, total=False):
    """What is declared about the flow of information through a tool."""

    #: What the tool does besides returning a result.
    effect: Literal["read", "write", "external"]
    #: Whether results are trusted. Do not set this if they contain other people's text.
    trusted: bool
    #: Whether results are confidential.
    confidential: bool
    #: Whether the model sees handles instead of untrusted results.
    hide: Literal["auto", "always", "never"]
    #: The parameters about which something is declared, by name.
    parameters: Mapping[str, ParameterFlow]


class Source(TypedDict):
    """Where a part of a conversation came from: `name` is that of an input or a tool."""

    kind: Literal["author", "user", "input", "tool", "unknown"]
    name: NotRequired[str]
    #: The server that provides the tool, if there is one.
    server: NotRequired[str]
    #: The ID of the call, unless the label combines several parts.
    call: NotRequired[str]


class Label(TypedDict):
    """The label of a part of a conversation, of a tool call, or of everything that a model has read."""

    #: Whether all of it comes from sources that the policy trusts.
    trusted: bool
    #: Whether any of it is confidential.
    confidential: bool
    #: Whether it contains values that were extracted from untrusted content.
    extracted: bool
    #: The sources, without duplicates.
    sources: list[Source]
    #: The sources that are not trusted.
    untrusted_sources: list[Source]


class ByteRange(TypedDict):
    """A range of bytes of UTF-8."""

    start: int
    end: int


class LabeledRange(TypedDict):
    """A range of a text, with its label."""

    range: ByteRange
    label: Label


class PartLabel(Label):
    """The label of a part of a message."""

    #: Whether a model or the turn itself wrote the part. What it contains never counts as a value from a trusted origin.
    generated: bool
    #: The labels of its ranges, if they differ.
    ranges: list[LabeledRange]


class NewLabel(TypedDict):
    """The label of a part of a message that an application adds to a conversation."""

    trusted: bool
    confidential: NotRequired[bool]
    sources: list[Source]


class RuntimeOptions(TypedDict, total=False):
    """The options of a runtime, which apply to all prompts."""

    strict: bool
    lenient: bool
    #: Whether an optional input without a value is an error if the template uses it.
    strict_inputs: bool
    guard: Union[bool, str, GuardOptions]
    #: Text of untrusted inputs in messages of other roles is an error.
    policy: Policy
    #: Which tool calls run, which need approval, and which are denied.
    tool_policy: ToolPolicy
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
    #: The messages to start with, instead of those that the prompt is rendered to.
    messages: Optional[Messages]
    on_event: Optional[Callable[[Event], object]]
    approve: Optional[Callable[[Approval], Union[Verdict, Awaitable[Verdict]]]]
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
    #: The policy for tool calls, instead of the runtime's.
    tool_policy: ToolPolicy
    #: What the application declares about tools, by name. It takes precedence over what prompts and servers declare.
    tool_flows: Mapping[str, ToolFlow]
    #: The labels of `messages`: a list for each message, with the label of each part.
    labels: Sequence[Sequence[Union[PartLabel, NewLabel]]]


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
    """A tool call, as passed to `judge_tool`."""

    id: str
    name: str
    round: int
    index: int
    arguments: dict[str, object]
    #: The label of the call: the union of what the model had read and of the arguments.
    label: Label


class Reason(TypedDict):
    """What speaks against a call."""

    reason: Literal["untrusted", "confidential", "value"]
    #: The reason for people. It contains the names of tools, inputs and parameters, and no other text.
    message: str
    #: The effect of the tool, unless the reason is `value`.
    effect: NotRequired[Literal["read", "write", "external"]]
    #: Whether nobody declared the effect.
    assumed: NotRequired[bool]
    #: Where untrusted content came from.
    sources: NotRequired[list[Source]]
    #: The parameter whose value does not come from a trusted origin.
    parameter: NotRequired[str]


class Quote(TypedDict):
    """A quoted text. It can be from anybody: escape it before you show it."""

    before: str
    value: str
    after: str


class ArgumentOrigin(TypedDict):
    """Where the value of an argument came from."""

    parameter: str
    #: The handle that the model passed, if it did.
    handle: Optional[str]
    #: Where the value occurs in the conversation, or where the content of the handle came from. `None` if the model
    #: wrote it and it occurs nowhere.
    source: Optional[Source]
    #: Whether this origin is trusted.
    trusted: bool
    #: The text around the value, or the content of the handle.
    quote: Optional[Quote]


class Approval(ToolRun):
    """A tool call that needs approval, as passed to `approve`, with everything that a person needs to decide."""

    #: The effect of the tool, if it is declared.
    effect: Optional[Literal["read", "write", "external"]]
    #: Why the policy asks. Empty if it does not: the tool itself requires approval, or `approve_all` is set.
    reasons: list[Reason]
    #: Whether the tool itself requires approval.
    required_by_tool: bool
    #: The label of everything that the model had read.
    context: Label
    #: Where the arguments came from.
    origins: list[ArgumentOrigin]
