"""Validation of inputs with Python classes."""

from __future__ import annotations

import typing
from typing import Any

from tympan._errors import TympanValueError
from tympan._schema import Fitting, fields_of

_FITTING = Fitting("invalid_input", "Invalid input: ", is_native=True)


def fields(validator: Any) -> list[str]:
    """Returns the names of the inputs that a class validates."""
    if isinstance(validator, type):
        if hasattr(validator, "model_validate"):
            return list(getattr(validator, "model_fields"))
        declared = fields_of(validator)
        if declared is not None:
            return list(declared)
    raise TympanValueError(
        "Invalid input: validator: expected a class: a Pydantic model, a dataclass or a TypedDict",
        code="invalid_input",
    )


def validated(validator: Any, inputs: Any) -> Any:
    """Validates inputs with a class. An instance of the class is returned unchanged."""
    inputs = {} if inputs is None else inputs
    is_typed_dict = hasattr(validator, "__required_keys__")
    if not is_typed_dict and isinstance(inputs, validator):
        return inputs
    if not isinstance(inputs, typing.Mapping):
        raise TympanValueError(
            f"Invalid input: expected a mapping or a {validator.__name__}, found a {type(inputs).__name__}",
            code="invalid_input",
        )
    if hasattr(validator, "model_validate"):
        return _FITTING.model(dict(typing.cast("typing.Mapping[str, Any]", inputs)), validator, "")
    return _FITTING.object(inputs, validator, "")
