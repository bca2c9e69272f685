//! Token budgets hold against many concurrent calls of a program in a sandbox.

use crate::BELLJAR;
use belljar_testkit::models::{Answer, ModelServer, Request, Script, Usage};
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Makes 64 concurrent calls with the body `CALL`, and prints the number of each response.
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

/// Starts a model that uses its whole output limit, and reports that usage.
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

/// Returns the responses to 64 such calls under that budget, and the number of tokens by the provider's count.
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
fn token_budget_holds_against_64_concurrent_calls_of_128_choices_each() {
    let (answered, took) = ran(&json!({ "tokens": 1_000 }), MANY_CHOICES);
    assert_eq!((answered.as_str(), took), ("budget_exceeded=64", 0));
    // Calls that fit use the rest of the budget, and no more.
    let (answered, took) = ran(&json!({ "tokens": 1_000 }), ONE_CHOICE);
    assert!(answered.contains("200=") && answered.contains("budget_exceeded="), "{answered}");
    assert!((500..=1_000).contains(&took), "{took}: {answered}");
    // The control: without a budget all of them are answered in full.
    let (answered, took) = ran(&json!({}), MANY_CHOICES);
    assert_eq!((answered.as_str(), took), ("200=64", 64 * (10 + 128 * 50_000)));
}

#[test]
fn calls_within_a_token_budget_are_all_answered_despite_concurrent_reservations() {
    // Each reserves 2,000 tokens and the size of its request, and uses 2,010: the last ones wait for others, and get their
    // whole limit.
    let call = r#"{"model": "small", "messages": [], "max_tokens": 2000}"#;
    let (answered, took) = ran(&json!({ "tokens": 64 * 2_010 + 2_100 }), call);
    assert_eq!((answered.as_str(), took), ("200=64", 64 * 2_010));
}

/// Makes calls with these bodies, one after another, and prints each result.
const EACH: &str = r#"
import json, os, urllib.error, urllib.request
def call(body):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode())
    try:
        return str(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        return json.load(error)["error"]["code"]
print(*(call(body) for body in BODIES))
"#;

const A_DOCUMENT: &str = r#"{"model": "small", "messages": [{"role": "user", "content":
    [{"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}]}]}"#;

/// The results of calls by a program in a sandbox.
struct BudgetCallResults {
    /// The result of each call.
    answered: String,
    /// The complete audit log.
    audit: String,
    /// The requests that the provider got.
    sent: Vec<Value>,
}

/// Runs a program that calls that server's model, with these additional members of `inference` and of the model.
fn called(server: &ModelServer, (more, of_model): (&Value, &Value), script: &str) -> BudgetCallResults {
    let world = World::new(BELLJAR);
    let mut inference = json!({
        "providers": [{ "name": "house", "kind": "litellm", "url": server.url() }],
        "models": [{ "name": "small", "provider": "house" }],
    });
    inference["models"][0].as_object_mut().unwrap().extend(of_model.as_object().unwrap().clone());
    inference.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.write("config.yaml", json!({ "inference": inference }).to_string());
    let options = ["exec", "--model", "small", "--config", "config.yaml", "--", "python3", "-c", script];
    let ran = world.run(&options).succeeded();
    let files = std::fs::read_dir(world.path().join("state/audit")).unwrap();
    let files = files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let texts = files.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned());
    let sent = server.requests().iter().map(Request::json).collect();
    BudgetCallResults { answered: ran.stdout.trim().to_owned(), audit: texts.collect(), sent }
}

/// Makes calls with these bodies, one after another.
fn each(more: &Value, of_model: &Value, bodies: &[&str]) -> BudgetCallResults {
    let script = EACH.replace("BODIES", &format!("[{}]", bodies.join(", ")));
    called(&greedy(&Arc::default()), (more, of_model), &script)
}

#[test]
fn each_budget_limit_holds_for_programs_in_sandboxes() {
    let answered = |budget: Value, price: Value, bodies: &[&str]| {
        each(&json!({ "budget": budget }), &price, bodies).answered
    };
    let free = json!({});
    let few = r#"{"model": "small", "messages": [], "max_tokens": 20}"#;
    assert_eq!(answered(json!({ "calls": 1 }), free.clone(), &[few, few]), "200 budget_exceeded");
    // A document counts as a million tokens, unless the configuration sets another number.
    assert_eq!(answered(json!({ "tokens": 100_000 }), free.clone(), &[A_DOCUMENT]), "budget_exceeded");
    let smaller = json!({ "tokens": 100_000, "file_tokens": 1_000 });
    assert_eq!(answered(smaller, free.clone(), &[A_DOCUMENT]), "200");
    // 20 tokens cost $0.02 at $1,000 per million, and the input costs next to nothing.
    let cost = json!({ "cost_usd": 0.03 });
    let price = |input: f64, output: f64| json!({ "price": { "input": input, "output": output } });
    assert_eq!(answered(cost.clone(), price(0.0, 1_000.0), &[few, few]), "200 budget_exceeded");
    assert_eq!(answered(cost.clone(), price(1_000.0, 0.0), &[few, few]), "budget_exceeded budget_exceeded");
    assert_eq!(answered(cost, price(0.1, 0.1), &[few, few]), "200 200");
}

#[test]
fn concurrent_calls_and_output_tokens_are_limited_by_the_budget() {
    let slow = ModelServer::start(Script::always(Answer::text("hello").after(Duration::from_secs(1))));
    let at_once = |budget: Value| {
        called(&slow, (&json!({ "budget": budget }), &json!({})), &AT_ONCE.replace("CALL", ONE_CHOICE))
            .answered
    };
    let answered = at_once(json!({ "at_once": 1 }));
    assert!(answered.contains("200=") && answered.contains("too_many_calls="), "{answered}");
    // The control.
    assert_eq!(at_once(json!({ "at_once": 64 })), "200=64");
    let limit = |budget: Value| {
        let sent = each(&json!({ "budget": budget }), &json!({}), &[ONE_CHOICE]).sent;
        sent[0]["max_tokens"].clone()
    };
    assert_eq!(limit(json!({ "tokens": 100_000 })), 8_192);
    assert_eq!(limit(json!({ "tokens": 100_000, "output_tokens": 50 })), 50);
}

#[test]
fn model_call_contents_are_audited_only_if_configured() {
    let said = r#"{"model": "small", "messages": [{"role": "user", "content": "a question of mine"}]}"#;
    let is_kept = |more: Value| each(&more, &json!({}), &[said]).audit.contains("a question of mine");
    assert!(!is_kept(json!({})));
    assert!(is_kept(json!({ "keep_bodies": true })));
}
