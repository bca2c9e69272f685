//! Budgets of tokens, held against many calls at once by a program inside.

use crate::BELLJAR;
use belljar_testkit::models::{Answer, ModelServer, Script, Usage};
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// 64 calls at once, each of them as `CALL` says; how they were answered.
const AT_ONCE: &str = r#"
import json, os, threading, urllib.error, urllib.request
results, begun = [], threading.Barrier(64)
def call():
    begun.wait()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(CALL).encode())
    try:
        results.append(str(urllib.request.urlopen(request).status))
    except urllib.error.HTTPError as error:
        results.append(json.load(error)["error"]["code"])
threads = [threading.Thread(target=call) for _ in range(64)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*(f"{result}={results.count(result)}" for result in sorted(set(results))))
"#;

/// A model that answers as much as it may, and reports that.
fn greedy(tokens: &Arc<Mutex<u64>>) -> ModelServer {
    let tokens = Arc::clone(tokens);
    ModelServer::start(Script::from_fn(move |request| {
        if !request.operation().generates() {
            return None;
        }
        let body = request.json();
        let limit = body["max_tokens"].as_u64().unwrap_or(100_000);
        let usage = Usage { input: 10, output: limit * body["n"].as_u64().unwrap_or(1) };
        *tokens.lock().unwrap() += usage.input + usage.output;
        Some(Answer::text("hello").with_usage(usage))
    }))
}

/// What is answered to 64 such calls under that budget, and how many tokens they took by their provider's account.
fn ran(budget: &Value, call: &str) -> (String, u64) {
    let (world, tokens) = (World::new(BELLJAR), Arc::default());
    let server = greedy(&tokens);
    let config = json!({"inference": {
        "providers": [{"name": "house", "kind": "litellm", "url": server.url()}],
        "models": [{"name": "small", "provider": "house"}],
        "budget": budget,
    }});
    world.write("config.yaml", config.to_string());
    let script = AT_ONCE.replace("CALL", call);
    let options = ["exec", "--model", "small", "--config", "config.yaml", "--", "python3", "-c", &script];
    let ran = world.run(&options).succeeded();
    let took = *tokens.lock().unwrap();
    (ran.stdout.trim().to_owned(), took)
}

const MANY_CHOICES: &str = r#"{"model": "small", "messages": [], "n": 128, "max_tokens": 50000}"#;
const ONE_CHOICE: &str = r#"{"model": "small", "messages": []}"#;

#[test]
fn token_budget_holds_against_64_calls_at_once_of_128_choices_each() {
    let (answered, took) = ran(&json!({ "tokens": 1_000 }), MANY_CHOICES);
    assert_eq!((answered.as_str(), took), ("budget_exceeded=64", 0));
    // Calls that fit take what is left, and no more.
    let (answered, took) = ran(&json!({ "tokens": 1_000 }), ONE_CHOICE);
    assert!(answered.contains("200=") && answered.contains("budget_exceeded="), "{answered}");
    assert!((500..=1_000).contains(&took), "{took}: {answered}");
    // The control: without a budget all of them are answered in full.
    let (answered, took) = ran(&json!({}), MANY_CHOICES);
    assert_eq!((answered.as_str(), took), ("200=64", 64 * (10 + 128 * 50_000)));
}

#[test]
fn calls_that_a_token_budget_covers_are_all_answered_whatever_they_reserve_at_once() {
    // Each reserves 2,000 and the size of its request, and takes 2,010: the last ones wait for the others, and get their whole limit.
    let call = r#"{"model": "small", "messages": [], "max_tokens": 2000}"#;
    let (answered, took) = ran(&json!({ "tokens": 64 * 2_010 + 2_100 }), call);
    assert_eq!((answered.as_str(), took), ("200=64", 64 * 2_010));
}
