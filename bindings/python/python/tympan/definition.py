"""Pydantic models of prompt definitions, generated from the JSON Schema, for use with `Prompt.from_definition`.

>>> from tympan import Prompt
>>> from tympan.definition import PromptDefinition, PromptRole
>>> Prompt.from_definition(PromptDefinition(name="greeting", role=PromptRole.user, body="Hello!")).render()
'Hello!'
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("pydantic") is None:
    raise ImportError("tympan.definition needs Pydantic 2: pip install 'tympan[pydantic]'", name="pydantic")

from tympan._definition_models import (
    ListedType,
    PromptDefinition,
    PromptRole,
    PromptTests,
    PromptVariable,
    PromptVariant,
    VariableType,
    VariableTypes,
)

__all__ = [
    "ListedType",
    "PromptDefinition",
    "PromptRole",
    "PromptTests",
    "PromptVariable",
    "PromptVariant",
    "VariableType",
    "VariableTypes",
]
