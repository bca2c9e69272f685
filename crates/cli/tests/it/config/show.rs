//! `belljar config show`.

use super::run_with;
use crate::BELLJAR;
use belljar_config::reference::{Member, Override, ROOT};
use belljar_testkit::world::World;
use serde_json::{Value, json};

const FILE: &str = "sandboxing:
  overrides: {terminal: native}
  native:
    memory_limit: 2g
node:
  max_waiting: 7
inference:
  providers: [{name: house, kind: openai, url: 'https://models.example', credential: {env: MODELS_KEY}}]
  models: [{name: small, provider: house}]
";

/// Returns the value at a path.
#[track_caller]
fn at<'v>(shown: &'v Value, path: &str) -> &'v Value {
    let values = shown["values"].as_array().unwrap();
    values.iter().find(|value| value["path"] == path).unwrap_or_else(|| panic!("no {path} in {shown:#}"))
}

#[test]
fn show_prints_each_value_with_its_source() {
    let world = World::new(BELLJAR);
    world.write("a.yaml", FILE);
    let arguments = ["config", "show", "--config", "a.yaml", "--pids", "9", "--max-concurrency", "3"];
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")];
    let text = run_with(&world, &arguments, &variables).succeeded().stdout;
    for line in [
        "# a.yaml, named by --config",
        "  default_backend: subprocess                 # default",
        "    web: docker                               # default",
        "    terminal: native                          # a.yaml:2",
        "    memory_limit: 2g                          # a.yaml:4",
        "    pids_limit: 9                             # --pids",
        "  max_waiting: 7                              # a.yaml:6",
        "  max_concurrency: 3                          # --max-concurrency",
        "    endpoint: \"http://127.0.0.1:4318\"         # OTEL_EXPORTER_OTLP_ENDPOINT",
        "    # cpu_limit: no limit (default)",
        "        env: MODELS_KEY                       # a.yaml:8",
        "# egress: nothing (default)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} in\n{text}");
    }
    // It is a configuration itself.
    world.write("again.yaml", &text);
    world.run(&["config", "check", "again.yaml"]).succeeded();
}

#[test]
fn show_as_json_names_the_source_of_each_value() {
    let world = World::new(BELLJAR);
    world.write("a.yaml", FILE);
    let variables = [("BELLJAR_CONFIG", "a.yaml")];
    let shown =
        run_with(&world, &["config", "show", "--json", "--memory", "1g"], &variables).succeeded().json();
    assert_eq!((&shown["file"], &shown["named_by"]), (&json!("a.yaml"), &json!("environment")));
    let waiting = json!({"path": "node.max_waiting", "value": 7, "source": "file", "line": 6});
    assert_eq!(*at(&shown, "node.max_waiting"), waiting);
    let memory = "sandboxing.native.memory_limit";
    assert_eq!(
        *at(&shown, memory),
        json!({"path": memory, "value": "1g", "source": "flag", "flag": "--memory"})
    );
    let id = json!({"path": "node.id", "value": null, "meaning": "the machine's name", "source": "default"});
    assert_eq!(*at(&shown, "node.id"), id);
}

#[test]
fn show_leaves_out_secrets_and_names_their_source() {
    let world = World::new(BELLJAR);
    let secret = "s3cr3t-0123456789";
    world.write(
        "a.yaml",
        format!(
            "tools:\n  channels:\n    slack: [{{name: a, url: 'https://hooks.example/{secret}'}}]\n\
             mcp:\n  servers:\n    - {{name: a, transport: streamable_http, url: 'https://a.example/mcp',\n\
             \x20      headers: {{x-key: {{value: {secret}}}}}}}\n\
             agents: [{{name: a, description: b, argv: [x, '{{prompt}}'], env: {{KEY: {secret}}}}}]\n"
        ),
    );
    for arguments in [["config", "show", "--config", "a.yaml"].as_slice(), &["config", "show", "--json"]] {
        let ran = run_with(&world, arguments, &[("BELLJAR_CONFIG", "a.yaml")]).succeeded();
        assert!(!ran.stdout.contains(secret), "{}", ran.stdout);
    }
    let shown = world.run(&["config", "show", "--json", "--config", "a.yaml"]).succeeded().json();
    for (path, line) in
        [("tools.channels.slack[0].url", 3), ("mcp.servers[0].headers", 7), ("agents[0].env", 8)]
    {
        let expected =
            json!({"path": path, "value": null, "is_secret": true, "source": "file", "line": line});
        assert_eq!(*at(&shown, path), expected);
    }
}

#[test]
fn show_without_a_file_prints_defaults_and_with_mistakes_fails() {
    let world = World::new(BELLJAR);
    let text = world.run(&["config", "show"]).succeeded().stdout;
    assert!(
        text.starts_with(
            "# no configuration file: all values are defaults\n# without a section `sandboxing`,"
        ),
        "{text}"
    );
    world.write("bad.yaml", "nod: {}\n");
    let ran = world.run(&["config", "show", "--config", "bad.yaml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("`node`, perhaps"), "{}", ran.stderr);
}

#[test]
fn check_names_members_without_effect() {
    let world = World::new(BELLJAR);
    world.write("a.yaml", "sandboxing:\n  overrides:\n    web: native\n    terminal: native\n");
    let ran = world.run(&["config", "check", "a.yaml"]).succeeded();
    insta::assert_snapshot!(
        ran.stderr,
        @"a.yaml:3:10: sandboxing.overrides.web has no effect: tools of this category work on the host"
    );
    let told = world.run(&["config", "check", "--json", "a.yaml"]).succeeded().json();
    let expected = json!([{
        "path": "sandboxing.overrides.web",
        "reason": "tools of this category work on the host",
        "line": 3,
        "column": 10,
    }]);
    assert_eq!(told["without_effect"], expected);
}

#[test]
fn options_that_the_reference_names_exist() {
    fn walk(members: &[Member], found: &mut Vec<(&'static str, &'static str)>) {
        for member in members {
            found.extend(member.overrides.iter().filter_map(|source| match source {
                Override::Flag { name, commands } => Some((*name, *commands)),
                Override::Variable(_) => None,
            }));
            member.below().into_iter().for_each(|below| walk(below, found));
        }
    }
    let mut named = Vec::new();
    walk(ROOT, &mut named);
    assert!(named.len() > 10, "{named:?}");
    let world = World::new(BELLJAR);
    let help = |command| world.run(&[command, "--help"]).succeeded().stdout;
    let (node, exec) = (help("node"), help("exec"));
    for (name, commands) in named {
        let help = if commands == "`belljar node`" { &node } else { &exec };
        assert!(help.contains(&format!(" {name} ")), "{name} of {commands}");
    }
}
