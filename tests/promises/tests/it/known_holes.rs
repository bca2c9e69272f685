//! Holes that are known and not yet mended, and what should work and doesn't. A case that is listed here and is as it
//! should be again fails the suite, too.

/// One of them.
pub(crate) struct Hole {
    /// The case's name.
    pub(crate) case: &'static str,
    /// What gets through or doesn't, and why.
    pub(crate) why: &'static str,
}

/// Those of native sandboxes.
pub(crate) const KNOWN_HOLES: &[Hole] = &[MESSAGE_QUEUES, COMMAND_LINE];

/// Those of containers.
pub(crate) const KNOWN_HOLES_OF_CONTAINERS: &[Hole] = &[MESSAGE_QUEUES, COMMAND_LINE, MOUNTED_FROM];

const MOUNTED_FROM: Hole = Hole {
    case: "LK2 where the test lies",
    why: "/proc/self/mountinfo names the directories of the host that an engine has bound",
};
const MESSAGE_QUEUES: Hole = Hole {
    case: "twins message queues",
    why: "the calls are allowed, but the queues lie in no directory that Landlock has a rule for (EACCES)",
};
const COMMAND_LINE: Hole = Hole {
    case: "LK2 kernel command line",
    why: "/proc/cmdline is the host's, with whatever its administrator has written there",
};
