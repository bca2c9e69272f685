//! The programs that `restricted_commands` means where nobody has said which: what working on a project takes, and nothing that is there
//! to reach other machines, to become another user, or to manage this one.

use std::collections::BTreeSet;

/// Looking at files and changing them.
const FILES: &[&str] = &[
    "awk",
    "basename",
    "cat",
    "chmod",
    "cmp",
    "comm",
    "cp",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "env",
    "expr",
    "false",
    "file",
    "find",
    "grep",
    "egrep",
    "fgrep",
    "gzip",
    "gunzip",
    "head",
    "install",
    "join",
    "jq",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nl",
    "od",
    "paste",
    "patch",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha256sum",
    "sleep",
    "sort",
    "split",
    "stat",
    "tail",
    "tar",
    "tee",
    "test",
    "[",
    "timeout",
    "touch",
    "tr",
    "true",
    "uname",
    "uniq",
    "unzip",
    "wc",
    "which",
    "xargs",
    "xz",
    "yes",
    "zip",
];

/// Running lines of commands.
const SHELLS: &[&str] = &["sh", "bash", "dash"];

/// Building and testing.
const BUILDING: &[&str] = &[
    "ar", "as", "c++", "cargo", "cc", "clang", "cmake", "g++", "gcc", "git", "go", "ld", "make", "ninja",
    "node", "npm", "npx", "pip", "pip3", "pytest", "python", "python3", "ruby", "rustc", "rustdoc", "strip",
    "uv",
];

/// What tools themselves run, where nothing may be run by hand.
const OF_TOOLS: &[&str] = &["git", "node", "python3"];

/// Those of `restricted_commands`.
pub fn usual() -> BTreeSet<String> {
    [FILES, SHELLS, BUILDING].concat().into_iter().map(ToOwned::to_owned).collect()
}

/// Those that there are where `terminal` is `none`: no shell among them.
pub fn of_tools() -> BTreeSet<String> {
    OF_TOOLS.iter().map(|&name| name.to_owned()).collect()
}

/// Whether a program may be called that: a name, and no place.
pub fn is_command(text: &str) -> bool {
    let is_inside =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'[');
    (1..=64).contains(&text.len()) && text.bytes().all(is_inside) && !matches!(text, "." | "..")
}
