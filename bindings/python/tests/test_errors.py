"""Errors are both built-in exceptions and Tympan's."""

from __future__ import annotations

import pickle

import pytest

import tympan


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tympan.load("no/such.prompty")
    assert isinstance(caught.value, tympan.TympanFileNotFoundError)
    assert isinstance(caught.value, tympan.TympanError)
    assert caught.value.code == "file_not_found"
    assert "no/such.prompty" in str(caught.value)


def test_an_error_has_its_place_and_what_to_do() -> None:
    prompt = tympan.load_str("user:\nHello {{ name }}!", "hello.prompty")
    with pytest.raises(ValueError) as caught:
        tympan.render(prompt)
    error = caught.value
    assert isinstance(error, tympan.TympanValueError)
    assert (error.code, error.file, error.line, error.column) == ("undefined_variable", "hello.prompty", 2, 10)
    assert error.help is not None and "default" in error.help
    assert str(error) == "Undefined template variable: name (hello.prompty:2:10)"


def test_all_mistakes_of_a_file_come_at_once() -> None:
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.Prompt.from_yaml("{name: a, role: robot, body: '{{ x }}', more: 1}")
    assert len(caught.value.others) >= 2
    assert all(finding.line == 1 for finding in caught.value.others)
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.Prompt.from_yaml("{name: a, role: user, body: hi, more: 1, varaibles: {}}")
    assert [finding.fix for finding in caught.value.others if finding.fix] == ["variables"]


def test_nobody_knows_the_renderer() -> None:
    prompt = tympan.load_str("---\ntemplate: erb\n---\nuser:\nHi")
    with pytest.raises(tympan.InvokerError, match="No renderer registered for key: erb"):
        tympan.render(prompt)


def test_a_provider_that_cannot_be_reached() -> None:
    runtime = tympan.Runtime(http={"max_retries": 0, "connect_timeout": 1, "proxy": False})
    prompt = runtime.load_str("---\nmodel: {id: m, provider: openai}\n---\nuser:\nHi")
    with pytest.raises(ConnectionError) as caught:
        # Nothing listens on port 1.
        runtime.invoke(prompt, base_url="http://127.0.0.1:1", api_key="k")
    assert isinstance(caught.value, tympan.TympanConnectionError)
    assert caught.value.code == "unreachable"


def test_a_turn_without_an_end_is_a_runtime_error_with_its_conversation() -> None:
    script = "[{tool_calls: [{name: again, arguments: {}}]}]"
    text = (
        "---\nmodel: {provider: echo, options: {additionalProperties: {script: %s}}}\n"
        "tools: [{name: again, kind: function}]\n---\nuser:\nHi" % script
    )
    with pytest.raises(RuntimeError) as caught:
        tympan.turn(tympan.load_str(text), tools={"again": lambda: "once more"}, max_iterations=1)
    assert isinstance(caught.value, tympan.TympanRuntimeError)
    assert caught.value.conversation[0].role == "user"


def test_errors_can_be_pickled() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tympan.load("no/such.prompty")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.code, str(again)) == (type(caught.value), "file_not_found", str(caught.value))


def test_no_error_holds_the_value_of_an_input() -> None:
    prompt = tympan.load_str("user:\n{{ secret.missing.more }}")
    with pytest.raises(ValueError) as caught:
        tympan.render(prompt, {"secret": {"a": "hunter2"}})
    assert "hunter2" not in str(caught.value) + str(caught.value.__dict__)
    with pytest.raises(ValueError) as caught:
        tympan.render(prompt, {"secret": {"hunter2"}})
    assert "hunter2" not in str(caught.value) + str(caught.value.__dict__)
