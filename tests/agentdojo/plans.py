"""Scripts for user tasks, derived from the calls that AgentDojo publishes for them.

A model that sees no results must not use their values. So for hidden results, each argument of a call is one of:

- something that the user wrote;
- the model's own words, if the value occurs neither in the user's message nor in a result;
- a value that is extracted from an earlier result, and that the model never sees.

`plans.json` lists the exceptions: words that depend on a result although they do not occur in it (a summary, a sum),
conditions that the user states ("if it's rated higher than 4"), and tasks that cannot be done without reading, because
the instructions are in the result.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from script import Call, Check, Extracted, Read, Step
from suites import HERE, Pair, World, suites

Calls = list[tuple[str, dict[str, Any]]]


@functools.cache
def exceptions() -> dict[str, Any]:
    return json.loads((HERE / "plans.json").read_text(encoding="utf-8"))


def published(pair: Pair) -> Calls:
    """Returns the calls that AgentDojo publishes for a user task."""
    calls = pair.user.ground_truth(pair.environment())
    return [(call.function, dict(call.args)) for call in calls]


def plain(pair: Pair) -> list[Step]:
    """Returns the script of a model that sees all results."""
    return [Call(name, arguments, step) for step, (name, arguments) in enumerate(published(pair))]


def hidden(pair: Pair) -> list[Step]:
    """Returns the script of a model that sees handles instead of untrusted results.

    At the end, it reads everything, because it may need that for its answer.
    """
    special = exceptions().get(f"{pair.suite}/{pair.user_task}", {})
    # Where values come from does not depend on the injection.
    clean = Pair(pair.suite, pair.user_task)
    usual, calls = (_changed(published(each), special) for each in (clean, pair))
    results = _results(clean, usual)
    steps: list[Step] = []
    for step, (tool, arguments) in enumerate(calls):
        steps += [Read(of) for at, of in special.get("read", []) if at == step]
        for check in special.get("checks", []):
            if check["before"] == step:
                schema = check.get("schema", {"type": "boolean"})
                steps.append(Check(check["of"], check["question"], schema, check.get("expected", True)))
        chosen = {}
        for parameter, value in arguments.items():
            source = special.get("extract", {}).get(f"{step}.{parameter}")
            of = source["of"] if source else _source(pair, usual[step][1][parameter], results[:step])
            if of is None or f"{step}.{parameter}" in special.get("literal", []):
                chosen[parameter] = value
                continue
            question = source["question"] if source else f"the value that the task needs: {pair.user.PROMPT.strip()}"
            question = f"`{parameter}` for call {step + 1}, `{tool}`: {question}"
            schema = schema_of(pair, tool, parameter)
            chosen[parameter] = Extracted(of, question, schema, value, parameter, tool)
        steps.append(Call(tool, chosen, step))
    return steps + [Read(step) for step in range(len(calls))]


def _changed(calls: Calls, special: dict[str, Any]) -> Calls:
    """Returns the calls with those that an exception adds or changes."""
    for at, added in special.get("insert", []):
        calls.insert(at, (added["tool"], added["arguments"]))
    for at, parameter, value in special.get("replace", []):
        calls[at][1][parameter] = value
    return calls


def _results(pair: Pair, calls: Calls) -> list[str]:
    """Returns the results of the calls, to find out which values come from them."""
    world = World(pair)
    return [world.call(tool, arguments) for tool, arguments in calls]


def _source(pair: Pair, value: Any, results: list[str]) -> int | None:
    """Returns the step whose result a value comes from, or nothing if the model knows it without."""
    leaves = [leaf for leaf in _leaves(value) if not _occurs(leaf, pair.user.PROMPT)]
    for step in reversed(range(len(results))):
        if leaves and all(_occurs(leaf, results[step]) for leaf in leaves):
            return step
    return None


def _leaves(value: Any) -> list[str]:
    match value:
        case None | bool():
            return []
        case dict():
            return [leaf for item in value.values() for leaf in _leaves(item)]
        case list():
            return [leaf for item in value for leaf in _leaves(item)]
        case float() if value.is_integer():
            return [str(int(value))]
        case _:
            return [str(value)]


def _occurs(value: str, text: str) -> bool:
    """Returns whether a value is a whole word, or several, in a text."""
    words = r"\s+".join(re.escape(word) for word in value.split())
    return re.search(rf"(?<![\w.]){words}(?![\w])", re.sub(r"''", "'", text)) is not None


def schema_of(pair: Pair, tool: str, parameter: str) -> dict[str, Any]:
    """Returns the schema of a parameter, without `null`."""
    function = next(function for function in suites()[pair.suite].tools if function.name == tool)
    schema = function.parameters.model_json_schema()["properties"][parameter]
    schema = next((option for option in schema.get("anyOf", []) if option.get("type") != "null"), schema)
    return {key: value for key, value in schema.items() if key in ("type", "items")}
