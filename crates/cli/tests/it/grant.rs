//! `belljar grant`: grants are issued, listed and revoked. They are presented by id and secret or by a signed file, and
//! required for every account but the operator's own.

use crate::BELLJAR;
use crate::models::{configure, recorded};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

/// Issues a grant, and returns its JSON document with its secret.
pub(crate) fn issue(world: &World, more: &[&str]) -> Value {
    world.run(&[&["grant", "issue", "--json"], more].concat()).succeeded().json()
}

/// Returns the path of a signed file with a grant of this account for every graph.
pub(crate) fn signed_file(world: &World, account: &str) -> String {
    let path = world.path().join(format!("{account}.json")).display().to_string();
    if !std::path::Path::new(&path).exists() {
        let terms = ["--subject", "service:tests", "--scope", "graph:execute:*", "--allow-sandbox"];
        issue(world, &[&terms[..], &["--billing-account", account, "--file", &path]].concat());
    }
    path
}

const TERMS: [&str; 9] = [
    "--subject",
    "service:scheduler",
    "--billing-account",
    "account-7",
    "--scope",
    "graph:execute:sandbox:exec",
    "--user-id",
    "ada",
    "--allow-sandbox",
];

/// Calls a model once.
const CALL: &str = "import json, os, urllib.request\n\
    body = {'model': 'small', 'messages': [{'role': 'user', 'content': 'hi'}]}\n\
    url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'\n\
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())).read()\n\
    print('called')";

fn exec(world: &World, options: &[&str], secret: Option<&str>) -> ProgramOutput {
    let exec = ["exec", "--model", "small", "--config", "config.yaml"];
    let mut command = world.command(&[&exec[..], options, &["--", "python3", "-c", CALL]].concat());
    secret.map(|secret| command.env("BELLJAR_GRANT_SECRET", secret));
    ProgramOutput::from(command.output().unwrap())
}

#[test]
fn grant_is_shown_by_id_and_secret_until_revoked_and_its_account_is_billed() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    configure(&world, &server);
    let issued = issue(&world, &TERMS);
    let (id, secret) = (issued["grant"]["id"].as_str().unwrap(), issued["secret"].as_str().unwrap());
    assert_eq!(exec(&world, &["--grant", id], Some(secret)).succeeded().stdout, "called\n");
    let request = &server.requests()[0];
    assert_eq!(request.header("x-litellm-end-user-id"), Some("account-7"));
    let metadata: Value =
        serde_json::from_str(request.header("x-litellm-spend-logs-metadata").unwrap()).unwrap();
    assert_eq!((&metadata["user_id"], &metadata["graph_id"]), (&json!("ada"), &json!("sandbox:exec")));
    assert_eq!((&metadata["trace_user_id"], &metadata["session_id"]), (&json!("ada"), &metadata["run_id"]));

    world.write("secret", secret);
    std::fs::set_permissions(
        world.path().join("secret"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    exec(&world, &["--grant", id, "--grant-secret-file", "secret"], None).succeeded();
    let refused = |ran: ProgramOutput, why: &str| {
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
        assert!(ran.stderr.contains(why) && !ran.stderr.contains(secret), "{why}: {ran:?}");
    };
    refused(exec(&world, &["--grant", id], None), "also needs its secret");
    refused(exec(&world, &["--grant", id], Some(&secret.replace("bjg_", "bjg_0"))), "grant_not_proven");
    let unknown = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
    refused(exec(&world, &["--grant", unknown], Some(secret)), "grant_not_found");
    let other = ["--grant", id, "--billing-account", "account-8"];
    refused(exec(&world, &other, Some(secret)), "but the grant is of account-7");
    refused(exec(&world, &["--grant", id, "--user-id", "bob"], Some(secret)), "on behalf of ada");

    let listed = world.run(&["grant", "list"]).succeeded().stdout;
    assert!(listed.contains(id) && listed.contains("valid") && !listed.contains(secret), "{listed}");
    world.run(&["grant", "revoke", id]).succeeded();
    refused(exec(&world, &["--grant", id], Some(secret)), "grant_revoked");
    let listed = world.run(&["grant", "list", "--json"]).succeeded().json();
    assert_eq!(listed["grants"][0]["status"], "revoked", "{listed}");
    assert_eq!(server.requests().len(), 2, "no call was made without a grant");

    let audit = world.path().join("state/audit");
    let kinds = ["grant_issued", "grant_used", "grant_denied", "grant_revoked"]
        .map(|kind| recorded(&audit, kind).len());
    assert_eq!(kinds, [1, 2, 3, 1]);
    let kept = std::fs::read(world.path().join("state/agents.db")).unwrap();
    assert!(
        !kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()),
        "only a digest of the secret is stored"
    );
    assert_ne!(world.run(&["grant", "revoke", unknown]).code, 0);
}

#[test]
fn account_without_a_grant_is_refused_and_no_call_is_made() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    configure(&world, &server);
    let ran = exec(&world, &["--billing-account", "account-7"], None);
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
    assert!(ran.stderr.contains("--billing-account account-7 takes a grant of that account"), "{ran:?}");
    assert!(server.requests().is_empty());
    // The control: the operator's own account requires no grant.
    exec(&world, &[], None).succeeded();
    assert_eq!(server.requests()[0].header("x-litellm-end-user-id"), Some("local"));
}

#[test]
fn grant_file_is_accepted_as_signed_and_refused_when_edited() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    configure(&world, &server);
    issue(&world, &[&TERMS[..], &["--file", "grant.json"]].concat());
    let by_file = || exec(&world, &["--grant", "grant.json"], None);
    by_file().succeeded();
    let good = world.read("grant.json");
    let edit = |edit: fn(&mut Value)| {
        let mut document: Value = serde_json::from_str(&good).unwrap();
        edit(&mut document);
        std::fs::write(world.path().join("grant.json"), document.to_string()).unwrap();
    };
    let edits: [fn(&mut Value); 3] = [
        |document| document["grant"]["billing_account_id"] = json!("account-8"),
        |document| document["grant"]["id"] = json!("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"),
        |document| document["signature"] = json!("00"),
    ];
    for edited in edits {
        edit(edited);
        let ran = by_file();
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
        assert!(ran.stderr.contains("grant_not_proven"), "{ran:?}");
    }
    // The unsigned format of earlier versions is not accepted.
    edit(|document| *document = document["grant"].take());
    let ran = by_file();
    assert!(ran.code == 125 && ran.stderr.contains("$.signature"), "{ran:?}");
    // The control: the same document in another layout.
    edit(|_| {});
    by_file().succeeded();
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn grant_file_signed_by_another_deployment_is_refused() {
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let [own, other] = [(); 2].map(|()| World::new(BELLJAR));
    for world in [&own, &other] {
        configure(world, &server);
        issue(world, &[&TERMS[..], &["--file", "grant.json"]].concat());
        // The control: each installation accepts the files that it has signed.
        exec(world, &["--grant", "grant.json"], None).succeeded();
    }
    own.write("of-other.json", other.read("grant.json"));
    let mixed = |grant: &World, signature: &World| {
        let mut document: Value = serde_json::from_str(&grant.read("grant.json")).unwrap();
        let signed: Value = serde_json::from_str(&signature.read("grant.json")).unwrap();
        document["signature"] = signed["signature"].clone();
        document.to_string()
    };
    own.write("own-by-other.json", mixed(&own, &other));
    own.write("other-by-own.json", mixed(&other, &own));
    // An installation that has signed nothing has no key, and accepts no file.
    let new = World::new(BELLJAR);
    configure(&new, &server);
    new.write("of-other.json", other.read("grant.json"));
    for (world, file) in [
        (&own, "of-other.json"),
        (&own, "own-by-other.json"),
        (&own, "other-by-own.json"),
        (&new, "of-other.json"),
    ] {
        let ran = exec(world, &["--grant", file], None);
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{file}: {ran:?}");
        assert!(ran.stderr.contains("grant_not_proven"), "{file}: {ran:?}");
    }
    assert_eq!(server.requests().len(), 2, "no call was made with another deployment's grant");
}

#[test]
fn user_trace_and_session_options_of_exec_are_recorded_with_its_calls() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    configure(&world, &server);
    let metadata = || -> Value {
        let requests = server.requests();
        serde_json::from_str(requests.last().unwrap().header("x-litellm-spend-logs-metadata").unwrap())
            .unwrap()
    };
    let flags =
        ["--user-id", "ada", "--trace-id", "trace-1", "--trace-user-id", "bob", "--session-id", "chat-1"];
    exec(&world, &flags, None).succeeded();
    let said = metadata();
    let expected = json!({
        "run_id": said["run_id"], "attempt": 0, "graph_id": "sandbox:exec", "user_id": "ada", "session_id": "chat-1",
        "existing_trace_id": "trace-1", "trace_user_id": "bob",
    });
    assert_eq!(said, expected);
    let mut command =
        world.command(&["exec", "--model", "small", "--config", "config.yaml", "--", "python3", "-c", CALL]);
    command.env("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    ProgramOutput::from(command.output().unwrap()).succeeded();
    let said = metadata();
    assert_eq!(said["existing_trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!((&said["session_id"], &said["user_id"]), (&said["run_id"], &Value::Null));
    let ran = exec(&world, &["--user-id", "a\nb"], None);
    assert!(ran.code == 125 && ran.stderr.contains("--user-id"), "{ran:?}");
}
