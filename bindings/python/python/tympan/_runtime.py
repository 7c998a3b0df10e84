"""Runtimes: what the native one has, and everything that waits."""

from __future__ import annotations

from tympan import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Mapping, Optional, Sequence, Union

    from typing_extensions import Unpack

    from tympan._native import Message, Prompt, Run, Stream, TurnRun
    from tympan._options import Path, RunOptions, TurnOptions
    from tympan._rendered import Rendered

    # A mapping, a dataclass or a Pydantic model.
    _Inputs = Any
    # A Pydantic model, a dataclass or a `TypedDict`: the class; or `False` if inputs are validated elsewhere.
    _Validator = Union[type, Literal[False], None]
    # What `prepare` returned, or plain data of the same form.
    _Messages = Sequence[Union[Message, Mapping[str, Any]]]


class Runtime(_native.Runtime):
    """Options and registries, and all that can be done with a prompt. It can be used from any thread.

    The free functions of the package are the methods of a runtime without options.
    """

    async def load_async(self, path: Path, /, *, validator: _Validator = None) -> Prompt:
        """The async twin of `load`."""
        return await self._load(path, validator)

    async def render_async(
        self,
        prompt: Prompt,
        inputs: _Inputs = None,
        *,
        variant: Optional[str] = None,
        guard: Union[bool, str, None] = None,
        strict: Optional[bool] = None,
        lenient: Optional[bool] = None,
    ) -> Rendered:
        """The async twin of `render`, which never waits."""
        return self.render(prompt, inputs, variant=variant, guard=guard, strict=strict, lenient=lenient)

    async def parse_async(self, prompt: Prompt, rendered: Rendered) -> list[Message]:
        """The async twin of `parse`, which never waits."""
        return self.parse(prompt, rendered)

    async def prepare_async(self, prompt: Prompt, inputs: _Inputs = None) -> list[Message]:
        """The async twin of `prepare`, which never waits."""
        return self.prepare(prompt, inputs)

    def run(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Run:
        """Calls the model of a prompt with these messages."""
        return self._run(prompt, messages, dict(options), False)

    async def run_async(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Run:
        """The async twin of `run`."""
        return await self._run(prompt, messages, dict(options), True)

    def stream(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Stream:
        """Calls a model, and gives its answer on as it arrives."""
        return self._stream(prompt, messages, dict(options), False)

    async def stream_async(self, prompt: Prompt, messages: _Messages, **options: Unpack[RunOptions]) -> Stream:
        """The async twin of `stream`: what it returns is for `async for`."""
        return await self._stream(prompt, messages, dict(options), True)

    def process(
        self, prompt: Prompt, body: Union[bytes, str, Mapping[str, Any]], **options: Unpack[RunOptions]
    ) -> Run:
        """Makes a result of a provider's answer, as it came or as data."""
        return self._process(prompt, body, dict(options))

    async def process_async(
        self, prompt: Prompt, body: Union[bytes, str, Mapping[str, Any]], **options: Unpack[RunOptions]
    ) -> Run:
        """The async twin of `process`, which never waits."""
        return self._process(prompt, body, dict(options))

    def invoke(self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[RunOptions]) -> Run:
        """Loads a prompt if need be, renders it, calls its model, and makes a result of the answer."""
        return self._invoke(prompt, inputs, dict(options), False)

    async def invoke_async(
        self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[RunOptions]
    ) -> Run:
        """The async twin of `invoke`."""
        return await self._invoke(prompt, inputs, dict(options), True)

    def turn(
        self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[TurnOptions]
    ) -> TurnRun:
        """Renders a prompt, and calls its model and the tools it asks for until it answers."""
        return self._turn(prompt, inputs, *_split(options), False)

    async def turn_async(
        self, prompt: Union[Prompt, Path], inputs: _Inputs = None, **options: Unpack[TurnOptions]
    ) -> TurnRun:
        """The async twin of `turn`. Cancelling the task stops the turn."""
        return await self._turn(prompt, inputs, *_split(options), True)

    invoke_agent = turn
    invoke_agent_async = turn_async

    def resume(self, prompt: Union[Prompt, Path], **options: Unpack[TurnOptions]) -> TurnRun:
        """Goes on with a turn that has died, from its `journal`. The inputs are in there too."""
        return self._resume(prompt, *_split(options), False)

    async def resume_async(self, prompt: Union[Prompt, Path], **options: Unpack[TurnOptions]) -> TurnRun:
        """The async twin of `resume`."""
        return await self._resume(prompt, *_split(options), True)


# The options of a turn that are no data: functions, and objects that are used while it goes on.
_HOOKS = frozenset(
    ["tools", "on_event", "approve", "judge_input", "judge_output", "judge_tool", "cancel", "steering", "compact"]
)


def _split(options: TurnOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is data, and what is not."""
    data = {name: option for name, option in options.items() if name not in _HOOKS}
    return data, {name: option for name, option in options.items() if name in _HOOKS}
