"""Uses a prompt file with LangChain: Tympan prepares the messages, and LangChain does the rest."""

from __future__ import annotations

from pathlib import Path

import tympan
from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda

prompt = tympan.load(Path(__file__).parents[1] / "retrieval.prompty")


def to_langchain(messages: list[tympan.Message]) -> list[BaseMessage]:
    """Convert Tympan's messages to LangChain's."""
    return convert_to_messages([(message.role, message.text) for message in messages])


# A runnable that replaces a `ChatPromptTemplate` in a chain: `retrieval | model`.
retrieval = RunnableLambda(
    lambda inputs: ChatPromptValue(messages=to_langchain(tympan.prepare(prompt, inputs)))
)

if __name__ == "__main__":
    sample = {field.name: field.example for field in prompt.inputs if field.example is not None}
    print(retrieval.invoke(sample).to_string())
