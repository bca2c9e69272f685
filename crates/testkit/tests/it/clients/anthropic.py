import json, sys
import anthropic

client = anthropic.Anthropic(base_url=sys.argv[1], api_key="sk-none", max_retries=0)
said = [{"role": "user", "content": "hello"}]
common = {"model": "m", "max_tokens": 100, "messages": said}
seen = {}

answer = client.messages.create(**common)
seen["whole"] = [
    answer.content[0].text, answer.content[1].name, answer.content[1].input, answer.content[1].id[:6],
    answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens, answer._request_id[:4],
]

kinds, texts, arguments = [], [], ""
for event in client.messages.create(**common, stream=True):
    kinds.append(event.type) if event.type not in kinds else None
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        texts.append(event.delta.text)
    if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
        arguments += event.delta.partial_json
seen["stream"] = [kinds, texts, json.loads(arguments)]

with client.messages.stream(**common) as stream:
    final = stream.get_final_message()
seen["accumulated"] = [final.content[0].text, final.content[1].input, final.stop_reason, final.usage.output_tokens]

seen["count"] = client.messages.count_tokens(model="m", messages=said).input_tokens > 0
seen["models"] = [model.id for model in client.models.list()]
for status in (401, 429, 500, 529):
    try:
        client.messages.create(**{**common, "model": f"fail-{status}"})
    except anthropic.APIStatusError as error:
        retry = error.response.headers.get("retry-after")
        seen[str(status)] = [type(error).__name__, error.status_code, error.body["error"]["type"], retry, error.request_id[:4]]
print(json.dumps(seen))
