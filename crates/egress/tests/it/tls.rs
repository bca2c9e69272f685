//! Tests of providers with TLS: only the intended server is accepted, and nothing can be read on the wire.

pub(crate) mod authority;
pub(crate) mod front;
mod tap;

use crate::rig::{CHAT, ClientAnswer as Reply, KEY, Rig, read, request};
use authority::{Authority, NOW};
use belljar_egress::upstream::Upstream;
use belljar_egress::upstream::names::NameSource;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::skip::skip;
use front::{TlsServer, TlsServerAction};
use rustls::ServerConfig;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tap::Tap;

/// Makes a rig whose provider is behind a server with that configuration, at a name.
fn rig(config: ServerConfig, host: &str, authority: Option<&Path>, answer: Answer) -> (Rig, TlsServer) {
    let server = ModelServer::start(Script::always(answer));
    let front = TlsServer::start(config, server.address());
    let rig = at(&format!("https://{host}:{}", front.port()), authority, server);
    (rig, front)
}

fn at(url: &str, authority: Option<&Path>, server: ModelServer) -> Rig {
    let upstream = Upstream::parse(url).unwrap();
    let upstream = match authority {
        Some(file) => upstream.trusting(file.to_owned()).unwrap(),
        None => upstream,
    };
    Rig::reaching(upstream, server, NameSource::of_system())
}

fn hello() -> Answer {
    Answer::text("hello")
}

fn call(rig: &Rig) -> Reply {
    rig.post(CHAT, "", &json!({"model": "small", "messages": []}))
}

/// Asserts that the provider was not trusted, and what the client gets.
fn assert_untrusted(what: &str, rig: &Rig) {
    let reply = call(rig);
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (502, &json!("provider_untrusted")),
        "{what}: {reply:?}"
    );
    // The reason is only for the operator: no library messages, names, paths or addresses.
    assert_eq!(
        reply.json()["error"]["message"],
        json!("the identity of this model's provider can't be verified"),
        "{what}"
    );
    assert_eq!(rig.book.only().outcome.to_string(), "failed: provider_untrusted", "{what}");
    assert_eq!(rig.server.request_count(), 0, "{what}");
}

#[test]
fn provider_with_a_matching_certificate_is_called_over_tls_1_2_and_1_3() {
    let house = Authority::new("house");
    for (host, shown, versions) in [
        ("localhost", Some("localhost"), rustls::ALL_VERSIONS),
        ("localhost", Some("localhost"), &[&rustls::version::TLS12][..]),
        ("LocalHost", Some("localhost"), &[&rustls::version::TLS13][..]),
        // An address is in the certificate, but not in SNI.
        ("127.0.0.1", None, rustls::ALL_VERSIONS),
    ] {
        let config = house.server_of(&host.to_ascii_lowercase(), NOW, versions);
        let (rig, front) = rig(config, host, Some(&house.file()), hello());
        let reply = call(&rig);
        assert_eq!(reply.status, 200, "{host}: {reply:?} {:?}", front.seen());
        assert_eq!(rig.book.only().outcome.to_string(), "completed");
        let request = rig.server.requests().pop().unwrap();
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.header("host"), Some(format!("{host}:{}", front.port()).as_str()));
        let agreed = (shown.map(str::to_owned), Some(b"http/1.1".to_vec()));
        assert_eq!(front.seen().agreed, [agreed]);
    }
}

#[test]
fn provider_with_an_invalid_certificate_receives_no_request() {
    let (house, other) = (Authority::new("house"), Authority::new("house"));
    let file = house.file();
    let h2_only = {
        let mut config = house.server("localhost", NOW);
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    };
    for (what, config, host, authority) in [
        ("another authority", other.server("localhost", NOW), "localhost", Some(&file)),
        ("an untrusted authority", house.server("localhost", NOW), "localhost", None),
        ("another name", house.server("models.example", NOW), "localhost", Some(&file)),
        ("a name for an address", house.server("localhost", NOW), "127.0.0.1", Some(&file)),
        ("expired", house.server("localhost", (2020, 2021)), "localhost", Some(&file)),
        ("not yet", house.server("localhost", (2119, 2120)), "localhost", Some(&file)),
        ("another protocol", h2_only, "localhost", Some(&file)),
    ] {
        let (rig, front) = rig(config, host, authority.map(std::path::PathBuf::as_path), hello());
        assert_untrusted(what, &rig);
        assert_eq!(front.seen().accepted, 1, "{what}: it was there");
        assert_eq!(front.seen().agreed, [], "{what}: and was not agreed with");
    }
    // Control: with the same authority and name, at the present time.
    let (rig, _front) = rig(house.server("localhost", NOW), "localhost", Some(&file), hello());
    assert_eq!(call(&rig).status, 200);
}

#[test]
fn https_provider_without_tls_receives_no_plaintext() {
    let house = Authority::new("house");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It answers in plain text, like servers without TLS support.
    let plain = std::thread::spawn(move || {
        [(); 2].map(|()| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; 64 << 10];
            let count = stream.read(&mut heard).unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            String::from_utf8_lossy(&heard[..count]).into_owned()
        })
    });
    let unused_server = || ModelServer::start(Script::always(hello()));
    let rig = at(&format!("https://127.0.0.1:{port}"), Some(&house.file()), unused_server());
    assert_untrusted("plain", &rig);
    let rig = at(&format!("http://127.0.0.1:{port}"), None, unused_server());
    assert_eq!(call(&rig).status, 400, "control: a plain HTTP call is answered");
    let [by_tls, in_the_clear] = plain.join().unwrap();
    assert!(in_the_clear.contains(KEY) && !by_tls.contains(KEY) && !by_tls.contains("POST"), "{by_tls:?}");
}

#[test]
fn http2_answer_without_alpn_is_malformed() {
    let house = Authority::new("house");
    let mut config = house.server("localhost", NOW);
    config.alpn_protocols = Vec::new();
    // First bytes of an HTTP/2 server: its settings.
    let settings = Answer::raw(b"\0\0\0\x04\0\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\x02".to_vec());
    let (rig, _front) = rig(config.clone(), "localhost", Some(&house.file()), settings);
    let reply = call(&rig);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (502, &json!("provider_answer_malformed")));
    let (rig, front) = self::rig(config, "localhost", Some(&house.file()), hello());
    assert_eq!(call(&rig).status, 200, "the control: not every server agrees on a protocol");
    assert_eq!(front.seen().agreed, [(Some("localhost".to_owned()), None)]);
}

#[test]
fn provider_is_not_dialed_if_its_ca_file_is_unusable() {
    let house = Authority::new("house");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let broken = std::fs::read_to_string(house.file()).unwrap().replace("MII", "AAA");
    for (what, file) in [
        ("no file", folder.path().join("none.pem")),
        ("nothing in it", write("empty.pem", "")),
        ("no certificate", write("text.pem", "hello")),
        ("a broken one", write("broken.pem", &broken)),
    ] {
        let (rig, front) = rig(house.server("localhost", NOW), "localhost", Some(&file), hello());
        assert_untrusted(what, &rig);
        assert_eq!(front.seen().accepted, 0, "{what}");
        // The file is read again: after it is repaired, no restart is needed.
        std::fs::copy(house.file(), &file).unwrap();
        assert_eq!(call(&rig).status, 200, "{what}");
    }
}

/// Address of the provider, for the same test in another process with other system authorities.
const PROVIDER: &str = "BELLJAR_TEST_PROVIDER";

#[test]
fn system_authorities_are_trusted_without_a_configured_ca() {
    if let Ok(url) = std::env::var(PROVIDER) {
        let rig = at(&url, None, ModelServer::start(Script::always(hello())));
        let reply = call(&rig);
        assert_eq!((reply.status, rig.book.only().outcome.to_string().as_str()), (200, "completed"));
        return;
    }
    let (house, other) = (Authority::new("house"), Authority::new("other"));
    let server = ModelServer::start(Script::always(hello()));
    let front = TlsServer::start(house.server("localhost", NOW), server.address());
    let is_trusted_by = |authority: &Authority| asked_with("SSL_CERT_FILE", &authority.file(), front.port());
    assert!(is_trusted_by(&house).0);
    let (is_trusted, told) = is_trusted_by(&other);
    assert!(!is_trusted && told.contains("failed: provider_untrusted"), "{told}");
    assert_eq!((front.seen().accepted, server.request_count()), (2, 1));
}

/// Runs the test above in a process with that variable. Returns whether the provider was trusted, and what it printed.
fn asked_with(variable: &str, value: &Path, port: u16) -> (bool, String) {
    let mut same = Command::new(std::env::current_exe().unwrap());
    same.args(["--exact", "tls::system_authorities_are_trusted_without_a_configured_ca"]);
    same.env(PROVIDER, format!("https://localhost:{port}"));
    same.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR").env(variable, value);
    let output = same.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("running 1 test"), "{told}");
    (output.status.success(), told)
}

#[test]
fn ca_files_writable_by_another_user_are_not_trusted() {
    let house = Authority::new("house");
    let server = ModelServer::start(Script::always(hello()));
    let front = TlsServer::start(house.server("localhost", NOW), server.address());
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let set = |name: &str, mode| std::fs::set_permissions(at(name), PermissionsExt::from_mode(mode)).unwrap();
    for directory in ["certificates", "elsewhere"] {
        std::fs::create_dir(at(directory)).unwrap();
        set(directory, 0o755);
    }
    std::fs::copy(house.file(), at("elsewhere/house.pem")).unwrap();
    set("elsewhere/house.pem", 0o644);
    // As in every such directory, the name is a hash and a symlink: `openssl x509 -subject_hash`.
    let hash =
        Command::new("openssl").args(["x509", "-noout", "-subject_hash", "-in"]).arg(house.file()).output();
    let Some(hash) = hash.ok().filter(|output| output.status.success()) else {
        return skip("ca_files_writable_by_another_user_are_not_trusted", "there is no openssl");
    };
    let hash = String::from_utf8(hash.stdout).unwrap();
    symlink("../elsewhere/house.pem", at("certificates").join(format!("{}.0", hash.trim()))).unwrap();
    let by_directory = || asked_with("SSL_CERT_DIR", &at("certificates"), front.port());
    let by_file = || asked_with("SSL_CERT_FILE", &at("elsewhere/house.pem"), front.port());
    for (name, usual) in [("certificates", 0o755), ("elsewhere", 0o755), ("elsewhere/house.pem", 0o644)] {
        set(name, usual | 0o002);
        let (is_trusted, told) = by_directory();
        assert!(!is_trusted, "{name}: {told}");
        assert!(name == "certificates" || !by_file().0, "{name}");
        set(name, usual);
    }
    assert_eq!(server.request_count(), 0);
    // Control.
    assert!(by_directory().0 && by_file().0);
}

#[test]
fn silent_tls_server_times_out() {
    let house = Authority::new("house");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", silent.local_addr().unwrap());
    let rig = at(&url, Some(&house.file()), ModelServer::start(Script::always(hello())));
    let reply = call(&rig);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (504, &json!("provider_timeout")));
    assert_eq!(rig.book.only().outcome.to_string(), "failed: provider_timeout");
    assert!(silent.accept().is_ok(), "it was there");
}

#[test]
fn connection_is_reused_after_tls_key_updates_and_tickets() {
    let house = Authority::new("house");
    for versions in [rustls::ALL_VERSIONS, &[&rustls::version::TLS12]] {
        let config = house.server_of("localhost", NOW, versions);
        let (rig, front) = rig(config, "localhost", Some(&house.file()), hello());
        for _ in 0..3 {
            assert_eq!(call(&rig).status, 200);
        }
        if versions.len() > 1 {
            front.order(TlsServerAction::ChangeKeys);
            for _ in 0..2 {
                assert_eq!(call(&rig).status, 200);
            }
        }
        assert_eq!(front.seen().accepted, 1, "{:?}", front.seen());
    }
}

#[test]
fn closed_idle_connection_is_not_reused() {
    let house = Authority::new("house");
    for order in [TlsServerAction::SayGoodbye, TlsServerAction::HangUp] {
        let (rig, front) = rig(house.server("localhost", NOW), "localhost", Some(&house.file()), hello());
        assert_eq!(call(&rig).status, 200);
        front.order(order);
        assert_eq!(call(&rig).status, 200, "{order:?}");
        assert_eq!((front.seen().accepted, rig.server.request_count()), (2, 2), "{order:?}");
    }
}

#[test]
fn unrequested_data_on_an_idle_connection_is_not_used_as_an_answer() {
    const FORGED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let house = Authority::new("house");
    let (rig, front) = rig(house.server("localhost", NOW), "localhost", Some(&house.file()), hello());
    assert_eq!(call(&rig).status, 200);
    front.order(TlsServerAction::Say(FORGED));
    let reply = call(&rig);
    assert_eq!(reply.status, 200);
    assert!(reply.body.contains("hello") && !reply.body.contains("forged"), "{reply:?}");
    assert_eq!(front.seen().accepted, 2);
}

#[test]
fn large_requests_and_streamed_answers_are_forwarded_over_tls() {
    let house = Authority::new("house");
    let tls = |answer| rig(house.server("localhost", NOW), "localhost", Some(&house.file()), answer);
    let text = "0123456789abcdef".repeat(512 << 10);
    let (rig, _front) = tls(hello());
    let large = json!({"model": "small", "messages": [{"role": "user", "content": text}]});
    assert_eq!(rig.post(CHAT, "", &large).status, 200);
    let sent = rig.server.requests().pop().unwrap().json();
    assert_eq!(sent["messages"][0]["content"].as_str().map(str::len), Some(8 << 20));

    let streamed = json!({"model": "small", "stream": true});
    let (rig, _front) = tls(Answer::repeated("word ", 5_000).in_bursts());
    let reply = rig.post(CHAT, "", &streamed);
    let events = reply.body.lines().filter(|line| line.starts_with("data:")).count();
    assert!(events > 5_000 && reply.body.contains("[DONE]") && reply.bytes.ends_with(b"0\r\n\r\n"));

    let (rig, _front) = tls(Answer::pieces(&["one", "two"]).silent_after(2));
    let mut stream = rig.connect();
    stream.write_all(&request(CHAT, "", &streamed)).unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains("one") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

#[test]
fn answer_without_length_is_complete_only_after_close_notify() {
    let house = Authority::new("house");
    let old = || Answer::raw(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nso far".to_vec());
    for (order, outcome) in
        [(TlsServerAction::SayGoodbye, "completed"), (TlsServerAction::HangUp, "failed: provider_cut")]
    {
        let server = ModelServer::start(Script::always(old().silent_after(1)));
        let front = TlsServer::start(house.server("localhost", NOW), server.address());
        let rig = at(&format!("https://localhost:{}", front.port()), Some(&house.file()), server);
        let mut stream = rig.connect();
        stream.write_all(&request(CHAT, "Connection: close\r\n", &json!({"model": "small"}))).unwrap();
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.contains("so far") {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "ended: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        front.order(order);
        let rest = read(stream);
        assert_eq!(rest.bytes.ends_with(b"0\r\n\r\n"), outcome == "completed", "{order:?}: {rest:?}");
        assert_eq!(rig.book.only().outcome.to_string(), outcome, "{order:?}");
    }
}

#[test]
fn tls_hides_credential_and_bodies_from_an_eavesdropper() {
    let house = Authority::new("house");
    let server = ModelServer::start(Script::always(Answer::text("a secret answer")));
    let front = TlsServer::start(house.server("localhost", NOW), server.address());
    let tap = Tap::before(front.port());
    let rig = at(&format!("https://localhost:{}", tap.port()), Some(&house.file()), server);
    let body = json!({"model": "small", "messages": [{"role": "user", "content": "a secret question"}]});
    let said = ["authorization", KEY, "a secret question", "a secret answer", "account-7"];
    assert_eq!(rig.post(CHAT, "", &body).status, 200);
    assert!(tap.heard_bytes() > 1000, "the relay has recorded traffic");
    for text in said {
        assert!(!tap.has_heard(text), "{text}");
    }
    let server = ModelServer::start(Script::always(Answer::text("a secret answer")));
    let tap = Tap::before(server.address().port());
    let rig = at(&format!("http://localhost:{}", tap.port()), None, server);
    assert_eq!(rig.post(CHAT, "", &body).status, 200);
    for text in said {
        assert!(tap.has_heard(text), "control: without TLS the relay records {text}");
    }
}
