//! Default programs of `restricted_commands`: those that work on a project takes, and none that reach other machines, change
//! the user or manage this machine.

use std::collections::BTreeSet;

/// Programs that read and change files.
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

/// Shells.
const SHELLS: &[&str] = &["sh", "bash", "dash"];

/// Programs for building and testing.
const BUILDING: &[&str] = &[
    "ar", "as", "c++", "cargo", "cc", "clang", "cmake", "g++", "gcc", "git", "go", "ld", "make", "ninja",
    "node", "npm", "npx", "pip", "pip3", "pytest", "python", "python3", "ruby", "rustc", "rustdoc", "strip",
    "uv",
];

/// Programs that tools themselves run, where no program may be run by hand.
const OF_TOOLS: &[&str] = &["git", "node", "python3"];

/// Returns the default programs of `restricted_commands`.
pub fn usual() -> BTreeSet<String> {
    [FILES, SHELLS, BUILDING].concat().into_iter().map(ToOwned::to_owned).collect()
}

/// Returns the programs that are available where `terminal` is `none`: no shell among them.
pub fn of_tools() -> BTreeSet<String> {
    OF_TOOLS.iter().map(|&name| name.to_owned()).collect()
}

/// Returns true if the text may be the name of a program. A path is not a name.
pub fn is_command(text: &str) -> bool {
    let is_inside =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'[');
    (1..=64).contains(&text.len()) && text.bytes().all(is_inside) && !matches!(text, "." | "..")
}
