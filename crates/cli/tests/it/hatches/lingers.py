"""Passes a socket over a unix hatch whose last close sleeps, and looks whether the hatch still answers.

usage: lingers.py PATH SECONDS
"""
import array, socket, struct, sys, time

PATH, SECONDS = sys.argv[1], int(sys.argv[2])


def lingering(seconds):
    """A socket with unsent bytes that lingers so long, and its peer, which doesn't read."""
    listener = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(listener.getsockname())
    theirs, _ = listener.accept()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    ours.setblocking(False)
    try:
        while True:
            ours.send(b"x" * 65536)
    except BlockingIOError:
        return ours, theirs


def connected():
    hatch = socket.socket(socket.AF_UNIX)
    hatch.settimeout(2)
    hatch.connect(PATH)
    return hatch


def give(hatch, byte, passed):
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed.fileno()]))]
    hatch.sendmsg([byte], ancillary)
    passed.close()


def attack():
    kept = []
    try:
        # A first one, so that the reader sleeps while the second is made: its peer then lies in the reader's own queue.
        ours, theirs = lingering(2)
        kept += [connected(), theirs]
        give(kept[0], b"G", ours)
        ours, theirs = lingering(SECONDS)
        kept.append(connected())
        give(kept[-1], b"G", ours)
        give(kept[-1], b"E", theirs)
        print("sent", flush=True)
    except PermissionError:
        print("refused", flush=True)
    return kept


def answers():
    try:
        hatch = connected()
        hatch.sendall(b"GET http://localhost:1/ HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
        return bool(hatch.recv(1))
    except OSError:
        return False


kept = attack()
if len(kept) > 2:
    # Longer than the first one lingers.
    time.sleep(3)
print("answers" if answers() else "sleeps", flush=True)
time.sleep(600)
