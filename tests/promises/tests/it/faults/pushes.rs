//! A push that is killed at any place: the server's branch changes exactly once, to the commit that an uninterrupted
//! push would have made; and its forge has one pull request for it.

use crate::belljar::belljar;
use belljar_failpoint::{PULL_REQUESTS, PUSHES, VARIABLE};
use belljar_testkit::forge::Forge;
use belljar_testkit::git::{HttpsServer, HttpsSite, Repositories, git, updates};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

const PASSWORD: &str = "pw-2uFj6Wd0RzM8aX";
const TOKEN: &str = "tk-7cNq2Yx9GhT4vB";

/// A server that counts pushes, and a clone of its repository.
struct PushWorld {
    world: World,
    server: HttpsServer,
    forge: Forge,
    repository: std::path::PathBuf,
}

// === impl PushWorld ===

impl PushWorld {
    fn make() -> Result<Self, String> {
        let world = World::new(belljar());
        let repositories = Repositories::in_world(&world);
        let repository = repositories.make("team/origin.git", &[("a.txt", "a\n")]);
        let names = ["127.0.0.1"];
        let forge = Forge::start(TOKEN, repositories.root());
        let (address, forge_address) = (Ipv4Addr::LOCALHOST, Some(forge.address()));
        let site = HttpsSite { address, names: &names, password: PASSWORD, forge: forge_address };
        let server = HttpsServer::start_beside(&world, repositories.root(), &site)?;
        let helper = format!("!f() {{ echo username=user; echo password={PASSWORD}; }}; f");
        let authority = server.authority();
        let config =
            format!("[credential]\n\thelper = \"{helper}\"\n[http]\n\tsslCAInfo = {}\n", authority.display());
        world.write(".gitconfig", config);
        let token = world.write("token", TOKEN);
        let connection = format!(
            "{{name: forge, url: 'https://127.0.0.1:{}/api/v1', credential: {{file: {}}}, methods: [GET, POST], \
             networks: [127.0.0.1/32], authorities: {}, calls_a_minute: 1000}}",
            server.port(),
            token.display(),
            authority.display(),
        );
        let forges = "[{host: 127.0.0.1, kind: gitea, connection: forge}]";
        let egress = format!("egress: {{rules: [], connections: [{connection}]}}");
        world.write("forge.yaml", format!("{{{egress}, git: {{forges: {forges}}}}}"));
        Ok(Self { world, server, forge, repository })
    }

    fn clone(&self, name: &str) {
        let url = format!("https://127.0.0.1:{}/team/origin.git", self.server.port());
        self.world.run(&["git", "clone", &url, name, "--allow-network", "127.0.0.1"]).succeeded();
        self.world.write(&format!("{name}/b.txt"), "b\n");
    }

    /// Pushes, and dies at a place if one is named.
    fn push(&self, (name, options): (&str, &[&str]), place: Option<&str>) -> (ExitStatus, ProgramOutput) {
        let branch = format!("belljar/{name}");
        let push = ["git", "push", name, "--branch", &branch, "--allow-network", "127.0.0.1", "--json"];
        let mut command = self.world.command(&[&push, options].concat());
        command.envs(place.map(|place| (VARIABLE, format!("{place}@1"))));
        let output = command.output().unwrap();
        (output.status, ProgramOutput::from(output))
    }
}

/// Returns the number of leftovers of pushes beside a session's clones: files that git made for one push only.
fn left(run: &Path) -> usize {
    let folders = std::fs::read_dir(run.join("clones")).unwrap().map(|one| one.unwrap().path());
    folders.filter_map(|folder| std::fs::read_dir(folder.join("made")).ok()).map(Iterator::count).sum()
}

#[test]
fn killed_and_repeated_push_changes_the_server_once() {
    let test = "killed_and_repeated_push_changes_the_server_once";
    let ground = match PushWorld::make() {
        Ok(ground) => ground,
        Err(why) => return skip(test, &why),
    };
    let mut killed = 0;
    for (at, place) in PUSHES.iter().enumerate() {
        let name = format!("work-{at}");
        ground.clone(&name);
        let (status, ran) = ground.push((&name, &[]), Some(place));
        assert_eq!(status.signal(), Some(9), "{place}: it has not died there: {ran:?}");
        killed += 1;
        let before = updates(&ground.repository, &format!("belljar/{name}"));
        let is_late = ["git_push.after", "git_push_record.before", "git_push_record.after"].contains(place);
        assert_eq!(before, usize::from(is_late), "{place}");
        let (_, first) = ground.push((&name, &[]), None);
        let told = first.succeeded().json();
        let outcome = if is_late { "already_there" } else { "pushed" };
        assert_eq!(told["outcome"], outcome, "{place}: {told:#}");
        let (_, second) = ground.push((&name, &[]), None);
        assert_eq!(second.succeeded().json()["commit"], told["commit"], "{place}");
        let branch = format!("belljar/{name}");
        assert_eq!(updates(&ground.repository, &branch), 1, "{place}: the server was changed more than once");
        assert_eq!(git(&ground.repository, &["rev-parse", &branch]).trim(), told["commit"], "{place}");
        assert_eq!(git(&ground.repository, &["rev-list", "--count", &branch]).trim(), "2", "{place}");
    }
    assert_eq!(ground.world.run(&["audit", "verify"]).code, 0);
    super::tell(&format!("{killed} pushes died at {} places, each branch was made once", PUSHES.len()));
}

#[test]
fn killed_and_repeated_push_opens_one_pull_request() {
    let test = "killed_and_repeated_push_opens_one_pull_request";
    let ground = match PushWorld::make() {
        Ok(ground) => ground,
        Err(why) => return skip(test, &why),
    };
    // Also the places between the push and the pull request.
    let places: Vec<&str> = ["git_push.after", "git_push_record.after"]
        .into_iter()
        .chain(PULL_REQUESTS.iter().copied())
        .collect();
    let options: &[&str] = &["--config", "forge.yaml", "--pr"];
    for (at, place) in places.iter().enumerate() {
        let name = format!("asked-{at}");
        ground.clone(&name);
        let of_branch = || {
            let opened = ground.forge.opened().into_iter();
            opened.filter(|one| one.head == format!("belljar/{name}")).collect::<Vec<_>>()
        };
        let (status, ran) = ground.push((&name, options), Some(place));
        assert_eq!(status.signal(), Some(9), "{place}: it has not died there: {ran:?}");
        let is_late = ["git_pull_request.after", "git_pull_request_record.", "git_pull_request_note."];
        let is_late = is_late.iter().any(|late| place.starts_with(late));
        assert_eq!(of_branch().len(), usize::from(is_late), "{place}");
        for attempt in 0..2 {
            let told = ground.push((&name, options), None).1.succeeded().json();
            let requested = &told["pull_request"];
            let outcome = if is_late || attempt > 0 { "already_open" } else { "opened" };
            assert_eq!((&told["outcome"], &requested["outcome"]), (&"already_there".into(), &outcome.into()));
            let number = of_branch()[0].number;
            let url = format!("https://forge.test/team/origin/pulls/{number}");
            assert_eq!(requested["url"], url.as_str(), "{place}: {told:#}");
        }
        assert_eq!(of_branch().len(), 1, "{place}: there is a second one");
        assert_eq!(updates(&ground.repository, &format!("belljar/{name}")), 1, "{place}");
    }
    assert_eq!(ground.world.run(&["audit", "verify"]).code, 0);
    super::tell(&format!("pushes died at {} places before their pull request, each has one", places.len()));
}

#[test]
fn killed_and_repeated_tool_push_changes_the_server_once() {
    let test = "killed_and_repeated_tool_push_changes_the_server_once";
    let ground = match PushWorld::make() {
        Ok(ground) => ground,
        Err(why) => return skip(test, &why),
    };
    let url = format!("https://127.0.0.1:{}/team/origin.git", ground.server.port());
    let config = format!("git: {{networks: [127.0.0.0/8], remotes: ['{url}']}}\n");
    ground.world.write(".config/belljar/config.yaml", config);
    let session = ground.world.run(&["session", "create"]).succeeded().stdout.trim().to_owned();
    let call = |(tool, arguments): (&str, serde_json::Value), place: Option<&str>| {
        let arguments = arguments.to_string();
        let call = ["tools", "call", tool, &arguments, "--session", &session];
        let mut command = ground.world.command(&call);
        command.envs(place.map(|place| (VARIABLE, format!("{place}@1"))));
        let output = command.output().unwrap();
        (output.status, ProgramOutput::from(output))
    };
    for (at, place) in PUSHES.iter().enumerate() {
        let (name, branch) = (format!("work-{at}"), format!("belljar/tool-{at}"));
        let clone = serde_json::json!({ "url": url, "directory": name });
        call(("git_clone", clone), None).1.succeeded();
        let write = serde_json::json!({ "path": format!("{name}/b.txt"), "content": "b\n" });
        call(("write_file", write), None).1.succeeded();
        let push = || {
            let push = serde_json::json!({ "directory": name, "branch": branch, "message": "Fix it" });
            ("git_push", push)
        };
        let (status, ran) = call(push(), Some(place));
        assert_eq!(status.signal(), Some(9), "{place}: it has not died there: {ran:?}");
        let has_made = !place.starts_with("git_note.");
        let kept = ground.world.path().join("state/runs").join(&session);
        assert_eq!(left(&kept) > 0, has_made, "{place}: the killed one's objects are there, apart");
        let before = updates(&ground.repository, &branch);
        let told = call(push(), None).1.succeeded().json();
        let outcome = if before == 1 { "already_there" } else { "pushed" };
        assert_eq!(told["outcome"], outcome, "{place}: {told:#}");
        assert_eq!(call(push(), None).1.succeeded().json()["commit"], told["commit"], "{place}");
        assert_eq!(updates(&ground.repository, &branch), 1, "{place}: the server was changed more than once");
        assert_eq!(git(&ground.repository, &["rev-parse", &branch]).trim(), told["commit"], "{place}");
        // The files that the killed push left on the host are gone.
        assert_eq!(left(&kept), 0, "{place}");
    }
    ground.world.run(&["session", "end", "--discard", &session]).succeeded();
    assert_eq!(ground.world.run(&["audit", "verify"]).code, 0);
    super::tell(&format!("pushes of a tool died at {} places, each branch was made once", PUSHES.len()));
}
