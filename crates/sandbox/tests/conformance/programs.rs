//! Lists of programs: held, or refused.

use crate::BackendCase;
use crate::house::{BackendFixture, nothing, program, run};
use belljar_confine::plan::Stdio;
use belljar_contract::programs::ProgramList;
use belljar_sandbox::backend::{BackendError, Sandbox, SandboxRequest};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;

pub(crate) const HELD: &[BackendCase] = &[
    ("a_list_of_programs_holds_for_everybody_inside", a_list_of_programs_holds_for_everybody_inside),
    (
        "a_sandbox_with_a_list_is_nobody_elses_and_none_without",
        a_sandbox_with_a_list_is_nobody_elses_and_none_without,
    ),
];

pub(crate) const REFUSED: &[BackendCase] = &[(
    "a_list_of_programs_that_can_not_be_held_is_refused",
    a_list_of_programs_that_can_not_be_held_is_refused,
)];

fn wanted(programs: &[&str]) -> SandboxRequest {
    let programs = ProgramList::new(programs.iter().map(|&name| name.to_owned())).unwrap();
    BackendFixture::wanted_with(
        WorkspaceChoice::Empty,
        Provision { programs: Some(programs), ..Provision::default() },
    )
}

fn are_one_file(one: &str, other: &str) -> bool {
    let file = |path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(one).is_some() && file(one) == file(other)
}

/// Returns why a program can't be started; `None` if it can.
fn refusal(sandbox: &dyn Sandbox, argv: &[&str]) -> Option<Errno> {
    let stdio = Stdio::Descriptors([nothing(), nothing(), nothing()]);
    match sandbox.exec(&program(argv), stdio) {
        Ok(_) => None,
        Err(BackendError::NotStarted { source, .. }) => Some(source),
        Err(error) => panic!("{error}"),
    }
}

fn a_list_of_programs_holds_for_everybody_inside(house: &BackendFixture) {
    let sandbox = house.backend.create(wanted(&["sh", "ls", "no-such-program"])).unwrap();
    if are_one_file("/bin/sh", "/bin/cat") {
        // As with busybox. The list is of files: a listed file can be started for all that it does.
        assert_eq!(refusal(&*sandbox, &["cat"]), None);
    } else {
        assert_eq!(run(&*sandbox, "ls -d /tmp; cat /etc/passwd || echo refused").stdout, "/tmp\nrefused\n");
        assert_eq!(refusal(&*sandbox, &["cat"]), Some(Errno::ACCESS));
    }
    assert_eq!(refusal(&*sandbox, &["no-such-program"]), Some(Errno::NOENT));
    let none = house.backend.create(wanted(&[])).unwrap();
    assert_eq!(refusal(&*none, &["sh"]), Some(Errno::ACCESS));
}

fn a_sandbox_with_a_list_is_nobody_elses_and_none_without(house: &BackendFixture) {
    // One that isn't the other's file as well.
    let listed = if are_one_file("/bin/sh", "/bin/ls") { "no-such-program" } else { "sh" };
    for _ in 0..3 {
        let listed = house.backend.create(wanted(&[listed])).unwrap();
        assert_eq!(refusal(&*listed, &["ls"]), Some(Errno::ACCESS));
        assert_eq!(refusal(&*house.sandbox(), &["ls"]), None);
    }
}

fn a_list_of_programs_that_can_not_be_held_is_refused(house: &BackendFixture) {
    match house.backend.create(wanted(&["sh"])) {
        Err(BackendError::Programs { backend, .. }) => assert_eq!(backend, house.backend.name()),
        other => panic!("{other:?}"),
    }
    assert_eq!(refusal(&*house.sandbox(), &["sh"]), None, "the control");
}
