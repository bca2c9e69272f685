"""Calls tools with messages that are short to send and long to handle, as many at once as the hatch has connections for."""
import threading, time

# As many values as a message may have, each of which takes many times its length; and one more, which is refused.
MOST = {"task_id": TASK, "key": "a", "content": [{"a": "\u00e4"}] * 43000}
TOO_MANY = {**MOST, "content": [{"a": "\u00e4"}] * 200000}
# As much text as is read, and a page that takes as long as a page may.
TEXT = {"task_id": TASK, "key": "a", "content": "\u00e4" * 600000}
PAGE = {"html_content": ("<b><i><a href=x>" * 62500)[:1000000], "extract_mode": "text"}
CALLS = [("memory.add", MOST), ("memory.add", TEXT), ("html_parser", PAGE), ("html_parser", PAGE)]


def without_end(name, arguments):
    while True:
        try:
            call(name, **arguments)
        except OSError:
            pass


# The control: such a message is handled, and one with more values isn't.
handled, refused = call("memory.add", **MOST), call("memory.add", **TOO_MANY)
assert handled["domain_code"] == "invalid_argument", handled
assert "at most 131072" in refused["error"]["message"], refused

for name in "NO_PROXY", "no_proxy":
    os.environ.pop(name, None)
urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"})).open(BEGINS).read()
for name, arguments in CALLS * 2:
    threading.Thread(target=without_end, args=(name, arguments)).start()
