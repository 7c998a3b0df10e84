"""Images, audio and files as parts of messages, in both directions."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, Iterator

import pytest
from conftest import prompt_file

import tympan

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "
PDF = b"%PDF-1.4\n"

TEXT = prompt_file(
    "system:\nBe kind.\n\nuser:\nSee {{ picture }} and hear {{ sound }} and read {{ document }}!",
    model={"id": "m", "provider": "openai", "apiType": "chat"},
    inputs=[
        {"name": "picture", "kind": "image"},
        {"name": "sound", "kind": "audio"},
        {"name": "document", "kind": "file"},
    ],
)
INPUTS = {
    "picture": PNG,
    "sound": {"data": WAV, "mediaType": "audio/wav"},
    "document": {"data": PDF, "mediaType": "application/pdf", "fileName": "a.pdf"},
}


@pytest.fixture
def asked() -> Iterator[tuple[str, list[Any]]]:
    """Yields the address of a fake model server and the requests that it received."""
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            answer = json.dumps({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_prepare_has_them_as_parts() -> None:
    prompt = tympan.load_str(TEXT)
    messages = tympan.prepare(prompt, INPUTS)
    rendered = tympan.render(prompt, INPUTS)
    for said in (messages, tympan.parse(prompt, rendered), prompt.messages(rendered)):
        parts = said[1].content
        assert [part.kind for part in parts] == ["text", "image", "text", "audio", "text", "file", "text"]
        assert [part.value for part in parts if part.kind == "text"] == ["See ", " and hear ", " and read ", "!"]
        assert base64.b64decode(parts[1].value.split(",")[-1]) == PNG
        assert base64.b64decode(parts[3].value.split(",")[-1]) == WAV
        assert base64.b64decode(parts[5].value.split(",")[-1]) == PDF
        assert (parts[5].media_type, parts[5].file_name) == ("application/pdf", "a.pdf")
        assert said[1].text == "See  and hear  and read !"


def test_a_composition_has_them_as_parts() -> None:
    composition = tympan.Composition()
    composition.push(tympan.load_str(TEXT), INPUTS)
    assert [part.kind for part in composition.messages()[1].content].count("image") == 1


def test_a_model_gets_the_same_from_messages_that_came_back(asked: tuple[str, list[Any]]) -> None:
    base_url, requests = asked
    prompt = tympan.load_str(TEXT)
    messages = tympan.prepare(prompt, INPUTS)
    tympan.invoke(prompt, INPUTS, base_url=base_url, api_key="k")
    tympan.run(prompt, messages, base_url=base_url, api_key="k")
    tympan.run(prompt, [message.to_dict() for message in messages], base_url=base_url, api_key="k")
    assert requests[0]["messages"] == requests[1]["messages"] == requests[2]["messages"]
    kinds = [part["type"] for part in requests[0]["messages"][1]["content"]]
    assert kinds == ["text", "image_url", "text", "input_audio", "text", "file", "text"]


def test_a_turn_shows_them_as_parts() -> None:
    prompt = tympan.load_str(TEXT)
    seen: list[list[tympan.Message]] = []

    def judge(messages: list[tympan.Message]) -> None:
        seen.append(messages)

    turn = tympan.turn(prompt, INPUTS, judge_input=judge, run={"provider": "echo"})
    for messages in (seen[0], turn.messages):
        assert [part.kind for part in messages[1].content if part.kind != "text"] == ["image", "audio", "file"]


def test_a_picture_that_is_none_is_an_error() -> None:
    with pytest.raises(tympan.TympanValueError):
        tympan.prepare(tympan.load_str(TEXT), {**INPUTS, "picture": 7})
