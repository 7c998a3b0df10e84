"""A small Model Context Protocol server with one tool. Each message is one line of JSON."""

import json
import sys

WORDS = {"tympan": "In a printing press, a sheet between the platen and the paper."}

DEFINE = {
    "name": "define",
    "description": "Looks up a word.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    "annotations": {"readOnlyHint": True},
}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "dictionary", "version": "1.0"},
        }
    if method == "tools/list":
        return {"tools": [DEFINE]}
    if method == "tools/call":
        found = WORDS.get(params["arguments"]["word"])
        return {"content": [{"type": "text", "text": found or "It is not in here."}], "isError": found is None}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
