"""Uses a prompt file with the OpenAI SDK: Tympan prepares the messages, and the SDK sends them."""

from __future__ import annotations

from pathlib import Path

import tympan
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

prompt = tympan.load(Path(__file__).parents[1] / "hello.prompty")


def to_openai(messages: list[tympan.Message]) -> list[ChatCompletionMessageParam]:
    """Convert Tympan's messages to the SDK's."""
    return [{"role": message.role, "content": message.text} for message in messages]  # type: ignore[misc,list-item]


def greet(client: OpenAI, name: str) -> str:
    """Ask a model to greet a person. The name cannot forge a message, whatever it contains."""
    messages = to_openai(tympan.prepare(prompt, {"name": name}))
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages)
    return answer.choices[0].message.content or ""


if __name__ == "__main__":
    # The SDK reads the key from OPENAI_API_KEY and, optionally, the address from OPENAI_BASE_URL.
    print(greet(OpenAI(), "Ada"))
