//! Over TLS, with a password: work is pushed as one commit on a new branch, and the password appears nowhere.

use super::rig::{GitFixture, PASSWORD, holding};
use belljar_testkit::git::{git, refs, updates};
use serde_json::Value;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn changes_become_one_commit_on_a_new_branch_and_a_repeated_push_does_nothing() {
    let Some(rig) =
        GitFixture::start("changes_become_one_commit_on_a_new_branch_and_a_repeated_push_does_nothing")
    else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves("src/b.txt", "b\n");
    rig.leaves("bücher/ä \"q\" \\.txt", "ü\r\nno end");
    rig.leaves("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(rig.work("tool.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("src/b.txt", rig.work("link")).unwrap();
    std::fs::remove_file(rig.work("src/a.txt")).unwrap();
    let words =
        ["--branch", "belljar/one", "--message", "Fix it\n\nBecause.", "--trust", "tool.sh", "--json"];
    let first = rig.push(&words).succeeded().json();
    assert_eq!((&first["outcome"], &first["reason"]), (&Value::from("pushed"), &Value::Null), "{first:#}");
    let files: Vec<String> = first["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| format!("{} {}", file["change"].as_str().unwrap(), file["path"].as_str().unwrap()))
        .collect();
    assert_eq!(
        files,
        [
            "added bücher/ä \"q\" \\.txt",
            "added link",
            "deleted src/a.txt",
            "added src/b.txt",
            "added tool.sh"
        ]
    );
    assert_eq!(
        rig.tree("belljar/one"),
        [
            "100644 README.md",
            "100644 bücher/ä \"q\" \\.txt",
            "120000 link",
            "100644 src/b.txt",
            "100755 tool.sh"
        ]
    );
    let said = git(&rig.bare, &["log", "-1", "--format=%an <%ae>%n%cn%n%H%n%P%n%B", "belljar/one"]);
    let main = git(&rig.bare, &["rev-parse", "main"]);
    let commit = first["commit"].as_str().unwrap();
    assert_eq!(
        said.trim(),
        format!("Person <person@house.example>\nPerson\n{commit}\n{}\nFix it\n\nBecause.", main.trim())
    );
    assert_eq!(git(&rig.bare, &["show", "belljar/one:bücher/ä \"q\" \\.txt"]), "ü\r\nno end");
    git(&rig.bare, &["fsck", "--strict", "--no-dangling"]);
    let again = rig.push(&words).succeeded().json();
    assert_eq!((&again["outcome"], &again["commit"]), (&Value::from("already_there"), &first["commit"]));
    assert_eq!(refs(&rig.bare), ["refs/heads/belljar/one", "refs/heads/main"]);
    assert_eq!(updates(&rig.bare, "belljar/one"), 1);
    assert!(!rig.has_run(), "a program of the user's settings ran");
}

#[test]
fn password_is_in_no_file_output_or_argument() {
    let Some(rig) = GitFixture::start("password_is_in_no_file_output_or_argument") else { return };
    let cloned = rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    let pushed = rig.push(&["--branch", "belljar/one"]).succeeded();
    std::fs::rename(rig.world.path().join(".gitconfig"), rig.world.path().join("kept")).unwrap();
    // Without the password, the server refuses.
    let refused = rig.push(&["--branch", "belljar/two"]);
    assert_eq!(refused.code, 125, "{refused:?}");
    for ran in [&cloned, &pushed, &refused] {
        assert!(!ran.stdout.contains(PASSWORD) && !ran.stderr.contains(PASSWORD), "{ran:?}");
    }
    for folder in ["state", "work"] {
        assert_eq!(holding(&rig.world.path().join(folder), PASSWORD), Vec::<std::path::PathBuf>::new());
    }
    // The control: the password is found in its own file.
    assert_eq!(holding(&rig.world.path().join("kept"), PASSWORD).len(), 1);
    assert_eq!(rig.world.run(&["audit", "verify"]).code, 0);
}

#[test]
fn password_comes_from_the_users_credential_helper() {
    let Some(rig) = GitFixture::start("password_comes_from_the_users_credential_helper") else {
        return;
    };
    let authority = rig.server.authority().display().to_string();
    rig.world.write(".gitconfig", "");
    let script = format!("#!/bin/sh\ncase $1 in User*) echo user;; *) echo {PASSWORD};; esac\n");
    let asks = rig.world.write("ask", script);
    std::fs::set_permissions(&asks, PermissionsExt::from_mode(0o755)).unwrap();
    let clone = ["git", "clone", &rig.url, "work", "--allow-network", "127.0.0.1"];
    let mut command = rig.world.command(&clone);
    command.env("GIT_ASKPASS", &asks).env("GIT_SSL_CAINFO", &authority);
    // Settings from variables are treated like those of a file: password programs and CAs are used, URL rewrites aren't.
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "url.https://elsewhere.invalid/.insteadOf");
    let ran = command.env("GIT_CONFIG_VALUE_0", "https://127.0.0.1").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn untrusted_or_redirecting_server_gets_no_data() {
    let Some(rig) = GitFixture::start("untrusted_or_redirecting_server_gets_no_data") else {
        return;
    };
    let elsewhere = format!("https://127.0.0.1:{}/elsewhere/origin.git", rig.server.port());
    let sent = rig.clone_from(&elsewhere);
    assert_eq!(sent.code, 125, "{sent:?}");
    assert!(
        rig.server.requests().iter().all(|line| line.contains("/elsewhere/")),
        "{:?}",
        rig.server.requests()
    );
    let config = rig.world.read(".gitconfig").replace("sslCAInfo", "sslVerify = false\n\tother");
    rig.world.write(".gitconfig", config);
    let ran = rig.clone();
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("certificate"), "{ran:?}");
    assert!(!rig.work(".git").exists(), "a partial clone is left");
}

#[test]
fn fetch_and_push_are_recorded_before_anything_is_sent() {
    let Some(rig) = GitFixture::start("fetch_and_push_are_recorded_before_anything_is_sent") else { return };
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    rig.push(&["--branch", "belljar/one"]).succeeded();
    rig.leaves(".envrc", "x\n");
    assert_eq!(rig.push(&["--branch", "belljar/two"]).code, 3);
    let shown = rig.world.run(&["audit", "show", "--json"]).succeeded().stdout;
    let kinds: Vec<String> = shown
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|record| Some(record["kind"].as_str()?.to_owned()))
        .filter(|kind| kind.starts_with("git_"))
        .collect();
    assert_eq!(kinds, ["git_fetch_begun", "git_fetch", "git_push_begun", "git_push", "git_push"], "{shown}");
    assert!(shown.contains("handoff_not_trusted"), "{shown}");
    // If the audit log can't be written, no push is made.
    let before = rig.server.requests().len();
    let log = rig.world.path().join("state/audit");
    std::fs::remove_dir_all(&log).unwrap();
    std::fs::write(&log, "no folder").unwrap();
    let ran = rig.push(&["--branch", "belljar/three", "--trust-all"]);
    assert_eq!((ran.code, rig.server.requests().len()), (125, before), "{ran:?}");
}

#[test]
fn host_clone_is_removed_with_its_directory() {
    let Some(rig) = GitFixture::start("host_clone_is_removed_with_its_directory") else { return };
    let own = || std::fs::read_dir(rig.world.path().join("state/git")).unwrap().count();
    rig.clone().succeeded();
    rig.world.run(&["git", "clone", &rig.url, "other", "--allow-network", "127.0.0.0/8"]).succeeded();
    assert_eq!(own(), 2);
    std::fs::remove_dir_all(rig.world.path().join("work")).unwrap();
    // A new clone at the same path isn't taken for the old one.
    rig.clone().succeeded();
    assert_eq!(own(), 2);
    rig.leaves("b.txt", "b\n");
    rig.push(&["--branch", "belljar/one"]).succeeded();
    std::fs::remove_dir_all(rig.world.path().join("other")).unwrap();
    rig.push(&["--branch", "belljar/one"]).succeeded();
    assert_eq!(own(), 2, "a moved directory may come back");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(30 * 24 * 3600);
    for folder in std::fs::read_dir(rig.world.path().join("state/git")).unwrap() {
        std::fs::File::open(folder.unwrap().path()).unwrap().set_modified(long_ago).unwrap();
    }
    rig.push(&["--branch", "belljar/one"]).succeeded();
    assert_eq!(own(), 1);
}
