//! Tests of pages that the host fetches for a run, by the same policy, dialer and records as requests through its sockets.

use super::house::{ProxyRig, UP, leads, outcome};
use super::upstream::AfterAnswer;
use crate::names::nameserver::Entry;
use crate::tls::authority::{Authority, NOW};
use belljar_egress::web::fetch::{FetchError, MOST_PAGE_BYTES, MOST_REDIRECTS};
use belljar_egress::web::limits::WebLimits;
use std::sync::atomic::Ordering;
use std::time::Duration;

const RULES: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

const SECURE: &str = "rules:
- {host: up.test, ports: [PORT], methods: [GET], paths: [/open, /to], networks: [127.0.0.0/8]}
authorities: CA
";

fn secure() -> (ProxyRig, Authority) {
    let authority = Authority::new("house");
    (ProxyRig::looking_into(SECURE, authority.server(UP, NOW), &authority), authority)
}

/// Returns the code of the reason why there is no page.
fn code(house: &ProxyRig, url: &str) -> &'static str {
    match house.fetch(url).unwrap_err() {
        FetchError::Denied { code, .. } | FetchError::Failed { code, .. } => code,
        FetchError::TooLarge { .. } => "too_large",
        FetchError::Address { .. } => "address",
        FetchError::Header { .. } => "header",
        FetchError::Redirect { .. } => "redirect",
        FetchError::TooManyRedirects => "too_many_redirects",
        FetchError::OutOfTime { .. } => "out_of_time",
        FetchError::Over => "over",
    }
}

#[test]
fn page_is_fetched_and_recorded_for_the_run() {
    let (house, _authority) = secure();
    let page = house.fetch("https://up.test:PORT/open?a=b#part").unwrap();
    assert_eq!((page.status, page.body.as_slice()), (200, &b"hello"[..]));
    assert!(page.url.ends_with("/open?a=b"), "{}", page.url);
    let record = house.ledger.latest(1);
    assert_eq!(
        (outcome(&record).as_str(), record.rule, record.run_id == house.run.run_id),
        ("completed", Some(0), true)
    );
    assert!(record.sent_bytes > 100 && record.received_bytes > 40 && record.tls_name.is_some());
    assert_eq!(record.asked.unwrap().path.unwrap().as_str(), "/open");
    assert_eq!(house.ledger.begun().len(), 1);
    let head = house.upstream.heads().remove(0);
    assert!(head.starts_with("GET /open?a=b HTTP/1.1\r\nhost: up.test:"), "{head}");
    let names: Vec<&str> = head.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["host", "user-agent", "accept", "accept-encoding", "connection"]);
}

#[test]
fn fetch_is_denied_by_the_policy_like_a_sandbox_request() {
    let (house, _authority) = secure();
    for (url, expected, needed) in [
        ("https://other.test:PORT/open", "not_allowed", true),
        ("https://up.test:1/open", "not_allowed", true),
        ("https://up.test:PORT/closed", "not_allowed", true),
        ("https://up.test:PORT/open/%2e%2e/x", "not_allowed", true),
        ("https://up.test:PORT/open%2f..%2fx", "ambiguous_path", false),
        ("http://169.254.169.254/latest/meta-data", "not_allowed", false),
        ("http://2852039166/", "not_allowed", false),
        ("http://[::1]:PORT/", "not_allowed", true),
    ] {
        let Err(FetchError::Denied { code, needed: rule, said }) = house.fetch(url) else { panic!("{url}") };
        assert_eq!(code, expected, "{url}");
        assert!(rule.is_some() || !needed, "{url}: {said}");
    }
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
    let ended = house.ledger.ended();
    assert!(
        ended.len() == 8 && ended.iter().all(|record| outcome(record).starts_with("denied: ")),
        "{ended:?}"
    );
    // The denials that the run gets at its end include them, too.
    assert_eq!(house.run.denials().listed[0].destination.host.to_string(), "other.test");
    // Control.
    assert!(house.fetch("https://up.test:PORT/open").is_ok());
}

#[test]
fn each_redirect_of_a_fetch_is_checked_against_the_policy() {
    let house = ProxyRig::with(RULES);
    for (to, expected, dialed) in [
        ("/", "", 2),
        ("//up.test:PORT/x", "", 2),
        ("/to?/to?/to?/to?/", "", 6),
        ("/to?/to?/to?/to?/to?/", "too_many_redirects", 6),
        ("http://other.test/", "not_allowed", 1),
        ("http://169.254.169.254/latest/", "not_allowed", 1),
        ("http://127.0.0.1:PORT/", "not_allowed", 1),
        ("http://up.test:1/", "not_allowed", 1),
        ("http://user:word@up.test:PORT/", "redirect", 1),
        ("file:///etc/passwd", "redirect", 1),
        ("javascript:alert(1)", "redirect", 1),
    ] {
        let before = house.upstream.connections();
        let url = format!("http://up.test:PORT/to?{to}");
        let found = house.fetch(&url).map_or_else(
            |_| code(&house, &url),
            |page| {
                assert_eq!(page.body, b"hello", "{to}");
                ""
            },
        );
        assert_eq!(found, expected, "{to}");
        // A failing fetch is tried twice here, to get its error.
        let tries = if expected.is_empty() { 1 } else { 2 };
        assert_eq!(house.upstream.connections() - before, dialed * tries, "{to}");
    }
    assert_eq!(MOST_REDIRECTS, 5);
}

#[test]
fn fetch_does_not_dial_private_addresses_even_after_dns_rebinding() {
    let open = ProxyRig::with("- {host: up.test, ports: [PORT]}\n");
    for entry in [
        leads(&["127.0.0.1"]),
        leads(&["93.184.216.34", "127.0.0.1"]),
        leads(&["169.254.169.254"]),
        Entry::IsAnother("inside.test", "127.0.0.1".parse().unwrap()),
    ] {
        open.names.set(vec![(UP, entry.clone())]);
        assert_eq!(code(&open, "http://up.test:PORT/"), "address_not_allowed", "{entry:?}");
    }
    assert_eq!(open.upstream.connections(), 0);
    // A name that may be reached now, and leads elsewhere when a page redirects to it.
    let house = ProxyRig::with(RULES);
    assert!(house.fetch("http://up.test:PORT/").is_ok());
    house.names.set(vec![(UP, leads(&["169.254.169.254"]))]);
    assert_eq!(code(&house, "http://up.test:PORT/"), "address_not_allowed");
    assert_eq!(house.upstream.connections(), 1);
}

#[test]
fn fetch_sends_nothing_to_a_host_with_an_invalid_certificate() {
    let (house, other) = (Authority::new("house"), Authority::new("other"));
    let front = ProxyRig::looking_into(SECURE, other.server(UP, NOW), &house);
    assert_eq!(code(&front, "https://up.test:PORT/open"), "upstream_untrusted");
    let front = ProxyRig::looking_into(SECURE, house.server("other.test", NOW), &house);
    assert_eq!(code(&front, "https://up.test:PORT/open"), "upstream_untrusted");
    assert_eq!(front.upstream.heads(), [""; 0]);
}

#[test]
fn fetch_of_an_endless_body_is_aborted_and_its_bytes_are_counted() {
    let house = ProxyRig::with(RULES);
    assert_eq!(code(&house, "http://up.test:PORT/flood"), "too_large");
    let record = house.ledger.latest(1);
    assert_eq!(outcome(&record), "failed: answer_too_large");
    assert!(record.received_bytes > MOST_PAGE_BYTES as u64, "{record:?}");
    assert!(record.received_bytes < MOST_PAGE_BYTES as u64 + (1 << 20), "{record:?}");
    // A page whose stated length is too large isn't begun.
    house.upstream.tell("HTTP/1.1 200 OK\r\nContent-Length: 5242881\r\n\r\n", AfterAnswer::Wait);
    assert_eq!(code(&house, "http://up.test:PORT/"), "too_large");
    let exact =
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 5242880\r\n\r\n"[..], &vec![b'a'; MOST_PAGE_BYTES]].concat();
    house.upstream.tell(exact, AfterAnswer::Wait);
    assert_eq!(house.fetch("http://up.test:PORT/").unwrap().body.len(), MOST_PAGE_BYTES);
}

#[test]
fn fetch_of_a_malformed_or_compressed_answer_fails() {
    let house = ProxyRig::with(RULES);
    // A small body that would decompress to a large one is never decompressed.
    assert_eq!(code(&house, "http://up.test:PORT/coded"), "answer_malformed");
    for (told, then, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", AfterAnswer::Close, "answer_malformed"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
            AfterAnswer::Wait,
            "answer_malformed",
        ),
        ("HTTP/1.1 101 Yes\r\n\r\n", AfterAnswer::Wait, "answer_malformed"),
        ("<html>", AfterAnswer::Close, "answer_malformed"),
    ] {
        house.upstream.tell(told, then);
        assert_eq!(code(&house, "http://up.test:PORT/"), expected, "{told}");
    }
}

#[test]
fn stalled_fetch_times_out() {
    let mut limits = WebLimits::default();
    limits.times.idle = Duration::from_millis(200);
    let house = ProxyRig::limited(RULES, limits);
    assert_eq!(code(&house, "http://up.test:PORT/silent"), "answer_timeout");
    house.upstream.tell("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", AfterAnswer::Wait);
    assert_eq!(code(&house, "http://up.test:PORT/"), "answer_timeout");
}

#[test]
fn slow_fetch_is_aborted_and_recorded_at_run_end_or_policy_change() {
    let mut house = ProxyRig::with(RULES);
    std::thread::scope(|scope| {
        let dripping = scope.spawn(|| code(&house, "http://up.test:PORT/drip"));
        belljar_testkit::wait::until(|| !house.upstream.heads().is_empty());
        house.replace("- {host: other.test}\n");
        assert_eq!(dripping.join().unwrap(), "policy_changed");
    });
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: policy_changed");
    house.replace(RULES);
    let fetcher = house.fetcher();
    let url = format!("http://up.test:{}/drip", house.port());
    let dripping = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(fetcher.fetch(&url))
    });
    belljar_testkit::wait::until(|| house.upstream.heads().len() == 2);
    let ended = house.end();
    assert_eq!(outcome(&ended[1]), "failed: cut_off");
    assert_eq!(dripping.join().unwrap(), Err(FetchError::Over));
    assert_eq!(code(&house, "http://up.test:PORT/"), "over");
}

#[test]
fn fetch_obeys_the_byte_limit_and_requires_recording() {
    let limits = WebLimits { bytes: 400, ..WebLimits::default() };
    let house = ProxyRig::limited(RULES, limits);
    assert!(house.fetch("http://up.test:PORT/").is_ok());
    assert!((0..5).any(|_| house.fetch("http://up.test:PORT/").is_err()));
    assert_eq!(code(&house, "http://up.test:PORT/"), "bytes_used_up");
    let house = ProxyRig::with(RULES);
    house.ledger.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(code(&house, "http://up.test:PORT/"), "recording_unavailable");
    assert_eq!(house.upstream.connections(), 0);
}

#[test]
fn fetch_never_sends_or_returns_a_credential() {
    let authority = Authority::new("house");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), "a-secret-of-the-house").unwrap();
    let section = format!(
        "rules:\n- {{host: up.test, ports: [PORT], credentials: [house], networks: [127.0.0.0/8]}}\ncredentials:\n\
         - {{name: house, from: {{file: {}}}, query: [key]}}\nauthorities: CA\n",
        folder.path().join("key").display()
    );
    let house = ProxyRig::looking_into(&section, authority.server(UP, NOW), &authority);
    assert_eq!(code(&house, "https://up.test:PORT/?key=belljar:cred:house"), "address");
    assert_eq!(house.upstream.connections(), 0);
    assert!(house.fetch("https://up.test:PORT/").is_ok());
    assert!(!house.upstream.heads().concat().contains("a-secret-of-the-house"));
    let back = "it is a-secret-of-the-house";
    house
        .upstream
        .tell(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{back}", back.len()), AfterAnswer::Wait);
    assert_eq!(code(&house, "https://up.test:PORT/"), "credential_repeated");
}
