//! Tests of tunnels and their ends.

use super::house::{ProxyRig, outcome};
use belljar_egress::http1::limits::Times;
use belljar_egress::web::limits::WebLimits;
use rustls::pki_types::ServerName;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

/// ClientHello for a server of that name.
fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut sent = Vec::new();
    client.write_tls(&mut sent).unwrap();
    sent
}

fn quick() -> WebLimits {
    let times = Times {
        idle: Duration::from_millis(400),
        call: Duration::from_secs(2),
        ..WebLimits::default().times
    };
    WebLimits { times, ..WebLimits::default() }
}

#[test]
fn tunnel_forwards_bytes_unchanged_in_both_directions_and_counts_them() {
    let house = ProxyRig::with(ALLOWED);
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    let sent: Vec<u8> = (0..300_000_u32).map(|number| b'a' + (number % 23) as u8).collect();
    let (mut writer, bytes) = (tunnel.try_clone().unwrap(), sent.clone());
    let writing = std::thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut heard = Vec::new();
    tunnel.read_to_end(&mut heard).unwrap();
    writing.join().unwrap();
    assert!(heard == sent, "{} of {}", heard.len(), sent.len());
    let record = house.ledger.latest(1);
    assert_eq!(
        (outcome(&record).as_str(), record.sent_bytes, record.received_bytes),
        ("completed", 300_000, 300_000)
    );
    assert_eq!(record.address, Some("127.0.0.1".parse().unwrap()));
}

#[test]
fn tunnel_loses_no_bytes_with_alternating_burst_sizes() {
    let house = ProxyRig::with(ALLOWED);
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    let bursts = [400_000, 3, 70_000, 0, 1, 16_384, 200_000, 16_383, 5];
    let (mut writer, mut sent) = (tunnel.try_clone().unwrap(), Vec::new());
    for (turn, length) in bursts.into_iter().enumerate() {
        let burst: Vec<u8> = (0..length).map(|at| b'a' + ((at / 7 + turn) % 26) as u8).collect();
        let mut heard = vec![0; burst.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| writer.write_all(&burst).unwrap());
            tunnel.read_exact(&mut heard).unwrap_or_else(|error| panic!("of {length}, turn {turn}: {error}"));
        });
        assert!(heard == burst, "of {length}");
        sent.extend(burst);
        if length == 0 {
            std::thread::sleep(Duration::from_millis(700));
        }
    }
    writer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(tunnel.read(&mut [0]).unwrap(), 0);
    let record = house.ledger.latest(1);
    assert_eq!((record.sent_bytes, record.received_bytes), (sent.len() as u64, sent.len() as u64));
}

#[test]
fn tunnel_ends_if_sni_names_another_host() {
    for (name, expected) in
        [("up.test", "completed"), ("UP.test", "completed"), ("other.test", "failed: tls_name_mismatch")]
    {
        let house = ProxyRig::with(ALLOWED);
        let mut tunnel = house.tunnel("up.test:PORT").unwrap();
        let greeting = hello(name);
        // However it is split.
        for piece in greeting.chunks(100) {
            if tunnel.write_all(piece).is_err() {
                break;
            }
        }
        let _ = tunnel.shutdown(std::net::Shutdown::Write);
        let mut heard = Vec::new();
        let _ = tunnel.read_to_end(&mut heard);
        let record = house.ledger.latest(1);
        assert_eq!(outcome(&record), expected, "{name}");
        assert_eq!(record.tls_name.unwrap().as_str(), name.to_ascii_lowercase());
        let is_through = expected == "completed";
        assert_eq!(record.sent_bytes > 0, is_through, "{name}");
        assert_eq!(heard == greeting, is_through, "{name}");
    }
}

#[test]
fn tunnel_ends_at_its_idle_and_total_time_limits() {
    let house = ProxyRig::limited(ALLOWED, quick());
    let mut still = house.tunnel("up.test:PORT").unwrap();
    assert_eq!(still.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: idle");
    let mut slow = house.tunnel("up.test:PORT").unwrap();
    while slow.write_all(b"a").is_ok() && slow.read(&mut [0]).is_ok_and(|count| count > 0) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(outcome(&house.ledger.latest(2)), "failed: too_long");
}

#[test]
fn tunnel_ends_at_the_byte_limit_of_the_run() {
    let house = ProxyRig::limited(ALLOWED, WebLimits { bytes: 100_000, ..WebLimits::default() });
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    let mut sent = 0;
    while sent < 10_000_000 && tunnel.write_all(&[b'x'; 10_000]).is_ok() {
        sent += 10_000;
    }
    let record = house.ledger.latest(1);
    assert_eq!(outcome(&record), "failed: bytes_used_up");
    assert!(record.sent_bytes <= 100_000 + (64 << 10), "{}", record.sent_bytes);
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "bytes_used_up");
    assert_eq!(house.get("http://up.test:PORT/").code(), "bytes_used_up");
}

#[test]
fn tightened_policy_ends_only_the_tunnels_that_it_no_longer_allows() {
    let house =
        ProxyRig::with(&format!("{ALLOWED}- {{host: 127.0.0.1, ports: [PORT], networks: [127.0.0.1]}}\n"));
    let (mut ends, mut stays) =
        (house.tunnel("up.test:PORT").unwrap(), house.tunnel("127.0.0.1:PORT").unwrap());
    assert_eq!(
        house.replace(&format!("{ALLOWED}- {{host: 127.0.0.1, ports: [PORT], networks: [127.0.0.1]}}\n")),
        1
    );
    assert_eq!(house.replace("- {host: 127.0.0.1, ports: [PORT], networks: [127.0.0.1]}\n"), 2);
    assert_eq!(ends.read(&mut [0]).unwrap_or(0), 0);
    let record = house.ledger.latest(1);
    assert_eq!((outcome(&record).as_str(), record.generation), ("failed: policy_changed", 1));
    stays.write_all(b"still here").unwrap();
    let mut heard = [0; 10];
    stays.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"still here");
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "not_allowed");
    assert_eq!(house.ledger.latest(2).generation, 2);
}

#[test]
fn tunnel_whose_opening_violates_the_new_rules_ends() {
    let rule = |more: &str| format!("- {{host: up.test, ports: [PORT], networks: [127.0.0.0/8]{more}}}\n");
    let plain = b"plain".to_vec();
    let unnamed = hello("127.0.0.1");
    for (first, before, after) in
        [(&plain, ", tls: optional", ", tls: required"), (&unnamed, ", sni: optional", ", sni: required")]
    {
        let house = ProxyRig::with(&rule(before));
        let (mut ends, mut silent) =
            (house.tunnel("up.test:PORT").unwrap(), house.tunnel("up.test:PORT").unwrap());
        ends.write_all(first).unwrap();
        ends.read_exact(&mut vec![0; first.len()]).unwrap();
        house.replace(&rule(after));
        assert_eq!(ends.read(&mut [0]).unwrap_or(0), 0, "{after}");
        assert_eq!(outcome(&house.ledger.latest(1)), "failed: policy_changed", "{after}");
        // A tunnel without bytes so far begins by the new rules.
        silent.write_all(first).unwrap();
        assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0, "{after}");
        let expected = if first == &plain { "failed: tls_required" } else { "failed: tls_name_missing" };
        assert_eq!(outcome(&house.ledger.latest(2)), expected);
    }
    // Controls: a tunnel with an allowed opening, and rules that allow more.
    for (first, before, after) in [
        (hello("up.test"), ", tls: optional", ", tls: required"),
        (hello("up.test"), ", sni: optional", ", sni: required"),
        (plain, ", sni: required", ", tls: optional"),
    ] {
        let house = ProxyRig::with(&rule(before));
        let mut stays = house.tunnel("up.test:PORT").unwrap();
        stays.write_all(&first).unwrap();
        stays.read_exact(&mut vec![0; first.len()]).unwrap();
        house.replace(&rule(after));
        std::thread::sleep(Duration::from_millis(50));
        stays.write_all(b"more").unwrap();
        let mut heard = [0; 4];
        stays.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"more", "{after}");
    }
}

#[test]
fn end_of_the_run_ends_and_records_its_tunnels() {
    let mut house = ProxyRig::with(ALLOWED);
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    tunnel.write_all(b"counted").unwrap();
    tunnel.read_exact(&mut [0; 7]).unwrap();
    let records = house.end();
    assert_eq!((records[0].sent_bytes, records[0].received_bytes), (7, 7));
    assert_eq!(records.iter().map(outcome).collect::<Vec<_>>(), ["failed: cut_off"]);
    assert_eq!(tunnel.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn request_that_cannot_be_recorded_is_refused() {
    let house = ProxyRig::with(ALLOWED);
    house.ledger.is_broken.store(true, Ordering::SeqCst);
    let told = house.tunnel("up.test:PORT").unwrap_err();
    assert_eq!((told.status, told.code()), (503, "recording_unavailable"));
    assert_eq!(house.get("http://up.test:PORT/").code(), "recording_unavailable");
    assert_eq!(house.upstream.heads().len(), 0, "nothing was sent");
    house.ledger.is_broken.store(false, Ordering::SeqCst);
    assert!(house.tunnel("up.test:PORT").is_ok());
}

/// PX9: open tunnels were recorded when they began.
#[test]
fn full_ledger_refuses_new_requests_and_keeps_open_tunnels() {
    let house = ProxyRig::with(ALLOWED);
    let mut open = house.tunnel("up.test:PORT").unwrap();
    house.ledger.is_full.store(true, Ordering::SeqCst);
    let before = house.names.asked();
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "recording_unavailable");
    assert_eq!(house.get("http://up.test:PORT/").code(), "recording_unavailable");
    // For a denied client, no name is resolved and nothing is dialed.
    assert_eq!((house.names.asked(), house.upstream.connections()), (before, 1));
    open.write_all(b"goes on").unwrap();
    let mut heard = [0; 7];
    open.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"goes on");
    // The tunnel can still be closed, and a later one is allowed.
    house.replace("  []\n");
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0);
    house.ledger.is_full.store(false, Ordering::SeqCst);
    house.replace(ALLOWED);
    assert!(house.tunnel("up.test:PORT").is_ok());
}

/// PX9: tunnels by one policy and by the next, with requests in between, while policies are replaced quickly.
#[test]
fn rapid_policy_changes_leave_only_tunnels_of_the_last_policy() {
    let house = ProxyRig::with(ALLOWED);
    let other = "- {host: 127.0.0.1, ports: [PORT], networks: [127.0.0.1]}\n";
    let mut tunnels = Vec::new();
    for round in 0..20 {
        let (rules, host) = if round % 2 == 0 { (ALLOWED, "up.test") } else { (other, "127.0.0.1") };
        let generation = house.replace(rules);
        let mut tunnel = house.tunnel(&format!("{host}:PORT")).unwrap();
        tunnel.write_all(b"x").unwrap();
        tunnel.read_exact(&mut [0]).unwrap();
        tunnels.push(tunnel);
        let denied = if round % 2 == 0 { "127.0.0.1:PORT" } else { "up.test:PORT" };
        assert_eq!(house.tunnel(denied).unwrap_err().code(), "not_allowed", "{generation}");
    }
    // The last one is allowed by the current rules; all before it have ended, or will.
    let mut last = tunnels.pop().unwrap();
    for mut ended in tunnels {
        assert_eq!(ended.read(&mut [0]).unwrap_or(0), 0);
    }
    last.write_all(b"x").unwrap();
    last.read_exact(&mut [0]).unwrap();
    house.replace("  []\n");
    assert_eq!(last.read(&mut [0]).unwrap_or(0), 0);
}
