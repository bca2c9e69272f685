//! Files that are moved out of a workspace while a sandbox lives, or mounted into one: the sandbox may still be able to write
//! them.

use super::refused;
use crate::BELLJAR;
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Has `moved` open in one of many ways until it is killed, and writes `ready`.
const HOLD: &str = r#"
import ctypes, mmap, os, socket, sys, threading, time
how, kept, name = sys.argv[1], [], "moved"
def opened(flags):
    kept.append(os.open(name, flags))
    return kept[-1]
def in_thread():
    UNSHARE_FILES = 0x400
    ctypes.CDLL(None).unshare(UNSHARE_FILES)
    opened(os.O_RDONLY)
    open("ready", "w").close()
    time.sleep(1000)
if how == "write": opened(os.O_RDWR)
if how == "read": opened(os.O_RDONLY)
if how == "path": opened(os.O_PATH)
if how == "map":
    kept.append(mmap.mmap(opened(os.O_RDWR), 0))
    os.close(kept[0])
if how == "flight":
    kept += socket.socketpair()
    passed = os.open(name, os.O_RDONLY)
    socket.send_fds(kept[0], [b"x"], [passed])
    os.close(passed)
if how == "cwd": os.chdir(name)
if how == "directory": opened(os.O_PATH)
if how == "thread":
    threading.Thread(target=in_thread).start()
    # The first thread ends alone.
    ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
open("ready" if how != "cwd" else "../ready", "w").close()
time.sleep(1000)
"#;

/// A session on `project`, in which a program may have `moved` open.
struct MovedFileSession<'a> {
    world: &'a World,
    session: String,
    _sessions: SessionCleanup<'a>,
}

impl<'a> MovedFileSession<'a> {
    fn new(world: &'a World) -> Self {
        world.write("project/hold.py", HOLD);
        world.write("own/none", "");
        let session = create(world, &["--workspace", "project"]);
        Self { world, session, _sessions: SessionCleanup(world) }
    }

    /// Starts a program that has `moved` open.
    fn hold(&self, how: &str) {
        let script = format!("rm -f ready; python3 hold.py {how} >said 2>&1 & echo $! >pid");
        exec(self.world, &self.session, &script).succeeded();
        until(|| self.world.path().join("project/ready").exists());
    }

    /// Kills the program.
    fn release(&self) {
        exec(self.world, &self.session, "kill -9 $(cat pid); while kill -0 $(cat pid); do :; done");
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.world.path().join(from), self.world.path().join(to)).unwrap();
    }

    fn obey(&self, policy: &str) -> ProgramOutput {
        self.world.run(&["exec", "--egress", policy, "--", "true"])
    }
}

#[test]
fn file_that_a_sandbox_has_open_is_refused_wherever_it_is_moved() {
    World::as_everyone(BELLJAR, |world| {
        let ground = MovedFileSession::new(world);
        for how in ["write", "read", "path", "map", "flight", "thread"] {
            world.write("project/moved", "rules: []");
            ground.hold(how);
            ground.rename("project/moved", "own/policy.yaml");
            let ran = ground.obey("own/policy.yaml");
            let why = if how == "flight" { "has sent descriptors" } else { "is open in the process" };
            assert!(ran.code == 125 && ran.stderr.contains(why), "{how}: {ran:?}");
            // The controls: another file, and the same one once no process has it open.
            world.write("own/other.yaml", "rules: []");
            // A descriptor in flight (`SCM_RIGHTS`) is unknown, and may be any file.
            assert_eq!(ground.obey("own/other.yaml").code == 0, how != "flight", "{how}");
            ground.release();
            until(|| ground.obey("own/policy.yaml").code == 0);
        }
    });
}

#[test]
fn directory_that_a_sandbox_has_open_is_refused_wherever_it_is_moved() {
    World::as_everyone(BELLJAR, |world| {
        let ground = MovedFileSession::new(world);
        for how in ["cwd", "directory"] {
            world.write("project/moved/policy.yaml", "rules: []");
            world.write("beside/none", "");
            exec(world, &ground.session, "ln -s ../../beside moved/link").succeeded();
            ground.hold(how);
            ground.rename("project/moved", "own/moved");
            refused(&ground.obey("own/moved/policy.yaml"), "is open in the process");
            // A link in the directory may be the sandbox's, too.
            let lend = || world.run(&["exec", "--workspace", "own/moved/link", "--", "true"]);
            refused(&lend(), "own/moved/link");
            ground.release();
            until(|| ground.obey("own/moved/policy.yaml").code == 0);
            lend().succeeded();
            fs::remove_dir_all(world.path().join("own/moved")).unwrap();
        }
    });
}

#[test]
fn hard_linked_file_is_refused_while_a_sandbox_reaches_it_by_any_name() {
    World::as_everyone(BELLJAR, |world| {
        let ground = MovedFileSession::new(world);
        world.write("project/inner/none", "");
        world.write("project/moved", "rules: []");
        let at = |name: &str| world.path().join(name);
        fs::hard_link(at("project/moved"), at("own/policy.yaml")).unwrap();
        refused(&ground.obey("own/policy.yaml"), "is the same file as");
        // In a directory that its owner can't read at the moment.
        exec(world, &ground.session, "mv moved inner/moved; chmod 000 inner").succeeded();
        let ran = ground.obey("own/policy.yaml");
        assert!(ran.code == 125, "{ran:?}");
        exec(world, &ground.session, "chmod 700 inner; mv inner/moved moved").succeeded();
        // The workspace has been renamed.
        ground.rename("project", "renamed");
        fs::create_dir(at("project")).unwrap();
        refused(&ground.obey("own/policy.yaml"), "is the same file as");
        refused(&ground.obey("renamed/moved"), "lies in the workspace");
        fs::remove_dir(at("project")).unwrap();
        ground.rename("renamed", "project");
        // The file has no name in the workspace any more.
        ground.hold("read");
        exec(world, &ground.session, "rm moved").succeeded();
        refused(&ground.obey("own/policy.yaml"), "is open in the process");
        ground.release();
        until(|| ground.obey("own/policy.yaml").code == 0);
        // The control: other names beside the workspace.
        fs::hard_link(at("own/policy.yaml"), at("own/twice.yaml")).unwrap();
        ground.obey("own/twice.yaml").succeeded();
    });
}

#[test]
fn mount_below_a_workspace_is_treated_as_sandbox_writable() {
    let world = World::new(BELLJAR);
    if !rustix::process::geteuid().is_root() {
        belljar_testkit::skip::skip("obeyed by mount", "mounting needs root");
        return;
    }
    world.write("project/mounted/none", "");
    world.write("source/policy.yaml", "rules: []");
    world.write("beside/policy.yaml", "rules: []");
    let at = |name: &str| world.path().join(name).display().to_string();
    let mount = format!("mount --bind {} {}", at("source"), at("project/mounted"));
    let run = |mount: &str, arguments: &[&str]| in_mounts(&world, mount, arguments);
    let obey = |policy| ["exec", "--workspace", "project", "--egress", policy, "--", "true"];
    // A policy that the run itself obeys.
    refused(&run(&mount, &obey("source/policy.yaml")), "lies in the workspace");
    run(&mount, &obey("beside/policy.yaml")).succeeded();
    run("true", &obey("source/policy.yaml")).succeeded();
    let read_only = format!("{mount} && mount -o remount,bind,ro {}", at("project/mounted"));
    run(&read_only, &obey("source/policy.yaml")).succeeded();
    // Nor does such a mount hide the other names of a file with several.
    fs::hard_link(at("beside/policy.yaml"), at("beside/linked.yaml")).unwrap();
    run(&read_only, &obey("beside/linked.yaml")).succeeded();
    // A policy that another process obeys: the directory isn't mounted.
    let session = create(&world, &["--egress", "source/policy.yaml"]);
    let _sessions = SessionCleanup(&world);
    let lend = ["exec", "--workspace", "project", "--", "true"];
    refused(&run(&mount, &lend), "lies in the workspace");
    run("true", &lend).succeeded();
    world.run(&["session", "end", &session]).succeeded();
    // The keeper exits shortly afterwards.
    until(|| run(&mount, &lend).code == 0);
    // A file that another session writes through a mount that only its own processes see.
    let session = run(&mount, &["session", "create", "--workspace", "project"]).succeeded().stdout;
    exec(&world, session.trim(), "echo '# written' >> mounted/policy.yaml").succeeded();
    assert!(world.read("source/policy.yaml").contains("# written"));
    let elsewhere = |policy| world.run(&["exec", "--egress", policy, "--", "true"]);
    refused(&elsewhere("source/policy.yaml"), "lies in the workspace");
    elsewhere("beside/policy.yaml").succeeded();
}

#[test]
fn part_of_a_renamed_workspace_mounted_elsewhere_is_detected() {
    let world = World::new(BELLJAR);
    if !rustix::process::geteuid().is_root() {
        belljar_testkit::skip::skip("obeyed by mount", "mounting needs root");
        return;
    }
    world.write("project/inner/policy.yaml", "rules: []");
    world.write("beside/policy.yaml", "rules: []");
    world.write("mounted/none", "");
    let _session = create(&world, &["--workspace", "project"]);
    let _sessions = SessionCleanup(&world);
    fs::rename(world.path().join("project"), world.path().join("renamed")).unwrap();
    let at = |name: &str| world.path().join(name).display().to_string();
    let obey = |source: &str| {
        let mount = format!("mount --bind {} {}", at(source), at("mounted"));
        in_mounts(&world, &mount, &["exec", "--egress", "mounted/policy.yaml", "--", "true"])
    };
    refused(&obey("renamed/inner"), "lies in the workspace");
    obey("beside").succeeded();
}

/// Runs the program in a mount namespace with a mount made before.
fn in_mounts(world: &World, mount: &str, arguments: &[&str]) -> ProgramOutput {
    let run = world.command(arguments);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &format!("{mount} && exec \"$0\" \"$@\"")]);
    command.arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.current_dir(run.get_current_dir().unwrap_or(Path::new("/")));
    ProgramOutput::from(command.output().unwrap())
}
