import json, sys
import ollama

client = ollama.Client(host=sys.argv[1])
said = [{"role": "user", "content": "hello"}]
seen = {}


def call(message):
    function = message.tool_calls[0].function
    return [function.name, dict(function.arguments)]


answer = client.chat(model="m", messages=said)
seen["chat"] = [answer.message.content, call(answer.message), answer.done, answer.done_reason, answer.prompt_eval_count, answer.eval_count]
parts = list(client.chat(model="m", messages=said, stream=True))
seen["chat_stream"] = [
    [part.message.content for part in parts if part.message.content], [call(part.message) for part in parts if part.message.tool_calls],
    [part.done for part in parts].count(True), parts[-1].eval_count,
]
answer = client.generate(model="m", prompt="hello")
seen["generate"] = [answer.response, answer.done]
parts = list(client.generate(model="m", prompt="hello", stream=True))
seen["generate_stream"] = ["".join(part.response for part in parts), parts[-1].done]
seen["embed"] = [len(vector) for vector in client.embed(model="m", input=["a", "b"]).embeddings]
seen["tags"] = [model.model for model in client.list().models]
seen["show"] = client.show("m").capabilities
for status in (401, 429, 500, 529):
    try:
        client.chat(model=f"fail-{status}", messages=said)
    except ollama.ResponseError as error:
        seen[str(status)] = [error.status_code, error.error]
print(json.dumps(seen))
