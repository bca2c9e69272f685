//! Whole programs, as a job runs them.

use crate::case::{Case, args};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::SpecialAct;

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let folder = place.path(&format!("/workspace/{}-git", scene.mark));
    let run = |command: &[&str], directory: &str| SpecialAct::Run {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        directory: directory.to_owned(),
    };
    let git = Case::twin("git", |s| {
        let git = |arguments: &[&str]| {
            let named = [
                "/usr/bin/git",
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "init.defaultBranch=main",
            ];
            run(&[&named[..], arguments].concat(), &folder)
        };
        s.call("mkdir", args![&folder, 0o700]);
        s.act(git(&["init", "--quiet"]));
        s.act(git(&["commit", "--quiet", "--allow-empty", "--message", "first"]));
        s.act(git(&["branch", "other"]));
        s.act(git(&["worktree", "add", "--quiet", "beside", "other"]));
        s.act(git(&["diff", "--stat", "main", "other"]));
        s.act(git(&["gc", "--quiet"]));
    });
    vec![
        git.needs("git"),
        // No data is written back, and the call itself can't report that.
        Case::twin("sync, and files by name", |s| {
            let file = format!("{}-sync", place.path(&format!("/workspace/{}", scene.mark)));
            s.act(run(&["/bin/sh", "-c", &format!("echo text > {file} && sync && sync {file}")], "/"));
        }),
        Case::twin("a shell, and what it starts", |s| {
            s.act(run(&["/bin/sh", "-c", "(exit 3) || test $(echo a | tr a b) = b"], "/"));
        }),
        Case::twin("programs that find themselves", |s| {
            s.act(run(&["/bin/sh", "-c", "test -e /proc/self/exe && test -r /proc/self/maps"], "/"));
        }),
    ]
}
