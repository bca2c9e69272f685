"""Works with a server as a program of the official SDK's does, and prints what it was told as JSON.

Arguments: MODE, then a URL and a token, or `--` and a command. Standard input: a list of calls, each a name and arguments; `$session` in
them stands for the session that the last `open` has told.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def transport(where):
    if where[0] == "--":
        environment = dict(os.environ)
        return stdio_client(StdioServerParameters(command=where[1], args=where[2:], env=environment))
    headers = {"authorization": f"Bearer {where[1]}"}
    return streamable_http_client(where[0], http_client=httpx2.AsyncClient(headers=headers, timeout=60))


async def main(mode, where, calls):
    told = []
    async with Client(transport(where), mode=mode) as client:
        version = client.protocol_version
        tools = (await client.list_tools()).tools
        session = ""
        for name, arguments in calls:
            arguments = json.loads(json.dumps(arguments).replace("$session", session))
            result = await client.call_tool(name, arguments)
            envelope = result.structured_content
            assert json.loads(result.content[0].text) == envelope
            if name == "open":
                session = envelope["data"]["session"]
            told.append({"is_error": bool(result.is_error), "envelope": envelope})
    names = [tool.name for tool in tools]
    print(json.dumps({"version": version, "tools": names, "told": told}))


asyncio.run(main(sys.argv[1], sys.argv[2:], json.load(sys.stdin)))
