"""Inputs are validated before rendering, and a prompt that requires validation cannot be created without it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import json
import traceback
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable, Literal, Optional, TypedDict

import pydantic
import pytest
from conftest import FIXTURES, prompt_file
from typing_extensions import NotRequired

import tympan

DEFINITION: dict[str, Any] = {
    "name": "summary",
    "role": "user",
    "body": "{{ words }} words of {{ article }}",
    "variables": {
        "article": {"type": "string", "trusted": False, "validation_required": True},
        "words": {"type": "integer", "trusted": True},
    },
}
SECRET = "hunter2"


class Model(pydantic.BaseModel):
    article: str = pydantic.Field(min_length=3, max_length=20)
    words: int = 7


@dataclasses.dataclass
class Data:
    article: str
    words: int = 7

    def __post_init__(self) -> None:
        if len(self.article) < 3:
            raise ValueError(f"{self.article} is too short")


class Typed(TypedDict):
    article: str
    words: NotRequired[int]


class Uncovered(pydantic.BaseModel):
    words: int = 7


@dataclasses.dataclass
class UncoveredData:
    words: int = 7
    article: str = dataclasses.field(init=False, default="")


class UncoveredDict(TypedDict):
    words: int


def made(validator: Any = None) -> dict[str, Callable[[], tympan.Prompt]]:
    """Returns all ways to create a prompt."""
    text = json.dumps(DEFINITION)
    toml = (
        'name = "summary"\nrole = "user"\nbody = "{{ words }} words of {{ article }}"\n[variables]\n'
        'article = {type = "string", trusted = false, validation_required = true}\nwords = {type = "integer", trusted = true}\n'
    )
    return {
        "from_yaml": lambda: tympan.Prompt.from_yaml(text, validator=validator),
        "from_json": lambda: tympan.Prompt.from_json(text, validator=validator),
        "from_toml": lambda: tympan.Prompt.from_toml(toml, validator=validator),
        "from_definition": lambda: tympan.Prompt.from_definition(DEFINITION, validator=validator),
        "load": lambda: tympan.load(FIXTURES / "definition" / "accepted" / "full.yaml", validator=validator),
        "load_async": lambda: asyncio.run(
            tympan.load_async(FIXTURES / "definition" / "accepted" / "full.yaml", validator=validator)
        ),
        "load_str": lambda: tympan.load_str(text, "summary.json", validator=validator),
    }


WAYS = list(made())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("validator", [None, Uncovered, UncoveredData, UncoveredDict])
def test_what_has_to_be_validated_needs_a_validator(way: str, validator: Any) -> None:
    with pytest.raises(tympan.TympanValueError) as caught:
        made(validator)[way]()
    error = caught.value
    assert error.code == "validation_uncovered"
    assert "`article`" in str(error) and "words" not in str(error)
    assert error.help is not None and "validator=False" in error.help
    assert error.line is not None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("validator", [False, Model, Data, Typed])
def test_a_prompt_knows_its_validator(way: str, validator: Any) -> None:
    prompt = made(validator)[way]()
    assert prompt.validator is validator
    assert prompt.validation_required == ["article"]


@pytest.mark.parametrize("validator", [True, Model(article="abc"), {"article": str}, len, int, "Model"])
def test_a_validator_is_a_class_with_fields(validator: Any) -> None:
    with pytest.raises(tympan.TympanValueError, match="a Pydantic model, a dataclass or a TypedDict") as caught:
        tympan.Prompt.from_definition(DEFINITION, validator=validator)
    assert caught.value.code == "invalid_input"


def test_nothing_is_wanted_of_a_prompt_that_wants_nothing() -> None:
    prompt = tympan.load_str("user:\n{{ name }}")
    assert prompt.validator is None
    assert tympan.render(prompt, {"name": "Ada"}) == "user:\nAda"


@pytest.mark.parametrize("is_turn", [False, True])
def test_a_file_that_wants_validation_is_not_used_without(is_turn: bool, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(DEFINITION), "utf-8")

    def call(prompt: Any, inputs: Any) -> Any:
        if is_turn:
            return tympan.turn(prompt, inputs, run={"provider": "echo"})
        return tympan.invoke(prompt, inputs, provider="echo")

    with pytest.raises(tympan.TympanValueError) as caught:
        call(file, {"article": "abc", "words": 1})
    assert caught.value.code == "validation_uncovered"
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.resume(file, journal=tmp_path / "no.journal", run={"provider": "echo"})
    assert caught.value.code == "validation_uncovered"
    assert call(tympan.load(file, validator=Model), {"article": "abcd"}).result == "7 words of abcd"


def runs(prompt: tympan.Prompt, inputs: Any) -> dict[str, Callable[[], Any]]:
    """Returns all operations that use inputs."""

    def compose() -> Any:
        composition = tympan.Composition()
        composition.push(prompt, inputs)
        return composition.messages()

    return {
        "Prompt.render": lambda: prompt.render(inputs),
        "validate_inputs": lambda: tympan.validate_inputs(prompt, inputs),
        "render": lambda: tympan.render(prompt, inputs),
        "render_async": lambda: asyncio.run(tympan.render_async(prompt, inputs)),
        "prepare": lambda: tympan.prepare(prompt, inputs),
        "prepare_async": lambda: asyncio.run(tympan.prepare_async(prompt, inputs)),
        "invoke": lambda: tympan.invoke(prompt, inputs, provider="echo"),
        "invoke_async": lambda: asyncio.run(tympan.invoke_async(prompt, inputs, provider="echo")),
        "turn": lambda: tympan.turn(prompt, inputs, run={"provider": "echo"}),
        "turn_async": lambda: asyncio.run(tympan.turn_async(prompt, inputs, run={"provider": "echo"})),
        "Composition": compose,
    }


RUNS = list(runs(tympan.load_str("x"), {}))


@pytest.mark.parametrize("use", RUNS)
@pytest.mark.parametrize("validator", [Model, Data])
def test_nothing_runs_with_inputs_that_do_not_pass(use: str, validator: Any) -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=validator)
    with pytest.raises(tympan.TympanValueError) as caught:
        runs(prompt, {"article": "x", "words": 1})[use]()
    assert caught.value.code == "invalid_input"
    runs(prompt, {"article": "abc", "words": 1})[use]()


@pytest.mark.parametrize("validator", [Model, Data])
def test_what_the_validator_returns_is_rendered(validator: Any) -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=validator)
    assert prompt.render({"article": "abc"}) == "7 words of abc"
    assert prompt.render(validator("abc", 3) if validator is Data else validator(article="abc", words=3)) == "3 words of abc"


def test_pydantic_converts() -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=Model)
    assert prompt.render({"article": "abc", "words": "12"}) == "12 words of abc"


def test_an_object_of_the_class_is_taken_as_it_is() -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=Model)
    assert prompt.render(Model.model_construct(article="x", words=1)) == "1 words of x"
    with pytest.raises(tympan.TympanValueError, match="expected a mapping or a Model, found a Data"):
        prompt.render(Data("abc"))


def test_a_typed_dict_has_no_other_fields() -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=Typed)
    assert prompt.render({"article": "abc", "words": 2}) == "2 words of abc"
    for inputs, complaint in [
        ({"article": 7}, "`article`: expected string"),
        ({"words": 7}, "`article`: expected a value, found none"),
        ({"article": "abc", "more": 7}, "only the fields of Typed"),
        (None, "`article`: expected a value, found none"),
    ]:
        with pytest.raises(tympan.TympanValueError) as caught:
            prompt.render(inputs)
        assert complaint in str(caught.value)


def test_derived_prompts_keep_the_validator_and_are_checked_again() -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=Model)
    derived = prompt.derive({"body": "{{ article }}!"})
    assert derived.validator is Model
    with pytest.raises(tympan.TympanValueError) as caught:
        derived.render({"article": "x"})
    assert caught.value.code == "invalid_input"
    tone = {"type": "string", "trusted": True, "validation_required": True}
    with pytest.raises(tympan.TympanValueError) as caught:
        prompt.derive({"variables": {"tone": tone}})
    assert caught.value.code == "validation_uncovered" and "`tone`" in str(caught.value)
    elsewhere = tympan.Prompt.from_definition(DEFINITION, validator=False)
    assert elsewhere.derive({"variables": {"tone": tone}}).validator is False


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    article: str = pydantic.Field(min_length=20)
    words: int = pydantic.Field(ge=1)
    kind: Literal["a", "b"] = "a"

    @pydantic.field_validator("words")
    @classmethod
    def _even(cls, words: int) -> int:
        if words % 2:
            raise ValueError(f"{words} and {SECRET} are odd")
        return words


def whole(error: Optional[BaseException]) -> str:
    """Returns the text of an exception and of all exceptions in its chain."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return "".join(str(one) + repr(one) + str(vars(one)) for one in seen)


@pytest.mark.parametrize(
    ("validator", "inputs", "complaints"),
    [
        (Strict, {"article": SECRET, "words": 3}, ["`article`: string_too_short (min_length 20)", "`words`: value_error"]),
        (Strict, {"article": 1, "words": 0, "kind": SECRET}, ["greater_than_equal (ge 1)", "`kind`: literal_error"]),
        (Strict, {"more": SECRET}, ["`article`: missing", "`words`: missing", "`more`: extra_forbidden"]),
        (Data, {"article": SECRET[:2]}, ["a valid Data, but it raised ValueError"]),
        (Data, {"article": "abc", "words": SECRET}, ["`words`: expected integer"]),
    ],
)
def test_errors_name_fields_and_rules_and_never_values(validator: Any, inputs: Any, complaints: list[str]) -> None:
    prompt = tympan.Prompt.from_definition(DEFINITION, validator=validator)
    with pytest.raises(tympan.TympanValueError) as caught:
        prompt.render(inputs)
    assert all(complaint in str(caught.value) for complaint in complaints), str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert SECRET[:2] not in whole(caught.value) + "".join(traceback.format_exception(caught.type, caught.value, caught.tb))


def test_there_is_an_end_to_what_is_said() -> None:
    class Many(pydantic.BaseModel):
        article: list[int]

    prompt = tympan.Prompt.from_definition(DEFINITION, validator=Many)
    with pytest.raises(tympan.TympanValueError, match=r"and 90 more") as caught:
        prompt.render({"article": ["x"] * 100})
    assert len(str(caught.value)) < 1000


def test_the_exception_of_a_validator_that_is_broken_is_itself() -> None:
    class Broken(pydantic.BaseModel):
        article: str

        @pydantic.field_validator("article")
        @classmethod
        def _fail(cls, article: str) -> str:
            raise ZeroDivisionError("mine")

    prompt = tympan.Prompt.from_definition(DEFINITION, validator=Broken)
    with pytest.raises(ZeroDivisionError, match="mine"):
        prompt.render({"article": "x"})


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Inner:
    when: datetime.date
    price: Decimal


@dataclasses.dataclass
class Everything:
    article: str
    colour: Colour
    id: uuid.UUID
    at: datetime.datetime
    inner: Inner
    data: bytes
    tags: list[str]
    prices: dict[str, float]
    words: Optional[int] = None


@pytest.mark.filterwarnings("ignore::tympan.InputWarning")
def test_values_of_the_validator_s_types_may_be_given_or_made() -> None:
    definition = {**DEFINITION, "body": "{{ all }}"}
    definition["variables"] = {"article": DEFINITION["variables"]["article"], "all": {"type": "object", "trusted": True}}
    prompt = tympan.Prompt.from_definition(definition, validator=Everything)
    native = {
        "article": "abc",
        "colour": Colour.RED,
        "id": uuid.UUID(int=1),
        "at": datetime.datetime(2026, 6, 28, 12, 30),
        "inner": Inner(datetime.date(2026, 6, 28), Decimal("1.10")),
        "data": b"\x00\xff",
        "tags": ("a", "b"),
        "prices": {"a": 1},
    }
    validated = tympan.validate_inputs(prompt, native)
    assert validated["inner"] == {"when": "2026-06-28", "price": "1.10"}
    assert validated["data"] == "AP8=" and validated["prices"] == {"a": 1.0}
    # Validated inputs are accepted again, with the same result.
    assert tympan.validate_inputs(prompt, validated) == validated
    for name, wrong in [("colour", SECRET), ("id", SECRET), ("inner", {"when": SECRET, "price": "1"}), ("tags", SECRET)]:
        with pytest.raises(tympan.TympanValueError) as caught:
            tympan.validate_inputs(prompt, {**native, name: wrong})
        assert f"`{name}" in str(caught.value) and SECRET not in whole(caught.value)


def test_results_that_do_not_fit_say_which_rule_and_no_value() -> None:
    answer = json.dumps({"article": SECRET, "words": 2})
    text = prompt_file(
        "user:\nHi",
        model={"provider": "echo", "options": {"additionalProperties": {"answer": answer}}},
        outputs=[{"name": "article", "kind": "string"}, {"name": "words", "kind": "integer"}],
    )
    run = tympan.invoke(tympan.load_str(text))
    with pytest.raises(tympan.TympanValueError) as caught:
        run.cast(Strict)
    assert caught.value.code == "invalid_result"
    assert "`article`: string_too_short (min_length 20)" in str(caught.value)
    assert SECRET not in whole(caught.value)
