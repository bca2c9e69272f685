//! The state directory: its location, and its permitted owners.

use crate::BELLJAR;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A user id that isn't in the user database.
const UNKNOWN: u32 = 54_321;

fn trust_list(state: &Path) -> Output {
    Command::new(BELLJAR).args(["trust", "list"]).env("BELLJAR_STATE_DIR", state).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn state_directory_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip(
            "state_directory_of_another_user_is_refused",
            "root alone can act as another user",
        );
    }
    let place = TempDir::new().unwrap();
    let state = place.path().join("state");
    std::fs::create_dir(&state).unwrap();
    // Control: the state directory of this user is used.
    let own = trust_list(&state);
    assert!(own.status.success(), "{}", errors(&own));
    chown(&state, Some(UNKNOWN), None).unwrap();
    let refused = trust_list(&state);
    assert_eq!(refused.status.code(), Some(125));
    assert!(errors(&refused).contains("belongs to user 54321"), "{}", errors(&refused));
}

#[test]
fn state_directory_below_one_that_others_can_write_is_refused() {
    let place = TempDir::new().unwrap();
    let state = place.path().join("state");
    let set = |mode| std::fs::set_permissions(place.path(), PermissionsExt::from_mode(mode)).unwrap();
    set(0o777);
    let refused = trust_list(&state);
    assert_eq!(refused.status.code(), Some(125));
    assert!(errors(&refused).contains("chmod go-w"), "{}", errors(&refused));
    // Control: with a sticky bit other users can't replace this user's files.
    set(0o1777);
    assert!(trust_list(&state).status.success());
}

#[test]
fn database_that_another_user_could_write_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip(
            "database_that_another_user_could_write_is_refused",
            "root alone can act as another user",
        );
    }
    let place = TempDir::new().unwrap();
    let (state, shared) = (place.path().join("state"), place.path().join("shared"));
    std::fs::create_dir(&shared).unwrap();
    let database = shared.join("node.db");
    let list = || {
        let mut list = Command::new(BELLJAR);
        list.args(["trust", "list", "--database"]).arg(format!("sqlite:{}", database.display()));
        list.env("BELLJAR_STATE_DIR", &state).output().unwrap()
    };
    let refused = |why: &str| {
        let refused = list();
        assert_eq!(refused.status.code(), Some(125), "{why}: {}", errors(&refused));
        assert!(errors(&refused).contains(why), "{why}: {}", errors(&refused));
    };
    // Control, before and after each: this user's own database is used.
    let is_used = || assert!(list().status.success(), "{}", errors(&list()));
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    is_used();
    for suffix in ["", "-wal", "-shm"] {
        let file = shared.join(format!("node.db{suffix}"));
        std::fs::File::options().create(true).append(true).open(&file).unwrap();
        chown(&file, Some(UNKNOWN), None).unwrap();
        refused("belongs to user 54321");
        chown(&file, Some(0), None).unwrap();
        set(&file, 0o666);
        refused("other users can write");
        set(&file, 0o600);
        is_used();
    }
    chown(&shared, Some(UNKNOWN), None).unwrap();
    refused("belongs to user 54321");
    chown(&shared, Some(0), None).unwrap();
    // With a sticky bit other users could still create a log beside it.
    for mode in [0o777, 0o1777] {
        set(&shared, mode);
        refused("other users can write");
    }
    set(&shared, 0o755);
    is_used();
    // A pipe, on which SQLite would block forever.
    std::fs::remove_file(&database).unwrap();
    let pipe = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &database, rustix::fs::FileType::Fifo, pipe, 0).unwrap();
    refused("is no regular file");
}

#[test]
fn command_without_home_names_the_variable_to_set() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip(
            "command_without_home_names_the_variable_to_set",
            "root alone can act as another user",
        );
    }
    let place = TempDir::new().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = place.path().join("belljar");
    std::fs::copy(BELLJAR, &program).unwrap();
    let listed = |home: Option<&Path>| {
        let mut command = Command::new(&program);
        command.args(["session", "list"]).env_clear().envs(home.map(|home| ("HOME", home)));
        command.uid(UNKNOWN).gid(UNKNOWN).current_dir("/").output().unwrap()
    };
    let without = listed(None);
    assert_eq!(without.status.code(), Some(125), "{without:?}");
    assert!(errors(&without).contains("set BELLJAR_STATE_DIR"), "{}", errors(&without));
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(UNKNOWN), Some(UNKNOWN)).unwrap();
    let with = listed(Some(&home));
    assert!(with.status.success(), "{with:?}");
}

#[test]
fn password_in_a_database_url_on_the_command_line_is_refused() {
    let place = TempDir::new().unwrap();
    let list = |url: &str| {
        let mut command = Command::new(BELLJAR);
        command
            .args(["trust", "--database", url, "list"])
            .env("BELLJAR_STATE_DIR", place.path().join("state"));
        command.output().unwrap()
    };
    let refused = list("postgres://user:hidden@127.0.0.1:1/none");
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        errors(&refused).contains("PGPASSFILE") && !errors(&refused).contains("hidden"),
        "{}",
        errors(&refused)
    );
    // Control: without a password the client connects to the server, which doesn't exist.
    assert!(!errors(&list("postgres://user@127.0.0.1:1/none")).contains("PGPASSFILE"));
}
