"""The class `Runtime`: the native class with model calls and async variants."""

from __future__ import annotations

from tympan import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Mapping, Optional, Sequence, Union

    from typing_extensions import Unpack

    from tympan._native import Message, ModelInfo, Prompt, Run, Stream, TurnRun
    from tympan._options import Path, Policy, RunOptions, TurnOptions
    from tympan._rendered import Rendered

    # A mapping, a dataclass or a Pydantic model.
    _Inputs = Any
    # A Pydantic model, a dataclass or a `TypedDict` class; or `False` if inputs are validated elsewhere.
    _Validator = Union[type, Literal[False], None]
    # The messages that `prepare` returned, or plain data of the same form.
    _Messages = Sequence[Union[Message, Mapping[str, Any]]]


class Runtime(_native.Runtime):
    """Options, registries, and all operations on prompts. It can be used from any thread.

    The module-level functions are the methods of a runtime with default options.
    """

    async def load_async(self, path: Path, /, *, validator: _Validator = None) -> Prompt:
        """The async variant of `load`."""
        return await self._load(path, validator)

    async def render_async(
        self,
        prompt: Prompt,
        inputs: _Inputs = None,
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
        """The async variant of `render`. It only waits for a custom renderer."""
        if self._has_renderer(prompt):
            return await self._render(
                prompt, inputs, variant, guard, policy, strict, lenient, kinds, strict_inputs, seed
            )
        return self.render(
            prompt,
            inputs,
            variant=variant,
            guard=guard,
            policy=policy,
            strict=strict,
            lenient=lenient,
            kinds=kinds,
            strict_inputs=strict_inputs,
            seed=seed,
        )

    async def parse_async(self, prompt: Prompt, rendered: Rendered) -> list[Message]:
        """The async variant of `parse`. It never waits."""
        return self.parse(prompt, rendered)

    async def prepare_async(self, prompt: Prompt, inputs: _Inputs = None) -> list[Message]:
        """The async variant of `prepare`. It only waits for a custom renderer."""
        if self._has_renderer(prompt):
            return await self._prepare(prompt, inputs)
        return self.prepare(prompt, inputs)

    def run(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Run:
        """Calls the prompt's model with these messages."""
        return self._run(prompt, messages, dict(options), False)

    async def run_async(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Run:
        """The async variant of `run`."""
        return await self._run(prompt, messages, dict(options), True)

    def stream(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Stream:
        """Calls the prompt's model with these messages and streams the answer."""
        return self._stream(prompt, messages, dict(options), False)

    async def stream_async(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Stream:
        """The async variant of `stream`. Iterate over the result with `async for`."""
        return await self._stream(prompt, messages, dict(options), True)

    def list_models(self, prompt: Optional[Prompt] = None, **options: Unpack[RunOptions]) -> list[ModelInfo]:
        """Lists the models of the provider in the options, or else of the prompt's provider."""
        return self._list_models(prompt, dict(options), False)

    async def list_models_async(
        self, prompt: Optional[Prompt] = None, **options: Unpack[RunOptions]
    ) -> list[ModelInfo]:
        """The async variant of `list_models`."""
        return await self._list_models(prompt, dict(options), True)

    def process(
        self, prompt: Prompt, body: Union[bytes, str, Mapping[str, Any]], **options: Unpack[RunOptions]
    ) -> Run:
        """Converts a provider's response, as text or as data, to a result."""
        return self._process(prompt, body, dict(options))

    async def process_async(
        self, prompt: Prompt, body: Union[bytes, str, Mapping[str, Any]], **options: Unpack[RunOptions]
    ) -> Run:
        """The async variant of `process`. It never waits."""
        return self._process(prompt, body, dict(options))

    def invoke(self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[RunOptions]) -> Run:
        """Loads the prompt if necessary, renders it, calls its model, and returns the result."""
        return self._invoke(prompt, inputs, dict(options), False)

    async def invoke_async(
        self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[RunOptions]
    ) -> Run:
        """The async variant of `invoke`."""
        return await self._invoke(prompt, inputs, dict(options), True)

    def turn(
        self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[TurnOptions]
    ) -> TurnRun:
        """Renders a prompt, then calls its model and the requested tools until the model gives an answer."""
        return self._turn(prompt, inputs, *_split(options), False)

    async def turn_async(
        self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[TurnOptions]
    ) -> TurnRun:
        """The async variant of `turn`. Cancelling the task cancels the turn."""
        return await self._turn(prompt, inputs, *_split(options), True)

    invoke_agent = turn
    invoke_agent_async = turn_async

    def resume(self, prompt: Union[Prompt, Path], **options: Unpack[TurnOptions]) -> TurnRun:
        """Resumes a crashed turn from its `journal`, which also contains the inputs."""
        return self._resume(prompt, *_split(options), False)

    async def resume_async(self, prompt: Union[Prompt, Path], **options: Unpack[TurnOptions]) -> TurnRun:
        """The async variant of `resume`."""
        return await self._resume(prompt, *_split(options), True)


# The options of a turn that are not data: functions, and objects that are used while it runs.
_HOOKS = frozenset(
    [
        "tools",
        "messages",
        "on_event",
        "approve",
        "judge_input",
        "judge_output",
        "judge_tool",
        "cancel",
        "steering",
        "compact",
    ]
)


def _split(options: TurnOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits options into data and hooks."""
    data = {name: option for name, option in options.items() if name not in _HOOKS}
    return data, {name: option for name, option in options.items() if name in _HOOKS}
