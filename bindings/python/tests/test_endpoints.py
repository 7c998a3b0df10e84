"""Where keys and other values of the environment are sent: the cases of `fixtures/endpoints`, with a real server."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterator

import pytest
from conftest import FIXTURES, prompt_file

import tympan


class Server(ThreadingHTTPServer):
    """Rejects all requests and counts the connections."""

    daemon_threads = True

    def __init__(self) -> None:
        self.connections = 0
        super().__init__(("127.0.0.1", 0), Refusing)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(400)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def cases() -> Iterator[Any]:
    """Yields the cases, repeated per provider if they apply to all of them. The server's address is still unknown."""
    data = json.loads((FIXTURES / "endpoints" / "endpoints.json").read_text("utf-8"))
    for case in data["cases"]:
        text = json.dumps(case)
        for row in data["providers"]:
            if "{address}" in text and row["address"] is None:
                continue
            filled = text
            for name in ("provider", "key", "address"):
                filled = filled.replace("{" + name + "}", row[name] or "")
            yield pytest.param(filled, id=f"{case['name']}, {row['provider']} {row['key']}")
            if "{provider}" not in text:
                break


def runtime_of(case: dict[str, Any]) -> tympan.Runtime:
    files = [{"name": f"{at}/.env", "variables": file} for at, file in enumerate(case.get("files", []))]
    return tympan.Runtime(
        load={"env_vars": case.get("host", {}), "env_files": files},  # type: ignore[typeddict-item]
        http={"max_retries": 0, "proxy": False},
        tool_addresses={"allow_private": True},
        allow_endpoints=case.get("allow", []),
    )


def attempts(case: dict[str, Any]) -> list[Callable[[], object]]:
    runtime = runtime_of(case)
    text = prompt_file(case.get("template", "user:\nHello.\n"), **case["front"])
    prompt = runtime.load_str(text)
    base_url = case.get("base_url")
    run = {} if base_url is None else {"base_url": base_url}
    if case.get("tools"):
        return [lambda: runtime.turn(prompt)]
    return [lambda: runtime.invoke(prompt, **run), lambda: list(runtime.stream(prompt, runtime.prepare(prompt), **run))]


@pytest.mark.parametrize("text", list(cases()))
def test_values_go_where_their_source_or_the_host_says(text: str, server: Server) -> None:
    root = f"http://127.0.0.1:{server.server_port}"
    case = json.loads(text.replace("{server}", root).replace("{port}", str(server.server_port)))
    for attempt in attempts(case):
        before = server.connections
        error = None
        try:
            attempt()
        except tympan.TympanError as raised:
            error = raised
        code = None if error is None else error.code
        if case["expect"] == "sent":
            assert code != "untrusted_endpoint" and server.connections > before
            continue
        assert error is not None and code == "untrusted_endpoint"
        assert server.connections == before
        shown = f"{error} {error.help}"
        assert "canary" not in shown.lower()
        for part in [*case["names"], f"--allow-endpoint {root}"]:
            assert part in shown


def test_defaults_of_the_environment_are_no_word_of_the_host(server: Server) -> None:
    root = f"http://127.0.0.1:{server.server_port}"
    load = {"env_vars": {"OPENAI_API_KEY": "canary-key"}, "env_defaults": {"OPENAI_BASE_URL": root}}
    runtime = tympan.Runtime(load=load)  # type: ignore[arg-type]
    before = server.connections
    with pytest.raises(tympan.TympanError) as raised:
        runtime.invoke(runtime.load_str(prompt_file("user:\nHello.\n", model={"id": "m"})))
    assert (raised.value.code, server.connections) == ("untrusted_endpoint", before)


def test_what_is_allowed_has_to_be_an_address() -> None:
    with pytest.raises(tympan.TympanError, match="allow_endpoints"):
        tympan.Runtime(allow_endpoints=["proxy.example"])
