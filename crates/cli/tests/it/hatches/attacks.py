"""Attacks every hatch of its sandbox in every way, without end: freezes, floods, trickles, lingers, and sends heavy bodies."""
import array, json, os, socket, struct, threading, time, urllib.request

JOB = os.environ["CYNODE_JOB_ID"]
HATCHES = {
    "web": (3128, "/web-sock/web.sock", "GET http://localhost:1/ HTTP/1.1"),
    "models": (8080, "/llm-sock/llm.sock", "POST /v1/chat/completions HTTP/1.1"),
    "status": (7070, "/status-sock/status.sock", "POST /v1/jobs/%s/status HTTP/1.1" % JOB),
    "tools": (7070, "/status-sock/status.sock", "POST /mcp HTTP/1.1"),
}
# Costs more to parse than to send.
HEAVY = b'{"a":' * 50 + b"[" + b"[]," * 1000000 + b"[]]" + b"}" * 50


def connected(port, path, is_local):
    if not is_local:
        return socket.create_connection(("127.0.0.1", port), 5)
    hatch = socket.socket(socket.AF_UNIX)
    hatch.settimeout(5)
    hatch.connect(path)
    return hatch


def head(line, length):
    return (line + "\r\nHost: localhost:1\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n" % length).encode()


def freeze(connect, line, kept):
    kept.append(connect())


def trickle(connect, line, kept):
    hatch = connect()
    kept.append(hatch)
    for byte in head(line, 30 << 20) + b" " * 100:
        hatch.send(bytes([byte]))
        time.sleep(0.02)


def flood(connect, line, kept):
    hatch = connect()
    hatch.sendall(head(line, 2) + b"{}")
    hatch.recv(1)
    hatch.close()


def heavy(connect, line, kept):
    hatch = connect()
    hatch.sendall(head(line, len(HEAVY)) + HEAVY)
    # What is answered is not read.
    kept.append(hatch)


def linger(connect, line, kept):
    listener = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(listener.getsockname())
    theirs, _ = listener.accept()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    ours.setblocking(False)
    try:
        while True:
            ours.send(b"x" * 65536)
    except BlockingIOError:
        pass
    hatch = connect()
    kept += [hatch, theirs]
    try:
        for byte, passed in (b"P", ours), (b"O", theirs):
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed.fileno()]))
            hatch.sendmsg([byte], [rights])
    except PermissionError:
        # It would sleep here.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise
    ours.close()


def without_end(attack, connect, line):
    kept = []
    while True:
        try:
            attack(connect, line, kept)
        except OSError:
            pass
        time.sleep(0.02)
        # So many are kept open at a time.
        del kept[:-64]


# The page is on this machine, and to be had by the proxy all the same.
for name in "NO_PROXY", "no_proxy":
    os.environ.pop(name, None)
# Tells the test, by the only way out there is, that it begins.
urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"})).open(BEGINS).read()
for port, path, line in HATCHES.values():
    for is_local in (False, True):
        connect = lambda port=port, path=path, is_local=is_local: connected(port, path, is_local)
        for attack in [freeze, trickle, flood, heavy] + [linger] * is_local:
            threading.Thread(target=without_end, args=(attack, connect, line)).start()
