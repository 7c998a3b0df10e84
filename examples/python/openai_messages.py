"""A prompt file for a program that calls models by the OpenAI SDK: Tympan makes the messages, the SDK sends them."""

from __future__ import annotations

from pathlib import Path

import tympan
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

prompt = tympan.load(Path(__file__).parents[1] / "hello.prompty")


def to_openai(messages: list[tympan.Message]) -> list[ChatCompletionMessageParam]:
    """The same messages as the SDK has them."""
    return [{"role": message.role, "content": message.text} for message in messages]  # type: ignore[misc,list-item]


def greet(client: OpenAI, name: str) -> str:
    """What a model says to somebody of this name, whatever that name says."""
    messages = to_openai(tympan.prepare(prompt, {"name": name}))
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages)
    return answer.choices[0].message.content or ""


if __name__ == "__main__":
    # The key is in OPENAI_API_KEY, and another address may be in OPENAI_BASE_URL.
    print(greet(OpenAI(), "Ada"))
