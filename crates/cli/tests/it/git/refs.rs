//! GT2: the refs that a push may change, and the messages about it. Each refusal has its control: the ordinary push that
//! succeeds.

use super::rig::{GitFixture, PASSWORD};
use belljar_testkit::git::{git, refs, updates};
use std::os::unix::fs::PermissionsExt;

#[test]
fn push_makes_one_new_branch_and_touches_no_other_ref() {
    let Some(rig) = GitFixture::start("push_makes_one_new_branch_and_touches_no_other_ref") else { return };
    git(&rig.bare, &["branch", "taken"]);
    git(&rig.bare, &["tag", "v1"]);
    git(&rig.bare, &["branch", "trunk-of-this-one"]);
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    let before = git(&rig.bare, &["for-each-ref"]);
    for (branch, code) in [
        ("main", 3),
        ("master", 3),
        ("Main", 3),
        ("release/1", 3),
        ("HEAD", 3),
        ("refs/heads/main", 3),
        ("refs/tags/v2", 3),
        ("refs/notes/commits", 3),
        ("tags/v2", 3),
        ("+belljar/x", 3),
        (":main", 3),
        ("belljar/x:main", 3),
        ("-x", 125),
        ("--force", 125),
        ("taken", 4),
    ] {
        let ran = rig.push(&["--branch", branch]);
        assert_eq!(ran.code, code, "{branch}: {ran:?}");
    }
    assert_eq!(git(&rig.bare, &["for-each-ref"]), before);
    rig.push(&["--branch", "belljar/one"]).succeeded();
    assert_eq!(
        refs(&rig.bare),
        [
            "refs/heads/belljar/one",
            "refs/heads/main",
            "refs/heads/taken",
            "refs/heads/trunk-of-this-one",
            "refs/tags/v1"
        ]
    );
}

#[test]
fn servers_default_branch_is_refused_as_push_target_whatever_its_name() {
    let Some(rig) = GitFixture::start("servers_default_branch_is_refused_as_push_target_whatever_its_name")
    else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    git(&rig.bare, &["branch", "chosen"]);
    git(&rig.bare, &["symbolic-ref", "HEAD", "refs/heads/chosen"]);
    let ran = rig.push(&["--branch", "chosen", "--json"]);
    assert_eq!((ran.code, ran.json()["reason"].as_str()), (3, Some("default_branch")), "{ran:?}");
    assert_eq!(updates(&rig.bare, "belljar/one"), 0);
    rig.push(&["--branch", "belljar/one"]).succeeded();
}

#[test]
fn branch_that_another_user_created_meanwhile_is_not_overwritten() {
    let Some(rig) = GitFixture::start("branch_that_another_user_created_meanwhile_is_not_overwritten") else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    // Between the check and the push: the server creates it when the objects arrive, before it updates the ref.
    let hook = rig.bare.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(
        &hook,
        "#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/belljar/one main\n",
    )
    .unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = rig.push(&["--branch", "belljar/one", "--json"]);
    assert_eq!((ran.code, ran.json()["reason"].as_str()), (4, Some("branch_taken")), "{ran:?}");
    assert_eq!(git(&rig.bare, &["rev-parse", "belljar/one"]), git(&rig.bare, &["rev-parse", "main"]));
    std::fs::remove_file(hook).unwrap();
    rig.push(&["--branch", "belljar/two"]).succeeded();
}

#[test]
fn server_message_is_not_printed_but_the_reason_of_its_refusal_is() {
    let Some(rig) = GitFixture::start("server_message_is_not_printed_but_the_reason_of_its_refusal_is")
    else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    let hook = rig.bare.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let says =
        format!("#!/bin/sh\necho 'your password is {PASSWORD}' >&2\nprintf '\\033[31mred\\n' >&2\nexit 1\n");
    std::fs::write(&hook, says).unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = rig.push(&["--branch", "belljar/one"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("pre-receive hook declined"), "{ran:?}");
    let all = format!("{}{}{}", ran.stdout, ran.stderr, rig.world.run(&["audit", "show", "--json"]).stdout);
    assert!(!all.contains(PASSWORD) && !all.contains('\u{1b}'), "{all}");
    std::fs::remove_file(hook).unwrap();
    rig.push(&["--branch", "belljar/one"]).succeeded();
}

#[test]
fn push_goes_to_the_named_repository_and_to_no_url_with_a_password() {
    let test = "push_goes_to_the_named_repository_and_to_no_url_with_a_password";
    let Some(rig) = GitFixture::start(test) else { return };
    let other = rig.repositories.make("other.git", &[("x", "x\n")]);
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    // The agent's own remotes have no effect.
    let to_other = rig.url.replace("origin.git", "other.git");
    git(&rig.work("."), &["remote", "add", "origin", &to_other]);
    git(&rig.work("."), &["config", "remote.pushDefault", "origin"]);
    rig.push(&["--branch", "belljar/one"]).succeeded();
    assert_eq!((updates(&rig.bare, "belljar/one"), updates(&other, "belljar/one")), (1, 0));
    let with_password = rig.url.replace("127.0.0.1", &format!("user:{PASSWORD}@127.0.0.1"));
    let ran = rig.push(&["--branch", "belljar/two", "--to", &with_password]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("contains a user or password") && !ran.stderr.contains(PASSWORD), "{ran:?}");
    rig.push(&["--branch", "belljar/two", "--to", &to_other]).succeeded();
    assert_eq!(refs(&other), ["refs/heads/belljar/two", "refs/heads/main"]);
}
