//! Usage totals: sums of the call records, exact, and unknown where a provider reports nothing.

use crate::BELLJAR;
use crate::models::{configure, recorded};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

/// Calls `small` as often as the first argument, and disconnects from an endless stream as often as the second.
pub(crate) const CALLS: &str = r#"
import json, os, sys, urllib.request
def call(text, stream):
    body = {"model": "small", "messages": [{"role": "user", "content": text}], "stream": stream}
    url = os.environ.get("OPENAI_BASE_URL", "http://localhost:8080/v1") + "/chat/completions"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()))
for _ in range(int(sys.argv[1])):
    call("hi", False).read()
for _ in range(int(sys.argv[2])):
    answer = call("without an end", True)
    answer.read(100)
    answer.close()
print("called")
"#;

/// Starts a model whose calls cost a fraction of a micro-dollar, and that answers some calls with an endless stream.
pub(crate) fn cheap_models() -> ModelServer {
    ModelServer::start(Script::from_fn(|request| {
        let is_endless = request.contains(b"without an end");
        request.operation().generates().then(|| match is_endless {
            true => Answer::repeated("and so on ", usize::MAX),
            false => Answer::text("hello").with_cost(0.000_000_4),
        })
    }))
}

pub(crate) fn program(whole: usize, cut: usize) -> Vec<String> {
    ["python3", "-c", CALLS, &whole.to_string(), &cut.to_string()].map(str::to_owned).into()
}

fn exec(world: &World, config: &str, (whole, cut): (usize, usize)) -> ProgramOutput {
    let program = program(whole, cut);
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    world.run(&[&["exec", "--model", "small", "--config", config, "--"], &program[..]].concat())
}

fn listed(world: &World) -> Value {
    world.run(&["usage", "list", "--json"]).succeeded().json()
}

#[test]
fn costs_below_a_micro_dollar_are_summed_exactly_and_printed_after_exec() {
    let (world, server) = (World::new(BELLJAR), cheap_models());
    let config = configure(&world, &server);
    let ran = exec(&world, &config, (5, 0)).succeeded();
    assert!(ran.stderr.contains("5 calls of models, as reported: 55 + 35 tokens, 0.000002 USD"), "{ran:?}");
    let totals = listed(&world)["totals"].clone();
    assert_eq!((&totals["cost_usd"], &totals["calls"]), (&json!("0.000002"), &json!(5)), "{totals}");
    let ends = recorded(&world.path().join("state/audit"), "inference_end");
    assert_eq!(ends[0]["usage"], totals, "{ends:?}");
}

#[test]
fn tokens_and_cost_of_a_call_that_its_client_aborted_are_unknown() {
    let (world, server) = (World::new(BELLJAR), cheap_models());
    let config = configure(&world, &server);
    let ran = exec(&world, &config, (0, 1)).succeeded();
    assert!(ran.stderr.contains("1 call of models, as reported: ? + ? tokens, ? USD"), "{ran:?}");
    let totals = listed(&world)["totals"].clone();
    let expected = json!({
        "calls": 1, "input_tokens": null, "output_tokens": null, "cost_usd": null,
        "degraded_calls": 1, "uncounted_calls": 1, "unended_calls": 0,
    });
    assert_eq!(totals, expected);
    // The known amounts of other calls are reported as well.
    let ran = exec(&world, &config, (2, 1)).succeeded();
    let amounts = "22 + 14 tokens, 0.0000008 USD; the tokens of 1 are not known; the cost of 1 is not known";
    assert!(ran.stderr.contains(amounts), "{ran:?}");
}

#[test]
fn usage_list_without_calls_names_its_and_the_nodes_state_directory() {
    let world = World::new(BELLJAR);
    let state = world.path().join("state").display().to_string();
    let ran = world.run(&["usage", "list"]).succeeded();
    assert!(ran.stderr.contains(&format!("no calls are found in the state directory {state}")), "{ran:?}");
    assert!(ran.stderr.contains("a node keeps its own in its --state-dir"), "{ran:?}");
    assert_eq!(listed(&world)["state_directory"], state);
    {
        let node = belljar_testkit::node::Node::start(&world, &[]);
        node.run(&belljar_testkit::node::command(&["true"]));
    }
    let ran = world.run(&["usage", "list"]).succeeded();
    assert!(ran.stderr.contains(&format!("a node keeps its own in {state}/node")), "{ran:?}");
    // The control: a state with calls produces no message about other states.
    let server = cheap_models();
    exec(&world, &configure(&world, &server), (1, 0)).succeeded();
    assert_eq!(world.run(&["usage", "list"]).succeeded().stderr, "");
}

/// Writes a configuration whose provider takes a credential from a variable, and returns its path.
fn with_variable(world: &World, server: &ModelServer) -> String {
    let config = json!({"inference": {
        "providers": [{"name": "house", "kind": "litellm", "url": server.url(), "credential": {"env": "HOUSE_KEY"}}],
        "models": [{"name": "small", "provider": "house"}],
    }});
    world.write("config.yaml", config.to_string());
    world.path().join("config.yaml").display().to_string()
}

#[test]
fn unset_or_short_credential_ends_exec_before_anything_runs() {
    let (world, server) = (World::new(BELLJAR), cheap_models());
    let config = with_variable(&world, &server);
    let exec = |key: Option<&str>| {
        let options = ["exec", "--model", "small", "--config", &config, "--", "echo", "ran"];
        let mut command = world.command(&options);
        key.map(|key| command.env("HOUSE_KEY", key));
        ProgramOutput::from(command.output().unwrap())
    };
    for (key, why) in
        [(None, "the variable HOUSE_KEY is not set"), (Some("sk-1234"), "shorter than 8 characters")]
    {
        let ran = exec(key);
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
        assert!(
            ran.stderr.contains("the credential of the provider") && ran.stderr.contains("house"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains(why) && !ran.stderr.contains("sk-1234"), "{why}: {ran:?}");
    }
    assert_eq!(exec(Some("sk-host-12345678")).succeeded().stdout, "ran\n");
}

#[test]
fn models_are_listed_only_if_their_provider_accepts_calls() {
    const LISTS: &str = r#"
import json, os, urllib.error, urllib.request
def ask(path, body=None, headers={}):
    url = "http://localhost:11434" + path if path.startswith("/api") else "http://localhost:8080" + path
    try:
        return json.load(urllib.request.urlopen(urllib.request.Request(url, body and json.dumps(body).encode(), headers)))
    except urllib.error.HTTPError as error:
        return json.load(error)
for path, headers in [("/api/tags", {}), ("/v1/models", {}), ("/v1/models", {"anthropic-version": "2023-06-01"})]:
    told = ask(path, None, headers)
    print(path, [model.get("name") or model["id"] for model in told.get("models") or told["data"]])
print(ask("/api/show", {"model": "small"})["error"])
"#;
    let (world, server) = (World::new(BELLJAR), cheap_models());
    let provider = |name: &str| json!({"name": name, "kind": name, "url": server.url()});
    let config = json!({"inference": {
        "providers": [provider("litellm"), provider("ollama"), provider("anthropic")],
        "models": [{"name": "small", "provider": "litellm"}, {"name": "own", "provider": "ollama"},
                   {"name": "claude", "provider": "anthropic"}],
    }});
    world.write("config.yaml", config.to_string());
    let models =
        ["exec", "--model", "small", "--model", "own", "--model", "claude", "--config", "config.yaml"];
    let ran = world.run(&[&models[..], &["--", "python3", "-c", LISTS]].concat()).succeeded();
    assert_eq!(
        ran.stdout,
        "/api/tags ['own']\n/v1/models ['own', 'small']\n/v1/models ['claude', 'small']\n\
         the model \"small\" can't be called at /api/show: its provider accepts calls at /v1/chat/completions and /v1/messages\n"
    );
}
