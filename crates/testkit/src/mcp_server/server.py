"""A server of MCP with a tool of every kind: `server.py PORT FOLDER TOOLS`.

What is called is written down in the folder. TOOLS more tools can be called than those that stand here.
"""

import json
import sys
from pathlib import Path

import anyio
import mcp.server._streamable_http_modern as transport
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import EmbeddedResource, TextResourceContents, ToolAnnotations

# An answer that takes longer than this comes as events; by default that is a quarter of a minute.
transport._SSE_PING_INTERVAL = 0.2

port, folder, more = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
server = MCPServer("belljar-tests", log_level="WARNING")
artifacts = {}


def note(tool, **arguments):
    with open(folder / "calls.jsonl", "a") as calls:
        calls.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")


@server.tool(name="text.echo", structured_output=False)
def echo(text: str) -> str:
    """Says what it is told. Nothing else."""
    note("text.echo", text=text)
    return text


@server.tool(name="data.sum")
def total(numbers: list[int]) -> dict[str, int]:
    """Adds numbers."""
    return {"sum": sum(numbers)}


@server.tool(name="fault.fail", structured_output=False)
def fail(why: str) -> str:
    """Fails."""
    raise ToolError(why)


@server.tool(name="time.wait", structured_output=False)
async def wait(seconds: float) -> str:
    """Takes its time."""
    note("time.wait", seconds=seconds)
    await anyio.sleep(seconds)
    return "waited"


@server.tool(name="text.huge", structured_output=False)
def huge(size: int) -> str:
    """Says more than anybody wants to hear."""
    return "begin" + "x" * size + "end"


@server.tool(name="art.image", structured_output=False)
def image() -> Image:
    """Draws."""
    return Image(data=b"\x89PNG", format="png")


@server.tool(name="art.link", structured_output=False)
def link() -> EmbeddedResource:
    """Hands over a file."""
    resource = TextResourceContents(uri="guide://art", text="the guide", mime_type="text/plain")
    return EmbeddedResource(type="resource", resource=resource)


@server.tool(name="artifact.put", structured_output=False)
def put(task_id: str, path: str, content_bytes_base64: str) -> str:
    """Keeps a file."""
    note("artifact.put", task_id=task_id, path=path)
    artifacts[path] = content_bytes_base64
    return json.dumps({"status": "ok", "data": {"path": path}})


@server.tool(name="artifact.list", structured_output=False, annotations=ToolAnnotations(readOnlyHint=True))
def listed(task_id: str) -> str:
    """Lists the files that are kept."""
    return json.dumps({"status": "ok", "data": sorted(artifacts)})


@server.tool(name="skills.get", structured_output=False)
def skill(task_id: str, skill_id: str) -> str:
    """Returns a skill."""
    note("skills.get", task_id=task_id, skill_id=skill_id)
    if skill_id != "lay":
        raise ToolError("there is no such skill")
    return json.dumps({"status": "ok", "data": {"name": "bricklaying", "content": "Lay them in mortar."}})


@server.resource("guide://bulk/{number}")
def guide(number: str) -> str:
    return f"How to call number {number}."


def bulk(number):
    name = f"bulk{number % 3}.t{number:03}"

    def call(word: str) -> str:
        note(name, word=word)
        return f"{number} says {word}"

    meta = {"belljar/category": f"group{number % 3}", "belljar/cost_tier": "low"}
    if number % 2 == 0:
        meta["belljar/resources"] = [f"guide://bulk/{number}"]
    description = f"Says its number, {number}, and a word. " + "It goes on about that. " * 20
    server.add_tool(call, name=name, description=description, meta=meta, structured_output=False)


for number in range(more):
    bulk(number)

server.run("streamable-http", host="127.0.0.1", port=port)
