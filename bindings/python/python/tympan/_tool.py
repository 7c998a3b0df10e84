"""Functions as tools."""

from __future__ import annotations

import functools
import re
import typing
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Literal,
    Optional,
    ParamSpec,
    Sequence,
    TypeVar,
    Union,
    overload,
)

if TYPE_CHECKING:
    from tympan._options import ToolFlow

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

_ARGUMENT = re.compile(r"^\s*(?::param\s+)?\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(\S.*)$")
_ARGUMENTS = re.compile(r"^\s*(Args|Arguments|Parameters)\s*:\s*$")
_SECTION = re.compile(r"^\s*(Returns|Raises|Yields|Examples?|Notes?)\s*:\s*$")


class Confidential(Generic[_T]):
    """Marks the result of a tool as confidential, even if the tool is not declared so."""

    def __init__(self, value: _T) -> None:
        self._value = value

    @property
    def value(self) -> _T:
        """The result."""
        return self._value

    def __repr__(self) -> str:
        return "Confidential(…)"


class Tool(Generic[_P, _R]):
    """A function that models can call. It can also be called directly."""

    name: str
    description: Optional[str]
    parameters: dict[str, Any]
    timeout: Optional[float]
    idempotent: bool
    needs_approval: bool
    #: What the application declares about the flow of information through the tool.
    flow: ToolFlow
    server: Optional[str]
    server_flow: ToolFlow

    def __init__(
        self,
        function: Callable[_P, _R],
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        parameters: Optional[dict[str, Any]] = None,
        timeout: Optional[float] = None,
        idempotent: bool = False,
        needs_approval: bool = False,
        effect: Optional[Literal["read", "write", "external"]] = None,
        trusted: Optional[bool] = None,
        confidential: Optional[bool] = None,
        hide: Optional[Literal["auto", "always", "never"]] = None,
        trusted_only: Sequence[str] = (),
        destinations: Sequence[str] = (),
        server: Optional[str] = None,
        server_flow: Optional[ToolFlow] = None,
    ) -> None:
        # Import lazily: programs without tools should not wait for these imports.
        import inspect

        functools.update_wrapper(self, function)
        summary, arguments = _read_docstring(inspect.getdoc(function) or "")
        self.name = self.__name__ = name or function.__name__
        self.description = description or summary or None
        self.timeout, self.idempotent, self.needs_approval = timeout, idempotent, needs_approval
        self._function = function
        self._hints: dict[str, Any] = {}
        if parameters is not None:
            self.parameters = parameters
        else:
            self.parameters, self._hints = _parameters(function, arguments)
        declared = {"effect": effect, "trusted": trusted, "confidential": confidential, "hide": hide}
        flow: Any = {key: value for key, value in declared.items() if value is not None}
        for key, names in (("trusted_only", trusted_only), ("destination", destinations)):
            for parameter in _names(key, names, self.parameters):
                flow.setdefault("parameters", {}).setdefault(parameter, {})[key] = True
        self.flow, self.server, self.server_flow = flow, server, server_flow or {}

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return self._function(*args, **kwargs)

    def call(self, arguments: dict[str, Any]) -> Any:
        """Calls the function with the arguments from a model, converted according to the annotations."""
        from tympan import _schema

        hints = self._hints
        made = {
            name: _schema.cast_argument(value, hints[name], name) if name in hints else value
            for name, value in arguments.items()
        }
        function: Callable[..., Any] = self._function
        return function(**made)

    def __repr__(self) -> str:
        return f"Tool(name={self.name!r})"


@overload
def tool(function: Callable[_P, _R], /) -> Tool[_P, _R]: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: Optional[str] = None,
    description: Optional[str] = None,
    parameters: Optional[dict[str, Any]] = None,
    timeout: Optional[float] = None,
    idempotent: bool = False,
    needs_approval: bool = False,
    effect: Optional[Literal["read", "write", "external"]] = None,
    trusted: Optional[bool] = None,
    confidential: Optional[bool] = None,
    hide: Optional[Literal["auto", "always", "never"]] = None,
    trusted_only: Sequence[str] = (),
    destinations: Sequence[str] = (),
    server: Optional[str] = None,
    server_flow: Optional[ToolFlow] = None,
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...


def tool(
    function: Optional[Callable[_P, _R]] = None, /, **options: Any
) -> Union[Tool[_P, _R], Callable[[Callable[_P, _R]], Tool[_P, _R]]]:
    """Turns a function into a tool. The schema comes from its annotations, and the description from its docstring.

    `timeout` is in seconds. If `idempotent` is true, the tool may run again after a crash. If `needs_approval` is true,
    it runs only if the turn's `approve` allows it.

    The policy for tools needs the `effect` of the tool: `read`, `write` or `external`. Results are untrusted and
    public, unless `trusted` or `confidential` is true. `hide` says whether the model sees handles instead of untrusted
    results. The values of the parameters in `trusted_only` must come from a trusted origin, and those in
    `destinations` are addresses that data goes to.

    A tool that a handler creates may name the `server` that provides it. `server_flow` is what the server says about
    the tool; it can only tighten what the prompt declares.
    """
    if function is not None:
        return Tool(function)
    return lambda function: Tool(function, **options)


def _names(key: str, names: Sequence[str], schema: dict[str, Any]) -> Sequence[str]:
    if isinstance(names, str):
        raise TypeError(f"{key}: expected a list of names, found a string")
    known = schema.get("properties")
    for name in names:
        if isinstance(known, dict) and name not in known:
            raise TypeError(f"{key}: the tool has no parameter {name!r}")
    return names


def _parameters(function: Callable[..., Any], described: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    import inspect

    from tympan import _schema

    hints = typing.get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"a tool receives its arguments by name, but {name!r} cannot be passed by name")
        if name not in hints:
            raise TypeError(f"parameter {name!r} has no annotation")
        properties[name] = dict(_schema.schema_of(hints[name]))
        if name in described:
            properties[name]["description"] = described[name]
        if parameter.default is parameter.empty:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema, {name: hints[name] for name in properties}


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Parses a docstring in Google or Sphinx style. Returns its first paragraph and the arguments' descriptions."""
    summary = " ".join(line.strip() for line in text.split("\n\n")[0].splitlines())
    arguments: dict[str, str] = {}
    is_inside, last = False, None
    for line in text.splitlines():
        if _ARGUMENTS.match(line):
            is_inside = True
        elif _SECTION.match(line):
            is_inside, last = False, None
        elif (is_inside or line.lstrip().startswith(":param")) and (found := _ARGUMENT.match(line)):
            last = found.group(1)
            arguments[last] = found.group(2).strip()
        elif last is not None and line.strip() and line.startswith(" "):
            arguments[last] += " " + line.strip()
        elif not line.strip():
            last = None
    return summary, arguments
