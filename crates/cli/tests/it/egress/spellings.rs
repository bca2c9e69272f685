//! PX1 from inside of a real sandbox: every spelling of an address, in both forms of a request, through the real proxy.
//! Servers count the connections. The control is a proxy without rules that gets the same requests.

use crate::BELLJAR;
use belljar_testkit::skip::skip;
use belljar_testkit::spellings::{FOREIGN, SPELLINGS};
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A port of this machine that counts its connections, at every loopback address.
struct ConnectionCounter {
    port: u16,
    asked: Arc<AtomicUsize>,
}

/// Some of the spellings that libraries resolve to this machine.
const OF_THIS_MACHINE: [&str; 14] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F000001",
    "2130706433",
    "017700000001",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "[::ffff:127.0.0.1]",
];

/// Requests each host in a file from a proxy, in both forms, and prints the statuses and error codes.
const ASK: &str = r#"
import json, re, socket, sys
proxy, port, file = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def ask(head):
    told = b''
    with socket.create_connection(('127.0.0.1', proxy), 20) as s:
        s.settimeout(20)
        try:
            s.sendall(head.encode())
            s.shutdown(socket.SHUT_WR)
            while piece := s.recv(65536): told += piece
        except OSError: pass
    code = re.search(rb'urn:belljar:egress:([a-z_]+)', told)
    return [told[9:12].decode(errors='replace'), code[1].decode() if code else '']
for host in json.load(open(file)):
    authority = f'{host}:{port}'
    whole = ask(f'GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n')
    print(json.dumps([host, ask(f'CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n'), whole]))
"#;

// === impl ConnectionCounter ===

impl ConnectionCounter {
    fn listen() -> Self {
        let by_4 = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = by_4.local_addr().unwrap().port();
        let asked = Arc::<AtomicUsize>::default();
        for listener in [Some(by_4), TcpListener::bind(("::1", port)).ok()].into_iter().flatten() {
            let asked = Arc::clone(&asked);
            // The thread ends with the test's process.
            std::thread::spawn(move || {
                listener.incoming().flatten().for_each(|_| {
                    asked.fetch_add(1, Ordering::SeqCst);
                });
            });
        }
        Self { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn told(ran: &ProgramOutput) -> Vec<(String, [String; 2], [String; 2])> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{ran:?}"))).collect()
}

#[test]
fn no_spelling_of_an_address_bypasses_the_policy_in_either_request_form() {
    let (world, server) = (World::new(BELLJAR), ConnectionCounter::listen());
    let all: Vec<&str> = SPELLINGS.iter().chain(FOREIGN).copied().collect();
    assert!(all.len() >= 120, "{}", all.len());
    world.write("hosts.json", serde_json::to_string(&all).unwrap());
    let port = server.port.to_string();
    super::policy(&world, &format!("[{{host: allowed.test, ports: [{port}]}}]"));
    let lent = format!("{}:/hosts.json", world.path().join("hosts.json").display());
    let ask = |hosts: &str| {
        let python = ["--", "python3", "-c", ASK, "3128", &port, hosts];
        world.run(&[&["exec", "--egress", "policy.yaml", "--ro", &lent], &python[..]].concat())
    };
    let found = told(&ask("/hosts.json"));
    assert_eq!(found.len(), all.len());
    for (host, tunnel, whole) in &found {
        for [status, code] in [tunnel, whole] {
            assert!(["400", "403"].contains(&status.as_str()) && !code.is_empty(), "{host}: {status} {code}");
        }
        // In a URL some characters end the host; the rest isn't allowed either.
        assert!(tunnel == whole || host.contains(['#', '?', '\\', '/']), "{host}: {tunnel:?} {whole:?}");
    }
    assert_eq!(server.asked(), 0);
    // Each request was recorded, and none was begun.
    let shown = |kind: &str| world.run(&["audit", "show", "--json", "--kind", kind]).succeeded().stdout;
    assert_eq!((shown("egress").lines().count(), shown("egress_begun").lines().count()), (2 * all.len(), 0));
    let forbids_nothing = match PermissiveProxy::start(&world) {
        Ok(proxy) => proxy,
        Err(why) => return skip("spellings of addresses by a proxy that forbids nothing", &why),
    };
    // The control: a proxy without rules understands them, and connects.
    assert!(OF_THIS_MACHINE.iter().all(|host| SPELLINGS.contains(host)));
    let file = world.write("known.json", serde_json::to_string(&OF_THIS_MACHINE).unwrap());
    let port_of_it = forbids_nothing.port.to_string();
    let python = ["-c", ASK, &port_of_it, &port, file.to_str().unwrap()];
    let by_it = ProgramOutput::from(world.command_of("/usr/bin/python3".as_ref(), &python).output().unwrap());
    let led_there = told(&by_it).iter().filter(|(_, tunnel, _)| tunnel[0] == "200").count();
    assert!(led_there >= 10 && server.asked() >= 10, "{led_there}, {}: {by_it:?}", server.asked());
}

/// tinyproxy, which connects to whatever address its library finds for a host.
struct PermissiveProxy {
    port: u16,
    process: Child,
}

// === impl PermissiveProxy ===

impl PermissiveProxy {
    fn start(world: &World) -> Result<Self, String> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings =
            format!("Port {port}\nListen 127.0.0.1\nTimeout 20\nMaxClients 100\nLogLevel Critical\n");
        let file = world.write("tinyproxy.conf", settings);
        let mut command = Command::new("tinyproxy");
        command.args(["-d", "-c"]).arg(file).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().map_err(|error| format!("tinyproxy can't be started: {error}"))?;
        let proxy = Self { port, process };
        wait::until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Ok(proxy)
    }
}

impl Drop for PermissiveProxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
