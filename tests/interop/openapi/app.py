"""A service for testing OpenAPI tools: FastAPI validates the requests and generates the document."""

import base64
import enum
import sys
from typing import Annotated

import fastapi
import uvicorn
from fastapi import Body, Cookie, Depends, Form, Header, HTTPException, Path, Query, Request, Response
from fastapi.security import APIKeyCookie, APIKeyHeader, APIKeyQuery, HTTPBasic, HTTPBasicCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

KEY = "correct-horse-battery-staple"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

port = int(sys.argv[1])
app = fastapi.FastAPI(
    title="A shop",
    version="1",
    servers=[{"url": f"http://127.0.0.1:{port}"}],
    generate_unique_id_function=lambda route: route.name,
)


class Size(enum.StrEnum):
    small = "small"
    large = "large"


class Maker(BaseModel):
    name: str
    town: str | None = None


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1, max_length=40)
    price: float = Field(gt=0)
    size: Size | None = None
    tags: list[str] = []
    maker: Maker


@app.get("/items/{item_id}", summary="Look at an item")
def get_item(item_id: Annotated[int, Path(ge=1)], detail: bool = False):
    if item_id == 404:
        raise HTTPException(404, "there is no such item")
    return {"id": item_id, "detail": detail}


@app.get("/by-name/{name}")
def by_name(name: str):
    return {"name": name}


@app.get("/search")
def search(
    q: Annotated[str, Query(min_length=2)],
    size: Size | None = None,
    tag: Annotated[list[str], Query()] = [],
    limit: Annotated[int, Query(le=100)] = 10,
    x_trace: Annotated[str | None, Header()] = None,
    session: Annotated[str | None, Cookie()] = None,
):
    return {"q": q, "size": size, "tag": tag, "limit": limit, "x_trace": x_trace, "session": session}


@app.post("/items", status_code=201)
def create_item(item: Item, request: Request, dry_run: bool = False):
    return {"item": item, "dry_run": dry_run, "idempotency_key": request.headers.get("idempotency-key")}


@app.put("/items/{item_id}")
def replace_items(item_id: int, names: Annotated[list[str], Body()]):
    return {"id": item_id, "names": names}


@app.delete("/items/{item_id}", status_code=204)
def delete_item(item_id: int):
    return Response(status_code=204)


@app.post("/login")
def login(user: Annotated[str, Form()], scopes: Annotated[list[str], Form()], age: Annotated[int, Form()] = 0):
    return {"user": user, "scopes": scopes, "age": age}


@app.post("/upload")
def upload(file: fastapi.UploadFile):
    return {"size": file.size}


@app.get("/picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
def picture():
    return Response(PICTURE, media_type="image/png")


@app.get("/archive", response_class=Response)
def archive():
    return Response(b"PK\x03\x04\x00\xff\xfe", media_type="application/zip")


@app.get("/poem", response_class=fastapi.responses.PlainTextResponse)
def poem():
    return "Shall I compare thee\nto a summer's day?\n"


def same(given: str | None):
    if given != KEY:
        raise HTTPException(401, "who are you?")


@app.get("/bearer")
def with_bearer(credentials: Annotated[object, Depends(HTTPBearer())]):
    same(credentials.credentials)
    return {"you": "are known", "your key": credentials.credentials}


@app.get("/header-key")
def with_header(key: Annotated[str, Depends(APIKeyHeader(name="X-Shop-Key"))]):
    same(key)
    return {"you": "are known"}


@app.get("/query-key")
def with_query(key: Annotated[str, Depends(APIKeyQuery(name="shop_key"))], q: str = ""):
    same(key)
    return {"you": "are known", "q": q}


@app.get("/cookie-key")
def with_cookie(key: Annotated[str, Depends(APIKeyCookie(name="shop"))]):
    same(key)
    return {"you": "are known"}


@app.get("/basic")
def with_basic(credentials: Annotated[HTTPBasicCredentials, Depends(HTTPBasic())]):
    same(f"{credentials.username}{credentials.password}")
    return {"you": "are known"}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
