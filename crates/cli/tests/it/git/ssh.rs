//! Over ssh, with keys.

use crate::BELLJAR;
use belljar_testkit::git::{Repositories, SshServer, updates};
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::net::Ipv4Addr;

#[test]
fn ssh_push_uses_the_users_key_and_refuses_unknown_host_keys() {
    let test = "ssh_push_uses_the_users_key_and_refuses_unknown_host_keys";
    let world = World::new(BELLJAR);
    let repositories = Repositories::in_world(&world);
    let bare = repositories.make("origin.git", &[("a.txt", "a\n")]);
    let server = match SshServer::start(&world, Ipv4Addr::LOCALHOST) {
        Ok(server) => server,
        Err(why) => return skip(test, &why),
    };
    let url = format!("ssh://127.0.0.1:{}{}", server.port(), bare.display());
    let allowed = ["--allow-network", "127.0.0.1"];
    let run = |arguments: &[&str], command: &str| {
        let mut started = world.command(&[arguments, &allowed].concat());
        belljar_testkit::world::ProgramOutput::from(started.env("GIT_SSH_COMMAND", command).output().unwrap())
    };
    // The user's options can't weaken the check: ssh uses the first value of an option.
    let lax = " -o StrictHostKeyChecking=no -o ProxyCommand='touch ran' -o ForwardAgent=yes";
    let unknown = format!("{}{lax}", server.command("other.test"));
    let ran = run(&["git", "clone", &url, "work"], &unknown);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(!server.log().contains("Accepted publickey"), "{}", server.log());
    let known = format!("{}{lax}", server.command("127.0.0.1"));
    run(&["git", "clone", &url, "work"], &known).succeeded();
    world.write("work/b.txt", "b\n");
    run(&["git", "push", "work", "--branch", "belljar/one"], &known).succeeded();
    run(&["git", "push", "work", "--branch", "belljar/one"], &known).succeeded();
    assert_eq!(updates(&bare, "belljar/one"), 1);
    assert!(!world.path().join("ran").exists());
    assert!(server.log().contains("Accepted publickey"));
    let secret = std::fs::read_to_string(server.key()).unwrap();
    let line = secret.lines().nth(1).unwrap();
    for folder in ["state", "work"] {
        assert!(super::rig::holding(&world.path().join(folder), line).is_empty());
    }
}
