//! PX8: tests of limits for slow or greedy clients and servers, and that others don't wait for them.

use super::house::{ProxyRig, outcome};
use super::upstream::AfterAnswer;
use belljar_egress::http1::limits::Times;
use belljar_egress::web::limits::WebLimits;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::Duration;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(60);
/// Pause between two bytes.
const DRIP: Duration = Duration::from_millis(50);

const PLENTY: Times =
    Times { head: LONG, keep_alive: LONG, body: LONG, connect: LONG, idle: LONG, call: LONG };

fn house(times: Times) -> ProxyRig {
    ProxyRig::limited(ALLOWED, WebLimits { times, ..WebLimits::default() })
}

/// Sends bytes one by one after these until the other end closes, and returns the answer.
fn drip(house: &ProxyRig, first: &str) -> String {
    let mut stream = house.connect();
    let port = house.upstream.address.port().to_string();
    stream.write_all(first.replace("PORT", &port).as_bytes()).unwrap();
    stream.set_read_timeout(Some(DRIP)).unwrap();
    let (mut told, mut room) = (Vec::new(), [0; 4096]);
    for _ in 0..400 {
        // The proxy may stop reading after a refusal.
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
    // A client that has requested nothing gets no answer.
    assert_eq!(house.connect().read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(house.upstream.connections(), 0);
}

/// Bytes now and then keep it open, but only up to the total limit.
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
    // Control.
    let whole = format!("{head}Connection: close\r\nContent-Length: 1\r\n\r\na");
    assert_eq!(silent.send(whole.as_bytes()).status, 200);
}

/// The client reads nothing of a large answer.
#[test]
fn tunnel_client_that_does_not_read_times_out() {
    let house = house(Times { idle: SHORT, ..PLENTY });
    let tunnel = house.tunnel("up.test:PORT").unwrap();
    tunnel.set_nonblocking(true).unwrap();
    let mut writer = tunnel.try_clone().unwrap();
    let mut full = 0;
    // The data comes back until the buffers are full.
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
fn half_closed_tunnel_forwards_the_other_direction() {
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
fn thousand_idle_tunnels_of_one_run_do_not_delay_another_run() {
    let (house, other) = (house(PLENTY), house(PLENTY));
    let mut tunnels: Vec<TcpStream> = (0..1_000).map(|_| house.tunnel("up.test:PORT").unwrap()).collect();
    belljar_testkit::wait::until(|| house.upstream.connections() == 1_000);
    // All of them are still open, and a new client is served, of this run and of another.
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
    // The number of connections of one run is limited; another run has its own.
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

/// Reads until the connection is closed, and keeps only a part.
fn heard_to_the_end(stream: &mut TcpStream) -> (u64, String) {
    let (mut count, mut begin, mut room) = (0, Vec::new(), [0; 64 << 10]);
    while let Ok(read) = stream.read(&mut room) {
        if read == 0 {
            break;
        }
        count += read as u64;
        begin.extend_from_slice(&room[..read.min(1024_usize.saturating_sub(begin.len()))]);
    }
    (count, String::from_utf8_lossy(&begin).into_owned())
}

fn ask(house: &ProxyRig, path: &str) -> TcpStream {
    let mut stream = house.connect();
    let asked = format!("GET http://up.test:PORT{path} HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n");
    stream.write_all(&house.filled(asked.as_bytes())).unwrap();
    stream
}

/// Endless chunks at full speed: the receive limit of the run ends them.
#[test]
fn endless_answer_ends_at_the_receive_limit_of_the_run() {
    const MOST: u64 = 8 << 20;
    let house = ProxyRig::limited(ALLOWED, WebLimits { times: PLENTY, bytes: MOST, ..WebLimits::default() });
    let (other, mut stream) = (self::house(PLENTY), ask(&house, "/flood"));
    // Others are served while it is under way, and after it.
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(other.get("http://up.test:PORT/").status, 200);
    assert!(house.ledger.ended().is_empty());
    let (count, _) = heard_to_the_end(&mut stream);
    assert!((MOST / 2..=MOST).contains(&count), "{count}");
    let record = house.ledger.latest(1);
    assert_eq!(outcome(&record), "failed: bytes_used_up");
    assert!(record.received_bytes >= MOST, "{record:?}");
    assert_eq!(house.get("http://up.test:PORT/").code(), "bytes_used_up");
    assert_eq!(other.get("http://up.test:PORT/").status, 200);
}

/// An endless body: the send limit of the run ends it.
#[test]
fn endless_body_ends_at_the_send_limit_of_the_run() {
    const MOST: u64 = 8 << 20;
    let house = ProxyRig::limited(ALLOWED, WebLimits { times: PLENTY, bytes: MOST, ..WebLimits::default() });
    let other = self::house(PLENTY);
    let mut stream = house.connect();
    let head =
        "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(&house.filled(head.as_bytes())).unwrap();
    let chunk = [&b"4000\r\n"[..], &[b'a'; 0x4000], b"\r\n"].concat();
    let mut sent = 0_u64;
    while stream.write_all(&chunk).is_ok() {
        sent += chunk.len() as u64;
        if sent == 4 * chunk.len() as u64 {
            assert_eq!(other.get("http://up.test:PORT/").status, 200);
            assert!(house.ledger.ended().is_empty(), "it is under way");
        }
        // Kernel buffers hold some more.
        assert!(sent < 8 * MOST, "it goes on and on");
    }
    let record = house.ledger.latest(1);
    assert_eq!(outcome(&record), "failed: bytes_used_up");
    let heard: usize = house.upstream.said().iter().map(String::len).sum();
    assert!(heard as u64 <= MOST, "{heard}");
    assert_eq!(other.get("http://up.test:PORT/").status, 200);
}

/// Chunk extensions could be endless without a byte of a body.
#[test]
fn endless_chunk_extensions_are_refused() {
    let house = house(PLENTY);
    let flood = format!("5;{}", "x".repeat(1 << 20));
    let head =
        "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n";
    let told = house.send(format!("{head}{flood}").as_bytes());
    assert_eq!((told.status, told.code()), (400, "malformed_request"), "{told:?}");
    assert!(house.upstream.said().concat().len() < 1024);
    // Chunk extensions in an answer.
    let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{flood}");
    house.upstream.tell(answer, AfterAnswer::Wait);
    let (count, begin) = heard_to_the_end(&mut ask(&house, "/"));
    assert!(count < 1024 && begin.starts_with("HTTP/1.1 200 "), "{count}");
    assert_eq!(outcome(&house.ledger.latest(2)), "failed: answer_malformed");
}

/// Bytes now and then may come up to a total limit, silence may last up to a shorter one; others are served meanwhile.
#[test]
fn slow_upstream_answer_times_out() {
    let other = house(PLENTY);
    for (times, path, expected) in [
        (Times { call: SHORT, ..PLENTY }, "/drip", "failed: too_long"),
        (Times { call: SHORT, ..PLENTY }, "/silent", "failed: too_long"),
        (Times { idle: SHORT, ..PLENTY }, "/silent", "failed: answer_timeout"),
    ] {
        let house = house(times);
        let mut stream = ask(&house, path);
        assert_eq!(other.get("http://up.test:PORT/").status, 200);
        let _ = heard_to_the_end(&mut stream);
        assert_eq!(outcome(&house.ledger.latest(1)), expected, "{path}");
        assert_eq!(house.get("http://up.test:PORT/").status, 200, "{path}");
    }
    // Control: a server that sends something now and then is not idle.
    let house = house(Times { idle: 8 * DRIP, ..PLENTY });
    let mut stream = ask(&house, "/drip");
    let mut some = [0; 400];
    stream.read_exact(&mut some).unwrap();
    assert!(house.ledger.ended().is_empty());
}

/// Total and idle limits of tunnels.
#[test]
fn slow_or_idle_tunnel_ends_at_its_time_limit() {
    for (times, drips, expected) in [
        (Times { call: SHORT, ..PLENTY }, true, "failed: too_long"),
        (Times { call: SHORT, ..PLENTY }, false, "failed: too_long"),
        (Times { idle: SHORT, ..PLENTY }, false, "failed: idle"),
    ] {
        let house = house(times);
        let mut tunnel = house.tunnel("up.test:PORT").unwrap();
        tunnel.set_read_timeout(Some(DRIP)).unwrap();
        let is_over = || !house.ledger.ended().is_empty();
        belljar_testkit::wait::until(|| {
            if drips {
                let _ = tunnel.write_all(b"a");
                let _ = tunnel.read(&mut [0; 64]);
            }
            is_over()
        });
        assert_eq!(outcome(&house.ledger.latest(1)), expected);
        assert_eq!(house.get("http://up.test:PORT/").status, 200);
    }
}

/// The proxy decompresses nothing: a body that would be a thousand times larger is forwarded as it is.
#[test]
fn compressed_answer_is_forwarded_without_decompression() {
    let packed = "head -c 67108864 /dev/zero | gzip -1";
    let bomb = Command::new("sh").args(["-c", packed]).output().unwrap().stdout;
    assert!((1 << 10..1 << 20).contains(&bomb.len()), "{}", bomb.len());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let house = house(PLENTY);
    house.upstream.tell([head.as_bytes(), &bomb].concat(), AfterAnswer::Wait);
    let mut stream = ask(&house, "/");
    let mut heard = Vec::new();
    while !heard.ends_with(&bomb) {
        let mut room = [0; 64 << 10];
        let count = stream.read(&mut room).unwrap();
        assert!(count > 0, "{}", heard.len());
        heard.extend_from_slice(&room[..count]);
    }
    let record = house.ledger.latest(1);
    assert_eq!(
        (outcome(&record).as_str(), record.received_bytes),
        ("completed", (head.len() + bomb.len()) as u64)
    );
}
