//! Belljar resolves a name once; git and ssh connect to the checked address, and resolve nothing (DNS rebinding).

use super::rig::GitFixture;
use crate::BELLJAR;
use belljar_testkit::git::{Repositories, SshServer, updates};
use belljar_testkit::names::{Answers, NameServer, QuestionType};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const HOST: &str = "git.house.test";

/// A listener at another address and the same port that counts its connections.
struct DecoyListener {
    address: Ipv4Addr,
    come: Arc<AtomicUsize>,
}

// === impl DecoyListener ===

impl DecoyListener {
    fn set(port: u16) -> Self {
        let address = Ipv4Addr::new(127, 77, 1, 2);
        let listener = TcpListener::bind((address, port)).unwrap();
        let come = Arc::<AtomicUsize>::default();
        let theirs = Arc::clone(&come);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                theirs.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 16]);
            }
        });
        Self { address, come }
    }

    fn come(&self) -> usize {
        self.come.load(Ordering::SeqCst)
    }
}

fn one(address: Ipv4Addr) -> Vec<IpAddr> {
    vec![address.into()]
}

/// Starts a name server for every program that [`asking`] starts.
fn serve(test: &str, answers: Answers) -> Option<NameServer> {
    if !rustix::process::geteuid().is_root() {
        skip(test, "the system's name server can be another one for root alone");
        return None;
    }
    NameServer::start(&[(HOST, answers)]).map_err(|error| skip(test, &format!("no port 53: {error}"))).ok()
}

/// Runs a program with that name server as the system's.
fn asking(world: &World, names: &NameServer, program: &Path, arguments: &[&str]) -> ProgramOutput {
    world.write("resolv.conf", format!("nameserver {}\noptions attempts:1 timeout:2\n", names.address()));
    let script = "mount --bind resolv.conf /etc/resolv.conf && exec \"$@\"";
    let mut command = world.command_of(Path::new("unshare"), &["--mount", "sh", "-c", script, "sh"]);
    ProgramOutput::from(command.arg(program).args(arguments).output().unwrap())
}

fn questions(names: &NameServer) -> (usize, usize) {
    let asked = names.asked();
    let of = |kind| asked.iter().filter(|(name, asked)| name == HOST && *asked == kind).count();
    (of(QuestionType::Old), of(QuestionType::New))
}

#[test]
fn git_https_connects_to_the_checked_address_despite_dns_rebinding() {
    let test = "git_https_connects_to_the_checked_address_despite_dns_rebinding";
    let Some(rig) = GitFixture::start(test) else { return };
    let trap = DecoyListener::set(rig.server.port());
    let flips = || vec![one(Ipv4Addr::LOCALHOST), one(trap.address)];
    let Some(names) = serve(test, flips()) else { return };
    let url = format!("https://{HOST}:{}/origin.git", rig.server.port());
    let allowed = ["--allow-network", "127.0.0.1"];
    let run = |names: &NameServer, arguments: &[&str]| {
        asking(&rig.world, names, Path::new(BELLJAR), &[arguments, &allowed].concat())
    };
    run(&names, &["git", "clone", &url, "work"]).succeeded();
    assert_eq!((questions(&names), trap.come()), ((1, 1), 0), "each kind is asked for once");
    rig.leaves("b.txt", "b\n");
    let names = NameServer::start(&[(HOST, flips())]).unwrap();
    run(&names, &["git", "push", "work", "--branch", "belljar/one"]).succeeded();
    // Two connections of git, one to list refs and one to push, and no query of its own.
    assert_eq!((questions(&names), trap.come()), ((1, 1), 0));
    // The control: git by itself resolves the name each time, and connects to the second answer.
    let names = NameServer::start(&[(HOST, flips())]).unwrap();
    let authority = rig.server.authority().display().to_string();
    let script = format!("git -c http.sslCAInfo={authority} ls-remote {url}; git ls-remote {url}");
    asking(&rig.world, &names, Path::new("env"), &["GIT_CONFIG_GLOBAL=/dev/null", "sh", "-c", &script]);
    assert!(questions(&names).0 >= 2 && trap.come() > 0, "{:?}", names.asked());
}

#[test]
fn ssh_connects_to_the_checked_address_despite_dns_rebinding() {
    let test = "ssh_connects_to_the_checked_address_despite_dns_rebinding";
    let world = World::new(BELLJAR);
    let bare = Repositories::in_world(&world).make("origin.git", &[("a.txt", "a\n")]);
    let server = match SshServer::start(&world, Ipv4Addr::LOCALHOST) {
        Ok(server) => server,
        Err(why) => return skip(test, &why),
    };
    let trap = DecoyListener::set(server.port());
    let flips = || vec![one(Ipv4Addr::LOCALHOST), one(trap.address)];
    let Some(names) = serve(test, flips()) else { return };
    let url = format!("ssh://{HOST}:{}{}", server.port(), bare.display());
    world.write(".gitconfig", format!("[core]\n\tsshCommand = {}\n", server.command(HOST)));
    let run = |names: &NameServer, arguments: &[&str]| {
        asking(&world, names, Path::new(BELLJAR), &[arguments, &["--allow-network", "127.0.0.1"]].concat())
    };
    run(&names, &["git", "clone", &url, "work"]).succeeded();
    assert_eq!((questions(&names), trap.come()), ((1, 1), 0));
    world.write("work/b.txt", "b\n");
    let names = NameServer::start(&[(HOST, flips())]).unwrap();
    run(&names, &["git", "push", "work", "--branch", "belljar/one"]).succeeded();
    assert_eq!((questions(&names), trap.come()), ((1, 1), 0));
    let names = NameServer::start(&[(HOST, flips())]).unwrap();
    let script = format!("git ls-remote {url} >/dev/null; git ls-remote {url} >/dev/null");
    asking(&world, &names, Path::new("sh"), &["-c", &script]);
    assert!(questions(&names).0 >= 2 && trap.come() > 0, "the control: {:?}", names.asked());
}

#[test]
fn ssh_tries_each_address_until_one_connects() {
    let test = "ssh_tries_each_address_until_one_connects";
    let world = World::new(BELLJAR);
    let bare = Repositories::in_world(&world).make("origin.git", &[("a.txt", "a\n")]);
    let (before, there, after) =
        (Ipv4Addr::new(127, 77, 3, 4), Ipv4Addr::new(127, 77, 3, 5), Ipv4Addr::new(127, 77, 3, 6));
    let server = match SshServer::start(&world, there) {
        Ok(server) => server,
        Err(why) => return skip(test, &why),
    };
    let url = format!("ssh://{HOST}:{}{}", server.port(), bare.display());
    // Every ssh logs its arguments.
    let ssh = world.write("bin/ssh", "#!/bin/sh\necho \"$@\" >>\"$HOME/called\"\nexec /usr/bin/ssh \"$@\"\n");
    std::fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let command = server.command(HOST).replacen("ssh", &ssh.display().to_string(), 1);
    world.write(".gitconfig", format!("[core]\n\tsshCommand = {command}\n"));
    let run = |addresses: &[Ipv4Addr], arguments: &[&str]| {
        let answer = addresses.iter().copied().map(IpAddr::from).collect();
        let names = serve(test, vec![answer])?;
        let all = [arguments, &["--allow-network", "127.0.0.0/8"]].concat();
        Some(asking(&world, &names, Path::new(BELLJAR), &all))
    };
    let called = || {
        let called = world.read("called");
        std::fs::remove_file(world.path().join("called")).unwrap();
        let is_host = |word: &&str| word.starts_with("HostName=");
        called.lines().filter_map(|line| line.split(' ').find(is_host)).map(str::to_owned).collect::<Vec<_>>()
    };
    // In any order, an address without a listener comes first.
    let all = [before, there, after];
    let Some(ran) = run(&all, &["git", "clone", &url, "work"]) else { return };
    ran.succeeded();
    let tried = called();
    assert!(tried.len() == 2 && tried[0] != format!("HostName={there}"), "{tried:?}");
    assert_eq!(tried[1], format!("HostName={there}"));
    world.write("work/b.txt", "b\n");
    run(&all, &["git", "push", "work", "--branch", "belljar/one"]).unwrap().succeeded();
    // The listing and the push, each in two attempts.
    assert_eq!((called().len(), updates(&bare, "belljar/one")), (4, 1));
    // No address has a listener: all were tried, and the last error is reported.
    let ran = run(&[before, after], &["git", "push", "work", "--branch", "belljar/two"]).unwrap();
    assert!(ran.code == 125 && ran.stderr.contains("Connection refused"), "{ran:?}");
    assert_eq!(called().len(), 2);
    // A server that responds with the wrong identity ends the attempt: a refusal is no reason to try another address.
    let unknown = command.replace(&format!("known-{HOST}"), "known-other.test");
    server.command("other.test");
    world.write(".gitconfig", format!("[core]\n\tsshCommand = {unknown}\n"));
    let ran = run(&[there, after], &["git", "push", "work", "--branch", "belljar/two"]).unwrap();
    assert_eq!(ran.code, 125, "{ran:?}");
    let refused = called().iter().filter(|host| **host == format!("HostName={there}")).count();
    assert_eq!(refused, 1);
}

#[test]
fn hostname_that_resolves_to_a_forbidden_address_is_refused() {
    let test = "hostname_that_resolves_to_a_forbidden_address_is_refused";
    let Some(rig) = GitFixture::start(test) else { return };
    let url = format!("https://{HOST}:{}/origin.git", rig.server.port());
    let at = |texts: &[&str]| vec![texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>()];
    let before = rig.server.requests().len();
    for (addresses, allowed, reason) in [
        (&["127.0.0.1"][..], "10.0.0.0/8", "loopback address"),
        (&["127.0.0.1", "169.254.169.254"], "127.0.0.0/8", "link local address"),
        (&["127.0.0.1", "10.1.2.3"], "127.0.0.0/8", "private address"),
        (&["127.0.0.1", "fd00:ec2::254"], "127.0.0.0/8", "metadata address"),
        (&["127.0.0.1", "::ffff:169.254.169.254"], "127.0.0.0/8", "link local address"),
        (&["127.0.0.1", "64:ff9b::a9fe:a9fe"], "127.0.0.0/8", "link local address"),
        (&["0.0.0.0"], "0.0.0.0/0", "unspecified address"),
    ] {
        let Some(names) = serve(test, at(addresses)) else { return };
        let clone = ["git", "clone", &url, "work", "--allow-network", allowed];
        let ran = asking(&rig.world, &names, Path::new(BELLJAR), &clone);
        assert_eq!(ran.code, 3, "{addresses:?}: {ran:?}");
        assert!(ran.stderr.contains(reason), "{addresses:?}: {ran:?}");
    }
    assert_eq!(rig.server.requests().len(), before, "no request was sent");
    let Some(names) = serve(test, at(&["127.0.0.1"])) else { return };
    let clone = ["git", "clone", &url, "work", "--allow-host", HOST];
    asking(&rig.world, &names, Path::new(BELLJAR), &clone).succeeded();
}
