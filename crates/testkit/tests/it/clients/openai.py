import json, sys
import httpx
import openai

url, socket = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=url + "/v1", api_key="sk-none", max_retries=0)
tools = [{"type": "function", "function": {"name": "write", "parameters": {"type": "object", "properties": {}}}}]
said = [{"role": "user", "content": "hello"}]
seen = {}

whole = client.chat.completions.with_raw_response.create(model="m", messages=said, tools=tools)
answer = whole.parse()
call = answer.choices[0].message.tool_calls[0]
seen["whole"] = [
    answer.choices[0].message.content, call.function.name, json.loads(call.function.arguments), call.id[:4],
    answer.choices[0].finish_reason, answer.usage.total_tokens, answer.model, float(whole.headers["x-litellm-response-cost"]),
]

texts, names, arguments, finish, usage = [], [], "", None, None
for chunk in client.chat.completions.create(
    model="m", messages=said, tools=tools, stream=True, stream_options={"include_usage": True},
):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        finish = choice.finish_reason or finish
        if choice.delta.content:
            texts.append(choice.delta.content)
        for part in choice.delta.tool_calls or []:
            names += [part.function.name] if part.function.name else []
            arguments += part.function.arguments or ""
seen["stream"] = [texts, names, json.loads(arguments), finish, usage.total_tokens, usage.cost]

chunks = list(client.chat.completions.create(model="m", messages=said, stream=True))
seen["stream_without_usage"] = [all(chunk.usage is None for chunk in chunks), all(chunk.choices for chunk in chunks)]

answer = client.responses.create(model="m", input="hello")
seen["responses"] = [answer.output_text, answer.output[1].name, json.loads(answer.output[1].arguments), answer.usage.total_tokens, answer.status]

kinds, texts, arguments, numbers, final = [], [], "", [], None
for event in client.responses.create(model="m", input="hello", stream=True):
    kinds.append(event.type) if event.type not in kinds else None
    numbers.append(event.sequence_number)
    if event.type == "response.output_text.delta":
        texts.append(event.delta)
    if event.type == "response.function_call_arguments.delta":
        arguments += event.delta
    if event.type == "response.completed":
        final = event.response
seen["responses_stream"] = [kinds, texts, json.loads(arguments), numbers == list(range(len(numbers))), final.output_text, final.usage.cost]

with client.responses.stream(model="m", input="hello") as stream:
    seen["responses_accumulated"] = stream.get_final_response().output_text

answer = client.completions.create(model="m", prompt="hello")
seen["completions"] = [answer.choices[0].text, answer.usage.total_tokens]
seen["completions_stream"] = [c.choices[0].text for c in client.completions.create(model="m", prompt="hello", stream=True)]

packed = client.embeddings.create(model="m", input=["a", "b"])
plain = client.embeddings.create(model="m", input=["a", "b"], encoding_format="float")
seen["embeddings"] = [len(packed.data), packed.data[0].embedding == plain.data[0].embedding, packed.data[0].embedding != packed.data[1].embedding]
seen["models"] = [model.id for model in client.models.list()]

over_socket = openai.OpenAI(
    base_url="http://socket/v1", api_key="sk-none", http_client=httpx.Client(transport=httpx.HTTPTransport(uds=socket)),
)
seen["over_socket"] = over_socket.chat.completions.create(model="m", messages=said).choices[0].message.content

for status in (401, 429, 500, 529):
    try:
        client.chat.completions.create(model=f"fail-{status}", messages=said)
    except openai.APIStatusError as error:
        retry = error.response.headers.get("retry-after")
        seen[str(status)] = [type(error).__name__, error.status_code, error.type, retry, error.request_id[:4]]
print(json.dumps(seen))
