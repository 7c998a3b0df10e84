"""Functions as tools."""

from __future__ import annotations

import functools
import re
import typing
from typing import Any, Callable, Generic, Optional, ParamSpec, TypeVar, Union, overload

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ARGUMENT = re.compile(r"^\s*(?::param\s+)?\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(\S.*)$")
_ARGUMENTS = re.compile(r"^\s*(Args|Arguments|Parameters)\s*:\s*$")
_SECTION = re.compile(r"^\s*(Returns|Raises|Yields|Examples?|Notes?)\s*:\s*$")


class Tool(Generic[_P, _R]):
    """A function that models can call. It can also be called directly."""

    name: str
    description: Optional[str]
    parameters: dict[str, Any]
    timeout: Optional[float]
    idempotent: bool
    needs_approval: bool

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
) -> Callable[[Callable[_P, _R]], Tool[_P, _R]]: ...


def tool(
    function: Optional[Callable[_P, _R]] = None, /, **options: Any
) -> Union[Tool[_P, _R], Callable[[Callable[_P, _R]], Tool[_P, _R]]]:
    """Turns a function into a tool. The schema comes from its annotations, and the description from its docstring.

    `timeout` is in seconds. If `idempotent` is true, the tool may run again after a crash. If `needs_approval` is true,
    it runs only if the turn's `approve` allows it.
    """
    if function is not None:
        return Tool(function)
    return lambda function: Tool(function, **options)


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
