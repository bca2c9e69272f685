//! A push that is killed wherever it may be: the server's branch changes once, by whichever attempt, and to what a push
//! that nobody kills would have made of it.

use crate::belljar::belljar;
use belljar_failpoint::{PUSHES, VARIABLE};
use belljar_testkit::git::{HttpsServer, Repositories, git, updates};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{Ran, World};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

const PASSWORD: &str = "pw-2uFj6Wd0RzM8aX";

/// A server that counts, and a clone of what it has.
struct Ground {
    world: World,
    server: HttpsServer,
    repository: std::path::PathBuf,
}

// === impl Ground ===

impl Ground {
    fn make() -> Result<Self, String> {
        let world = World::new(belljar());
        let repositories = Repositories::in_world(&world);
        let repository = repositories.make("origin.git", &[("a.txt", "a\n")]);
        let names = ["127.0.0.1"];
        let server =
            HttpsServer::start(&world, repositories.root(), (Ipv4Addr::LOCALHOST, &names), PASSWORD)?;
        let helper = format!("!f() {{ echo username=user; echo password={PASSWORD}; }}; f");
        let authority = server.authority();
        let config =
            format!("[credential]\n\thelper = \"{helper}\"\n[http]\n\tsslCAInfo = {}\n", authority.display());
        world.write(".gitconfig", config);
        Ok(Self { world, server, repository })
    }

    fn clone(&self, name: &str) {
        let url = format!("https://127.0.0.1:{}/origin.git", self.server.port());
        self.world.run(&["git", "clone", &url, name, "--allow-network", "127.0.0.1"]).succeeded();
        self.world.write(&format!("{name}/b.txt"), "b\n");
    }

    /// Pushes, and dies at a place if one is named.
    fn push(&self, name: &str, place: Option<&str>) -> (ExitStatus, Ran) {
        let branch = format!("belljar/{name}");
        let push = ["git", "push", name, "--branch", &branch, "--allow-network", "127.0.0.1", "--json"];
        let mut command = self.world.command(&push);
        command.envs(place.map(|place| (VARIABLE, format!("{place}@1"))));
        let output = command.output().unwrap();
        (output.status, Ran::from(output))
    }
}

#[test]
fn a_push_that_is_killed_anywhere_and_done_again_changes_the_server_once() {
    let test = "a_push_that_is_killed_anywhere_and_done_again_changes_the_server_once";
    let ground = match Ground::make() {
        Ok(ground) => ground,
        Err(why) => return skip(test, &why),
    };
    let mut killed = 0;
    for (at, place) in PUSHES.iter().enumerate() {
        let name = format!("work-{at}");
        ground.clone(&name);
        let (status, ran) = ground.push(&name, Some(place));
        assert_eq!(status.signal(), Some(9), "{place}: it has not died there: {ran:?}");
        killed += 1;
        let before = updates(&ground.repository, &format!("belljar/{name}"));
        let is_late = ["git_push.after", "git_push_record.before", "git_push_record.after"].contains(place);
        assert_eq!(before, usize::from(is_late), "{place}");
        let (_, first) = ground.push(&name, None);
        let told = first.succeeded().json();
        let outcome = if is_late { "already_there" } else { "pushed" };
        assert_eq!(told["outcome"], outcome, "{place}: {told:#}");
        let (_, second) = ground.push(&name, None);
        assert_eq!(second.succeeded().json()["commit"], told["commit"], "{place}");
        let branch = format!("belljar/{name}");
        assert_eq!(updates(&ground.repository, &branch), 1, "{place}: the server was changed more than once");
        assert_eq!(git(&ground.repository, &["rev-parse", &branch]).trim(), told["commit"], "{place}");
        assert_eq!(git(&ground.repository, &["rev-list", "--count", &branch]).trim(), "2", "{place}");
    }
    assert_eq!(ground.world.run(&["audit", "verify"]).code, 0);
    super::tell(&format!("{killed} pushes died at {} places, each branch was made once", PUSHES.len()));
}
