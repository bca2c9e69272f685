//! NT2, NT6 and NT7 with a hatch to the web: names, descriptors and settings by which a program inside might get further than
//! the hatch allows.

use super::{HelloServer, policy};
use crate::BELLJAR;
use belljar_testkit::world::{ProgramOutput, World};

/// Passes the writing end of a pipe to the peer of a socket, and prints whether any process has kept it.
const HAND_OVER: &str = r#"
import array, os, select, socket, sys
def is_kept(s):
    r, w = os.pipe()
    head = b'GET http://other.example/ HTTP/1.1\r\n'
    try: s.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [w]))])
    # From Linux 6.16 on a hatch refuses descriptors.
    except PermissionError: s.sendall(head)
    os.close(w)
    return r
s = socket.socket(socket.AF_UNIX)
s.connect('/web-sock/web.sock')
r = is_kept(s)
# It ends when the last who might write to it is gone.
print('given up' if select.select([r], [], [], 60)[0] and os.read(r, 1) == b'' else 'kept')
s.sendall(b'Host: other.example\r\n\r\n')
print(s.recv(65536).split(b' ')[1].decode())
# The control: a peer that accepts it.
near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
r = is_kept(near)
_, ancillary, _, _ = far.recvmsg(4096, socket.CMSG_SPACE(4))
os.write(array.array('i', ancillary[0][2])[0], b'!')
print(os.read(r, 1).decode())
"#;

#[test]
fn proxy_accepts_no_file_descriptor_from_a_sandbox() {
    let world = World::new(BELLJAR);
    policy(&world, "[{host: allowed.example}]");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "python3", "-c", HAND_OVER]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "given up\n403\n!\n"), "{ran:?}");
}

/// Tries to bind the proxy's port: plainly, with reuse options, and at the wildcard address; then another port.
const TAKE_PLACE: &str = r#"
import errno, socket
def bind(address, *options):
    s = socket.socket(socket.AF_INET6 if ':' in address[0] else socket.AF_INET)
    for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)
    try: s.bind(address); s.listen(); return 'bound'
    except OSError as error: return errno.errorcode[error.errno]
REUSE = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
print(bind(('127.0.0.1', 3128)), bind(('127.0.0.1', 3128), *REUSE), bind(('0.0.0.0', 3128), *REUSE), bind(('127.0.0.1', 3129)))
"#;

#[test]
fn sandbox_cannot_listen_on_the_proxys_address() {
    let world = World::new(BELLJAR);
    policy(&world, "[{host: allowed.example}]");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "python3", "-c", TAKE_PLACE]);
    assert_eq!(ran.stdout, "EADDRINUSE EADDRINUSE EADDRINUSE bound\n", "{ran:?}");
    // The control: without a hatch its port is free.
    let ran = world.run(&["exec", "--", "python3", "-c", TAKE_PLACE]);
    assert!(ran.stdout.starts_with("bound "), "{ran:?}");
}

#[test]
fn no_client_setting_reaches_further_than_the_policy() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port();
    policy(&world, "[{host: allowed.example}]");
    let beside = [
        // Without the variables, or with other values.
        format!("env -i curl -sf http://127.0.0.1:{port}/"),
        format!(
            "env -i HTTP_PROXY=http://127.0.0.1:{port} http_proxy=http://127.0.0.1:{port} curl -sf http://any.example/"
        ),
        format!("NO_PROXY=\\* no_proxy=\\* curl -sf http://127.0.0.1:{port}/"),
        // With a hosts file of its own.
        format!(
            "echo 'mine 127.0.0.1' > /tmp/hosts; HOSTALIASES=/tmp/hosts curl -sf --noproxy '*' http://mine:{port}/"
        ),
        format!("curl -sf --resolve any.example:{port}:127.0.0.1 --noproxy '*' http://any.example:{port}/"),
        format!("unset NO_PROXY no_proxy; curl -sf -H 'Host: allowed.example' http://127.0.0.1:{port}/"),
        format!(
            "unset NO_PROXY no_proxy; curl -sf --connect-to allowed.example:80:127.0.0.1:{port} http://allowed.example/ --proxytunnel"
        ),
        // By a resolver of its own, which is queried over the web.
        "curl -sf 'https://dns.example/dns-query?name=secret.example'".to_owned(),
        "python3 -c \"import socket; socket.getaddrinfo('secret.other.example', 80)\"".to_owned(),
        // With its own trusted CA: trust inside doesn't affect which hosts are reachable.
        format!("unset NO_PROXY no_proxy; SSL_CERT_FILE=/dev/null curl -skf https://127.0.0.1:{port}/"),
        // Through the proxy to the proxy.
        "unset NO_PROXY no_proxy; curl -sf http://127.0.0.1:3128/".to_owned(),
    ];
    for attempt in &beside {
        let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", attempt]);
        assert!(ran.code != 0 && ran.stdout.is_empty(), "{attempt}: {ran:?}");
    }
    assert_eq!(server.asked(), 0);
    // The control: on the host the first attempts succeed.
    for attempt in &beside[..3] {
        let ran = world.command_of("/bin/sh".as_ref(), &["-c", attempt]).output().unwrap();
        assert_eq!(ran.stdout, b"hello\n", "{attempt}: {ran:?}");
    }
}

/// Requests a page again and again, until it is denied or has enough, and prints each status.
const ASK_ON: &str = r#"
import os, urllib.request, urllib.error
for name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name)
for _ in range(400):
    try: print(urllib.request.urlopen(os.environ['THERE']).status)
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
        break
"#;

/// PX9: the audit file can't grow beyond this many bytes, as on a full disk.
#[test]
fn requests_are_denied_while_the_audit_log_is_full() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port();
    policy(&world, &format!("[{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}]"));
    let ask = |bytes: &str| {
        let script = format!(
            "trap '' XFSZ; ulimit -f {bytes}; exec {BELLJAR} exec --egress policy.yaml -e THERE=http://localhost:{port}/ -- python3 -c \"$ASK\""
        );
        let mut command = world.command_of("/bin/sh".as_ref(), &["-c", &script]);
        ProgramOutput::from(command.env("ASK", ASK_ON).output().unwrap())
    };
    let full = ask("128");
    let through = full.stdout.matches("200\n").count();
    assert!((1..400).contains(&through), "{through}: {:.300}", full.stderr);
    assert!(full.stdout.contains("503 ") && full.stdout.contains("recording_unavailable"), "{full:?}");
    assert_eq!(server.heard(), through);
    // Every allowed request is in the audit log, and a failure to record one is reported.
    let begun = world.run(&["audit", "show", "--json", "--kind", "egress_begun"]).succeeded();
    assert!(begun.stdout.lines().count() >= through, "{} of {through}", begun.stdout.lines().count());
    assert!(full.code != 0 && full.stderr.contains("belljar: "), "{full:?}");
    // The control: without the file size limit all are allowed.
    assert_eq!(ask("unlimited").stdout, "200\n".repeat(400));
}
