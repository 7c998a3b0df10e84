"""Conversion of Python types to JSON Schemas, and of values to these types."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import pathlib
import types
import typing
import uuid
from typing import Any, Callable, Literal, Optional, TypeVar, Union

from tympan._errors import TympanValueError

T = TypeVar("T")

_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS: tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))
# Types that the engine represents as text.
_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    datetime.date: datetime.date.fromisoformat,
    datetime.datetime: datetime.datetime.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    decimal.Decimal: decimal.Decimal,
    uuid.UUID: uuid.UUID,
    bytes: lambda text: base64.b64decode(text, validate=True),
    pathlib.Path: pathlib.Path,
}
# The parts of a Pydantic error that may be reported: the settings of a rule, but never the input.
_RULES = ("min_length", "max_length", "ge", "gt", "le", "lt", "multiple_of", "pattern", "expected")
_MAX_PROBLEMS = 10


def schema_of(annotation: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a parameter with this annotation."""
    annotation = _bare(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return {}
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(one) for one in arguments]}
    if _is_list(annotation, origin):
        return {"type": "array", "items": schema_of(arguments[0])} if arguments else {"type": "array"}
    if _is_map(annotation, origin):
        return {"type": "object", "additionalProperties": schema_of(arguments[1]) if arguments else True}
    if hasattr(annotation, "model_json_schema"):
        schema: dict[str, Any] = annotation.model_json_schema()
        return schema
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    if fields_of(annotation) is not None:
        return _object_schema(annotation)
    raise TypeError(f"no JSON Schema for {annotation!r}: pass the parameters of the tool explicitly")


def _object_schema(annotation: Any) -> dict[str, Any]:
    fields = fields_of(annotation) or {}
    required = [name for name, (_, is_required) in fields.items() if is_required]
    return {
        "type": "object",
        "properties": {name: schema_of(hint) for name, (hint, _) in fields.items()},
        "required": required,
        "additionalProperties": False,
    }


def _bare(annotation: Any) -> Any:
    """Strips `Annotated` from an annotation."""
    return annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation


def _is_list(annotation: Any, origin: Any) -> bool:
    return annotation in (list, tuple) or origin in (list, typing.get_origin(typing.Sequence[str]))


def _is_map(annotation: Any, origin: Any) -> bool:
    return annotation is dict or origin in (dict, typing.get_origin(typing.Mapping[str, str]))


def fields_of(annotation: Any) -> Optional[dict[str, tuple[Any, bool]]]:
    """Returns the fields of a dataclass or a `TypedDict`: their annotations, and whether they are required."""
    if not isinstance(annotation, type):
        return None
    if hasattr(annotation, "__dataclass_fields__"):
        hints = typing.get_type_hints(annotation)
        missing = dataclasses.MISSING
        return {
            field.name: (hints[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(typing.cast(Any, annotation))
            if field.init
        }
    required = getattr(annotation, "__required_keys__", None)
    if required is None:
        return None
    hints = typing.get_type_hints(annotation, include_extras=True)
    return {name: _qualified(hint, name in required) for name, hint in hints.items()}


def _qualified(hint: Any, is_required: bool) -> tuple[Any, bool]:
    """Strips `Required` and similar qualifiers, which a `TypedDict` with postponed annotations does not resolve."""
    qualifier = getattr(typing.get_origin(hint), "_name", None)
    if qualifier not in ("Required", "NotRequired", "ReadOnly"):
        return hint, is_required
    return _qualified(typing.get_args(hint)[0], {"Required": True, "NotRequired": False}.get(qualifier, is_required))


def cast(value: Any, annotation: type[T]) -> T:
    """Converts the result of a model to a type."""
    made: T = Fitting("invalid_result", "Cannot decode the result: ").fit(value, annotation, "")
    return made


def cast_argument(value: Any, annotation: Any, name: str) -> Any:
    """Converts an argument from a tool call to a type."""
    return Fitting("invalid_input", "Invalid argument: ").fit(value, annotation, f".{name}")


class Fitting:
    """Converts values to types. Error messages never contain the value.

    Errors have no context, because the errors of Pydantic and of enums contain the value.
    """

    def __init__(self, code: str, beginning: str, *, is_native: bool = False) -> None:
        self._code = code
        self._beginning = beginning
        # Whether values may be any Python objects, and not only JSON.
        self._is_native = is_native

    def fit(self, value: Any, annotation: Any, path: str) -> Any:
        """Converts a value to a type."""
        annotation = _bare(annotation)
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if annotation is Any:
            return value
        if annotation in _SCALARS:
            return self._scalar(value, annotation, path)
        if origin is Literal:
            return value if value in arguments else self._misfit(path, f"one of {len(arguments)} values")
        if origin in _UNIONS:
            return self._union(value, arguments, path)
        if _is_list(annotation, origin):
            return self._list(value, arguments[0] if arguments else Any, path)
        if _is_map(annotation, origin):
            entries = self._expect(value, typing.Mapping if self._is_native else dict, path, "a map")
            of = arguments[1] if arguments else Any
            return {name: self.fit(item, of, f"{path}.{name}") for name, item in entries.items()}
        return self._instance(value, annotation, path)

    def _instance(self, value: Any, annotation: Any, path: str) -> Any:
        is_typed_dict = hasattr(annotation, "__required_keys__")
        if self._is_native and isinstance(annotation, type) and not is_typed_dict and isinstance(value, annotation):
            return value
        if hasattr(annotation, "model_validate"):
            return self.model(value, annotation, path)
        if annotation in _FROM_TEXT or (isinstance(annotation, type) and issubclass(annotation, enum.Enum)):
            return self._made(value, annotation, path)
        if fields_of(annotation) is not None:
            return self.object(value, annotation, path)
        if self._is_native and isinstance(annotation, type):
            return self._misfit(path, f"a value of the type {annotation.__name__}")
        raise TypeError(f"cannot convert values to {annotation!r}")

    def _scalar(self, value: Any, annotation: Any, path: str) -> Any:
        if annotation is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        fits = isinstance(value, annotation) and (annotation is bool or not isinstance(value, bool))
        return value if fits else self._misfit(path, _SCALARS[annotation])

    def _union(self, value: Any, arguments: tuple[Any, ...], path: str) -> Any:
        for one in arguments:
            try:
                return self.fit(value, one, path)
            except TympanValueError:
                continue
        return self._misfit(path, f"one of {len(arguments)} types")

    def _list(self, value: Any, of: Any, path: str) -> list[Any]:
        items = self._expect(value, (list, tuple) if self._is_native else list, path, "a list")
        return [self.fit(item, of, f"{path}[{index}]") for index, item in enumerate(items)]

    def _made(self, value: Any, annotation: Any, path: str) -> Any:
        try:
            if annotation not in _FROM_TEXT:
                return annotation(value)
            if isinstance(value, str):
                return _FROM_TEXT[annotation](value)
        except (ValueError, ArithmeticError):
            pass
        return self._misfit(path, f"a value of {annotation.__name__}")

    def model(self, value: Any, model: Any, path: str) -> Any:
        """Converts a value to a Pydantic model."""
        try:
            return model.model_validate(value)
        except ValueError as error:
            if not hasattr(error, "errors"):
                raise
            problems = _problems(error, path)
        return self._fail(problems)

    def object(self, value: Any, annotation: Any, path: str) -> Any:
        """Converts a value to a dataclass or a `TypedDict`."""
        given = self._expect(value, typing.Mapping if self._is_native else dict, path, "a map")
        fields = fields_of(annotation) or {}
        for name, (_, is_required) in fields.items():
            if is_required and name not in given:
                self._misfit(f"{path}.{name}", "a value, found none")
        if any(name not in fields for name in given):
            self._misfit(path, f"only the fields of {annotation.__name__}")
        made = {name: self.fit(item, fields[name][0], f"{path}.{name}") for name, item in given.items()}
        try:
            return annotation(**made)
        except (ValueError, TypeError, AssertionError) as error:
            name = type(error).__name__
        return self._misfit(path, f"a valid {annotation.__name__}, but it raised {name}")

    def _expect(self, value: Any, type: Any, path: str, expected: str) -> Any:
        return value if isinstance(value, type) else self._misfit(path, expected)

    def _misfit(self, path: str, expected: str) -> Any:
        return self._fail(f"{_place(path)}expected {expected}")

    def _fail(self, details: str) -> Any:
        raise TympanValueError(self._beginning + details, code=self._code)


def _place(path: str) -> str:
    return f"`{path.lstrip('.')}`: " if path else ""


def _problems(error: Any, path: str) -> str:
    """Formats the fields and rules of a Pydantic error, without the values."""
    found: list[str] = []
    problems = error.errors(include_url=False, include_input=False)
    for problem in problems[:_MAX_PROBLEMS]:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step[:60]}" for step in problem["loc"])
        context = problem.get("ctx", {})
        rules = [f"{name} {context[name]}" for name in _RULES if name in context]
        found.append(_place(path + "".join(steps)) + problem["type"] + (f" ({', '.join(rules)})" if rules else ""))
    if len(problems) > _MAX_PROBLEMS:
        found.append(f"and {len(problems) - _MAX_PROBLEMS} more")
    return ", ".join(found)
