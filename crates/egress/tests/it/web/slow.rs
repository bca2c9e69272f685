//! PX8: whoever is slow or wants too much is waited for so long, gets so much, and keeps nobody else waiting.

use super::house::{House, outcome};
use belljar_egress::http1::limits::Times;
use belljar_egress::web::limits::WebLimits;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(60);
/// Less than that between two bytes.
const DRIP: Duration = Duration::from_millis(50);

const PLENTY: Times =
    Times { head: LONG, keep_alive: LONG, body: LONG, connect: LONG, idle: LONG, call: LONG };

fn house(times: Times) -> House {
    House::limited(ALLOWED, WebLimits { times, ..WebLimits::default() })
}

/// Says bytes one by one behind these until the other end has enough. What it was told.
fn drip(house: &House, first: &str) -> String {
    let mut stream = house.connect();
    let port = house.upstream.address.port().to_string();
    stream.write_all(first.replace("PORT", &port).as_bytes()).unwrap();
    stream.set_read_timeout(Some(DRIP)).unwrap();
    let (mut told, mut room) = (Vec::new(), [0; 4096]);
    for _ in 0..400 {
        // Whoever is refused may not be listened to any more.
        let _ = stream.write_all(b"a");
        match stream.read(&mut room) {
            Ok(count) if count > 0 => told.extend_from_slice(&room[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return String::from_utf8_lossy(&told).into_owned(),
        }
    }
    panic!("it is waited for still");
}

#[test]
fn a_head_that_comes_byte_by_byte_or_not_at_all_is_not_waited_for() {
    let house = house(Times { head: SHORT, keep_alive: SHORT, ..PLENTY });
    for first in [
        "",
        "CONNECT up.test:PORT HTTP/1.1\r\nX: ",
        "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX: ",
    ] {
        let told = drip(&house, first);
        assert!(told.starts_with("HTTP/1.1 408 ") && told.contains("request_timeout"), "{first}: {told}");
    }
    let told = house.send(b"CONNECT up.test:PORT HT");
    assert!(told.status == 0 || told.status == 408, "{told:?}");
    // Who has asked nothing is told nothing.
    assert_eq!(house.connect().read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(house.upstream.connections(), 0);
}

/// A byte now and then keeps it going, but not for ever.
#[test]
fn a_body_that_comes_byte_by_byte_or_not_at_all_is_not_waited_for() {
    let head = "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n";
    let bodies = ["Content-Length: 100000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nffff\r\n"];
    let (dripping, silent) = (house(Times { call: SHORT, ..PLENTY }), house(Times { idle: SHORT, ..PLENTY }));
    for (count, body) in (1..).zip(bodies) {
        let first = format!("{head}{body}");
        let _ = drip(&dripping, &first);
        assert_eq!(outcome(&dripping.ledger.latest(count)), "failed: too_long");
        let mut stream = silent.connect();
        let port = silent.upstream.address.port().to_string();
        stream.write_all(first.replace("PORT", &port).as_bytes()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        assert_eq!(outcome(&silent.ledger.latest(count)), "failed: request_timeout");
    }
    // The control.
    let whole = format!("{head}Connection: close\r\nContent-Length: 1\r\n\r\na");
    assert_eq!(silent.send(whole.as_bytes()).status, 200);
}

/// Reads nothing of what comes, which is much.
#[test]
fn whoever_reads_nothing_holds_up_a_tunnel_for_so_long_and_no_longer() {
    let house = house(Times { idle: SHORT, ..PLENTY });
    let tunnel = house.tunnel("up.test:PORT").unwrap();
    tunnel.set_nonblocking(true).unwrap();
    let mut writer = tunnel.try_clone().unwrap();
    let mut full = 0;
    // What is said comes back, until nobody takes any more of it.
    while full < 20 {
        match writer.write(&[b'a'; 64 << 10]) {
            Ok(_) => full = 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                full += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(_) => break,
        }
    }
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: idle");
}

#[test]
fn one_direction_may_be_over_before_the_other_is() {
    let house = house(PLENTY);
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    tunnel.write_all(b"the last that is said").unwrap();
    tunnel.shutdown(Shutdown::Write).unwrap();
    let mut heard = String::new();
    tunnel.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "the last that is said");
    assert_eq!(outcome(&house.ledger.latest(1)), "completed");
}

#[test]
fn a_thousand_idle_tunnels_of_one_run_keep_nobody_of_another_waiting() {
    let (house, other) = (house(PLENTY), house(PLENTY));
    let mut tunnels: Vec<TcpStream> = (0..1_000).map(|_| house.tunnel("up.test:PORT").unwrap()).collect();
    belljar_testkit::wait::until(|| house.upstream.connections() == 1_000);
    // All of them are there still, and whoever comes next is served, of this run and of another.
    assert_eq!(other.get("http://up.test:PORT/").status, 200);
    assert_eq!(house.get("http://up.test:PORT/").status, 200);
    assert!(other.tunnel("up.test:PORT").is_ok());
    for (number, tunnel) in tunnels.iter_mut().enumerate() {
        let said = format!("{number:04}");
        tunnel.write_all(said.as_bytes()).unwrap();
        let mut heard = [0; 4];
        tunnel.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, said.as_bytes());
    }
    // There is an end to how many one run may have; another's are its own.
    let before = house.upstream.connections();
    let more: Vec<TcpStream> = (0..100).map(|_| house.connect()).collect();
    for stream in &more {
        stream.set_read_timeout(Some(DRIP)).unwrap();
        let mut stream = stream;
        let _ = stream.write_all(b"GET http://up.test:1/ HTTP/1.1\r\nHost: up.test:1\r\n\r\n");
    }
    assert!(other.tunnel("up.test:PORT").is_ok());
    assert_eq!(house.upstream.connections(), before);
}
