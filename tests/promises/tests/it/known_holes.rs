//! Known holes that aren't fixed yet, and features that should work and don't. A listed case that behaves correctly
//! again fails the suite, too.

/// A known hole.
pub(crate) struct KnownHole {
    /// The case's name.
    pub(crate) case: &'static str,
    /// Description of the escape or the blocked feature, and the reason.
    pub(crate) why: &'static str,
}

/// Known holes of native sandboxes.
pub(crate) const KNOWN_HOLES: &[KnownHole] = &[MESSAGE_QUEUES, COMMAND_LINE];

/// Known holes of containers.
pub(crate) const KNOWN_HOLES_OF_CONTAINERS: &[KnownHole] = &[MESSAGE_QUEUES, COMMAND_LINE, MOUNTED_FROM];

const MOUNTED_FROM: KnownHole = KnownHole {
    case: "LK2 where the test lies",
    why: "/proc/self/mountinfo names the directories of the host that an engine has bound",
};
const MESSAGE_QUEUES: KnownHole = KnownHole {
    case: "twins message queues",
    why: "the calls are allowed, but the queues lie in no directory that Landlock has a rule for (EACCES)",
};
const COMMAND_LINE: KnownHole = KnownHole {
    case: "LK2 kernel command line",
    why: "/proc/cmdline is the host's, with everything that its administrator has configured there",
};
