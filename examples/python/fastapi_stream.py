"""An endpoint that runs a turn and streams its events as server-sent events.

    uvicorn --app-dir examples/python fastapi_stream:app
    curl --no-buffer --json '{"city": "Paris"}' localhost:8000/weather
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Optional

import tympan
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

app = FastAPI()
prompt = tympan.load(Path(__file__).parents[1] / "weather" / "weather.prompty")


class Question(BaseModel):
    city: str


@tympan.tool(timeout=10)
async def get_weather(city: str, unit: str) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "sky": "clear", "degrees": 21, "unit": unit}


@app.post("/weather")
async def weather(question: Question) -> StreamingResponse:
    return StreamingResponse(events(question), media_type="text/event-stream")


async def events(question: Question) -> AsyncIterator[str]:
    queue: asyncio.Queue[Optional[tympan.Event]] = asyncio.Queue()
    turn = asyncio.create_task(
        tympan.turn_async(prompt, question, tools=[get_weather], on_event=queue.put_nowait)
    )
    turn.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield sent(event.kind, event.data)
        await turn
    except tympan.TympanError as error:
        # The response has already started, so it is too late for an error status.
        yield sent("failed", {"code": error.code, "message": str(error)})
    finally:
        # Stop the turn if the client has disconnected.
        turn.cancel()


def sent(kind: str, data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
