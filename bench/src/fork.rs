//! Launch time from a program with much memory: through a launcher that started early, with and without a gigabyte.

use crate::Programs;
use crate::contest::{Contestant, hold, judge};
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::native::{HostUser, start_through};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::spec::{Program, SandboxSpec};
use belljar_sandbox::state::StateDirectory;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::cell::RefCell;

const TURNS: usize = 60;
const GIGABYTE: usize = 1 << 30;

pub(crate) fn run(_: &Programs) -> bool {
    let launcher = Launcher::start().expect("a launcher: nothing else runs in this process yet");
    // Filled and emptied before each turn, untimed; every page is touched.
    let ballast = RefCell::new(Vec::new());
    let times = hold(
        "fork: a launch from a process of 1 GB, through its launcher",
        TURNS,
        vec![
            Contestant {
                name: "1 GB resident",
                prepare: Box::new(|| fill(&ballast)),
                turn: Box::new(|| launch(&launcher)),
            },
            Contestant {
                name: "small",
                prepare: Box::new(|| ballast.take().clear()),
                turn: Box::new(|| launch(&launcher)),
            },
        ],
    );
    judge(&times[0], &times[1], 1.1)
}

fn fill(ballast: &RefCell<Vec<u8>>) {
    if ballast.borrow().is_empty() {
        ballast.replace(vec![1; GIGABYTE]);
    }
}

fn launch(launcher: &Launcher) {
    let state = StateDirectory::at(std::env::temp_dir().join("belljar-bench"));
    let limits = Limits { memory_bytes: None, ..Limits::default() };
    let provision = Provision { limits, ..Provision::default() };
    let spec = SandboxSpec { provision, ..SandboxSpec::new(StateDirectory::new_id(), HostUser::choose()) };
    let program = Program { argv: vec!["/bin/true".into()], directory: "/".to_owned() };
    let null = || openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).expect("/dev/null");
    let stdio = Stdio::Descriptors([null(), null(), null()]);
    let mut running = start_through(launcher, &spec, &state, &program, stdio).expect("a sandbox");
    let ending = running.launched.sealed.wait().expect("an ending");
    assert_eq!(ending.outcome.exit_code(), 0);
}
