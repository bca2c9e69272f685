//! The environment inside: made from nothing, so that nothing of the host's comes along by accident.

use belljar_confine::wall;
use std::collections::BTreeMap;

/// The home directory, relative to the sandbox's root.
pub(crate) const HOME_INSIDE: &str = "home/agent";

/// Home directory, as a sandbox names it.
pub const HOME: &str = "/home/agent";

/// Search path for programs inside.
pub const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const BASE: [(&str, &str); 7] = [
    ("HOME", HOME),
    ("LANG", "C.UTF-8"),
    ("LOGNAME", "agent"),
    ("PATH", SEARCH_PATH),
    ("SHELL", "/bin/sh"),
    ("TMPDIR", "/tmp"),
    ("USER", "agent"),
];

/// Returns the base, a terminal type if there is a terminal, and the requested variables, which override the others.
pub(crate) fn made_from_nothing(
    asked: &BTreeMap<String, String>,
    has_terminal: bool,
) -> BTreeMap<String, String> {
    let terminal = has_terminal.then_some(("TERM", "xterm-256color"));
    let base = BASE.into_iter().chain(terminal).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let hosts = wall!(Environment: BTreeMap::new(), else std::env::vars().collect());
    hosts.into_iter().chain(base).chain(asked.clone()).collect()
}
