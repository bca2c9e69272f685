//! Repositories that the host clones: their files get into the sandbox, and their credentials don't.

use super::small::{SmallAgentWorld, records};
use crate::BELLJAR;
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const PASSWORD: &str = "pw-5hXq0Rk2LmZ8";

/// Git's own HTTP server behind a password.
const SERVER: &str = r#"
import base64, http.server, os, subprocess, sys
root, password, port_file = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    def do_GET(self):
        wanted = "Basic " + base64.b64encode(b"user:" + password.encode()).decode()
        if self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "user",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE).stdout
        head, _, rest = answer.partition(b"\r\n\r\n")
        self.send_response(200)
        for line in head.decode().split("\r\n"):
            name, _, value = line.partition(": ")
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest)
    do_POST = do_GET
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open(port_file + ".new", "w").write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
"#;

/// A repository behind a password, which only the host's git knows.
struct PasswordProtectedRepo<'w> {
    world: &'w World,
    server: Child,
    url: String,
}

impl<'w> PasswordProtectedRepo<'w> {
    fn new(world: &'w World) -> Self {
        let repository = origin(world);
        let port_file = world.path().join("port");
        let _ = std::fs::remove_file(&port_file);
        let mut command = world.command_of(Path::new("python3"), &["-c", SERVER]);
        command.arg(repository.parent().unwrap()).args([PASSWORD]).arg(&port_file).stdin(Stdio::null());
        let server = command.spawn().unwrap();
        wait::until(|| port_file.exists());
        let url = format!("http://127.0.0.1:{}/origin.git", world.read("port"));
        // A typical user configuration: a credential helper, and settings that would run a program.
        let ran = world.path().join("ran").display().to_string();
        world.write("template/hooks/post-checkout", format!("#!/bin/sh\ntouch {ran}\n"));
        let template = world.path().join("template").display().to_string();
        world.write(
            ".gitconfig",
            format!(
                "[credential]\n\thelper = \"!f() {{ echo username=user; echo password={PASSWORD}; }}; f\"\n\
                 [filter \"evil\"]\n\tsmudge = touch {ran}\n\tclean = touch {ran}\n\trequired = true\n\
                 [init]\n\ttemplateDir = {template}\n[core]\n\tfsmonitor = touch {ran}\n\thooksPath = {template}/hooks\n\
                 [submodule]\n\trecurse = true\n"
            ),
        );
        Self { world, server, url }
    }

    fn run(&self, clone: &str, options: &[&str]) -> ProgramOutput {
        let all =
            ["agent", "small", "--model", "small", "--config", "config.yaml", "--json", "--clone", clone];
        let allowed = ["--allow-network", "127.0.0.1"];
        self.world.run(&[&all[..], &allowed, options, &["--", "hi"]].concat())
    }
}

impl Drop for PasswordProtectedRepo<'_> {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Creates a repository with a branch, a tag, and everything that would run a program where git permits it.
fn origin(world: &World) -> PathBuf {
    world.write("work/greeting.txt", "hello\n");
    world.write("work/.gitattributes", "*.txt filter=evil\n");
    world.write("work/.gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::touch ran\n");
    let git = |arguments: &[&str]| {
        let mut command = world.command_of(Path::new("git"), &["-c", "user.name=a", "-c", "user.email=a@b"]);
        let ran = command
            .args(["-C", "work"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    git(&["tag", "-a", "v1", "-m", "one"]);
    world.write("work/greeting.txt", "hello again\n");
    git(&["commit", "--quiet", "-am", "second"]);
    let bare = world.path().join("served/origin.git");
    std::fs::create_dir_all(bare.parent().unwrap()).unwrap();
    world.give(bare.parent().unwrap());
    git(&["clone", "--quiet", "--bare", ".", &bare.display().to_string()]);
    bare
}

/// Prints the files that the agent finds, and every trace of the password.
const LOOKS: &str = "cat greeting.txt; git log --format=%s; git branch --show-current; git remote -v; git status --short; \
    cat .git/config; find .git -name '*.sample' -o -path '.git/hooks/*'; \
    grep -rs 'pw-5hXq0Rk2LmZ8\\|127.0.0.1:' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; env | grep pw-; echo end";

#[test]
fn clone_has_files_and_history_but_no_path_back_to_the_source() {
    World::as_everyone(BELLJAR, |world| {
        let small = SmallAgentWorld::shell(world, LOOKS);
        let hosted = PasswordProtectedRepo::new(world);
        let ran = hosted.run(&hosted.url, &[]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let result = ran.json();
        let run_id = result["run_id"].as_str().unwrap();
        let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                      [user]\n\tname = agent\n\temail = agent@sandbox.invalid\n";
        let expected = format!("hello again\nsecond\nfirst\nsandbox/{run_id}\n{config}end\n");
        assert_eq!(result["stdout"], expected, "{result:#}");
        assert!(!world.path().join("ran").exists(), "the repository ran a program");
        assert_eq!(records(world, "run_ended").len(), 1);
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
        assert_eq!(small.server.request_count(), 0);
    });
}

#[test]
fn tag_can_be_cloned_and_agent_commits_are_kept_on_request() {
    let world = World::new(BELLJAR);
    let _small = SmallAgentWorld::shell(
        &world,
        "cat greeting.txt; echo more >> greeting.txt; git add -A; git commit -qm agents; git log --stat=40 --format= -1 | cat; git log --format='%s %an'",
    );
    let hosted = PasswordProtectedRepo::new(&world);
    let result: Value = hosted.run(&format!("{}#v1", hosted.url), &["--keep"]).succeeded().json();
    assert_eq!(
        result["stdout"],
        "hello\n greeting.txt | 1 +\n 1 file changed, 1 insertion(+)\nagents agent\nfirst a\n",
        "{result:#}"
    );
    assert_eq!(result["changes"]["state"], "kept");
    let kept = Path::new(result["kept_in"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(kept.join("greeting.txt")).unwrap(), "hello\nmore\n");
    assert!(!kept.join(".cogni").exists());
}

#[test]
fn failed_clone_is_reported_and_leaves_nothing() {
    let world = World::new(BELLJAR);
    let _small = SmallAgentWorld::shell(&world, "echo ran");
    let hosted = PasswordProtectedRepo::new(&world);
    let file = format!("file://{}", world.path().join("served/origin.git").display());
    let with_password = hosted.url.replace("127", &format!("user:{PASSWORD}@127"));
    for (clone, why) in [
        (format!("{}#none", hosted.url), "git fetch failed: fatal: couldn't find remote ref none"),
        (file.clone(), "can't be used"),
        ("ext::touch".to_owned(), "can't be used"),
        (with_password, "contains a user or password"),
        (format!("{}#-x", hosted.url), "is no branch, tag or commit"),
    ] {
        let ran = hosted.run(&clone, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
    }
    world.write(".gitconfig", "");
    let ran = hosted.run(&hosted.url, &[]);
    assert!(ran.code == 125 && ran.stderr.contains("terminal prompts disabled"), "{ran:?}");
    assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    let ran = hosted.run(&file, &["--allow-file-clone"]).succeeded();
    assert_eq!(ran.json()["stdout"], json!("ran\n"));
}
