//! Keeps files without a name from being made: no mount and no rule of Landlock reaches them, so that a program written into one
//! could be started in spite of any list.

use super::program::{
    Instruction, JUMP_IF_EQUAL, OFFSET_NUMBER, RETURN_ALLOW, RETURN_ERRNO, give, jump_if, load,
};

/// A filter, for use on top of the policy: the call that makes such files is answered as by a kernel without it.
pub(crate) fn refuse() -> Vec<Instruction> {
    vec![
        load(OFFSET_NUMBER),
        jump_if(JUMP_IF_EQUAL, libc::SYS_memfd_create as u32, 0, 1),
        give(RETURN_ERRNO | libc::ENOSYS as u32),
        give(RETURN_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::program::{ARCHITECTURE, Call, FilterAction, Program};

    #[test]
    fn nameless_filter_denies_unnamed_files_and_passes_every_other_call() {
        let program = Program::from(refuse());
        let answer = |call: libc::c_long| {
            let call = Call { architecture: ARCHITECTURE, number: call as u32, arguments: [0; 6] };
            program.evaluate(&call)
        };
        assert_eq!(answer(libc::SYS_memfd_create), Some(FilterAction::Errno(libc::ENOSYS as u16)));
        for other in [libc::SYS_read, libc::SYS_execve, libc::SYS_execveat, libc::SYS_memfd_create + 1] {
            assert_eq!(answer(other), Some(FilterAction::Allow), "{other}");
        }
    }
}
