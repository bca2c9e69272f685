//! Checks that a proposal allows what was tried and nothing else, and has no superfluous rule.

use super::*;
use crate::web::explain::{ExplainQuery, Verdict};
use belljar_contract::id::RunId;
use belljar_contract::inference::ReasonCode;
use belljar_contract::yaml::{MistakeLog, parse};
use jiff::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

/// One attempt: its method, its destination, and its recorded code.
type Attempt = (&'static str, (&'static str, u16), Option<&'static str>);

const HOSTS: [&str; 8] = [
    "a.example",
    "b.example",
    "a.b.example",
    "xn--a-ecp.example",
    "93.184.216.34",
    "10.1.2.3",
    "127.0.0.1",
    "[fd00::7]",
];
const REFUSED: [&str; 5] = ["169.254.169.254", "[fd00:ec2::254]", "224.0.0.1", "0.0.0.0", "[2002:7f00:1::]"];
const PORTS: [u16; 4] = [80, 443, 8080, 65_535];
const METHODS: [&str; 5] = ["CONNECT", "GET", "HEAD", "POST", "M-SEARCH"];

fn record(method: &str, (host, port): (&str, u16), code: Option<&'static str>) -> ProxiedRequestRecord {
    let path = (method != TUNNEL).then(|| Excerpt::of("/x"));
    let asked = RequestedDestination { method: Excerpt::of(method), host: Excerpt::of(host), port, path };
    let outcome = match code {
        None => ProxiedRequestOutcome::Completed,
        Some(code @ ("unreachable" | "no_such_host")) => {
            ProxiedRequestOutcome::Failed { code: ReasonCode::of(code) }
        }
        Some(code) => ProxiedRequestOutcome::Denied { reason: ReasonCode::of(code) },
    };
    ProxiedRequestRecord {
        passage_id: PassageId::from_uuid(Uuid::now_v7()),
        run_id: RunId::from_uuid(Uuid::now_v7()),
        started_at: Timestamp::UNIX_EPOCH,
        asked: Some(asked),
        outcome,
        generation: 1,
        rule: None,
        address: None,
        tls_name: None,
        status: None,
        sent_bytes: 0,
        received_bytes: 0,
        total_ms: 0,
        connection: None,
    }
}

fn proposed(attempts: &[Attempt]) -> Proposal {
    let mut tried = RunAttempts::default();
    for (method, place, code) in attempts {
        tried.end(&record(method, *place, *code));
    }
    tried.propose()
}

fn read(text: &str) -> EgressPolicy {
    let mut log = MistakeLog::default();
    let policy = parse(text.as_bytes(), &mut log).map(|node| EgressPolicy::read(&node, &mut log));
    log.finish().unwrap_or_else(|mistakes| panic!("{mistakes} in {text}"));
    policy.unwrap()
}

/// Returns true if the policy allows the attempt without interception.
fn allows(policy: &EgressPolicy, method: &str, (host, port): (&str, u16)) -> bool {
    let (text, method) = match method {
        TUNNEL => (format!("{host}:{port}"), None),
        method => (format!("http://{host}:{port}/x"), Some(method)),
    };
    let told = ExplainQuery::parse(&text, method).unwrap().by_rules(policy);
    told.verdict == Verdict::Allowed && !(method.is_none() && told.inspected)
}

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let hosts = HOSTS.iter().chain(&REFUSED).copied().collect::<Vec<_>>();
    let codes = vec![None, Some("no_rules"), Some("no_rule_for_host"), Some("unreachable")];
    let place = (prop::sample::select(hosts), prop::sample::select(PORTS.to_vec()));
    let one = (prop::sample::select(METHODS.to_vec()), place, prop::sample::select(codes));
    prop::collection::vec(one, 0..24)
}

proptest! {
    #[test]
    fn proposed_policy_allows_exactly_the_attempted_requests(attempts in attempts()) {
        let proposal = proposed(&attempts);
        let policy = read(&proposal.to_string());
        prop_assert_eq!(&policy, proposal.policy());
        let was_tried = |method: &str, place| attempts.iter().any(|(by, at, _)| (*by, *at) == (method, place));
        for host in HOSTS.into_iter().chain(REFUSED).chain(["c.example", "x.a.example"]) {
            for place in PORTS.into_iter().chain([22]).map(|port| (host, port)) {
                for method in METHODS.into_iter().chain(["DELETE"]) {
                    // A tunnel may carry anything.
                    let is_wanted = was_tried(method, place) || was_tried(TUNNEL, place);
                    let expected = is_wanted && !REFUSED.contains(&host);
                    prop_assert_eq!(allows(&policy, method, place), expected, "{} {:?} by\n{}", method, place, proposal);
                }
            }
        }
        for left_out in 0..policy.rules().len() {
            let mut rules = policy.rules().to_vec();
            rules.remove(left_out);
            let smaller = EgressPolicy::new(rules);
            let misses = |(method, place, _): &Attempt| allows(&policy, method, *place) && !allows(&smaller, method, *place);
            prop_assert!(attempts.iter().any(misses), "rule {left_out} is one too many:\n{proposal}");
        }
    }

    #[test]
    fn proposal_does_not_depend_on_the_order_of_attempts(mut attempts in attempts()) {
        let told = proposed(&attempts).to_string();
        attempts.reverse();
        prop_assert_eq!(proposed(&attempts).to_string(), told);
    }
}

#[test]
fn proposal_merges_ports_and_lists_unallowable_hosts_with_reasons() {
    let proposal = proposed(&[
        ("CONNECT", ("pkgs.example", 443), None),
        ("CONNECT", ("pkgs.example", 8443), Some("no_rule_for_port")),
        ("GET", ("pkgs.example", 80), Some("no_rules")),
        ("HEAD", ("pkgs.example", 80), Some("no_rules")),
        ("GET", ("10.0.0.7", 8080), Some("private_address")),
        ("GET", ("169.254.169.254", 80), Some("no_rule_for_host")),
        ("CONNECT", ("inside.example", 443), Some("metadata_address")),
        ("CONNECT", ("db.house", 5432), Some("private_address")),
        ("CONNECT", ("no.example", 443), Some("no_such_host")),
        ("get", ("pkgs.example", 80), Some("no_rules")),
    ]);
    insta::assert_snapshot!(proposal.to_string(), @r#"
    rules:
    # Not on the public internet:
    - {host: "10.0.0.7", ports: [8080], methods: [GET], networks: ["10.0.0.7/32"]}
    - {host: "pkgs.example", ports: [80], methods: [GET, HEAD]}
    - {host: "pkgs.example", ports: [443, 8443]}
    # Attempted, but not proposed:
    #   169.254.169.254:80: no rule can allow that address (link_local_address)
    #   db.house:5432: it is not on the public internet: a rule must name the network that it resolves to (private_address)
    #   inside.example:443: no rule can allow that address (metadata_address)
    #   no.example:443: the name does not resolve (no_such_host)
    #   pkgs.example:80: a rule can't name that method (method_not_nameable)
    "#);
}

#[test]
fn proposal_grants_the_private_network_that_a_hostname_resolved_to() {
    let mut tried = RunAttempts::default();
    let mut dialed = record("CONNECT", ("git.house", 443), None);
    dialed.address = Some("10.0.0.9".parse().unwrap());
    tried.end(&dialed);
    let mut open = record("CONNECT", ("a.example", 443), None);
    open.address = Some("93.184.216.34".parse().unwrap());
    tried.end(&open);
    insta::assert_snapshot!(tried.propose().to_string(), @r#"
    rules:
    - {host: "a.example", ports: [443]}
    # Not on the public internet:
    - {host: "git.house", ports: [443], networks: ["10.0.0.9/32"]}
    "#);
}

#[test]
fn proposal_counts_cut_off_attempts_and_ignores_refused_ones() {
    let begun = |record: &ProxiedRequestRecord| ProxiedRequestStartRecord {
        passage_id: record.passage_id.clone(),
        run_id: record.run_id.clone(),
        started_at: record.started_at,
        asked: record.asked.clone().unwrap(),
        rule: 0,
        generation: 1,
        credentials: Vec::new(),
        connection: None,
    };
    let mut tried = RunAttempts::default();
    let refused = record("CONNECT", ("b.example", 443), Some("link_local_address"));
    tried.begin(begun(&record("CONNECT", ("a.example", 443), None)));
    tried.begin(begun(&refused));
    tried.end(&refused);
    let proposal = tried.propose();
    let hosts: Vec<_> = proposal.rules.iter().map(|rule| rule.host.as_str()).collect();
    assert_eq!((hosts, proposal.not_proposed.len()), (vec!["a.example"], 1));
}

#[test]
fn proposal_size_is_bounded_for_any_number_of_attempts() {
    let mut tried = RunAttempts::default();
    for number in 0..1_000 {
        tried.end(&record("CONNECT", (&format!("h{number}.example"), 443), Some("no_rules")));
        tried.end(&record(&"M".repeat(number % 300 + 1), ("h0.example", 80), Some("no_rules")));
    }
    let mut nothing = record("GET", ("a.example", 80), Some("malformed_request"));
    nothing.asked = None;
    tried.end(&nothing);
    let proposal = tried.propose();
    assert!(proposal.rules.len() <= MOST_PLACES && proposal.to_string().len() < 32 << 10);
    assert!(proposal.unlisted > 700 && proposal.unreadable == 1, "{proposal:?}");
    assert_eq!(&read(&proposal.to_string()), proposal.policy());
}

#[test]
fn proposal_quotes_methods_that_yaml_would_interpret() {
    for method in ["-", "--", "---", "NULL", "TRUE", "NO", "N", "X-Y"] {
        let proposal = proposed(&[(method, ("a.example", 80), Some("no_rules"))]);
        assert!(proposal.rules.first().is_none_or(|rule| rule.methods == [method]), "{proposal}");
        assert_eq!(&read(&proposal.to_string()), proposal.policy(), "{proposal}");
    }
    // Control: a usual method stays unchanged.
    assert!(proposed(&[("GET", ("a.example", 80), Some("no_rules"))]).to_string().contains("methods: [GET]"));
}
