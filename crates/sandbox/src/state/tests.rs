//! Leftovers, and runs that begin meanwhile.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn whoever_looks_for_leftovers_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let state = StateDirectory::at(folder.path());
    let identity = crate::native::HostUser::choose().identity();
    let is_over = AtomicBool::new(false);
    struct StopOnDrop<'a>(&'a AtomicBool);
    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(state.reconcile().unwrap(), []);
                }
            });
        }
        let _over = StopOnDrop(&is_over);
        for _ in 0..300 {
            let run = state.begin_run(identity).unwrap();
            let made = run.make("workspace", identity).unwrap();
            (0..20).for_each(|at| std::fs::write(made.as_path().join(format!("{at}")), "").unwrap());
            run.remove().unwrap();
        }
    });
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn lock_of_a_run_can_be_opened_by_no_other_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let state = StateDirectory::at(folder.path());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let run = state.begin_run(crate::native::HostUser::choose().identity()).unwrap();
    // The control: others get through to the folder, so it is the lock's own mode that keeps them out.
    assert_eq!(mode(run.path()), 0o711);
    assert_eq!(mode(&run.path().join(LOCK)), 0o600);
    assert_eq!(mode(&folder.path().join(MAKING)), 0o600);
    // One that an earlier version has made is closed when it is opened.
    let old = folder.path().join("old");
    std::fs::write(&old, "").unwrap();
    std::fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
    drop(open_lock(&old).unwrap());
    assert_eq!(mode(&old), 0o600);
    run.remove().unwrap();
}
