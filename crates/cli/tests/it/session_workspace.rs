//! Changes of a session in its copy: shown, committed, discarded, and forked, while the session lives on.

use crate::session::{SessionCleanup, create, exec, keeper_of, list};
use crate::{BELLJAR, workspace_copy};
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// Every kind of change to a file, a link and a directory.
const CHANGES: &str = "echo more >> kept; rm gone; chmod +x mode; mkdir new; echo n > 'new/a b'; \
                       rm -r folder; echo now a file > folder; ln -s kept link; echo same > same; \
                       rm -r replaced; mkdir replaced; echo r > replaced/inner; printf 'a\\0b' > binary; \
                       mv moved/inner elsewhere; rmdir moved; rm twin; echo t > closed/file; chmod 0 closed; \
                       mkdir -p deep/er; echo d > deep/er/file; chmod 500 deep/er; chmod 500 deep";

fn lay_out(world: &World) -> String {
    let source = workspace_copy::lay_out(world);
    for (name, content) in [("moved/inner/file", "i\n"), ("closed/file", "c\n"), ("one", "two names\n")] {
        world.write(&format!("source/{name}"), content);
    }
    let at = |name: &str| format!("{source}/{name}");
    std::fs::hard_link(at("one"), at("twin")).unwrap();
    source
}

/// Options for an overlay on the source, and for a full copy.
const COPIES: [&[&str]; 2] = [&[], &["--backend", "subprocess"]];

/// Runs a test on copies of both kinds, as each user who can run it.
fn on_copies(test: impl Fn(&World, &CopySessionOptions)) {
    for options in COPIES {
        World::as_everyone(BELLJAR, |world| test(world, &CopySessionOptions(options)));
    }
}

/// The options of a session on a copy.
struct CopySessionOptions(&'static [&'static str]);

impl CopySessionOptions {
    fn of(&self, world: &World, source: &str, more: &[&str]) -> String {
        create(world, &[self.0, &["--workspace-copy", source], more].concat())
    }

    /// Returns true for overlays on their source, which can be forked.
    fn are_layers(&self) -> bool {
        self.0.is_empty()
    }
}

fn changed(world: &World, session: &str) -> Vec<String> {
    let told = world.run(&["session", "diff", session, "--json"]).succeeded().json();
    let files = told["files"].as_array().unwrap();
    files.iter().map(|file| format!("{} {}", file["change"], file["path"]).replace('"', "")).collect()
}

/// Commits the session's current changes, with trusted paths.
pub(crate) fn commit_trusting(world: &World, session: &str, trust: &[&str]) -> ProgramOutput {
    let digest = world.run(&["session", "diff", session, "--digest"]).succeeded().stdout;
    world.run(&[&["session", "commit", session, "--reviewed", digest.trim(), "--unshown"], trust].concat())
}

/// Returns the workspace as a program in the session sees it: types, permissions, contents.
fn picture(world: &World, session: &str) -> String {
    let script = "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; \
                  find . -type f | sort | xargs -d '\\n' md5sum";
    exec(world, session, script).succeeded().stdout
}

/// Returns the same listing of a directory of the host.
fn picture_of(directory: &std::path::Path) -> String {
    let script =
        "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; find . -type f | sort | xargs -d '\\n' md5sum";
    let ran = Command::new("sh").args(["-c", script]).current_dir(directory).output().unwrap();
    ProgramOutput::from(ran).succeeded().stdout
}

/// Removes permissions from a listing: a commit transfers only the executable bit. They precede a link's target.
fn without_modes(picture: &str) -> String {
    let is_mode =
        |word: &&str| word.len() <= 4 && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    picture
        .lines()
        .map(|line| line.split(' ').filter(|word| !is_mode(word)).collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

/// Drops the kernel's cache of names, so that every name is looked up again. Only root can.
fn forget_names() {
    if rustix::process::geteuid().is_root() {
        std::fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
    }
}

#[test]
fn diff_of_a_running_session_is_a_patch_that_git_applies_to_the_same_result() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let id = copies.of(world, &source, &[]);
        assert!(changed(world, &id).is_empty());
        exec(world, &id, "echo more >> kept; rm gone; mkdir new; echo n > 'new/a b'; ln -s kept link")
            .succeeded();
        let diff = world.run(&["session", "diff", &id]).succeeded().stdout;
        let by_hand = World::new(BELLJAR);
        by_hand.write("changes.diff", diff);
        let expected = lay_out(&by_hand);
        let git =
            Command::new("git").args(["apply", "../changes.diff"]).current_dir(&expected).output().unwrap();
        assert!(git.status.success(), "{git:?}");
        commit_trusting(world, &id, &["--trust", "mode"]).succeeded();
        let differ = Command::new("diff").args(["-r", &source, &expected]).output().unwrap();
        assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));
        exec(world, &id, "seq 3 >> kept; rm mode").succeeded();
        let stat = world.run(&["session", "diff", "--stat", &id]).succeeded().stdout;
        assert_eq!(stat, "  kept  +3 -0\n  mode  +0 -1\n  2 files changed, 3 lines added, 1 line removed\n");
    });
}

#[test]
fn diff_changes_nothing_and_blocks_the_session_only_briefly() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let before = world.picture("source");
        let id = copies.of(world, &source, &[]);
        exec(world, &id, CHANGES).succeeded();
        exec(world, &id, "(while true; do echo x >> $TMPDIR/beat; sleep 0.01; done) > /dev/null 2>&1 &")
            .succeeded();
        let modes = || exec(world, &id, "stat -c '%a %n' . * | sort").succeeded().stdout;
        let modes_before = modes();
        assert!(modes_before.contains("0 closed"), "{modes_before}");
        assert_eq!(changed(world, &id).len(), 15, "{:?}", changed(world, &id));
        assert_eq!(modes(), modes_before);
        assert_eq!(world.picture("source"), before);
        if copies.are_layers() {
            not_even_the_workspace_itself_may_be_in_the_way(world, &id);
        }
        let beats = || exec(world, &id, "wc -l < $TMPDIR/beat").succeeded().stdout;
        let so_far = beats();
        until(|| beats() != so_far);
    });
}

/// Checks a session with 15 changes; its fork has the same number.
fn not_even_the_workspace_itself_may_be_in_the_way(world: &World, id: &str) {
    let in_root = |command: &[&str]| {
        world.run(&[&["session", "exec", id, "--directory", "/", "--"], command].concat()).succeeded().stdout
    };
    exec(world, id, "chmod 0 .").succeeded();
    assert_eq!(changed(world, id).len(), 15);
    assert_eq!(in_root(&["stat", "-c", "%a", "workspace"]), "0\n");
    let fork = world.run(&["session", "fork", id]).succeeded().stdout.trim().to_owned();
    assert_eq!(changed(world, &fork).len(), 15);
    world.run(&["session", "discard", &fork, "kept"]).succeeded();
    assert_eq!(changed(world, &fork).len(), 14);
    in_root(&["chmod", "755", "workspace"]);
}

#[test]
fn commit_makes_the_source_equal_to_the_copy_and_the_session_continues() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let id = copies.of(world, &source, &[]);
        // An ordinary user can't compare unreadable files later, either.
        exec(world, &id, &format!("{CHANGES}; chmod 500 closed")).succeeded();
        // A program that keeps files, directories and names from before open.
        let watch =
            "exec 3< kept 4< untouched/deep/file; cd replaced; while true; do sleep 0.01; cat inner; done";
        exec(world, &id, &format!("({watch}) > $TMPDIR/seen 2>&1 &")).succeeded();
        let seen = picture(world, &id);
        commit_trusting(world, &id, &["--trust", "mode"]).succeeded();
        assert!(changed(world, &id).is_empty(), "{:?}", changed(world, &id));
        assert_eq!(picture(world, &id), seen);
        forget_names();
        assert_eq!(picture(world, &id), seen);
        assert!(changed(world, &id).is_empty());
        let closed = world.path().join("source/closed");
        let modes = std::fs::metadata(&closed).unwrap();
        // The session closed it for itself; the source's own permissions stay.
        assert_eq!((modes.mode() & 0o777, modes.uid()), (0o755, world.path().metadata().unwrap().uid()));
        assert_eq!(without_modes(&picture_of(std::path::Path::new(&source))), without_modes(&seen));
        // From here on reverted, repeated and different changes are changes, and can be committed, too.
        let again = "rm kept folder; rm -r new; mkdir folder; echo f > folder/below; echo o > replaced/old; \
                     rm replaced/inner; echo gone > gone; rm link; chmod 700 deep deep/er; rm -r deep; echo s > same";
        exec(world, &id, again).succeeded();
        forget_names();
        let seen = picture(world, &id);
        commit_trusting(world, &id, &["--trust", "mode"]).succeeded();
        assert_eq!(picture(world, &id), seen);
        forget_names();
        assert_eq!(picture(world, &id), seen);
        assert_eq!(without_modes(&picture_of(std::path::Path::new(&source))), without_modes(&seen));
        assert_eq!(world.run(&["session", "commit", &id]).succeeded().stdout, "Nothing to commit.\n");
        let owners = Command::new("find").args([&source, "-printf", "%U\\n"]).output().unwrap();
        let owners = String::from_utf8(owners.stdout).unwrap();
        let own = world.path().metadata().unwrap().uid().to_string();
        assert!(owners.lines().all(|owner| owner == own), "{owners}");
    });
}

#[test]
fn commit_overwrites_no_foreign_changes_and_names_the_conflicts() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let id = copies.of(world, &source, &[]);
        exec(world, &id, "echo theirs > kept; echo theirs > same; rm -r folder; echo theirs > new")
            .succeeded();
        world.write("source/kept", "mine\n");
        world.write("source/folder/another", "mine\n");
        // An old file, and yet new here.
        let old = world.write("old", "mine\n");
        std::fs::File::open(&old).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        std::fs::rename(&old, world.path().join("source/new")).unwrap();
        let before = world.picture("source");
        let ran = world.run(&["session", "commit", &id]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(
            ran.stderr.contains("changed in the meantime: folder/another, kept, new\n"),
            "{}",
            ran.stderr
        );
        assert_eq!(world.picture("source"), before);
        world.run(&["session", "discard", &id, "kept", "/workspace/new", "folder"]).succeeded();
        assert_eq!(changed(world, &id), ["modified same"]);
        commit_trusting(world, &id, &["--trust", "mode"]).succeeded();
        assert_eq!(
            (world.read("source/kept"), world.read("source/same")),
            ("mine\n".into(), "theirs\n".into())
        );
        assert_eq!(exec(world, &id, "cat kept new folder/another").stdout, "mine\nmine\nmine\n");
        // Committed by the session, and only then changed by another user.
        exec(world, &id, "echo again > same").succeeded();
        world.write("source/same", "mine\n");
        assert_eq!(world.run(&["session", "commit", &id]).code, 125);
        assert_eq!(world.read("source/same"), "mine\n");
    });
}

#[test]
fn discard_restores_the_source_state_even_under_a_running_program() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let before = world.picture("source");
        let id = create(world, &["--workspace-copy", &source]);
        let seen = picture(world, &id);
        exec(world, &id, "cp -a . /tmp/first; echo kept > /tmp/note").succeeded();
        exec(world, &id, &format!("{CHANGES}; mkfifo pipe; touch -d 1999-01-01 one; chmod 0 mode"))
            .succeeded();
        exec(world, &id, "sleep 600 > /dev/null 2>&1 &").succeeded();
        let ran = world.run(&["session", "discard", &id]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(
            ran.stderr.contains("programs are running in the session: 1 in the background"),
            "{}",
            ran.stderr
        );
        let ran = world.run(&["session", "discard", &id, "--force"]).succeeded();
        assert!(ran.stdout.contains("as in the source again"), "{}", ran.stdout);
        assert!(changed(world, &id).is_empty(), "{:?}", changed(world, &id));
        exec(world, &id, "chmod 755 closed").succeeded();
        let closed = |picture: &str| picture.replace("closed d 0 ", "closed d 755 ");
        assert_eq!(closed(&picture(world, &id)), closed(&seen));
        assert_eq!(exec(world, &id, "cat /tmp/note; pgrep -c sleep").stdout, "kept\n1\n");
        assert_eq!(world.picture("source"), before);
        forget_names();
        assert!(
            changed(world, &id).iter().all(|change| change.contains("closed")),
            "{:?}",
            changed(world, &id)
        );
        assert_eq!(exec(world, &id, "cat kept folder/below replaced/old").stdout, "line\nf\no\n");
        for (path, why) in [("nowhere", "nowhere has no changes"), ("../x", "not in the workspace")] {
            let ran = world.run(&["session", "discard", "--force", &id, path]);
            assert!(ran.code == 125 && ran.stderr.contains(why), "{ran:?}");
        }
    });
}

#[test]
fn fork_starts_from_the_first_sessions_state_and_both_diverge() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let before = world.picture("source");
        let lent = world.write("lent/file", "lent\n");
        let options = ["--workspace-copy", &source, "-e", "GIVEN=value", "--ro", &lent.display().to_string()];
        let id = create(world, &options);
        exec(world, &id, &format!("{CHANGES}; ln 'new/a b' new/other; touch -d 1999-01-01 one")).succeeded();
        exec(
            world,
            &id,
            "truncate -s 1T holes; printf end | dd of=holes bs=1 seek=1000000000 conv=notrunc status=none",
        )
        .succeeded();
        exec(world, &id, "mkfifo pipe; echo secret > /tmp/note; sleep 600 > /dev/null 2>&1 &").succeeded();
        let (was, seen) = (changed(world, &id), "find . -printf '%P %y %m %l %n %s %t\\n' | sort");
        let looks = exec(world, &id, seen).stdout;
        let fork =
            world.run(&["session", "fork", &id, "--name", "second"]).succeeded().stdout.trim().to_owned();
        assert_ne!(fork, id);
        assert_eq!(changed(world, "second"), was);
        let without_directory_times = |looks: &str| -> Vec<String> {
            looks.lines().filter(|line| !line.contains(" d ")).map(str::to_owned).collect()
        };
        let looks_there = exec(world, "second", seen).stdout;
        assert_eq!(without_directory_times(&looks_there), without_directory_times(&looks));
        let inside =
            "echo \"$GIVEN\"; cat $LENT; test -e /tmp/note; echo $?; pgrep -c sleep; du -s holes | cut -f1";
        let inside = inside.replace("$LENT", &lent.display().to_string());
        let ran = exec(world, "second", &inside);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines[..4], ["value", "lent", "1", "0"], "{ran:?}");
        assert!(lines[4].parse::<u64>().unwrap() < 1000, "{ran:?}");
        exec(world, "second", "echo second > kept; echo x > 'new/a b'; rm pipe; rm -r replaced").succeeded();
        assert_eq!(exec(world, &id, "cat kept; cat new/other").stdout, "line\nmore\nn\n");
        assert_eq!(exec(world, "second", "cat kept; cat new/other").stdout, "second\nx\n");
        // A fork of a fork; and when the first is gone, the others live.
        exec(world, "second", "chmod 700 closed").succeeded();
        world.run(&["session", "fork", "second", "--name", "third"]).succeeded();
        world.run(&["session", "end", "--discard", &id]).succeeded();
        exec(world, "third", "echo third > kept").succeeded();
        forget_names();
        assert_eq!(exec(world, "second", "cat kept; ls replaced").stdout, "second\n");
        assert_eq!(
            exec(world, "third", "cat kept; cat one; cat closed/file").stdout,
            "third\ntwo names\nt\n"
        );
        assert_eq!(world.picture("source"), before);
        let names: Vec<_> = list(world).iter().map(|session| session["forked_from"].clone()).collect();
        assert_eq!(names, [id.into(), fork.into()] as [serde_json::Value; 2]);
        // Each is compared with the source at the start of the first session, and with the other's commits.
        world.run(&["session", "discard", "third", "holes"]).succeeded();
        commit_trusting(world, "third", &["--trust", "mode"]).succeeded();
        assert_eq!(world.read("source/kept"), "third\n");
        let ran = commit_trusting(world, "second", &["--trust", "mode"]);
        assert!(ran.code == 125 && ran.stderr.contains("changed in the meantime: kept"), "{ran:?}");
    });
}

#[test]
fn fork_of_a_session_that_began_empty_has_its_files() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let id = create(world, &[]);
        exec(world, &id, "mkdir a; echo b > a/b; ln a/b c; ln -s a/b d; chmod 500 a").succeeded();
        let fork = world.run(&["session", "fork", &id]).succeeded().stdout.trim().to_owned();
        let seen = "cat c d; stat -c '%a %h %U' a c; echo more > c; cat a/b";
        assert_eq!(exec(world, &fork, seen).stdout, "b\nb\n500 2 agent\n644 2 agent\nmore\n");
        assert_eq!(exec(world, &id, "cat c").stdout, "b\n");
        for command in ["diff", "commit", "discard"] {
            let ran = world.run(&["session", command, &id]);
            assert!(ran.code == 125 && ran.stderr.contains("workspace started empty"), "{ran:?}");
            assert!(ran.stderr.contains("--workspace-copy DIR"), "{ran:?}");
        }
    });
}

#[test]
fn session_directly_on_a_directory_has_no_separate_changes() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let id = create(world, &["--workspace", &source]);
        for command in ["diff", "commit", "discard", "fork"] {
            let ran = world.run(&["session", command, &id]);
            assert!(ran.code == 125 && ran.stderr.contains(&format!("uses {source} directly")), "{ran:?}");
        }
        assert_eq!(list(world).len(), 1);
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 1);
    });
}

#[test]
fn fork_killed_midway_leaves_nothing_and_the_first_session_continues() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let id = create(world, &["--workspace-copy", &source]);
        exec(
            world,
            &id,
            "for d in $(seq 40); do mkdir d$d; for f in $(seq 50); do echo $f > d$d/$f; done; done",
        )
        .succeeded();
        let runs = world.path().join("state/runs");
        let begun = || {
            let mut folders = std::fs::read_dir(&runs).unwrap().map(|folder| folder.unwrap().path());
            folders.find(|folder| !folder.ends_with(&id) && folder.join("private/upper/d1").exists())
        };
        // A command that ends before it can be killed proves nothing.
        let is_caught = (0..10).any(|_| {
            let mut fork = world.command(&["session", "fork", &id]).stdout(Stdio::null()).spawn().unwrap();
            until(|| begun().is_some());
            let keeper = keeper_of(&begun().unwrap());
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
            let code = fork.wait().unwrap().code();
            until(|| list(world).len() == 1);
            // The next command removes the leftovers.
            world.run(&["exec", "--workspace-copy", "source", "--", "true"]).succeeded();
            assert!(begun().is_none());
            code == Some(125)
        });
        assert!(is_caught, "no kill came before its end");
        assert_eq!(exec(world, &id, "ls d40 | wc -l").succeeded().stdout, "50\n");
        assert_eq!(list(world).len(), 1);
        let next = create(world, &[]);
        let mut left: Vec<_> =
            std::fs::read_dir(&runs).unwrap().map(|run| run.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [id.as_str(), next.as_str()]);
    });
}

#[test]
fn commit_killed_midway_is_finished_by_a_retry() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        // A command that ends before it can be killed proves nothing.
        let is_caught = (0..10).any(|round| {
            world.write("source/folder/below", "f\n");
            copies.of(world, &source, &["--name", "mine"]);
            exec(world, "mine", "echo first > kept").succeeded();
            world.run(&["session", "commit", "mine"]).succeeded();
            let script = format!(
                "for f in $(seq 1500); do echo {round} $f > n$f; done; echo second > kept; rm -r folder"
            );
            exec(world, "mine", &script).succeeded();
            let keeper =
                keeper_of(&world.path().join("state/runs").join(list(world)[0]["id"].as_str().unwrap()));
            let mut commit =
                world.command(&["session", "commit", "mine"]).stderr(Stdio::null()).spawn().unwrap();
            let first = world.path().join("source/n1");
            until(|| std::fs::read_to_string(&first).is_ok_and(|n1| n1 == format!("{round} 1\n")));
            rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
            let code = commit.wait().unwrap().code();
            until(|| list(world).is_empty());
            code == Some(125)
        });
        assert!(is_caught, "no kill came before its end");
        // Starting another command doesn't remove it.
        let other = create(world, &[]);
        for list in [&["session", "list"][..], &["session", "list", "--all"], &["changes", "list"]] {
            let told = world.run(list).succeeded().stderr;
            assert!(told.contains("A commit of mine was interrupted"), "{told}");
            assert!(!told.contains("can't be listed"), "{told}");
        }
        world.run(&["session", "commit", "mine"]).succeeded();
        assert_eq!(world.read("source/kept"), "second\n");
        assert!(world.read("source/n1500").ends_with(" 1500\n"));
        let mut left = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.all(|name| !name.display().to_string().starts_with(".belljar")));
        assert!(!std::path::Path::new(&source).join("folder").exists());
        let left = || {
            let left = std::fs::read_dir(world.path().join("state/runs")).unwrap().flatten();
            left.map(|folder| folder.file_name().display().to_string()).collect::<Vec<_>>()
        };
        // Data that the supervisor of the killed keeper still held then is removed by the next command.
        until(|| {
            world.run(&["exec", "--workspace-copy", "source", "--", "true"]).succeeded();
            left() == [other.clone()]
        });
        assert_eq!(world.run(&["session", "commit", "mine"]).code, 125);
    });
}

/// Two processes that wake each other up and swap a directory, a link that leads out, and a file, as fast as they can; and
/// permissions that hinder a reader.
const HOSTILE: &str = r#"
import os, signal, sys, time
end = time.time() + 30
out, rounds = sys.argv[1], 0
os.makedirs('d/e/f', exist_ok=True)
open('d/e/f/file', 'w').write('inside')
os.makedirs('shut', exist_ok=True)
os.symlink(out, 'out')
child = os.fork()
other = child or os.getppid()
while time.time() < end:
    rounds += 1
    if rounds % 100 == 0:
        open(os.environ['TMPDIR'] + ('/one' if child else '/other'), 'w').write(str(rounds))
    try:
        os.kill(other, signal.SIGCONT)
        if child:
            os.rename('d/e', 'd/x'); os.symlink(out, 'd/e'); os.chmod('shut', 0)
            os.unlink('d/e'); open('d/e', 'w').close(); os.unlink('d/e')
            os.rename('d/x', 'd/e')
        else:
            os.rename('shut', 'open'); os.rename('out', 'shut'); os.rename('shut', 'out'); os.rename('open', 'shut')
            os.chmod('shut', 0o700)
    except OSError:
        pass
"#;

#[test]
fn concurrent_symlink_swaps_expose_or_touch_nothing_outside() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        let secret = world.write("secret/f/file", "a secret\n");
        std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        let before = world.picture("secret");
        world.write("source/hostile.py", HOSTILE);
        let id = copies.of(world, &source, &[]);
        let out = world.path().join("secret").display().to_string();
        exec(world, &id, &format!("python3 hostile.py {out} > /dev/null 2>&1 & sleep 0.5")).succeeded();
        for _ in 0..8 {
            // Names that come and go may make it fail. It must neither hang nor follow a link out.
            for command in ["diff", "fork", "discard"] {
                let force = ["session", command, &id, "--force"];
                let ran = world.run(if command == "discard" { &force } else { &force[..3] });
                assert!(matches!(ran.code, 0 | 125), "{ran:?}");
                assert!(!ran.stdout.contains("a secret"), "{ran:?}");
                if command == "fork" && ran.code == 0 {
                    let fork = ran.stdout.trim();
                    let seen = exec(world, fork, "cat d/*/f/file d/*/f/* shut/* out/*").stdout;
                    assert!(!seen.contains("a secret"), "{seen}");
                    world.run(&["session", "end", "--discard", fork]).succeeded();
                }
            }
        }
        let _ = world.run(&["session", "commit", &id]);
        assert_eq!(world.picture("secret"), before);
        assert!(world.read("source/kept").starts_with("line\n"));
        for one in ["one", "other"] {
            let rounds = || exec(world, &id, &format!("cat $TMPDIR/{one}")).succeeded().stdout;
            let so_far = rounds();
            // Its writer may be in the middle of a write.
            until(|| ![String::new(), so_far.clone()].contains(&rounds()));
        }
    });
}

/// Writes through a mapping, at once and again on request, which doesn't change the file's times.
const BY_A_MAPPING: &str = r#"
import mmap, os, sys, time
with open('mapped', 'w') as file:
    file.write('old')
file = open('mapped', 'r+b')
memory = mmap.mmap(file.fileno(), 3)
memory[0:3] = b'ONE'
open(os.environ['TMPDIR'] + '/first', 'w').close()
while not os.path.exists(os.environ['TMPDIR'] + '/go'):
    time.sleep(0.01)
memory[0:3] = b'TWO'
open(os.environ['TMPDIR'] + '/second', 'w').close()
time.sleep(600)
"#;

#[test]
fn mapped_write_after_a_commit_is_reported_and_committed() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        world.write("source/mapped", "old");
        world.write("source/mapping.py", BY_A_MAPPING);
        let id = copies.of(world, "source", &[]);
        exec(world, &id, "python3 mapping.py > /dev/null 2>&1 &").succeeded();
        let is_there = |name: &str| exec(world, &id, &format!("test -e $TMPDIR/{name}")).code == 0;
        until(|| is_there("first"));
        world.run(&["session", "commit", &id]).succeeded();
        assert_eq!(world.read("source/mapped"), "ONE");
        exec(world, &id, "touch $TMPDIR/go").succeeded();
        until(|| is_there("second"));
        assert_eq!(changed(world, &id), ["modified mapped"]);
        world.run(&["session", "commit", &id]).succeeded();
        assert_eq!(world.read("source/mapped"), "TWO");
        assert!(changed(world, &id).is_empty());
    });
}

#[test]
fn symlink_replaced_by_a_directory_is_shown_and_committed_as_one() {
    on_copies(|world, copies| {
        let _sessions = SessionCleanup(world);
        let source = lay_out(world);
        world.write("elsewhere/file", "theirs\n");
        std::os::unix::fs::symlink(world.path().join("elsewhere"), world.path().join("source/out")).unwrap();
        let id = copies.of(world, &source, &[]);
        exec(world, &id, "rm out; mkdir out; echo mine > out/file").succeeded();
        assert_eq!(changed(world, &id), ["deleted out", "created out/file"]);
        commit_trusting(world, &id, &["--trust", "mode"]).succeeded();
        assert_eq!(
            (world.read("source/out/file"), world.read("elsewhere/file")),
            ("mine\n".into(), "theirs\n".into())
        );
        assert!(changed(world, &id).is_empty());
    });
}

#[test]
fn files_committed_by_root_belong_to_the_directorys_owner() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip("files of another user", "chown needs root");
    }
    for options in COPIES {
        let world = World::new(BELLJAR);
        let _sessions = SessionCleanup(&world);
        let source = lay_out(&world);
        let give = Command::new("chown").args(["-R", "12345:12346", &source]).status().unwrap();
        assert!(give.success());
        let id = CopySessionOptions(options).of(&world, &source, &[]);
        exec(&world, &id, "echo more >> kept; mkdir new; echo n > new/file; ln -s kept link; chmod +x mode")
            .succeeded();
        commit_trusting(&world, &id, &["--trust", "mode"]).succeeded();
        let find = Command::new("find").args([&source, "-printf", "%P %U:%G\n"]).output().unwrap();
        let owners = String::from_utf8(find.stdout).unwrap();
        assert!(
            owners.contains("new/file") && owners.lines().all(|line| line.ends_with(" 12345:12346")),
            "{owners}"
        );
    }
}
