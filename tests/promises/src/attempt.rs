//! One attempt: a few system calls as data, or an act that data can't express; and the answer to it.

use serde::{Deserialize, Serialize};

/// Something to attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its name, unique among those that are sent together.
    pub case: String,
    /// What is done, in this order, up to the first step that fails.
    pub steps: Vec<Step>,
}

/// One step of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// A system call.
    Call(Call),
    /// Something else.
    Act(Act),
}

/// A system call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its name, for people.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// Up to six.
    pub arguments: Vec<Argument>,
    /// Errnos that are as good as success: what the kernel itself answers here.
    pub or: Vec<i32>,
}

/// An argument of a system call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// A number.
    Number(u64),
    /// Memory with a text in it, NUL-terminated.
    Text(String),
    /// Memory with these bytes.
    Bytes(Vec<u8>),
    /// That many bytes of empty memory, which is shown in the answer.
    Room(usize),
    /// Memory with words of 64 bits; memory among them is pointed to.
    Words(Vec<Argument>),
    /// What an earlier step returned.
    Returned(usize),
    /// A number of 32 bits that an earlier step has left in memory.
    Stored {
        /// Which step.
        step: usize,
        /// Which of its arguments.
        argument: usize,
        /// How many bytes into it.
        offset: usize,
    },
    /// The memory of an earlier step's argument.
    Same {
        /// Which step.
        step: usize,
        /// Which of its arguments.
        argument: usize,
    },
}

/// What no list of calls can express.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Act {
    /// Makes a process that ends at once, and waits for it.
    Fork {
        /// How.
        by: Fork,
        /// Flags for the two that take some.
        flags: u64,
    },
    /// Starts threads, and joins them.
    Threads {
        /// How many.
        count: u32,
    },
    /// Runs a program; what it writes is in the answer.
    Run {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where.
        directory: String,
    },
    /// A system call by the entry of another architecture.
    Foreign {
        /// Which entry.
        entry: Entry,
        /// The number that the call has there.
        number: u32,
        /// Arguments.
        arguments: [u32; 3],
    },
    /// Writes machine code into memory, makes the memory executable instead of writable, runs it, and so on once more.
    Compile,
    /// Handles a signal, on a stack of its own.
    Handle,
    /// Sleeps, and is stopped and continued meanwhile.
    Resume,
    /// Traces a child of its own through a system call.
    Trace,
    /// Makes more and more, until something says no.
    Exhaust {
        /// Of what.
        what: Supply,
        /// Where it stops by itself: all of them is success.
        most: u32,
    },
    /// Leaves a process behind.
    Leave {
        /// In which way.
        how: Leave,
        /// Its name.
        mark: String,
    },
}

/// A way to make a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fork {
    /// `fork`.
    Fork,
    /// `vfork`.
    Vfork,
    /// `clone`.
    Clone,
    /// `clone3`.
    Clone3,
    /// `clone3`, and `clone` if the kernel doesn't know it, as C libraries do.
    Newest,
}

/// An entry to the kernel that is not this architecture's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// `int 0x80`.
    I386,
    /// The bit that means 32-bit pointers.
    X32,
}

/// What there may be too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Supply {
    /// Processes that stay.
    Processes,
    /// Threads that stay.
    Threads,
    /// Orphans that end at once.
    Orphans,
    /// Open descriptors, after an attempt to raise the limit.
    Descriptors,
    /// Mebibytes of locked memory, after an attempt to raise the limit.
    LockedMemory,
}

/// A way to leave a process behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leave {
    /// A child.
    Child,
    /// A child of a child that is gone.
    Orphan,
    /// One with a session of its own.
    Session,
    /// One that ignores every signal that can be ignored.
    Deaf,
    /// One that is stopped.
    Stopped,
    /// One that has closed everything it was given.
    Closed,
    /// Two that start each other anew again and again, so that no process stays long.
    Restless,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The attempt.
    pub case: String,
    /// What the last step returned; -1 if it failed.
    pub ret: i64,
    /// Why it failed; 0 for no reason that has a number.
    pub errno: i32,
    /// The signal that ended the attempt, or 0.
    pub signal: i32,
    /// The step that was the last.
    pub step: usize,
    /// How long that step took.
    pub ms: f64,
    /// What came into the memory that was given for it, a character a byte.
    pub bytes: String,
}

// === impl Act ===

impl Act {
    /// System calls that it can't do without, with their arguments as far as they matter.
    pub fn calls(&self) -> Vec<(&'static str, [u64; 6])> {
        let plain = |names: &[&'static str]| names.iter().map(|name| (*name, [0; 6])).collect::<Vec<_>>();
        match self {
            Self::Fork { by, flags } => {
                let mut calls = plain(&["exit_group", "wait4"]);
                calls.push((by.call(), [*flags, 0, 0, 0, 0, 0]));
                calls
            }
            Self::Threads { .. } => plain(&[
                "clone",
                "set_robust_list",
                "rseq",
                "exit",
                "futex",
                "mmap",
                "munmap",
                "mprotect",
                "madvise",
                "sigaltstack",
                "rt_sigprocmask",
            ]),
            Self::Run { .. } => plain(&["execve", "brk", "arch_prctl", "set_tid_address", "exit_group"]),
            Self::Compile => plain(&["mmap", "mprotect", "munmap"]),
            Self::Handle => plain(&[
                "rt_sigaction",
                "rt_sigreturn",
                "rt_sigsuspend",
                "rt_sigprocmask",
                "sigaltstack",
                "setitimer",
                "pause",
                "kill",
            ]),
            Self::Resume => plain(&["restart_syscall", "clock_nanosleep", "kill", "wait4"]),
            Self::Trace => plain(&["ptrace", "wait4", "kill"]),
            Self::Foreign { .. } | Self::Exhaust { .. } | Self::Leave { .. } => Vec::new(),
        }
    }
}

// === impl Fork ===

impl Fork {
    fn call(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Vfork => "vfork",
            Self::Clone | Self::Newest => "clone",
            Self::Clone3 => "clone3",
        }
    }
}

// === impl Answer ===

impl Answer {
    /// Whether every step did what it should.
    pub fn succeeded(&self) -> bool {
        self.ret >= 0 && self.signal == 0
    }
}

// === impl Argument ===

impl From<u64> for Argument {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<i64> for Argument {
    fn from(number: i64) -> Self {
        Self::Number(number.cast_unsigned())
    }
}

/// Negative numbers keep their sign in the wider register.
impl From<i32> for Argument {
    fn from(number: i32) -> Self {
        Self::from(i64::from(number))
    }
}

impl From<u32> for Argument {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Argument {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Argument {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}
