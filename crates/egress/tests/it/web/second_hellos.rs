//! Real OpenSSL servers: which openings and second ClientHellos they accept, and that none of those reaches them through a
//! tunnel for another name.

use super::client_hellos::{counted, extension, name};
use super::house::{ProxyRig, outcome};
use belljar_testkit::skip::skip;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Server that prints the server name of each ClientHello that it accepts.
struct HelloPrintingServer {
    child: Child,
    port: u16,
    names: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

const PROGRAM: &str = r#"
import os, socket, ssl, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
lock = threading.Lock()
def tell(line):
    with lock:
        os.write(1, f"{line}\n".encode())
context.sni_callback = lambda sock, name, _: tell(f"name {name}")
listener = socket.create_server(("127.0.0.1", 0))
print(f"port {listener.getsockname()[1]}", flush=True)
def serve(connection):
    connection.settimeout(20)
    try:
        if connection.recv(1, socket.MSG_PEEK) != b"\x16":
            connection.recv(36, socket.MSG_WAITALL)
            connection.sendall(b"J\0\0\0\n8.0.0")
        secured = context.wrap_socket(connection, server_side=True)
        while data := secured.recv(4096):
            secured.sendall(data)
        secured.close()
    except OSError as error:
        tell(f"error {error}")
    connection.close()
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"#;

// === impl HelloPrintingServer ===

impl HelloPrintingServer {
    /// Starts a server, if the machine has the programs for it.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=up.test"])
            .args(["-addext", "subjectAltName=DNS:up.test"])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stdout.take()?).lines();
        let port = lines.next()?.ok()?.strip_prefix("port ")?.parse().ok()?;
        let names = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&names);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(name) = line.strip_prefix("name ") {
                    heard.lock().unwrap().push(name.to_owned());
                }
            }
        });
        Some(Self { child, port, names, _folder: folder })
    }

    /// Returns the names of completed connections since the last call. A further connection marks the end.
    fn names(&self) -> Vec<String> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        assert_eq!(said(stream, &[hello("mark.test", true)]).first(), Some(&22));
        belljar_testkit::wait::until(|| self.names.lock().unwrap().iter().any(|name| name == "mark.test"));
        let mut names = std::mem::take(&mut *self.names.lock().unwrap());
        names.retain(|name| name != "mark.test");
        names
    }

    fn certificate(&self) -> std::path::PathBuf {
        self._folder.path().join("cert.pem")
    }

    /// Makes a proxy that allows tunnels to the server.
    fn house(&self) -> ProxyRig {
        let port = self.port;
        ProxyRig::with(&format!("- {{host: up.test, ports: [{port}], networks: [127.0.0.0/8]}}\n"))
    }
}

impl Drop for HelloPrintingServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// TLS 1.3 ClientHello, with a key share or without: in the second case a server requests another one.
fn hello(server_name: &str, has_share: bool) -> Vec<u8> {
    let share = [&[0, 0x1d][..], &counted(2, &[&[9][..], &[0; 31]].concat())].concat();
    let shares = if has_share { share } else { Vec::new() };
    let extensions = [
        extension(43, &counted(1, &[3, 4])),
        extension(13, &counted(2, &[4, 3])),
        extension(10, &counted(2, &[0, 0x1d])),
        extension(51, &counted(2, &shares)),
        name(server_name),
    ]
    .concat();
    let suites = counted(2, &[0x13, 1]);
    let body =
        [&[3, 3][..], &[6; 32], &counted(1, &[]), &suites, &counted(1, &[0]), &counted(2, &extensions)]
            .concat();
    let message = [&[1][..], &counted(3, &body)].concat();
    [&[22, 3, 1][..], &counted(2, &message)].concat()
}

/// First bytes of a server whose protocol doesn't begin with TLS. They may arrive separately from what follows.
const GREETING: &[u8] = b"J\0\0\0\n8.0.0";

/// Sends one part after the other, each after an answer to the one before. Returns the first bytes of the last answer. The
/// server's greeting alone is no answer.
fn said(mut stream: TcpStream, parts: &[Vec<u8>]) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = Vec::new();
    for part in parts {
        if stream.write_all(part).is_err() {
            return Vec::new();
        }
        let mut piece = [0; 4096];
        let mut count = stream.read(&mut piece).unwrap_or(0);
        if &piece[..count] == GREETING {
            count = stream.read(&mut piece).unwrap_or(0);
        }
        answer = piece[..count].to_vec();
    }
    answer
}

const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];
const TEST: &str = "web::second_hellos";

#[test]
fn second_client_hello_for_another_host_that_openssl_accepts_ends_the_tunnel() {
    let Some(server) = HelloPrintingServer::start() else {
        return skip(TEST, "there is no python3 or no openssl");
    };
    for (what, second) in [
        ("at once", hello("other.test", true)),
        ("behind a ChangeCipherSpec", [&CHANGE_CIPHER_SPEC[..], &hello("other.test", true)].concat()),
    ] {
        let parts = [hello("up.test", false), second];
        let direct = said(TcpStream::connect(("127.0.0.1", server.port)).unwrap(), &parts);
        assert_eq!(direct.first(), Some(&22), "{what}: the server takes it");
        assert_eq!(server.names(), ["up.test", "other.test"], "{what}");
        let house = server.house();
        let tunnel = house.tunnel(&format!("up.test:{}", server.port)).unwrap();
        said(tunnel, &parts);
        let record = house.ledger.latest(1);
        assert_eq!(outcome(&record), "failed: tls_name_mismatch", "{what}");
        assert_eq!(record.tls_name.unwrap().as_str(), "other.test");
        assert_eq!(server.names(), ["up.test"], "{what}: the second has not come");
    }
    // Control: the second hello may name the tunnel's host.
    let house = server.house();
    let tunnel = house.tunnel(&format!("up.test:{}", server.port)).unwrap();
    let answer = said(tunnel, &[hello("up.test", false), hello("up.test", true)]);
    assert_eq!(answer.first(), Some(&22));
    assert_eq!(server.names(), ["up.test", "up.test"]);
}

#[test]
fn second_client_hello_before_the_server_answers_is_judged() {
    let Some(server) = HelloPrintingServer::start() else {
        return skip(TEST, "there is no python3 or no openssl");
    };
    let house = server.house();
    let tunnel = house.tunnel(&format!("up.test:{}", server.port)).unwrap();
    said(tunnel, &[[hello("up.test", false), hello("other.test", true)].concat()]);
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: tls_name_mismatch");
    assert_eq!(server.names(), ["up.test"]);
}

#[test]
fn late_server_greeting_is_not_taken_for_an_answer_to_a_client_hello() {
    let Some(server) = HelloPrintingServer::start() else {
        return skip(TEST, "there is no python3 or no openssl");
    };
    // Request of a MySQL client to continue with TLS, after the greeting. This server greets only then.
    let request = [&[0x20, 0, 0, 1, 0, 0x08, 0, 0][..], &[0; 28]].concat();
    let parts = [[&request[..], &hello("up.test", false)].concat(), hello("other.test", true)];
    let direct = said(TcpStream::connect(("127.0.0.1", server.port)).unwrap(), &parts);
    assert_eq!(direct.first(), Some(&22));
    assert_eq!(server.names(), ["up.test", "other.test"], "the server takes it");
    let house = server.house();
    let tunnel = house.tunnel(&format!("up.test:{}", server.port)).unwrap();
    said(tunnel, &parts);
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: tls_malformed");
    assert_eq!(server.names(), ["up.test"], "the second has not come");
}

#[test]
fn nonstandard_client_hello_that_openssl_accepts_is_not_forwarded() {
    let Some(server) = HelloPrintingServer::start() else {
        return skip(TEST, "there is no python3 or no openssl");
    };
    let other = hello("other.test", true);
    let version = |minor: u8| [&[22, 3, minor][..], &other[3..]].concat();
    for (what, begins) in [
        ("records of SSL 3.0", version(0)),
        ("records of version 3.9", version(9)),
        ("an empty record first", [&[22, 3, 1, 0, 0][..], &other].concat()),
    ] {
        let before = server.names().len();
        let direct =
            said(TcpStream::connect(("127.0.0.1", server.port)).unwrap(), std::slice::from_ref(&begins));
        assert_eq!(
            (direct.first(), &server.names()[before..]),
            (Some(&22), &["other.test".to_owned()][..]),
            "{what}"
        );
        let house = server.house();
        let tunnel = house.tunnel(&format!("up.test:{}", server.port)).unwrap();
        assert!(said(tunnel, &[begins]).is_empty(), "{what}");
        assert_eq!(outcome(&house.ledger.latest(1)), "failed: tls_malformed", "{what}");
        assert!(server.names().is_empty(), "{what}");
    }
}

/// Returns the output of a client that uses TLS through the proxy.
fn client(house: &ProxyRig, server: &HelloPrintingServer, program: &[&str]) -> String {
    let proxy = format!("http://{}", house.address());
    let address = house.address().to_string();
    let certificate = server.certificate();
    let filled = |argument: &str| {
        argument
            .replace("PROXY", &address)
            .replace("PORT", &server.port.to_string())
            .replace("CERT", &certificate.display().to_string())
    };
    let mut command = Command::new(program[0]);
    command.args(program[1..].iter().map(|argument| filled(argument))).env("https_proxy", &proxy);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().unwrap_or_else(|error| panic!("{program:?}: {error}"));
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const PYTHON: &str = r#"
import socket, ssl, sys
address, port = "PROXY".rsplit(":", 1)
raw = socket.create_connection((address, int(port)), 20)
raw.sendall(b"CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n")
assert b" 200 " in raw.recv(4096)
context = ssl.create_default_context(cafile="CERT")
VERSION
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname="up.test")
def flush():
    data = outgoing.read()
    for at in range(0, len(data), 50):
        raw.sendall(data[at:at + 50])
while True:
    try:
        tls.do_handshake()
        break
    except ssl.SSLWantReadError:
        flush()
        incoming.write(raw.recv(4096))
flush()
tls.write(b"hello")
flush()
while True:
    try:
        print("echoed", tls.read(5).decode(), tls.version())
        break
    except ssl.SSLWantReadError:
        incoming.write(raw.recv(4096))
"#;

#[test]
fn real_tls_clients_pass_with_any_client_hello_split() {
    let Some(server) = HelloPrintingServer::start() else {
        return skip(TEST, "there is no python3 or no openssl");
    };
    let house = server.house();
    for version in ["TLSv1_2", "TLSv1_3"] {
        let limit = format!("context.maximum_version = context.minimum_version = ssl.TLSVersion.{version}");
        let program = PYTHON.replace("VERSION", &limit);
        let printed = client(&house, &server, &["python3", "-c", &program]);
        assert!(printed.contains("echoed hello"), "{version}: {printed}");
    }
    // A group that the server requests by a HelloRetryRequest, and a hello in several records.
    for more in [
        &["-groups", "P-521:X25519"][..],
        &["-tls1_2"],
        &["-split_send_frag", "512", "-max_send_frag", "512"],
    ] {
        let begin =
            ["openssl", "s_client", "-proxy", "PROXY", "-connect", "up.test:PORT", "-servername", "up.test"];
        let program = [&begin[..], &["-CAfile", "CERT"], more].concat();
        let printed = client(&house, &server, &program);
        assert!(printed.contains("Verify return code: 0"), "{more:?}: {printed}");
    }
    if Path::new("/usr/bin/curl").exists() {
        let program = ["curl", "-sv", "--max-time", "20", "--cacert", "CERT", "https://up.test:PORT/"];
        let printed = client(&house, &server, &program);
        assert!(printed.contains("SSL certificate verify ok"), "{printed}");
    }
}
