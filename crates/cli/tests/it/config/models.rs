//! The effects of members of `inference` on programs in sandboxes.

use crate::BELLJAR;
use crate::recording_server::RecordingServer;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Runs a Python program with a configuration that has these members of `inference`.
fn exec(world: &World, inference: &Value, script: &str) -> String {
    world.write("config.yaml", json!({ "inference": inference }).to_string());
    let options = ["exec", "--model", "small", "--config", "config.yaml", "--", "python3", "-c", script];
    world.run(&options).succeeded().stdout
}

/// Makes a call, and prints its status or the code of its error.
const CALL: &str = r#"
import json, os, urllib.error, urllib.request
body = json.dumps({"model": "small", "messages": []}).encode()
try: print(urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body).status)
except urllib.error.HTTPError as error: print(json.load(error)["error"]["code"])
"#;

#[test]
fn provider_is_called_by_tls_only_if_a_configured_ca_signed_its_certificate() {
    let world = World::new(BELLJAR);
    let [server, other] = [RecordingServer::start(), RecordingServer::start()];
    let answered = |tls: Option<&RecordingServer>| {
        let mut provider = json!({ "name": "house", "kind": "openai", "url": server.url() });
        if let Some(authority) = tls {
            provider["tls"] = json!({ "ca": authority.authority() });
        }
        exec(
            &world,
            &json!({ "providers": [provider], "models": [{ "name": "small", "provider": "house" }] }),
            CALL,
        )
    };
    assert_eq!(answered(None), "provider_untrusted\n");
    assert_eq!(answered(Some(&other)), "provider_untrusted\n");
    assert!(server.heads().is_empty());
    assert_eq!(answered(Some(&server)), "200\n");
    assert_eq!(server.heads().len(), 1);
}

/// Makes large calls until one was refused, one took longer than two seconds, or ten were made. Prints the number of answered
/// calls and the reason for the end.
const LARGE_CALLS: &str = r#"
import http.client, json, time
body = json.dumps({"model": "small", "messages": [{"role": "user", "content": "\x7f" * 16384}]}, ensure_ascii=False)
connection = http.client.HTTPConnection("127.0.0.1", 8080)
calls, why = 0, "enough"
while why == "enough" and calls < 10:
    begun = time.monotonic()
    connection.request("POST", "/v1/chat/completions", body.encode())
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != 200: why = json.loads(said)["error"]["code"]
    elif time.monotonic() - begun > 2: why = "slow"
    else: calls += 1
print(calls, why)
"#;

#[test]
fn model_calls_wait_for_the_audit_rate_limit_and_end_at_the_audit_quota() {
    // Each record of a call's bodies is about 200,000 bytes long: every control character is written as six bytes.
    let large = format!("{{\"choices\": [], \"more\": \"{}\"}}", "\u{7f}".repeat(16 << 10));
    let server =
        ModelServer::start(Script::always(Answer::own(200, &[("Content-Type", "application/json")], large)));
    let called = |bytes: &str, pace: &str| {
        let inference = json!({
            "providers": [{ "name": "house", "kind": "openai", "url": server.url() }],
            "models": [{ "name": "small", "provider": "house" }],
            "keep_bodies": true,
            "budget": { "audit_bytes": bytes, "audit_bytes_per_second": pace },
        });
        let said = exec(&World::new(BELLJAR), &inference, LARGE_CALLS);
        let (calls, why) = said.trim().split_once(' ').unwrap();
        (calls.parse::<u32>().unwrap(), why.to_owned())
    };
    // The burst is a sixteenth of the quota: a quarter of a mebibyte.
    let (calls, why) = called("4m", "64k");
    assert!(why == "slow" && (1..5).contains(&calls), "{calls} {why}");
    let (calls, why) = called("1m", "64m");
    assert!(why == "audit_quota" && (2..8).contains(&calls), "{calls} {why}");
    assert_eq!(called("4m", "64m"), (10, "enough".to_owned()), "the control");
}
