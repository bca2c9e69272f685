//! A sandbox with endless requests: its audit records are bounded, and every dropped record is counted.

use super::{HelloServer, policy_text};
use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::Value;

/// Makes allowed requests until the response changes, and then `MORE` denied ones.
const FLOOD: &str = r#"
import http.client, json
proxy = http.client.HTTPConnection("127.0.0.1", 3128)
def ask(url):
    proxy.request("GET", url)
    answer = proxy.getresponse()
    body = answer.read()
    if answer.status == 200:
        return "200"
    return json.loads(body)["type"].rsplit(":", 1)[1]
allowed = 0
while (said := ask("http://localhost:PORT/")) == "200" and allowed < 1500:
    allowed += 1
codes = {ask(f"http://localhost:PORT/{number}") for number in range(MORE)} if said != "200" else set()
print(allowed, said, *sorted(codes))
"#;

fn records(world: &World) -> (Vec<Value>, u64) {
    let audit = world.path().join("state/audit");
    let files = std::fs::read_dir(&audit).unwrap().map(|entry| entry.unwrap().path());
    let segments: Vec<_> = files.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
    let bytes = segments.iter().map(|path| path.metadata().unwrap().len()).sum();
    let text: String = segments.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), bytes)
}

fn ran(quota: &str) -> (World, String) {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port().to_string();
    let rules =
        format!("rules: [{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}]\n{quota}");
    policy_text(&world, &rules);
    let script = FLOOD.replace("PORT", &port).replace("MORE", "300");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "python3", "-c", &script]).succeeded();
    assert!(world.run(&["audit", "verify"]).succeeded().stdout.starts_with("intact"));
    (world, ran.stdout)
}

#[test]
fn audit_records_of_a_run_end_at_its_quota_and_further_denials_are_counted() {
    let (world, said) = ran("audit_bytes: 1m\naudit_bytes_per_second: 1g\n");
    let (allowed, rest) = said.split_once(' ').unwrap();
    assert_eq!(rest.trim(), "audit_quota audit_quota", "{said}");
    assert!((300..1_500).contains(&allowed.parse::<u32>().unwrap()), "{said}");
    let (records, bytes) = records(&world);
    // Beyond the quota there are the first 1,000 equal denials, each of which has a record.
    assert!(bytes < (1 << 20) + (512 << 10), "{bytes} bytes");
    let of_kind = |kind: &str| -> Vec<&Value> {
        records.iter().filter(|record| record["kind"] == kind).map(|record| &record["event"]).collect()
    };
    let denied = |event: &&&Value| event["outcome"]["denied"]["reason"] == "audit_quota";
    assert_eq!(of_kind("egress").iter().filter(denied).count(), 1);
    let folded = of_kind("audit_folded");
    assert!(folded.iter().all(|event| event["why"] == "audit_quota"), "{folded:?}");
    let counted: u64 = folded.iter().map(|event| event["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 300, "the first denial stands by itself, and the others are counted");
    // The control: with the default quota all of them are allowed.
    let (_world, said) = ran("");
    assert_eq!(said.trim(), "1500 200");
}

/// Requests a page with a long path until a request took more than a second, or up to a maximum number. Prints the number,
/// and whether it was slow.
const PACED: &str = r#"
import http.client, time
proxy = http.client.HTTPConnection("127.0.0.1", 3128)
requests, is_slow = 0, False
while requests < 300 and not is_slow:
    begun = time.monotonic()
    proxy.request("GET", "http://localhost:PORT/" + "x" * 250)
    answer = proxy.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    requests, is_slow = requests + 1, time.monotonic() - begun > 1.2
print(requests, is_slow)
"#;

#[test]
fn requests_wait_for_the_audit_rate_limit_after_the_burst() {
    let server = HelloServer::start();
    let port = server.address.port().to_string();
    let asked = |pace: &str| {
        let world = World::new(BELLJAR);
        // The burst is a sixteenth of that: a quarter of a mebibyte.
        let quota = format!("audit_bytes: 4m\naudit_bytes_per_second: {pace}\n");
        let rule = format!("{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}");
        policy_text(&world, &format!("rules: [{rule}]\n{quota}"));
        let script = PACED.replace("PORT", &port);
        let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "python3", "-c", &script]).succeeded();
        let (requests, is_slow) = ran.stdout.trim().split_once(' ').unwrap();
        (requests.parse::<u32>().unwrap(), is_slow == "True")
    };
    let (requests, is_slow) = asked("1k");
    assert!(is_slow && (50..300).contains(&requests), "{requests}");
    assert_eq!(asked("64m"), (300, false), "the control");
}
