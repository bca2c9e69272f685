//! Protects a few processes from signals and limits: those that look after a sandbox and belong to the same user as its
//! programs.

use super::program::{
    Instruction, JUMP_IF_EQUAL, OFFSET_ARGUMENTS, OFFSET_NUMBER, RETURN_ALLOW, RETURN_ERRNO, give, jump_if,
    load,
};

/// Calls that signal or limit the process that their first argument names, or get a descriptor to do so.
const CALLS: [libc::c_long; 11] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
];

/// Process id that addresses all processes at once.
pub(crate) const EVERYBODY: i32 = -1;

/// Returns a filter, for use on top of the policy, that refuses signals to these processes and to the groups that they
/// lead.
pub(crate) fn spare(pids: &[i32]) -> Vec<Instruction> {
    let and_group = |pid: &i32| match *pid {
        EVERYBODY => vec![EVERYBODY],
        pid => vec![pid, pid.wrapping_neg()],
    };
    let targets: Vec<u32> = pids.iter().flat_map(and_group).map(i32::cast_unsigned).collect();
    let mut program = vec![load(OFFSET_NUMBER)];
    for (index, call) in CALLS.iter().enumerate() {
        // The numbers and lists are small: every jump fits.
        let to_targets = (CALLS.len() - index) as u8;
        program.push(jump_if(JUMP_IF_EQUAL, *call as u32, to_targets, 0));
    }
    program.push(give(RETURN_ALLOW));
    program.push(load(OFFSET_ARGUMENTS));
    for (index, target) in targets.iter().enumerate() {
        let to_refusal = (targets.len() - index) as u8;
        program.push(jump_if(JUMP_IF_EQUAL, *target, to_refusal, 0));
    }
    program.push(give(RETURN_ALLOW));
    program.push(give(RETURN_ERRNO | libc::EPERM as u32));
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::program::{ARCHITECTURE, Call, FilterAction, Program};

    #[test]
    fn spare_filter_denies_signals_to_spared_processes_only() {
        let program = Program::from(spare(&[4321, 4322, EVERYBODY]));
        let answer = |call: libc::c_long, first: i32| {
            let arguments = [u64::from(first.cast_unsigned()), 9, 9, 0, 0, 0];
            program.evaluate(&Call { architecture: ARCHITECTURE, number: call as u32, arguments })
        };
        for call in CALLS {
            for spared in [4321, 4322, -4321, -4322, -1] {
                assert_eq!(
                    answer(call, spared),
                    Some(FilterAction::Errno(libc::EPERM as u16)),
                    "{call} {spared}"
                );
            }
            for other in [4320, 4323, 1, 0, -2, i32::MAX] {
                assert_eq!(answer(call, other), Some(FilterAction::Allow), "{call} {other}");
            }
        }
        assert_eq!(answer(libc::SYS_getpid, 4321), Some(FilterAction::Allow));
    }
}
