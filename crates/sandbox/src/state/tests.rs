//! Leftovers, and runs that begin meanwhile.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn whoever_looks_for_leftovers_is_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let state = State::at(folder.path());
    let identity = crate::native::HostUser::choose().identity();
    let is_over = AtomicBool::new(false);
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
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
        let _over = Over(&is_over);
        for _ in 0..300 {
            let run = state.begin_run(identity).unwrap();
            let made = run.make("workspace", identity).unwrap();
            (0..20).for_each(|at| std::fs::write(made.as_path().join(format!("{at}")), "").unwrap());
            run.remove().unwrap();
        }
    });
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), 0);
}
