//! Features of this host for sandboxes: each with its presence, the reason why it matters, and the way to get it.
//!
//! Features are tried where possible, and not concluded from version numbers. The canary shows if all of them together hold
//! ([`crate::canary`]).

use serde::Serialize;
use std::fs::read_to_string;

/// A feature of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// Name of the feature.
    pub name: &'static str,
    /// Presence of the feature.
    pub state: Presence,
    /// Details that were found.
    pub found: String,
    /// Reason why it matters.
    pub why: &'static str,
    /// Way to get it, if it is missing.
    pub remedy: &'static str,
}

/// Presence of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// The feature is there.
    Have,
    /// The feature is missing, and sandboxes need it.
    Missing,
    /// The feature is missing; sandboxes work without it, with less.
    Absent,
}

/// Looks at everything.
pub fn features() -> Vec<Feature> {
    vec![
        kernel(),
        user_namespaces(),
        restriction(),
        landlock(),
        seccomp(),
        seccomp_log(),
        overlay(),
        control_groups(),
        identity(),
    ]
}

/// The first two numbers of the kernel's version; zeros for what can't be read.
pub(crate) fn kernel_version() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

fn kernel() -> Feature {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let new_enough = kernel_version() >= (5, 12);
    Feature {
        name: "kernel",
        state: if new_enough { Presence::Have } else { Presence::Missing },
        found: format!("Linux {release}"),
        why: "mounts are built by descriptor with calls that Linux has since 5.12",
        remedy: "update to Linux 5.12 or later",
    }
}

fn user_namespaces() -> Feature {
    let most = number("/proc/sys/user/max_user_namespaces").unwrap_or(0);
    // Debian's own switch; other kernels don't have the file.
    let allowed = number("/proc/sys/kernel/unprivileged_userns_clone") != Some(0);
    let privileged = rustix::process::geteuid().is_root();
    Feature {
        name: "user_namespaces",
        state: if most > 0 && (allowed || privileged) { Presence::Have } else { Presence::Missing },
        found: format!("up to {most}{}", if allowed { "" } else { ", for root only" }),
        why: "every other layer is set up inside a user namespace, so belljar needs no privileges on the host",
        remedy: "sysctl -w user.max_user_namespaces=15000; on Debian also kernel.unprivileged_userns_clone=1",
    }
}

fn restriction() -> Feature {
    let restricted = number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1);
    let free = !restricted || rustix::process::geteuid().is_root();
    Feature {
        name: "apparmor",
        state: if free { Presence::Have } else { Presence::Missing },
        found: if restricted { "restricts user namespaces" } else { "does not restrict user namespaces" }
            .to_owned(),
        why: "Ubuntu removes the capabilities of unprivileged user namespaces, so the layers cannot be set up",
        remedy: "install a profile that allows belljar `userns,`, or \
                 sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    }
}

fn landlock() -> Feature {
    let abi = belljar_confine::landlock_abi();
    Feature {
        name: "landlock",
        state: if abi > 0 { Presence::Have } else { Presence::Absent },
        found: if abi > 0 { format!("ABI {abi}") } else { "not there".to_owned() },
        why: "a second lock on files that holds even if a mount doesn't; from ABI 6 on also on signals and sockets; \
              without it allowed_commands cannot be enforced",
        remedy: "use a kernel with CONFIG_SECURITY_LANDLOCK and `landlock` in the lsm= boot parameter",
    }
}

fn seccomp() -> Feature {
    let actions = read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let sufficient = ["errno", "user_notif", "allow"].iter().all(|action| actions.contains(action));
    Feature {
        name: "seccomp",
        state: if sufficient { Presence::Have } else { Presence::Missing },
        found: if sufficient { "filters".to_owned() } else { format!("actions: {}", actions.trim()) },
        why: "system calls by allowlist: most of the kernel can't even be asked",
        remedy: "use a kernel with CONFIG_SECCOMP_FILTER",
    }
}

fn seccomp_log() -> Feature {
    let logged = read_to_string("/proc/sys/kernel/seccomp/actions_logged").unwrap_or_default();
    let command_line = read_to_string("/proc/cmdline").unwrap_or_default();
    // There where the kernel has audit.
    let has_audit = std::path::Path::new("/proc/self/loginuid").exists() && !is_audit_off(&command_line);
    let is_logged =
        has_audit && ["log", "kill_process", "kill_thread"].iter().any(|one| has_word(&logged, one));
    Feature {
        name: "seccomp_log",
        state: if is_logged { Presence::Absent } else { Presence::Have },
        found: match is_logged {
            true => "filters of programs in a sandbox write to the host's audit log",
            false => "filters of programs in a sandbox write nothing to the host's audit log",
        }
        .to_owned(),
        why: "a program in a sandbox can have each of its system calls, and each process that a filter kills, written to \
              the host's audit log or kernel log",
        remedy: "sysctl -w kernel.seccomp.actions_logged='trap errno user_notif trace', or \
                 auditctl -a never,exclude -F msgtype=SECCOMP",
    }
}

/// Returns true if the kernel was started without audit.
fn is_audit_off(command_line: &str) -> bool {
    has_word(command_line, "audit=0") || has_word(command_line, "audit=off")
}

fn has_word(text: &str, wanted: &str) -> bool {
    text.split_whitespace().any(|word| word == wanted)
}

fn overlay() -> Feature {
    let known = read_to_string("/proc/filesystems").unwrap_or_default();
    let there = known.lines().any(|line| line.trim_start_matches("nodev").trim() == "overlay");
    Feature {
        name: "overlayfs",
        state: if there { Presence::Have } else { Presence::Absent },
        found: if there { "known to the kernel" } else { "not known to the kernel" }.to_owned(),
        why: "workspaces that are copies (--workspace-copy)",
        remedy: "modprobe overlay",
    }
}

fn control_groups() -> Feature {
    let found = belljar_confine::group::CgroupHierarchies::find();
    Feature {
        name: "control_groups",
        state: if found.is_ok() { Presence::Have } else { Presence::Absent },
        found: match found {
            Ok(found) => format!("version {}", found.version()),
            Err(error) => crate::backend::with_causes(&error),
        },
        why: "limits on memory and processor time for a sandbox as a whole; without, memory is added up now and then",
        remedy: "run belljar as root, or where version 2 is delegated to you: systemd-run --user --scope -p Delegate=yes",
    }
}

fn identity() -> Feature {
    let root = rustix::process::geteuid().is_root();
    let owner = crate::native::HostUser::choose().identity();
    Feature {
        name: "host_user",
        state: if owner.host_uid == 0 { Presence::Absent } else { Presence::Have },
        found: match (root, owner.host_uid) {
            (_, 0) => "root, for want of another user id".to_owned(),
            (true, uid) => format!("uid {uid}, which exists for nothing else"),
            (false, uid) => format!("uid {uid}, you"),
        },
        why: "user that a sandboxed process would have on the host if it escaped",
        remedy: "run belljar as an ordinary user, or as a root that has all user ids",
    }
}

fn number(path: &str) -> Option<u64> {
    read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_logged_where_the_kernel_is_set_to_it_and_has_audit() {
        assert!(has_word("kill_process kill_thread trap errno user_notif trace log\n", "log"));
        assert!(!has_word("kill_process user_notif\n", "log") && !has_word("catalog\n", "log"));
        assert!(is_audit_off("quiet audit=0 ro\n") && is_audit_off("audit=off"));
        assert!(!is_audit_off("audit=1 x.audit=0") && !is_audit_off(""));
        assert!(features().iter().any(|feature| feature.name == "seccomp_log"));
    }
}
