//! The attempts, as data.

/// One attempt.
pub(super) struct ProgramAttempt {
    /// Description of the attempt. With the row it is the case's name, and unique.
    pub(super) what: &'static str,
    /// Programs that it needs besides a shell, separated by commas.
    pub(super) takes: &'static str,
    /// Script for the shell.
    pub(super) script: &'static str,
}

const fn attempt(what: &'static str, takes: &'static str, script: &'static str) -> ProgramAttempt {
    ProgramAttempt { what, takes, script }
}

pub(super) const ATTEMPTS: &[ProgramAttempt] = &[
    attempt("by its name", "", "basename /a/MARK"),
    attempt("by its path", "", "/usr/bin/basename /a/MARK"),
    attempt("by its path, past links", "", "/proc/self/root/tmp/../bin/basename /a/MARK"),
    attempt("by a child of a shell that is listed", "", "sh -c 'sh -c \"basename /a/MARK\"; true'"),
    attempt("by a program that is listed", "env", "env -i /usr/bin/basename /a/MARK"),
    attempt("by a link with a name that is listed", "ln", "ln -s /usr/bin/basename /tmp/sh; /tmp/sh /a/MARK"),
    attempt("by a copy with a name that is listed", "", "/workspace/sh /a/MARK"),
    attempt("by a copy found by its name", "", "PATH=/workspace; sh /a/MARK"),
    attempt("by a copy that was lent", "", "/lent/sh /a/MARK"),
    attempt(
        "by a copy of a copy",
        "cp",
        "for at in /tmp /home/agent /dev/shm; do cp /workspace/sh $at/sh; $at/sh /a/MARK; done",
    ),
    attempt("by a copy of its file", "cp", "cp /usr/bin/basename /tmp/sh; /tmp/sh /a/MARK"),
    attempt("by its file, read", "cat", "cat /usr/bin/basename > /tmp/read; test -s /tmp/read && echo MARK"),
    attempt("by the loader", "", "/lib64/ld-linux-x86-64.so.2 /usr/bin/basename /a/MARK"),
    attempt("by the loader, a copy", "", "/lib64/ld-linux-x86-64.so.2 /workspace/sh /a/MARK"),
    attempt("by the loader, a copy that was lent", "", "/lib64/ld-linux-x86-64.so.2 /lent/sh /a/MARK"),
    attempt(
        "by the loader, a copy of a copy",
        "cp",
        "for at in /tmp /home/agent /dev/shm; do
            cp /workspace/sh $at/sh; /lib64/ld-linux-x86-64.so.2 $at/sh /a/MARK; done",
    ),
    attempt(
        "by its descriptor",
        "python3",
        "python3 -c 'import os; os.execve(os.open(\"/workspace/sh\", os.O_RDONLY), [\"sh\", \"/a/MARK\"], {})'",
    ),
    attempt(
        "by a file without a name",
        "python3",
        "python3 -c 'import os; file = os.memfd_create(\"a\", 0)
os.write(file, open(\"/workspace/sh\", \"rb\").read()); os.execve(file, [\"sh\", \"/a/MARK\"], {})'",
    ),
    attempt(
        "by the loader, a file without a name",
        "python3",
        "python3 -c 'import os; file = os.memfd_create(\"a\", 0); os.write(file, open(\"/workspace/sh\", \"rb\").read())
loader = \"/lib64/ld-linux-x86-64.so.2\"; os.set_inheritable(file, True)
os.execve(loader, [loader, f\"/proc/self/fd/{file}\", \"/a/MARK\"], {})'",
    ),
    attempt(
        "by a file that lost its name",
        "python3",
        "python3 -c 'import os; file = os.open(\"/tmp\", os.O_TMPFILE | os.O_RDWR, 0o755)
os.write(file, open(\"/workspace/sh\", \"rb\").read()); again = os.open(f\"/proc/self/fd/{file}\", os.O_RDONLY)
os.close(file); os.execve(again, [\"sh\", \"/a/MARK\"], {})'",
    ),
    attempt("by a script that it interprets", "", "/workspace/MARK"),
    attempt("by a script that it interprets and that was lent", "", "/lent/MARK"),
    attempt(
        "by another root, and mounts that run programs",
        "unshare,mount,chroot,mkdir",
        "unshare -r true; unshare -rm mount -o remount,bind,exec /workspace; mount -o remount,exec /workspace
         mkdir -p /tmp/a; mount --bind /usr/bin /tmp/a; chroot / true; unshare -rR / true; /workspace/sh /a/MARK",
    ),
    attempt(
        "in a namespace of its own",
        "unshare",
        "unshare -r basename /a/MARK || unshare -U basename /a/MARK || basename /a/MARK",
    ),
];

/// Programs that must work with an allowlist: `git` has several parts, `python3` is a link, and both need their loader.
pub(super) const LISTED: &[(&str, &str)] = &[
    (
        "a shell, what it starts and what it writes",
        "sh -c 'echo MARK > /tmp/a; read -r line < /tmp/a; echo $line'",
    ),
    ("a link to a program", "python3 -c 'import ssl, json; print(\"MARK\")'"),
    (
        "a program made of parts",
        "git version --build-options > /dev/null && git --exec-path > /dev/null && echo MARK",
    ),
    ("a program by its path", "/usr/bin/env echo MARK 2> /dev/null || /usr/bin/env sh -c 'echo MARK'"),
];
