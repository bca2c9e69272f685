//! Walls that a build for tests can leave out, one at a time, to show which test fails without it.
//!
//! An ordinary build has none of this: there [`wall!`](crate::wall) only puts the wall up. With the feature
//! `removable-walls`, which no crate that ships turns on (`xtask/src/tidy/features.rs`), the variable
//! `BELLJAR_REMOVED_WALLS` names the walls that are missing.

/// Puts a wall up; `else` is the alternative of a build for tests in which that wall is missing.
#[cfg(not(feature = "removable-walls"))]
#[macro_export]
macro_rules! wall {
    ($wall:ident: $put_up:expr, else $instead:expr) => {
        $put_up
    };
}

/// Puts a wall up, unless it is to be left out.
#[cfg(feature = "removable-walls")]
#[macro_export]
macro_rules! wall {
    ($wall:ident: $put_up:expr, else $instead:expr) => {
        if $crate::removal::is_removed($crate::removal::Wall::$wall) { $instead } else { $put_up }
    };
}

#[cfg(feature = "removable-walls")]
pub use removable::{VARIABLE, Wall, is_removed};

#[cfg(feature = "removable-walls")]
mod removable {
    use std::sync::OnceLock;

    /// The variable with the names of the missing walls, separated by commas.
    pub const VARIABLE: &str = "BELLJAR_REMOVED_WALLS";

    static REMOVED: OnceLock<Vec<Wall>> = OnceLock::new();

    /// The walls, each by its name and by what is there without it.
    macro_rules! walls {
        ($($wall:ident $name:literal $without:literal,)*) => {
            /// A wall that can be missing.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
            pub enum Wall {
                $(#[doc = $without] $wall,)*
            }

            impl Wall {
                /// All walls.
                pub const ALL: &[Self] = &[$(Self::$wall,)*];

                /// Name of the wall.
                pub const fn as_str(self) -> &'static str {
                    match self { $(Self::$wall => $name,)* }
                }

                /// Condition that holds when the wall is missing.
                pub const fn without(self) -> &'static str {
                    match self { $(Self::$wall => $without,)* }
                }
            }
        };
    }

    walls! {
        PidNamespace "pid_namespace" "the host's processes, and the host's /proc",
        IpcNamespace "ipc_namespace" "the host's queues and shared memory",
        UtsNamespace "uts_namespace" "the host's name",
        CgroupNamespace "cgroup_namespace" "the host's names of control groups",
        NetworkNamespace "network_namespace" "the host's network",
        HostName "host_name" "a name for the sandbox that is a copy of the host's",
        HostUser "host_user" "root's own user, where root launches",
        Groups "groups" "the further groups of root, where root launches",
        InsideUser "inside_user" "user 0 of the user namespace",
        WipedMemory "wiped_memory" "the host's arguments and environment in PID 1",
        DeathSignal "death_signal" "a PID 1 that isn't killed with its host",
        Propagation "propagation" "mounts that follow those of the host",
        SameInode "same_inode" "the file that is at a path at mount time, even if it was swapped",
        ReadOnlyBinds "read_only_binds" "the host's programs and bind mounts as writable mounts",
        NoSetId "no_set_id" "mounts with set-id programs",
        NoDevices "no_devices" "mounts with working device files",
        ReadOnlyRoot "read_only_root" "a root that may be written",
        ReadOnlyProc "read_only_proc" "a /proc that may be written",
        ScratchSize "scratch_size" "as much memory for files as the host has",
        ScratchInodes "scratch_inodes" "as many files in memory as the host has memory for",
        Pivot "pivot" "the host's mounts, out of sight behind a changed root",
        OldRoot "old_root" "the host's root, on top of the sandbox's own",
        HiddenMounts "hidden_mounts" "the list of mounts, and where on the host they are from",
        FixedDevices "fixed_devices" "every device of the host",
        OwnTerminals "own_terminals" "the host's terminals",
        TerminalLimit "terminal_limit" "as many terminals as the machine has left",
        LimitWatches "limit_watches" "as many inotify instances and watches as the host allows a user",
        LimitCore "limit_core" "core files",
        LimitOpenFiles "limit_open_files" "as many open files as the host allows",
        LimitProcesses "limit_processes" "as many processes as the host allows",
        LimitLockedMemory "limit_locked_memory" "as much locked memory as the host allows",
        LimitPendingSignals "limit_pending_signals" "as many queued signals and timers as the host allows a user",
        LimitMessageQueues "limit_message_queues" "as much memory in message queues as the host allows a user",
        LimitRealTime "limit_real_time" "real-time priorities, if the host allows them",
        LimitNiceness "limit_niceness" "priority over others, if the host allows that",
        MemoryLimit "memory_limit" "as much memory as the host has",
        SocketMemoryLimit "socket_memory_limit" "socket buffers beyond the memory limit, where control groups of version 1 are",
        CpuLimit "cpu_limit" "as much processor time as there is",
        DiskLimit "disk_limit" "as much disk space as there is",
        Landlock "landlock" "no second lock on files",
        LandlockScopes "landlock_scopes" "no second lock on abstract sockets and signals",
        ListedPrograms "listed_programs" "every program of the host, where a list names a few",
        ClosedPrograms "closed_programs" "programs to read that are not on the list, for a loader to start",
        NoProgramsHere "no_programs_here" "written files as executable code, where programs are listed",
        MemoryFiles "memory_files" "files without a name (memfd), where programs are listed",
        BoundingSet "bounding_set" "capabilities that a program could bring",
        Capabilities "capabilities" "capabilities in PID 1",
        NoNewPrivileges "no_new_privs" "programs that gain privileges (set-id, file capabilities)",
        NotDumpable "not_dumpable" "a PID 1 that other processes may inspect",
        SystemCalls "system_calls" "every system call",
        OpenAt2 "openat2" "the runner's calls for every program",
        I386Entry "i386_entry" "system calls by the numbers of 32-bit programs",
        X32Entry "x32_entry" "system calls by the numbers of programs with 32-bit pointers",
        Guard "guard" "connecting without PID 1, and local datagrams",
        OwnSockets "own_sockets" "a PID 1 that connects to any local socket",
        OwnWatches "own_watches" "a PID 1 that adds watches on the host's files",
        UserAttributes "user_attributes" "access control lists, in memory that is charged to nothing",
        FilterLimit "filter_limit" "as many compiled filters as the machine has room for",
        OwnSession "own_session" "the session of the launching process",
        ClosedDescriptors "closed_descriptors" "the launching process's open descriptors, in the program",
        ClosedInInit "closed_in_init" "the launching process's open descriptors, in PID 1",
        Umask "umask" "files that every user may write",
        Views "views" "bind mounts as they are, with the sockets in them",
        Canary "canary" "a launch that doesn't verify its walls",
        Environment "environment" "the environment of the launching process",
    }

    /// Returns true if a wall is to be left out, for tests. An unknown name ends the process: a wall that stands because
    /// its name was misspelt would prove nothing.
    pub fn is_removed(wall: Wall) -> bool {
        // Asked for the first time before anything is cloned: then nothing is read or allocated where that may not be.
        REMOVED.get_or_init(named).contains(&wall)
    }

    fn named() -> Vec<Wall> {
        let names = std::env::var(VARIABLE).unwrap_or_default();
        let by_name = |name: &str| Wall::ALL.iter().copied().find(|wall| wall.as_str() == name);
        let names = names.split(',').filter(|name| !name.is_empty());
        names.map(|name| by_name(name).unwrap_or_else(|| std::process::abort())).collect()
    }
}
