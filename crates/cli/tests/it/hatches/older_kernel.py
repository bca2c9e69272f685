"""Runs belljar as a kernel before Linux 6.16 would: setsockopt(SO_PASSRIGHTS) fails with ENOPROTOOPT. Takes root."""
import ctypes, os, platform, struct, sys

SETSOCKOPT = {"x86_64": 54, "aarch64": 208}[platform.machine()]
SOL_SOCKET, SO_PASSRIGHTS, ENOPROTOOPT = 1, 83, 92
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, MODE_FILTER = 22, 2

# Of struct seccomp_data: the number at 0, the second argument at 24, the third at 32.
program = [
    (LOAD, 0, 0, 0), (IF_EQUAL, 0, 5, SETSOCKOPT),
    (LOAD, 0, 0, 24), (IF_EQUAL, 0, 3, SOL_SOCKET),
    (LOAD, 0, 0, 32), (IF_EQUAL, 0, 1, SO_PASSRIGHTS),
    (RETURN, 0, 0, ERRNO | ENOPROTOOPT),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
arguments = Filter(len(program), ctypes.addressof(code))
if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(arguments), 0, 0):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(BELLJAR, [BELLJAR] + sys.argv[1:])
