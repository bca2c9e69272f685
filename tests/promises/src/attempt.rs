//! One attempt: a list of system calls as data, or an act that data can't express; and the answer to it.

use serde::{Deserialize, Serialize};

/// An operation for the probe to attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Name of the case, unique within a batch.
    pub case: String,
    /// Steps, made in this order up to the first that fails.
    pub steps: Vec<Step>,
}

/// One step of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// A system call.
    Call(Call),
    /// An operation that a list of calls can't express.
    Act(SpecialAct),
}

/// A system call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its name, for messages.
    pub name: String,
    /// System call number.
    pub number: u32,
    /// Up to six arguments.
    pub arguments: Vec<Argument>,
    /// Errnos that count as success because the kernel itself returns them here.
    pub or: Vec<i32>,
}

/// An argument of a system call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// A number.
    Number(u64),
    /// Memory with a NUL-terminated text.
    Text(String),
    /// Memory with these bytes.
    Bytes(Vec<u8>),
    /// Zeroed memory of this many bytes. Its content afterwards is in the answer.
    Room(usize),
    /// Memory with 64-bit words. An argument with memory of its own is stored as a pointer.
    Words(Vec<Argument>),
    /// The return value of the step with this index.
    Returned(usize),
    /// A 32-bit number that an earlier step left in memory.
    Stored {
        /// Index of the step.
        step: usize,
        /// Index of its argument.
        argument: usize,
        /// Offset in bytes.
        offset: usize,
    },
    /// The memory of an earlier step's argument.
    Same {
        /// Index of the step.
        step: usize,
        /// Index of its argument.
        argument: usize,
    },
}

/// An operation that a list of calls can't express.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SpecialAct {
    /// Creates a process that exits at once, and waits for it.
    Fork {
        /// The call that creates it.
        by: ForkMethod,
        /// Flags for `clone` and `clone3`.
        flags: u64,
    },
    /// Starts threads, and joins them.
    Threads {
        /// Number of threads.
        count: u32,
    },
    /// Runs a program; its output is in the answer.
    Run {
        /// The program and its arguments.
        command: Vec<String>,
        /// Working directory.
        directory: String,
    },
    /// A system call by the entry point of another architecture.
    Foreign {
        /// The entry point.
        entry: KernelEntry,
        /// System call number of that architecture.
        number: u32,
        /// Arguments.
        arguments: [u32; 3],
    },
    /// Writes machine code into memory, makes the memory executable instead of writable, and runs it; then all of it
    /// once more.
    Compile,
    /// Handles a signal on an alternate stack.
    Handle,
    /// Sleeps, and is stopped and continued meanwhile.
    Resume,
    /// Traces a child process through a system call.
    Trace,
    /// Takes more and more of a resource until the kernel refuses.
    Exhaust {
        /// The resource.
        what: ExhaustibleResource,
        /// Maximum number to take. Reaching it is success.
        most: u32,
    },
    /// Leaves a process behind.
    Leave {
        /// The kind of process.
        how: LeftBehindKind,
        /// A mark in its command line.
        mark: String,
    },
}

/// A way to make a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForkMethod {
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

/// An entry point of the kernel for another architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KernelEntry {
    /// `int 0x80`.
    I386,
    /// The bit in the system call number that selects the x32 ABI.
    X32,
}

/// A resource that a program can exhaust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExhaustibleResource {
    /// Processes that stay alive.
    Processes,
    /// Threads that stay alive.
    Threads,
    /// Orphaned processes that exit at once.
    Orphans,
    /// Open descriptors, after an attempt to raise the limit.
    Descriptors,
    /// Mebibytes of locked memory, after an attempt to raise the limit.
    LockedMemory,
}

/// A way to leave a process behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftBehindKind {
    /// A child.
    Child,
    /// A child whose parent has exited.
    Orphan,
    /// A process with a session of its own.
    Session,
    /// A process that ignores every signal that can be ignored.
    Deaf,
    /// A stopped process.
    Stopped,
    /// A process that has closed every descriptor that it inherited.
    Closed,
    /// A process that forks again and again while the parent exits, so that none lives long.
    Restless,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptResult {
    /// The attempt.
    pub case: String,
    /// Return value of the last step; -1 if it failed.
    pub ret: i64,
    /// The errno of the failure; 0 if there is none.
    pub errno: i32,
    /// The signal that killed the attempt's process, or 0.
    pub signal: i32,
    /// Index of the last step that was made.
    pub step: usize,
    /// Duration of that step in milliseconds.
    pub ms: f64,
    /// Content of the memory that the attempt provided, one character per byte.
    pub bytes: String,
}

// === impl SpecialAct ===

impl SpecialAct {
    /// Returns the system calls that the act needs, with those arguments that matter.
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

// === impl ForkMethod ===

impl ForkMethod {
    fn call(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Vfork => "vfork",
            Self::Clone | Self::Newest => "clone",
            Self::Clone3 => "clone3",
        }
    }
}

// === impl AttemptResult ===

impl AttemptResult {
    /// Returns true if every step succeeded.
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
