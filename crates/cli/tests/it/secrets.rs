//! Twelve secrets of the host, three of them credentials for models: none can be read inside in any encoding, and none is
//! returned by a provider that echoes its requests.

use crate::BELLJAR;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_testkit::models::{Answer, ModelServer, Request, Script};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::process::Command;

/// The places where they are planted; the first three are credentials of model providers.
const PLACES: [&str; 12] = [
    "file keys/by-file",
    "variable KEY_BY_VARIABLE",
    "file keys/by-command",
    "variable DATABASE_URL",
    "variable AWS_SECRET_ACCESS_KEY",
    "variable GITHUB_TOKEN",
    "file .git-credentials",
    "file .netrc",
    "file .docker/config.json",
    "file .ssh/id_ed25519",
    "file state/runs/another/workspace/token",
    "file ca/key.pem",
];

/// Prints everything that it can read, and all responses of models, which it asks for the key in many encodings.
const SEARCH: &str = r#"
import glob, http.client, json, os, sys
out = sys.stdout.buffer
for name, value in os.environ.items():
    out.write(f"environment {name}={value}\n".encode())
def dump(path):
    try:
        with open(path, "rb", buffering=0) as file:
            out.write(path.encode() + b" " + file.read(1 << 18) + b"\n")
    except OSError:
        pass
for process in glob.glob("/proc/[0-9]*"):
    for name in "environ", "cmdline", "mountinfo", "maps", "status", "limits":
        dump(f"{process}/{name}")
    try:
        for descriptor in os.listdir(f"{process}/fd"):
            out.write(os.readlink(f"{process}/fd/{descriptor}").encode() + b"\n")
    except OSError:
        pass
for root in ROOTS:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys", "/usr", "/lib", "/dev")]
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                dump(path)
if "OPENAI_BASE_URL" in os.environ:
    for model in "by-file", "by-variable", "by-command":
        for form in FORMS:
            for stream in False, True:
                client = http.client.HTTPConnection("localhost", 8080)
                body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": form}]}
                headers = {"Authorization": "Bearer inside", "X-LiteLLM-Api-Key": "inside", "Content-Type": "application/json"}
                client.request("POST", "/v1/chat/completions", json.dumps(body), headers)
                try:
                    response = client.getresponse()
                    out.write(f"answer {model} {form} {response.status} {response.getheaders()} ".encode())
                    out.write(response.read())
                except http.client.IncompleteRead as cut:
                    out.write(cut.partial)
                except (OSError, http.client.HTTPException) as cut:
                    out.write(str(cut).encode())
                out.write(b"\n")
print("the end")
"#;

/// The encodings in which a provider echoes the key.
const FORMS: [&str; 12] = [
    "plain",
    "error",
    "header",
    "hex",
    "percent",
    "base64",
    "inside-base64",
    "escaped",
    "split",
    "letters",
    "chunks",
    "none",
];

/// Percent-encodes every byte (`%6b`).
fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn told(request: &Request) -> Option<Answer> {
    if !request.operation().generates() {
        return None;
    }
    let key = request.header("authorization")?.trim_start_matches("Bearer ").to_owned();
    let form = request.json()["messages"][0]["content"].as_str()?.to_owned();
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped: String = key.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect();
    let (first, second) = key.split_at(key.len() / 2);
    let letters: Vec<String> = key.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    let document = |said: &str| {
        let document = format!("{{\"choices\":[{{\"message\":{{\"content\":\"{said}\"}}}}]}}");
        Answer::own(200, &[("Content-Type", "application/json")], document)
    };
    Some(match form.as_str() {
        "plain" => Answer::pieces(&["you said ", &key]),
        "error" => Answer::echo(401),
        "header" => Answer::own(200, &[("X-Request-Id", &key), ("X-Ratelimit-Key", &key)], "{}"),
        "hex" => Answer::text(&hex),
        "percent" => Answer::text(&percent(&key)),
        "base64" => Answer::text(&STANDARD.encode(&key)),
        "inside-base64" => Answer::text(&STANDARD.encode(format!("Authorization: Bearer {key}\r\n"))),
        "escaped" => document(&escaped),
        "split" => Answer::pieces(&["you said ", first, second]),
        "letters" => Answer::pieces(&letters),
        "chunks" => Answer::pieces(&["you said ", &key]).in_chunks_of(&[3, 1, 4]),
        _ => Answer::text("nothing of it"),
    })
}

/// Plants the secrets, and returns them by place. Each is unique.
fn plant(world: &World) -> Vec<(&'static str, String)> {
    let secret = |at: usize| format!("sk-{at:02}{}", uuid::Uuid::new_v4().simple());
    let all: Vec<(&str, String)> =
        PLACES.iter().enumerate().map(|(at, place)| (*place, secret(at))).collect();
    for (place, secret) in &all {
        if let Some(path) = place.strip_prefix("file ") {
            world.write(path, secret);
        }
    }
    all
}

fn configure(world: &World, server: &ModelServer) -> String {
    let at = |name: &str| world.path().join(name).display().to_string();
    let provider = |name: &str, credential: serde_json::Value| json!({"name": name, "kind": "litellm", "url": server.url(), "credential": credential});
    let model = |name: &str| json!({"name": name, "provider": name});
    let config = json!({"inference": {
        "providers": [
            provider("by-file", json!({"file": at("keys/by-file")})),
            provider("by-variable", json!({"env": "KEY_BY_VARIABLE"})),
            provider("by-command", json!({"command": ["cat", at("keys/by-command")]})),
        ],
        "models": [model("by-file"), model("by-variable"), model("by-command")],
    }});
    world.write("config.yaml", config.to_string()).display().to_string()
}

/// Returns the encoding in which the text contains the secret. Each is long enough to exclude a coincidence.
fn stands_in(secret: &str, text: &str) -> Option<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = percent(secret);
    let mut forms = vec![
        secret.to_owned(),
        percent.to_uppercase(),
        percent,
        hex.to_uppercase(),
        hex,
        secret.chars().rev().collect(),
    ];
    // Split: each half is unique. And the middle of its base64, at each offset.
    forms.extend([secret[..secret.len() / 2].to_owned(), secret[secret.len() / 2..].to_owned()]);
    for before in ["", "a", "ab"] {
        let encoded = STANDARD.encode(format!("{before}{secret}"));
        forms.push(encoded[4..encoded.len() - 4].to_owned());
    }
    let line = text.lines().find(|line| forms.iter().any(|form| line.contains(form)))?;
    Some(line.chars().take(300).collect())
}

fn with_variables(secrets: &[(&str, String)], mut command: Command) -> ProgramOutput {
    for (place, secret) in secrets {
        if let Some(name) = place.strip_prefix("variable ") {
            command.env(name, secret);
        }
    }
    ProgramOutput::from(command.output().unwrap())
}

#[test]
fn twelve_host_secrets_are_neither_inside_nor_in_any_response() {
    World::as_everyone(BELLJAR, |world| {
        let server = ModelServer::start(Script::from_fn(told));
        let secrets = plant(world);
        let config = configure(world, &server);
        let script = SEARCH.replace("FORMS", &format!("{FORMS:?}"));
        let inside = script.replace("ROOTS", "['/']");
        let options =
            ["--model", "by-file", "--model", "by-variable", "--model", "by-command", "--config", &config];
        let program = ["--", "python3", "-c", &inside];
        let command = world.command(&[&["exec"], &options[..], &program].concat());
        let ran = with_variables(&secrets, command);
        assert!(ran.stdout.ends_with("the end\n"), "{}", ran.stderr);
        let outside = script.replace("ROOTS", &format!("[{:?}]", world.path()));
        let command = world.command_of("/usr/bin/python3".as_ref(), &["-c", &outside]);
        let control = with_variables(&secrets, command);
        for (place, secret) in &secrets {
            assert!(control.stdout.contains(secret), "{place} is not planted: {}", control.stderr);
            assert_eq!(stands_in(secret, &ran.stdout), None, "{place}");
            assert_eq!(stands_in(secret, &ran.stderr), None, "{place}, on the terminal");
        }
        // Each key was requested in every encoding, and responses without it passed.
        for (at, model) in ["by-file", "by-variable", "by-command"].iter().enumerate() {
            let key = format!("Bearer {}", secrets[at].1);
            let asked = server
                .requests()
                .iter()
                .filter(|request| request.header("authorization") == Some(&key))
                .count();
            assert_eq!(asked, 2 * FORMS.len(), "{model}");
            assert_eq!(ran.stdout.matches(&format!("answer {model} none 200")).count(), 2, "{model}");
        }
        // Once each as a whole; the other time in pieces.
        assert_eq!(ran.stdout.matches("nothing of it").count(), 3);
        // Nor does the host record them.
        let audit = ProgramOutput::from(world.command(&["audit", "show", "--json"]).output().unwrap());
        assert!(audit.stdout.contains("inference_call"), "{audit:?}");
        assert!(secrets.iter().all(|(_, secret)| stands_in(secret, &audit.stdout).is_none()));
    });
}
