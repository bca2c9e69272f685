//! Staging of all new content beside its places: most of the work of a large patch, shared by two threads.

use super::ApplyUnifiedDiffError;
use super::transaction::Transaction;
use super::workspace_tree::WorkspaceTree;
use crate::deadline::Deadline;
use crate::patch::FileMode;
use crate::patch::plan::Change;
use std::thread;

/// Number of changes from which on a second thread is used.
const WORTH_A_THREAD: usize = 128;

/// Number of changes between checks for cancellation: a prompt stop at negligible cost.
const CHANGES_BETWEEN_CHECKS: usize = 64;

/// Stages what the changes leave, in `transaction`.
pub(super) fn stage(
    changes: &[Change],
    tree: &WorkspaceTree<'_>,
    transaction: &mut Transaction<'_>,
    deadline: &Deadline<'_>,
) -> Result<(), ApplyUnifiedDiffError> {
    if changes.len() < WORTH_A_THREAD {
        return stage_here(changes, tree, transaction, deadline);
    }
    let (first, second) = changes.split_at(changes.len() / 2);
    let mut helper = transaction.helper();
    let staged = thread::scope(|scope| {
        let work = || stage_here(second, tree, &mut helper, deadline);
        match thread::Builder::new().spawn_scoped(scope, work) {
            Ok(helping) => {
                let staged = stage_here(first, tree, transaction, deadline);
                let helped = helping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Some(staged.and(helped))
            }
            Err(_no_thread_left) => None,
        }
    });
    transaction.absorb(helper);
    staged.unwrap_or_else(|| stage_here(changes, tree, transaction, deadline))
}

fn stage_here(
    changes: &[Change],
    tree: &WorkspaceTree<'_>,
    transaction: &mut Transaction<'_>,
    deadline: &Deadline<'_>,
) -> Result<(), ApplyUnifiedDiffError> {
    for some in changes.chunks(CHANGES_BETWEEN_CHECKS) {
        deadline.check()?;
        for change in some {
            if let Some(after) = &change.after {
                let mode = permissions(tree.permissions(&change.path), after.mode);
                transaction.stage(&change.path, &after.content, mode)?;
            }
        }
    }
    Ok(())
}

/// The permission bits of the file that will be replaced, with the execute bits that it is to have.
fn permissions(before: Option<u32>, after: FileMode) -> u32 {
    const EXECUTE_BITS: u32 = 0o111;
    const OWNER_EXECUTES: u32 = 0o100;
    let kept = before.unwrap_or(0o644);
    match (after.is_executable(), kept & OWNER_EXECUTES != 0) {
        // All who may read the file may then execute it, as with git.
        (true, false) => kept | (kept >> 2 & EXECUTE_BITS),
        (false, true) => kept & !EXECUTE_BITS,
        _ => kept,
    }
}
