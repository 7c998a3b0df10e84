"""The conversion of values from Python to the engine."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import json
import math
import pathlib
import re
import sys
import types
import uuid
from decimal import Decimal
from typing import Any, Callable, Iterator, Mapping, Optional, TypedDict

import pydantic
import pytest
from conftest import FIXTURES, SHARED

import tympan


class Colour(enum.Enum):
    RED = "red"
    LATE = datetime.date(2026, 1, 2)


class Size(enum.IntEnum):
    LARGE = 3


class Address(pydantic.BaseModel):
    city: str
    since: datetime.date


class User(pydantic.BaseModel):
    name: str
    addresses: list[Address]
    colour: Colour = Colour.RED


@dataclasses.dataclass
class Point:
    x: int
    y: Optional[Decimal] = None


@dataclasses.dataclass
class Line:
    points: list[Point]
    owner: User


class Book(TypedDict):
    title: str
    pages: int


class Text(str):
    pass


ADA = User(name="Ada", addresses=[Address(city="London", since=datetime.date(1815, 12, 10))])
ADA_JSON = {"name": "Ada", "addresses": [{"city": "London", "since": "1815-12-10"}], "colour": "red"}



def cycle() -> Any:
    outer: dict[str, Any] = {"inner": [1]}
    outer["inner"].append(outer)
    return outer


def deep(levels: int = 100_000) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def fields(value: dict[str, Any]) -> dict[str, Any]:
    return {name: made(field) for name, field in value.items()}


def dataclass(value: dict[str, Any]) -> Any:
    found = fields(value)
    return dataclasses.make_dataclass("Made", found)(**found)


def model(value: dict[str, Any]) -> Any:
    found = fields(value)
    create: Any = pydantic.create_model
    return create("Made", **{name: (type(field), ...) for name, field in found.items()})(**found)


def member(value: dict[str, Any]) -> Any:
    made_of: Any = enum.Enum
    return made_of("Made", {"MEMBER": made(value)}).MEMBER


# Builds Python values from the types of the fixture.
MAKE: dict[str, Callable[[Any], Any]] = {
    "null": lambda _: None,
    "bool": bool,
    "int": int,
    "float": float,
    "big_int": int,
    "string": str,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "bytes": bytes.fromhex,
    "array": lambda items: [made(item) for item in items],
    "object": fields,
    "offset_datetime": datetime.datetime.fromisoformat,
    "local_datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "enum": member,
    "bytearray": bytearray.fromhex,
    "path": pathlib.PurePosixPath,
    "tuple": lambda items: tuple(made(item) for item in items),
    "dataclass": dataclass,
    "model": model,
    "mapping": lambda value: types.MappingProxyType(fields(value)),
    "nan": lambda _: math.nan,
    "infinity": lambda _: math.inf,
    "half_surrogate": lambda _: "\ud800",
    "cycle": lambda _: cycle(),
    "deep": lambda _: deep(1000),
    "function": lambda _: len,
    "python_set": lambda _: {1},
    "number_keys": lambda _: {1: 2},
}


def made(value: dict[str, Any]) -> Any:
    return MAKE[value["type"]](value["value"])


CASES = json.loads((FIXTURES / "bindings" / "values.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_cases_of_all_languages(case: dict[str, Any]) -> None:
    if case["input"]["type"].startswith("js_"):
        pytest.skip("Python has no such value")
    value = made(case["input"])
    if "error" in case:
        with pytest.raises(tympan.TympanValueError) as caught:
            tympan.render(tympan.load_str("{{ value }}"), {"value": value})
        assert caught.value.code == case["error"]
        return
    assert tympan.to_json(value) == case["json"]
    prompt = tympan.load_str("{{ value }}")
    assert tympan.render(prompt, {"value": value}) == case["text"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.10"), "1.10"),
        (datetime.time(12, 30), "12:30:00"),
        (datetime.datetime(2026, 6, 28, 12, 30, tzinfo=datetime.timezone.utc), "2026-06-28T12:30:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Colour.LATE, "2026-01-02"),
        (Size.LARGE, 3),
        (Text("x"), "x"),
        (bytearray(b"\x00\xff"), "AP8="),
        ((1, (2, 3)), [1, [2, 3]]),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (Point(1, Decimal("2.50")), {"x": 1, "y": "2.50"}),
        (ADA, ADA_JSON),
        (Line([Point(1)], ADA), {"points": [{"x": 1, "y": None}], "owner": ADA_JSON}),
        (Book(title="Wood", pages=3), {"title": "Wood", "pages": 3}),
        ({"a": [ADA]}, {"a": [ADA_JSON]}),
        (True, True),
        (10**30, "1" + "0" * 30),
        (-(2**63), -(2**63)),
        (2**64 - 1, 2**64 - 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_value_becomes(value: Any, expected: Any) -> None:
    assert json.loads(tympan.to_json(value)) == expected
    assert type(json.loads(tympan.to_json(value))) is type(expected)


def test_integers_and_floats_stay_apart() -> None:
    prompt = tympan.load_str("{{ a }} {{ b }} {{ a is integer }} {{ b is integer }}")
    assert tympan.render(prompt, {"a": 1, "b": 1.0}).lower() == "1 1.0 true false"


@pytest.mark.filterwarnings("ignore::tympan.InputWarning")
@pytest.mark.parametrize("inputs", [ADA, Line([Point(1)], ADA), Book(title="Wood", pages=3)])
def test_inputs_may_be_models(inputs: Any) -> None:
    assert json.loads(tympan.to_json(inputs)) == tympan.validate_inputs(tympan.load_str("x"), inputs)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"a": [1, {"b": {1}}]}, "`a[1].b`: values of type `set` are not supported because they have no order"),
        ({"a": object()}, "`a`: values of type `object` are not supported"),
        ({"a": {1: 2}}, "`a`: expected string keys, found a key of type `int`"),
        ({"a": math.nan}, "`a`: infinity and NaN are not supported"),
        ({"a": [math.inf]}, "`a[0]`: infinity and NaN are not supported"),
        ({"a": "\ud800"}, "`a`: the string contains a lone surrogate"),
        ({"a": int}, "`a`: values of type `type` are not supported"),
        ({"a": Point}, "`a`: values of type `type` are not supported"),
        ({"a": lambda: 1}, "`a`: values of type `function` are not supported"),
        ({"a": 1j}, "`a`: values of type `complex` are not supported"),
        ({"a": 10**5000}, "`a`: the integer has too many digits"),
        (cycle(), "`inner[1]`: the value contains itself"),
        ([1], "inputs: expected a mapping, found a value of type `list`"),
        ("text", "inputs: expected a mapping, found a value of type `str`"),
    ],
    ids=range(14),
)
def test_what_cannot_be_used_is_refused_with_its_path(value: Any, complaint: str) -> None:
    if "digits" in complaint and tuple(map(int, __import__("platform").python_version_tuple()[:2])) < (3, 11):
        pytest.skip("this Python writes any number of digits")
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.render(tympan.load_str("x"), value)
    assert caught.value.code == "invalid_input"
    assert complaint in str(caught.value)


def test_depth_is_bounded() -> None:
    with pytest.raises(tympan.TympanValueError, match="128 levels deep"):
        tympan.to_json(deep())


def test_an_exception_of_a_value_is_itself() -> None:
    class Broken(dict[str, int]):
        pass

    @dataclasses.dataclass
    class Angry:
        x: int = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "x":
                raise ZeroDivisionError("mine")
            return super().__getattribute__(name)

    with pytest.raises(ZeroDivisionError, match="mine"):
        tympan.to_json(Angry())
    assert tympan.to_json(Broken(a=1)) == '{"a":1}'


def marshaling() -> list[Any]:
    path = SHARED / "conformance" / "definition.json"
    return json.loads(path.read_text("utf-8"))["marshaling"] if path.exists() else []


@pytest.mark.parametrize("case", marshaling(), ids=lambda case: case["case"])
def test_marshaling(case: dict[str, Any]) -> None:
    prompt = tympan.Prompt.from_json(json.dumps(case["definition"]))
    inputs = {name: made(value) for name, value in case["input"].items()}
    rendered = prompt.render(inputs, variant=case["variant"])
    assert rendered == case["expected"]["text"]
    assert rendered.template_hash == case["expected"]["template_hash"]
    assert rendered.render_hash == case["expected"]["render_hash"]


def test_a_map_may_change_while_it_is_read() -> None:
    outer: dict[str, Any] = {}

    class Meddler(Mapping[str, int]):
        def __getitem__(self, name: str) -> int:
            outer[f"more{len(outer)}"] = name
            return 1

        def __iter__(self) -> Iterator[str]:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    outer["x"] = Meddler()
    outer["y"] = [Meddler(), {"a": Meddler()}]
    assert tympan.to_json(outer) == '{"x":{"a":1},"y":[{"a":1},{"a":{"a":1}}]}'


def test_maps_of_a_list_are_what_they_are_alone() -> None:
    name, other = "na" + "me", "".join(["na", "me"])
    maps: list[Any] = [
        {"name": 1, "more": {"b": 1, "a": 2}},
        {"name": 2, "more": {"b": 3, "a": 4}},
        {"more": {"a": 5, "b": 6}, "name": 3},
        {name: 4, "more": {"b": 7}},
        {other: 5, "more": [{"b": 8, "a": 9}, {"b": 10, "a": 11}]},
        {},
        {"name": 6, "more": None},
        {"name": {"b": 12, "a": 13}},
    ]
    alone = ",".join(tympan.to_json(one) for one in maps)
    assert tympan.to_json(maps) == tympan.to_json(tuple(maps)) == f"[{alone}]"
    assert json.loads(f"[{alone}]") == maps
    with pytest.raises(tympan.TympanValueError, match=r"`\[1\]\.a`"):
        tympan.to_json([{"a": 1}, {"a": {1}}])


ANY = tympan.load_str("user:\n{{ x | tojson }}|{{ x }}|{% for a in x %}{{ a }},{% endfor %}")
# A dict subclass takes the slow path, like all values that are not plain.
Rare = collections.OrderedDict

PLAIN: list[Any] = [
    "text", "", "Ærø “東京” 🌊", "x" * 5000, [], {}, (), [1, -1, 0, 2**53, 2**63 - 1, -(2**63)], [2**63, 2**64 - 1, 2**200],
    [1.0, 1.5, -0.0, 1e-7, 1e300], [None, True, False], [[], [[]], {"a": {"b": ("c", "d")}}], [{"a": 1}, {"a": 2}, {"b": 3}],
    {f"key {i}": i for i in range(16)}, {f"key {i}": i for i in range(17)}, {f"key {i}": i for i in range(64)},
    {f"key {i}": {"deep": f"{i}"} for i in range(65)}, [{str(i): str(i) for i in range(1000)}], {"": "", "ключ": "ключ"},
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=range(len(PLAIN)))
def test_plain_inputs_are_read_in_place_and_nobody_can_tell(value: Any) -> None:
    plain, rare = {"x": value}, Rare(x=value)
    assert tympan.render(ANY, plain) == tympan.render(ANY, rare)
    assert [m.to_dict() for m in tympan.prepare(ANY, plain)] == [m.to_dict() for m in tympan.prepare(ANY, rare)]
    assert tympan.render(ANY, plain).segments == tympan.render(ANY, rare).segments


def test_plain_inputs_that_are_wrong_are_refused_with_their_place() -> None:
    endless: dict[str, Any] = {}
    endless["x"] = [endless]
    deep: Any = "deep"
    for _ in range(130):
        deep = [deep]
    wrong: list[tuple[dict[Any, Any], str]] = [
        ({"x": [{"a": "\ud83c"}]}, "`x[0].a`"), ({"x": {"a": {1}}}, "`x.a`"), ({"x": [math.nan]}, "`x[0]`"),
        ({"x": {1: 2}}, "`x`"), ({"x": {"\udf0a": 1}}, "`x`"), (endless, "contains itself"), ({"x": deep}, "128 levels"),
    ]  # fmt: skip
    for inputs, place in wrong:
        for call in (tympan.render, tympan.prepare):
            with pytest.raises(ValueError, match=re.escape(place)):
                call(ANY, inputs)


def test_plain_inputs_are_let_go_of() -> None:
    text, key = "".join(["text of ", "our own"]), "".join(["a ", "key"])
    inputs = {"x": [{key: text}] * 10}
    before = (sys.getrefcount(text), sys.getrefcount(key))
    for _ in range(10):
        tympan.render(ANY, inputs)
        tympan.prepare(ANY, inputs)
        with pytest.raises(ValueError):
            tympan.render(ANY, {**inputs, "y": {1}})
    assert (sys.getrefcount(text), sys.getrefcount(key)) == before
