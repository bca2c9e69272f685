"""A minimal MCP server, used as a base by misbehaving test servers."""

import json
import os
import sys
import time


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def text(said):
    return {"content": [{"type": "text", "text": said}]}


READ_ONLY = {"readOnlyHint": True}


def listed(params):
    return {"tools": [tool("one")]}


def called(name, arguments):
    return text(name)


def heard(message):
    pass


def serve():
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "script", "version": "1"},
            }
        elif method == "tools/list":
            result = listed(params)
        elif method == "tools/call":
            result = called(params["name"], params.get("arguments") or {})
        elif method is None or "id" not in message:
            heard(message)
            continue
        else:
            say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
            continue
        if result is not None:
            say({"jsonrpc": "2.0", "id": message["id"], "result": result})

