//! Tests of providers by name: resolved on the host, and dialed only at allowed addresses.

pub(crate) mod nameserver;

use crate::rig::{CHAT, ClientAnswer as Reply, Rig};
use crate::tls::authority::{Authority, NOW};
use crate::tls::front::TlsServer;
use belljar_egress::upstream::Upstream;
use belljar_egress::upstream::names::NameSource;
use belljar_testkit::models::{Answer, ModelServer, Script};
use nameserver::{Entry, NameServer};
use serde_json::json;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const HOST: &str = "models.house.test";

/// Metadata service of clouds, which hands out keys.
const METADATA: &str = "169.254.169.254";

fn rig(scheme: &str, names: &NameServer, hosts: &str) -> (Rig, TempDir) {
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let port = server.address().port();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hosts"), hosts).unwrap();
    let upstream = Upstream::parse(&format!("{scheme}://{HOST}:{port}")).unwrap();
    let names = NameSource::at(folder.path().join("hosts"), vec![names.address()]);
    (Rig::reaching(upstream, server, names), folder)
}

fn call(rig: &Rig) -> Reply {
    rig.post(CHAT, "", &json!({"model": "small", "messages": []}))
}

fn leads(ips: &[&str]) -> Entry {
    Entry::Leads(all(ips))
}

fn all(ips: &[&str]) -> Vec<IpAddr> {
    ips.iter().map(|ip| ip.parse().unwrap()).collect()
}

fn assert_code(reply: &Reply, rig: &Rig, code: &str) {
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (502, &json!(code)), "{reply:?}");
    assert_eq!(rig.book.records().last().unwrap().outcome.to_string(), format!("failed: {code}"));
    assert!(!reply.body.contains("house.test") && !reply.body.contains("169.254"), "{reply:?}");
}

#[test]
fn hosts_file_takes_precedence_over_name_servers() {
    let names = NameServer::start(vec![(HOST, leads(&[METADATA]))]);
    let (rig, _folder) = rig("http", &names, "127.0.0.1 Models.House.test\n");
    assert_eq!(call(&rig).status, 200);
    assert_eq!(names.asked(), 0);
    let request = rig.server.requests().pop().unwrap();
    assert!(request.header("host").unwrap().starts_with("models.house.test:"));
}

#[test]
fn hostname_is_resolved_once_for_each_connection() {
    for entry in [
        leads(&["127.0.0.1"]),
        leads(&["::ffff:127.0.0.1"]),
        Entry::LeadsAndIsSilent(all(&["127.0.0.1"])),
        Entry::IsAnother("other.house.test", "127.0.0.1".parse().unwrap()),
    ] {
        let names = NameServer::start(vec![(HOST, entry.clone())]);
        let (rig, _folder) = rig("http", &names, "");
        assert_eq!(call(&rig).status, 200, "{entry:?}");
        let asked = names.asked();
        assert!(asked > 0);
        assert_eq!(call(&rig).status, 200, "{entry:?}");
        assert_eq!((names.asked(), rig.server.connection_count()), (asked, 1), "{entry:?}");
    }
}

#[test]
fn hostname_that_resolves_to_a_forbidden_address_is_never_dialed() {
    // For 0.0.0.0 the kernel connects to the loopback interface, so the server would notice.
    for ips in [&[METADATA][..], &["0.0.0.0"], &["::ffff:0.0.0.0"], &["::"], &["fe80::1", METADATA]] {
        let names = NameServer::start(vec![(HOST, leads(ips))]);
        let (rig, _folder) = rig("http", &names, "");
        assert_code(&call(&rig), &rig, "provider_address_refused");
        assert_eq!((rig.server.connection_count(), rig.book.records().len()), (0, 1), "{ips:?}");
    }
    let another = Entry::IsAnother("metadata.test", METADATA.parse().unwrap());
    let names = NameServer::start(vec![(HOST, another)]);
    let (rig, _folder) = rig("http", &names, "");
    assert_code(&call(&rig), &rig, "provider_address_refused");
    // Control. The hosts file is no more trusted: an attacker may have changed it.
    names.set(vec![(HOST, leads(&["127.0.0.1"]))]);
    assert_eq!(call(&rig).status, 200);
    let (rig, _folder) = self::rig("http", &names, &format!("{METADATA} {HOST}\n"));
    assert_code(&call(&rig), &rig, "provider_address_refused");
    let literal = ModelServer::start(Script::always(Answer::text("hello")));
    let upstream = Upstream::parse(&format!("http://0.0.0.0:{}", literal.address().port())).unwrap();
    let rig = Rig::reaching(upstream, literal, NameSource::of_system());
    assert_eq!(call(&rig).status, 200, "control: the address itself can be configured");
}

#[test]
fn first_permitted_and_reachable_address_is_dialed() {
    // Nothing listens at the second address.
    let names = NameServer::start(vec![(HOST, leads(&[METADATA, "127.0.0.2", "127.0.0.1"]))]);
    let (rig, _folder) = rig("http", &names, "");
    assert_eq!(call(&rig).status, 200);
    assert_eq!(rig.server.connection_count(), 1);
}

#[test]
fn unknown_hostname_makes_the_provider_unreachable() {
    let names = NameServer::start(vec![]);
    let (rig, _folder) = rig("http", &names, "");
    assert_code(&call(&rig), &rig, "provider_unreachable");
    names.set(vec![(HOST, leads(&["127.0.0.1"]))]);
    assert_eq!(call(&rig).status, 200, "the control");
}

#[test]
fn silent_name_server_times_out_one_call_and_delays_no_other() {
    let names = NameServer::start(vec![(HOST, Entry::IsSilent)]);
    let (rig, _folder) = rig("http", &names, "");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&rig));
        belljar_testkit::wait::until(|| names.asked() > 0);
        let since = Instant::now();
        assert_eq!(rig.get("/health").status, 200);
        assert!(since.elapsed() < Duration::from_secs(5), "the thread that serves doesn't wait");
        let reply = waiting.join().unwrap();
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (504, &json!("provider_timeout")));
    });
}

#[test]
fn provider_behind_a_hostname_must_prove_that_name() {
    let house = Authority::new("house");
    let names = NameServer::start(vec![(HOST, leads(&["127.0.0.1"]))]);
    // A server that a wrong address leads to doesn't have the name's certificate.
    for (shown, status) in [(HOST, 200), ("other.house.test", 502), ("127.0.0.1", 502)] {
        let server = ModelServer::start(Script::always(Answer::text("hello")));
        let front = TlsServer::start(house.server(shown, NOW), server.address());
        let url = format!("https://{HOST}:{}", front.port());
        let upstream = Upstream::parse(&url).unwrap().trusting(house.file()).unwrap();
        let source = NameSource::at("/nowhere".into(), vec![names.address()]);
        let rig = Rig::reaching(upstream, server, source);
        let reply = call(&rig);
        assert_eq!(reply.status, status, "{shown}: {reply:?}");
        if status == 200 {
            assert_eq!(front.seen().agreed[0].0.as_deref(), Some(HOST));
        } else {
            assert_code(&reply, &rig, "provider_untrusted");
            assert_eq!(rig.server.request_count(), 0);
        }
    }
}
