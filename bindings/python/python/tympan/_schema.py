"""Types of Python as JSON Schemas, and JSON values as values of these types."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any, Literal, TypeVar, Union

from tympan._errors import TympanValueError

T = TypeVar("T")

_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS: tuple[Any, ...] = (Union, getattr(types, "UnionType", Union))


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of what a parameter with this annotation takes."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return {}
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(one) for one in arguments]}
    if annotation in (list, tuple) or origin in (list, typing.get_origin(typing.Sequence[str])):
        return {"type": "array", "items": schema_of(arguments[0])} if arguments else {"type": "array"}
    if annotation is dict or origin in (dict, typing.get_origin(typing.Mapping[str, str])):
        return {"type": "object", "additionalProperties": schema_of(arguments[1]) if arguments else True}
    if hasattr(annotation, "model_json_schema"):
        schema: dict[str, Any] = annotation.model_json_schema()
        return schema
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    if _fields(annotation) is not None:
        return _object_schema(annotation)
    raise TypeError(f"there is no JSON Schema for {annotation!r}: give the parameters of the tool yourself")


def _object_schema(annotation: Any) -> dict[str, Any]:
    fields = _fields(annotation) or {}
    required = [name for name, (_, is_required) in fields.items() if is_required]
    return {
        "type": "object",
        "properties": {name: schema_of(hint) for name, (hint, _) in fields.items()},
        "required": required,
        "additionalProperties": False,
    }


def _fields(annotation: Any) -> dict[str, tuple[Any, bool]] | None:
    """The fields of a dataclass or a `TypedDict`: their annotations, and whether they have to be there."""
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
    return {name: (hint, name in required) for name, hint in typing.get_type_hints(annotation).items()}


def cast(value: Any, annotation: type[T]) -> T:
    """A JSON value as a value of a type. What does not fit is a `ValueError` that does not say what it was."""
    made: T = _cast(value, annotation, "")
    return made


def _cast(value: Any, annotation: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return value
    if annotation in _SCALARS:
        return _cast_scalar(value, annotation, path)
    if origin is Literal:
        return value if value in arguments else _misfit(path, f"one of {len(arguments)} values")
    if origin in _UNIONS:
        return _cast_union(value, arguments, path)
    if annotation in (list, tuple) or origin in (list, typing.get_origin(typing.Sequence[str])):
        items = _expect(value, list, path, "a list")
        of = arguments[0] if arguments else Any
        return [_cast(item, of, f"{path}[{index}]") for index, item in enumerate(items)]
    if annotation is dict or origin in (dict, typing.get_origin(typing.Mapping[str, str])):
        entries = _expect(value, dict, path, "a map")
        of = arguments[1] if arguments else Any
        return {name: _cast(item, of, f"{path}.{name}") for name, item in entries.items()}
    if hasattr(annotation, "model_validate"):
        return annotation.model_validate(value)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _cast_enum(value, annotation, path)
    if _fields(annotation) is not None:
        return _cast_object(value, annotation, path)
    raise TypeError(f"results cannot be cast to {annotation!r}")


def _cast_scalar(value: Any, annotation: Any, path: str) -> Any:
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    fits = isinstance(value, annotation) and (annotation is bool or not isinstance(value, bool))
    return value if fits else _misfit(path, _SCALARS[annotation])


def _cast_union(value: Any, arguments: tuple[Any, ...], path: str) -> Any:
    for one in arguments:
        try:
            return _cast(value, one, path)
        except ValueError:
            continue
    return _misfit(path, f"one of {len(arguments)} types")


def _cast_enum(value: Any, annotation: Any, path: str) -> Any:
    try:
        return annotation(value)
    except ValueError:
        return _misfit(path, f"a value of {annotation.__name__}")


def _cast_object(value: Any, annotation: Any, path: str) -> Any:
    given = _expect(value, dict, path, "a map")
    fields = _fields(annotation) or {}
    for name, (_, is_required) in fields.items():
        if is_required and name not in given:
            _misfit(f"{path}.{name}", "it, and it is missing")
    for name in given:
        if name not in fields:
            _misfit(path, "no other fields than those that are declared")
    made = {name: _cast(item, fields[name][0], f"{path}.{name}") for name, item in given.items()}
    return annotation(**made)


def _expect(value: Any, type: type, path: str, expected: str) -> Any:
    return value if isinstance(value, type) else _misfit(path, expected)


def _misfit(path: str, expected: str) -> Any:
    place = f"`{path.lstrip('.')}`: " if path else ""
    raise TympanValueError(f"The result does not fit: {place}expected {expected}", code="invalid_result")
