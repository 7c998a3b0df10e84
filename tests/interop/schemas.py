"""Validates the requests in fixtures/request against what the providers publish about their APIs.

    python schemas.py fixtures/request [openai-openapi.yaml]

Needs the packages in schemas-requirements.txt. The types of the packages `openai` and `anthropic` describe the requests
of these providers; OpenAI's OpenAPI document, if it is given, describes them once more. Options that a prompt passes
through unchanged may be unknown to both.
"""

import json
import sys
from pathlib import Path

import jsonschema
import yaml
from anthropic.types.message_create_params import MessageCreateParams
from harness import Cases, Mismatch, holds
from openai.types import EmbeddingCreateParams, ImageGenerateParams
from openai.types.chat.completion_create_params import CompletionCreateParams
from openai.types.responses.response_create_params import ResponseCreateParams
from pydantic import TypeAdapter, ValidationError

FEWEST = 90
# The providers that the published schemas are about, and those whose requests are the same.
OPENAI = {"openai", "azure", "azure_openai", "foundry"}
ANTHROPIC = {"anthropic", "claude"}
# The type of the package and the schema of the document, by API type.
APIS = {
    "chat": (CompletionCreateParams, "CreateChatCompletionRequest"),
    "responses": (ResponseCreateParams, "CreateResponse"),
    "embedding": (EmbeddingCreateParams, "CreateEmbeddingRequest"),
    "image": (ImageGenerateParams, "CreateImageRequest"),
}
ALIASES = {"response": "responses", "embeddings": "embedding", "images": "image", "messages": "chat", "": "chat"}
# Parts of requests that prompts may contain although OpenAI itself refuses them: part of the mismatch, and the reason.
REFUSED = {
    "openai_chat: parts": ("format", "compatible servers accept audio other than WAV and MP3"),
    "openai_responses: parts": ("input_", "compatible servers accept audio in this API"),
}
# Adapters by type. Building one is slow.
ADAPTERS = {}


def checked(name, check, *args):
    """Run a check, which has to fail if OpenAI refuses the request."""
    part, reason = REFUSED.get(name, (None, None))
    if part is None:
        return check(*args)
    try:
        check(*args)
    except Mismatch as mismatch:
        holds(f"expected a mismatch at `{part}`, because {reason}", part in str(mismatch), str(mismatch))
    else:
        raise Mismatch(f"the request is valid now; expected a mismatch, because {reason}")
    return None


def model_of(case):
    """Return the provider and the API type of a case."""
    front = yaml.safe_load(case["prompt"].split("---")[1]) or {}
    model = front.get("model") or {}
    model = model if isinstance(model, dict) else {}
    options = case.get("options") or {}
    provider = options.get("provider") or model.get("provider") or "openai"
    api = options.get("apiType") or model.get("apiType") or "chat"
    return provider, ALIASES.get(api, api)


def consume(value):
    """Read all iterators in a value. Pydantic validates them only then."""
    if isinstance(value, dict):
        for item in value.values():
            consume(item)
    elif hasattr(value, "__iter__") and not isinstance(value, (str, bytes)):
        for item in value:
            consume(item)


def fits_type(body, kind):
    """Fail unless a body has a type of a package."""
    if kind not in ADAPTERS:
        ADAPTERS[kind] = TypeAdapter(kind)
    try:
        consume(ADAPTERS[kind].validate_python(body))
    except ValidationError as error:
        # Each alternative of a union reports what it misses. The shortest list belongs to the nearest one.
        shown = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise Mismatch("\n      ".join(shown[:12])) from error


def open_schema(schema):
    """Return a schema in which `nullable` and `oneOf` mean what their authors meant.

    Several of the document's alternatives match the same request, so `oneOf` would reject it.
    """
    if isinstance(schema, list):
        return [open_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    opened = {("anyOf" if key == "oneOf" else key): open_schema(value) for key, value in schema.items()}
    if opened.pop("nullable", False) is True:
        opened = {"anyOf": [opened, {"type": "null"}]}
    return opened


class Document:
    """OpenAI's OpenAPI document."""

    def __init__(self, path):
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        document = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=loader)
        self.schemas = open_schema(document["components"]["schemas"])

    def check(self, body, name):
        """Fail unless a body has the schema of this name."""
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": self.schemas}}
        errors = jsonschema.Draft202012Validator(schema).iter_errors(body)
        best = jsonschema.exceptions.best_match(errors)
        if best is not None:
            raise Mismatch(f"{best.json_path}: {best.message[:600]}")


def main(folder, document=None):
    """Validate all fixtures and return the exit status."""
    cases = Cases()
    document = Document(document) if document else None
    for path in sorted(Path(folder).glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            provider, api = model_of(case)
            if "body" not in case or "model" not in case["body"]:
                continue
            name = f"{path.stem}: {case['name']}"
            if provider in ANTHROPIC:
                cases.attempt(f"{name} (anthropic)", checked, name, fits_type, case["body"], MessageCreateParams)
            elif provider in OPENAI and api in APIS:
                kind, schema = APIS[api]
                cases.attempt(f"{name} (openai, {api})", checked, name, fits_type, case["body"], kind)
                if document:
                    cases.attempt(f"{name} (document, {api})", checked, name, document.check, case["body"], schema)
    return cases.finish(FEWEST if document else FEWEST // 2)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
