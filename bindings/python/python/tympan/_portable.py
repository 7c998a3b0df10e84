"""Prompts for other processes: pickles of `Prompt`."""

from __future__ import annotations

import os
from typing import Any

import tympan
from tympan._errors import TympanError, TympanValueError

_Description = tuple[str, str, str, str, str, Any]

# The formats of prompts that were created from a text without a file.
_FORMATS = {
    "<yaml>": tympan.Prompt.from_yaml,
    "<json>": tympan.Prompt.from_json,
    "<toml>": tympan.Prompt.from_toml,
    "<definition>": tympan.Prompt.from_json,
}


def describe(text: str, name: str, definition_hash: str, validator: Any) -> _Description:
    """Returns the arguments of `restore`. Fails if the prompt cannot be restored, in this process already."""
    base = os.path.dirname(os.path.abspath(name)) if os.path.exists(name) else os.getcwd()
    if _load(text, name, base, validator).definition_hash != definition_hash:
        raise TympanValueError(
            f"Invalid input: `{name}` is a derived prompt, which cannot be sent to another process",
            code="invalid_input",
            help="send the prompt that it was derived from, and derive it there",
        )
    return (text, name, base, definition_hash, tympan.__version__, validator)


def restore(
    text: str, name: str, base_dir: str, definition_hash: str, version: str, validator: Any
) -> tympan.Prompt:
    """Returns the prompt, unless it is another version of it."""
    if version != tympan.__version__:
        raise TympanValueError(
            f"Invalid input: the prompt comes from Tympan {version}, and this process has {tympan.__version__}",
            code="invalid_input",
            help="install the same version everywhere, so that all processes render the same bytes",
        )
    prompt = _load(text, name, base_dir, validator)
    if prompt.definition_hash != definition_hash:
        raise TympanValueError(
            f"Invalid input: the text of `{name}` is another version of the prompt: its hash is "
            f"{prompt.definition_hash[:12]}, expected {definition_hash[:12]}",
            code="invalid_input",
            help="the files that the prompt refers to must be the same in all processes",
        )
    return prompt


def _load(text: str, name: str, base_dir: str, validator: Any) -> tympan.Prompt:
    if name in _FORMATS:
        return _FORMATS[name](text, validator=validator)
    try:
        return tympan.load_str(text, name, base_dir, validator=validator)
    except TympanError as error:
        # Workers rarely have the keys of the provider, and rendering does not need them.
        try:
            return tympan.Runtime(load={"defer_env": True}).load_str(text, name, base_dir, validator=validator)
        except TympanError:
            raise error from None
