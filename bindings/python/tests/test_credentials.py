"""Access tokens for connections without a key: who issues them, and where they go."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator

import pytest
from conftest import prompt_file

import tympan

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}]}


class Server(ThreadingHTTPServer):
    """Answers all requests and records their authorization."""

    daemon_threads = True

    def __init__(self) -> None:
        self.seen: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Answering)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        assert isinstance(self.server, Server)
        self.server.seen.append(self.headers.get("authorization"))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def runtime_of(server: Server) -> tympan.Runtime:
    return tympan.Runtime(load={"env_vars": {"SERVER_URL": server.url}}, http={"max_retries": 0, "proxy": False})


def prompt_of(runtime: tympan.Runtime, endpoint: str = "${env:SERVER_URL}") -> tympan.Prompt:
    connection = {"kind": "foundry", "endpoint": endpoint, "scopes": ["a"], "clientSecret": "hidden"}
    model = {"id": "m", "provider": "foundry", "connection": connection}
    return runtime.load_str(prompt_file("user:\nHi", model=model))


def test_a_function_returns_the_token(server: Server) -> None:
    runtime = runtime_of(server)
    requests: list[dict[str, Any]] = []

    def issue(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return {"token": "the-token", "expires_in": 3600}

    runtime.register_credential_provider("foundry", issue)
    assert runtime.get_credential_provider("foundry") is issue
    for _ in range(2):
        assert runtime.invoke(prompt_of(runtime)).result == "Fine."
    assert server.seen == ["Bearer the-token"] * 2
    assert len(requests) == 1
    assert (requests[0]["kind"], requests[0]["name"]) == ("foundry", "foundry")
    assert requests[0]["connection"]["scopes"] == ["a"]
    assert "hidden" not in json.dumps(requests)
    runtime.clear_credential_providers()
    assert runtime.get_credential_provider("foundry") is None


def test_it_may_be_async(server: Server) -> None:
    runtime = runtime_of(server)

    async def issue(request: dict[str, Any]) -> str:
        return "the-token"

    runtime.register_credential_provider("*", issue)

    async def invoke() -> Any:
        return (await runtime.invoke_async(prompt_of(runtime))).result

    assert asyncio.run(invoke()) == "Fine."
    assert server.seen == ["Bearer the-token"]


def test_a_program_prints_the_token(server: Server) -> None:
    runtime = runtime_of(server)
    runtime.register_credential_command("foundry", [sys.executable, "-c", "print('the-token')"])
    assert runtime.invoke(prompt_of(runtime)).result == "Fine."
    assert server.seen == ["Bearer the-token"]
    for command in ([], ["./token"]):
        with pytest.raises(ValueError):
            runtime.register_credential_command("foundry", command)
    with pytest.raises(ValueError):
        runtime.register_credential_command("foundry", ["az"], timeout=-1)


def test_a_prompt_cannot_choose_where_it_goes(server: Server) -> None:
    runtime = runtime_of(server)
    calls: list[Any] = []

    def issue(request: dict[str, Any]) -> str:
        calls.append(request)
        return "the-token"

    runtime.register_credential_provider("foundry", issue)
    with pytest.raises(ValueError, match="Untrusted endpoint"):
        runtime.invoke(prompt_of(runtime, server.url))
    assert (calls, server.seen) == ([], [])


WRONG: list[Any] = [None, 5, {}, {"token": 5}, {"token": "a", "expires_in": -1}, {"token": "a", "x": 1}, ""]


@pytest.mark.parametrize("wrong", WRONG)
def test_anything_else_is_an_error(server: Server, wrong: Any) -> None:
    runtime = runtime_of(server)
    runtime.register_credential_provider("foundry", lambda request: wrong)
    with pytest.raises(RuntimeError, match="Cannot get an access token"):
        runtime.invoke(prompt_of(runtime))
    assert server.seen == []


def test_its_exception_is_raised(server: Server) -> None:
    class Mine(Exception):
        pass

    def issue(request: dict[str, Any]) -> str:
        raise Mine

    runtime = runtime_of(server)
    runtime.register_credential_provider("foundry", issue)
    with pytest.raises(Mine):
        runtime.invoke(prompt_of(runtime))
