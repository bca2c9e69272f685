//! Choice of the model: only those of the job, the first that is available, the next when it fails.

use super::house::{AgentFixture, call, done, finish, job, report, small_job};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::litellm::{self, LiteLlm};
use belljar_testkit::models::{Answer, Script};
use belljar_testkit::skip::skip;
use serde_json::{Value, json};

fn allowing(models: &[&str]) -> Value {
    let mut job = small_job();
    job["inference"]["allowed_models"] = json!(models);
    job
}

/// Answers with `of`, which gets the model's name and the number of its request.
fn each(of: impl Fn(&str, usize) -> Answer + Send + 'static) -> Script {
    let mut counts = std::collections::HashMap::new();
    Script::from_fn(move |request| {
        let model = request.model();
        let count = counts.entry(model.clone()).or_insert(0_usize);
        *count += 1;
        request.operation().generates().then(|| of(&model, *count))
    })
}

fn works(count: usize) -> Answer {
    match count {
        1 => done(1),
        2 => finish(),
        _ => report(),
    }
}

#[test]
fn a_model_that_the_job_does_not_name_is_never_asked() {
    let house = AgentFixture::listing(&["other"], each(|_, count| works(count)));
    let ran = house.run(&allowing(&["first", "second"]));
    assert_eq!((ran.outcome(), ran.exit_code), ("inference_unavailable", Some(1)));
    let message = ran.result["failure_message"].as_str().unwrap();
    assert!(message.contains("first: not among") && message.contains("second: not among"), "{message}");
    assert!(house.asked().is_empty());
}

#[test]
fn first_available_allowed_model_is_used() {
    let house = AgentFixture::listing(&["other", "second"], each(|_, count| works(count)));
    let ran = house.run(&allowing(&["first", "second"]));
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    assert_eq!(ran.result["agent"]["models"], json!(["second"]));
    assert!(house.asked().iter().all(|request| request.model() == "second"));
}

#[test]
fn next_model_is_used_when_one_fails_or_answers_nonsense() {
    for broken in [Answer::error(500), Answer::hang_up(), Answer::own(200, &[], "{}"), Answer::error(404)] {
        let house = AgentFixture::listing(
            &["first", "second"],
            each(move |model, count| if model == "first" { broken.clone() } else { works(count) }),
        );
        let ran = house.run(&allowing(&["first", "second"]));
        assert_eq!(ran.outcome(), "success", "{}", ran.result);
        assert_eq!(ran.result["agent"]["models"], json!(["second"]));
    }
}

#[test]
fn rate_limited_model_is_retried() {
    let busy = |_: &str, count| match count {
        1 => Answer::rate_limited(1),
        count => works(count - 1),
    };
    let house = AgentFixture::listing(&["first"], each(busy));
    let ran = house.run(&allowing(&["first"]));
    assert_eq!((ran.outcome(), house.asked().len()), ("success", 4), "{}", ran.result);
}

#[test]
fn exhausted_budget_stops_all_model_calls() {
    for code in ["budget_exceeded", "audit_quota"] {
        let body = format!(r#"{{"error": {{"message": "all is spent", "code": "{code}"}}}}"#);
        let house = AgentFixture::listing(
            &["first", "second"],
            each(move |_, _| Answer::own(429, &[], body.as_str())),
        );
        let ran = house.run(&allowing(&["first", "second"]));
        assert_eq!((ran.outcome(), house.asked().len()), ("budget_exhausted", 1), "{code}: {}", ran.result);
    }
}

#[test]
fn concurrency_refusals_from_its_own_run_count_as_budget_exhausted() {
    let outcome_of = |code: &str| {
        let body = format!(r#"{{"error": {{"message": "not now", "code": "{code}"}}}}"#);
        let house = AgentFixture::listing(&["first"], each(move |_, _| Answer::own(429, &[], body.as_str())));
        house.run(&allowing(&["first"])).outcome().to_owned()
    };
    std::thread::scope(|scope| {
        let held = ["too_many_calls", "budget_reserved"].map(|code| scope.spawn(move || outcome_of(code)));
        // Control: a provider that is busy for good is a failure of the provider.
        assert_eq!(outcome_of("rate_limit_exceeded"), "inference_unavailable");
        held.into_iter().for_each(|outcome| assert_eq!(outcome.join().unwrap(), "budget_exhausted"));
    });
}

#[test]
fn job_without_a_model_endpoint_names_the_missing_variable() {
    let house = AgentFixture::with(Vec::new());
    let mut command = house.command(&small_job());
    command.env_remove("OPENAI_BASE_URL");
    let ran = house.scene.ran(&command.output().unwrap());
    assert_eq!(ran.outcome(), "inference_unavailable");
    assert!(ran.result["failure_message"].as_str().unwrap().contains("OPENAI_BASE_URL"), "{}", ran.result);
}

#[test]
fn agent_can_use_the_native_ollama_api() {
    let house = AgentFixture::with(vec![call("list_tree", json!({})), done(1), finish(), report()]);
    let mut command = house.command(&small_job());
    command.env_remove("OPENAI_BASE_URL").env("OLLAMA_BASE_URL", house.server.url());
    let ran = house.scene.ran(&command.output().unwrap());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let asked = house.asked();
    assert!(asked.iter().all(|request| request.path() == "/api/chat"));
    assert_eq!(asked[1].json()["options"]["num_ctx"], 32_768);
    assert!(asked[1].json()["messages"].to_string().contains("\"tool_name\":\"list_tree\""));
}

#[test]
fn no_model_is_called_without_inference_or_without_a_goal() {
    let house = AgentFixture::with(Vec::new());
    let mut without_models = small_job();
    without_models.as_object_mut().unwrap().remove("inference");
    let aimless = job(json!({ "additional_context": "nothing to do" }));
    for (job, outcome) in [(without_models, "not_verified"), (aimless, "schema_validation")] {
        assert_eq!(house.run(&job).outcome(), outcome);
    }
    assert_eq!(house.server.request_count(), 0);
}

/// Returns true if a strict provider would refuse the request.
fn refused(request: &Value) -> bool {
    let messages = request["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    let is_odd = |pair: &[&str]| matches!(pair, ["tool" | "user", "user"] | ["tool", "system"]);
    let calls = messages.iter().flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
    let mut arguments = calls.map(|call| call["function"]["arguments"].as_str().unwrap().to_owned());
    let is_broken =
        arguments.any(|text| !serde_json::from_str::<Value>(&text).is_ok_and(|read| read.is_object()));
    let is_bare = messages.iter().any(|message| {
        message["role"] == "assistant" && message["content"].is_null() && message["tool_calls"].is_null()
    });
    roles.windows(2).any(is_odd) || is_broken || is_bare
}

#[test]
fn requests_satisfy_providers_strict_about_roles_arguments_and_empty_messages() {
    let mut count = 0;
    let house = AgentFixture::of(Script::from_fn(move |request| {
        if !request.operation().generates() {
            return None;
        }
        if refused(&request.json()) {
            return Some(Answer::own(400, &[], r#"{"error": {"message": "unexpected role"}}"#));
        }
        count += 1;
        Some(match count {
            1 => call("read_file", json!("not JSON")),
            2 => Answer::text(""),
            3 => call("list_tree", json!({})),
            count => works(count - 3),
        })
    }));
    let ran = house.run(&small_job());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
}

#[test]
fn quota_or_context_limit_of_one_model_falls_back_to_the_next() {
    for code in ["insufficient_quota", "context_length_exceeded"] {
        let body = json!({ "error": { "message": "no", "code": code } }).to_string();
        let house = AgentFixture::listing(
            &["first", "second"],
            each(move |model, count| match model {
                "first" => Answer::own(400, &[], body.clone()),
                _ => works(count),
            }),
        );
        let ran = house.run(&allowing(&["first", "second"]));
        assert_eq!(
            (ran.outcome(), &ran.result["agent"]["models"]),
            ("success", &json!(["second"])),
            "{code}: {}",
            ran.result
        );
    }
}

#[test]
fn token_limit_parameter_adapts_to_the_provider() {
    for (refused, said) in [
        (None, Some("max_tokens")),
        (
            Some("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
            Some("max_completion_tokens"),
        ),
        (Some("max_tokens is too large"), None),
    ] {
        let house = AgentFixture::of({
            let mut count = 0;
            Script::from_fn(move |request| {
                let is_refused = refused.is_some() && request.json().get("max_tokens").is_some();
                request.operation().generates().then(|| match refused {
                    Some(message) if is_refused => {
                        let error = json!({ "error": { "message": message } }).to_string();
                        Answer::own(400, &[("Content-Type", "application/json")], error)
                    }
                    _ => {
                        count += 1;
                        works(count)
                    }
                })
            })
        });
        let ran = house.run(&small_job());
        assert_eq!(ran.outcome(), "success", "{}", ran.result);
        let asked = house.asked();
        assert_eq!(asked.len(), 3 + usize::from(refused.is_some()), "it is found out once");
        let last = asked.last().unwrap().json();
        for name in ["max_tokens", "max_completion_tokens"] {
            let expected = if said == Some(name) { json!(8_192) } else { Value::Null };
            assert_eq!(last[name], expected, "{name} of {last}");
        }
    }
}

#[test]
fn token_counts_are_null_when_a_model_reports_none() {
    let words = json!({ "role": "assistant", "content": "Let me think." });
    let silent =
        json!({ "choices": [{ "index": 0, "message": words, "finish_reason": "stop" }] }).to_string();
    let silent = Answer::own(200, &[("Content-Type", "application/json")], silent);
    let told = house_tokens(vec![done(1), finish(), report()]);
    assert!(told[0].as_u64() > Some(0) && told[1].as_u64() > Some(0), "{told:?}");
    assert_eq!(house_tokens(vec![silent, done(1), finish(), report()]), [Value::Null, Value::Null]);
}

/// Returns the token counts in the result of a job with these answers.
fn house_tokens(answers: Vec<Answer>) -> [Value; 2] {
    let ran = AgentFixture::with(answers).run(&small_job());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    ["prompt_tokens", "completion_tokens"].map(|name| ran.result["agent"][name].clone())
}

#[test]
fn litellm_accepts_the_agents_requests() {
    let litellm = match LiteLlm::start() {
        Ok(litellm) => litellm,
        Err(why) => return skip("litellm_accepts_the_agents_requests", &why),
    };
    let house = AgentFixture::with(vec![done(1), finish(), report()]);
    assert_eq!(house.run(&small_job()).outcome(), "success");
    for request in house.asked() {
        for name in ["max_tokens", "max_completion_tokens"] {
            let mut body = request.json();
            let limit = body.as_object_mut().unwrap().remove("max_tokens").unwrap();
            body["model"] = json!(litellm::MODEL);
            body[name] = limit;
            let asked = HttpRequest::new("POST", "/v1/chat/completions").json(body.to_string());
            let key = format!("Bearer {}", litellm::MASTER_KEY);
            let answered = asked.header("Authorization", &key).send(litellm.address()).unwrap();
            assert_eq!(answered.status, 200, "{}", answered.json());
        }
    }
}
