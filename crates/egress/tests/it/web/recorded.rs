//! Tests that each request has one record, and each allowed one another record before it begins.

use super::house::{ProxyRig, outcome};

const ALLOWED: &str = "- host: first.example\n- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

#[test]
fn request_and_outcome_are_recorded_without_query_headers_and_body() {
    let house = ProxyRig::with(ALLOWED);
    let told = house.send(
        b"POST http://up.test:PORT/where?token=hidden HTTP/1.1\r\nHost: up.test:PORT\r\nAuthorization: Bearer hidden\r\n\
          Connection: close\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(told.status, 200, "{told:?}");
    let record = house.ledger.latest(1);
    let asked = record.asked.clone().unwrap();
    assert_eq!((asked.method.as_str(), asked.host.as_str()), ("POST", "up.test"));
    assert_eq!((asked.port, asked.path.unwrap().as_str()), (house.upstream.address.port(), "/where"));
    assert_eq!((outcome(&record).as_str(), record.rule, record.status), ("completed", Some(1), Some(200)));
    assert_eq!(record.run_id, house.run.run_id);
    assert!(record.sent_bytes > 0 && record.received_bytes == 56, "{record:?}");
    let begun = house.ledger.begun();
    assert_eq!((begun.len(), &begun[0].passage_id), (1, &record.passage_id));
    assert!(!format!("{record:?}{begun:?}").contains("hidden"));
}

#[test]
fn denied_and_malformed_requests_are_recorded_and_empty_connections_are_not() {
    let house = ProxyRig::with(ALLOWED);
    drop(house.connect());
    house.tunnel("other.test:443").unwrap_err();
    house.send(b"nonsense\r\n\r\n");
    house.send(b"GET / HTTP/1.1\r\nHost: up.test\r\n\r\n");
    house.ledger.latest(3);
    let mut outcomes: Vec<_> = house.ledger.ended().iter().map(outcome).collect();
    outcomes.sort();
    assert_eq!(
        outcomes,
        ["denied: malformed_request", "denied: no_rule_for_host", "denied: not_a_proxy_request"]
    );
    assert!(house.ledger.begun().is_empty(), "no request was allowed");
}

#[test]
fn interim_answers_are_counted_and_endless_heads_are_refused() {
    let house = ProxyRig::with("- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n");
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".len() as u64;
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".len() as u64;
    assert_eq!(house.get("http://up.test:PORT/early").status, 200);
    assert_eq!(house.ledger.latest(1).received_bytes, 3 * early + answer);
    let told = house.get("http://up.test:PORT/endless");
    assert_eq!((told.status, told.code()), (502, "answer_malformed"));
    let received = house.ledger.latest(2).received_bytes;
    assert!(received > 10_000 && received < 200_000, "{received}");
}
