//! Many slow clients without a token: health checks and authenticated clients still get responses.

use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN, command};
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::{Read, Write};
use std::net::TcpStream;

const SLOW: usize = 3_000;

/// Raises this process's limit of open files, for the clients' sockets.
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

#[test]
fn slow_unauthenticated_clients_do_not_block_health_checks() {
    allow_descriptors();
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    // An authenticated client keeps its connection, however many others connect.
    let request =
        format!("GET /v1/worker/jobs HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let mut known = TcpStream::connect(node.address()).unwrap();
    let mut ask = || {
        known.write_all(request.as_bytes()).unwrap();
        // At most one job has run, so the response is short and fits into one read.
        let mut answer = [0; 64 << 10];
        let length = known.read(&mut answer).unwrap();
        assert!(
            answer[..length].starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..length])
        );
    };
    ask();

    let slow: Vec<_> = (0..SLOW)
        .map(|number| {
            let mut stream = TcpStream::connect(node.address()).unwrap();
            let said: &[u8] = if number % 2 == 0 { b"GET /healthz HTTP/1.1\r\nHost: no" } else { b"" };
            // The node may have closed the connection already.
            let _ = stream.write_all(said);
            stream
        })
        .collect();
    for _ in 0..20 {
        let answer = HttpRequest::new("GET", "/healthz").send(node.address()).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(HttpRequest::new("GET", "/readyz").send(node.address()).unwrap().status, 200);
    }
    ask();
    assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
    // No more connections are open than one peer may have.
    wait::until(|| std::fs::read_dir(format!("/proc/{}/fd", node.pid())).unwrap().count() < 400);
    drop(slow);
}

#[test]
fn node_with_too_few_file_descriptors_refuses_to_start() {
    let world = World::new(crate::BELLJAR);
    let token = world.write("token", TOKEN);
    std::fs::set_permissions(token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let node = format!("{} node --listen 127.0.0.1:0 --token-file token", crate::BELLJAR);
    let limited = |most: u32| {
        let script = format!("ulimit -n {most}; exec timeout --signal INT 60 {node}");
        ProgramOutput::from(world.command_of("/bin/sh".as_ref(), &["-c", &script]).output().unwrap())
    };
    let refused = limited(64);
    assert!(refused.code == 125 && refused.stderr.contains("at least 1024 open files"), "{refused:?}");
    // Control: a node with a sufficient limit of open files starts.
    assert!(Node::start(&world, &[]).stop() == Some(0));
}
