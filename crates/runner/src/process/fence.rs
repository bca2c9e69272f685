//! Protection of the runner from the program that it started.
//!
//! The two mostly run as the same user, who may signal, trace, starve and limit all of their own processes. So the
//! thread that starts a program first fences itself, and the program inherits that:
//! - a Landlock domain (ABI 6) whose members may signal and trace each other and no process outside;
//! - a seccomp filter that refuses calls that name the runner as the process to limit, slow down or signal. It knows
//!   the runner by its pid and the starting thread by its own, since that thread is inside the domain for as long as
//!   the program takes to start. Calls of another architecture (32-bit programs) are refused: they have other numbers.

mod paths;

pub(crate) use paths::AllowedPaths;

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::Eq;
use seccompiler::{BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch};
use std::collections::BTreeMap;
use std::io;

/// Parts of the fence that are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    /// The Landlock domain.
    pub(crate) domain: bool,
    /// The seccomp filter.
    pub(crate) filter: bool,
}

/// Calls whose first argument is the target process or thread.
const DONE_TO_FIRST_ARGUMENT: [i64; 11] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// Calls whose second argument names the target. The first argument is the kind of target; the value listed here means
/// a process.
const DONE_TO_SECOND_ARGUMENT: [(i64, u64); 2] =
    [(libc::SYS_setpriority, libc::PRIO_PROCESS as u64), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];

const IOPRIO_WHO_PROCESS: u64 = 1;

/// Fences the calling thread, and everything it starts from now on, as far as the kernel supports it.
///
/// # Errors
/// The kernel supports filters, but has no memory left for one: an earlier program may have used it up to avoid its own
/// filter.
pub(super) fn enter() -> io::Result<Fence> {
    let domain = enter_domain().is_ok_and(|is_whole| is_whole);
    match enter_filter() {
        Ok(()) => Ok(Fence { domain, filter: true }),
        Err(seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error)) if is_used_up(&error) => {
            Err(error)
        }
        Err(_) => Ok(Fence { domain, filter: false }),
    }
}

fn is_used_up(error: &io::Error) -> bool {
    /// `ENOTSUPP`: the memory for compiled filters is used up (`net.core.bpf_jit_limit`).
    const NOT_COMPILED: i32 = 524;
    matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EAGAIN | NOT_COMPILED))
}

fn enter_domain() -> Result<bool, landlock::RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal)?;
    let status = ruleset.create()?.restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced)
}

fn enter_filter() -> Result<(), seccompiler::Error> {
    let runner = rustix::process::getpid().as_raw_pid();
    let starter = rustix::thread::gettid().as_raw_pid();
    // A negative number names a group, as `kill` reads it.
    let groups = [-runner, -rustix::process::getpgrp().as_raw_pid()];
    let protected: Vec<u64> =
        [runner, starter].into_iter().chain(groups).map(|id| id.cast_unsigned().into()).collect();
    seccompiler::apply_filter(&without_openat2()?)?;
    seccompiler::apply_filter(&compile(&protected)?)
}

/// Denies programs a call that the runner itself needs: with it they could create set-id files, unseen by any filter.
/// They get the error of a kernel that is older than the call, and fall back.
fn without_openat2() -> Result<BpfProgram, seccompiler::Error> {
    let rules = numbers_of(libc::SYS_openat2).map(|call| (call, Vec::new())).collect();
    filter(rules, libc::ENOSYS)
}

fn compile(protected: &[u64]) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for id in protected {
        for call in DONE_TO_FIRST_ARGUMENT.iter().flat_map(|call| numbers_of(*call)) {
            rules.entry(call).or_default().push(SeccompRule::new(vec![is(0, *id)?])?);
        }
        for (call, process) in DONE_TO_SECOND_ARGUMENT {
            for call in numbers_of(call) {
                rules.entry(call).or_default().push(SeccompRule::new(vec![is(0, process)?, is(1, *id)?])?);
            }
        }
    }
    filter(rules, libc::EPERM)
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
) -> Result<BpfProgram, seccompiler::Error> {
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?;
    Ok(without_kills(BpfProgram::try_from(filter)?))
}

/// Turns kills for calls of another architecture into errors: the kernel logs each kill, so a program could flood the
/// log.
fn without_kills(mut program: BpfProgram) -> BpfProgram {
    const RETURN: u16 = 0x06;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let is_kill = |code: u16, answer: u32| code == RETURN && answer == libc::SECCOMP_RET_KILL_PROCESS;
    for instruction in program.iter_mut().filter(|one| is_kill(one.code, one.k)) {
        instruction.k = REFUSE;
    }
    program
}

/// The call's number, and the one it has for programs with 32-bit pointers on a 64-bit x86.
fn numbers_of(call: i64) -> impl Iterator<Item = i64> {
    const X32_BIT: i64 = 0x4000_0000;
    [call].into_iter().chain(cfg!(target_arch = "x86_64").then_some(call | X32_BIT))
}

/// The kernel reads ids as 32-bit numbers, and ignores higher bits.
fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, Dword, Eq, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_kill(program: &BpfProgram) -> bool {
        program.iter().any(|one| one.code == 0x06 && one.k == libc::SECCOMP_RET_KILL_PROCESS)
    }

    #[test]
    fn syscalls_of_another_architecture_get_eperm_instead_of_a_kill() {
        let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let errno = SeccompAction::Errno(1);
        let control = SeccompFilter::new(BTreeMap::new(), SeccompAction::Allow, errno, architecture).unwrap();
        assert!(has_kill(&BpfProgram::try_from(control).unwrap()), "seccompiler's default action is to kill");
        for program in [compile(&[7]).unwrap(), without_openat2().unwrap()] {
            assert!(!has_kill(&program));
            let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
            assert_eq!(
                (program[2].code, program[2].k),
                (0x06, refused),
                "the instruction after the architecture check"
            );
        }
    }
}
