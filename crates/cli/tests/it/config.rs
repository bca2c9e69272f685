//! `belljar config`, and the effects of a configuration.

mod access;
mod approvals;
mod containers;
mod effects;
mod egress;
mod init;
mod level_members;
mod levels;
mod models;
mod node;
mod refused;
mod servers;
mod show;
mod tools;
mod trust;

use crate::BELLJAR;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;

/// Runs the program with these environment variables, too.
fn run_with(world: &World, arguments: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
    let mut command = world.command(arguments);
    ProgramOutput::from(command.envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn valid_configuration_is_shown_with_its_meaning() {
    let world = World::new(BELLJAR);
    world.write("belljar.yaml", "sandboxing:\n  overrides: {terminal: native}\n  required: [seccomp]\n");
    let ran = world.run(&["config", "check", "belljar.yaml"]).succeeded();
    insta::assert_snapshot!(ran.stdout, @"
    file_system      subprocess
    code_execution   docker, network none
    version_control  subprocess
    web              host
    database         host
    terminal         native
    design           host
    communication    host
    analytics        host
    deployment       host
    mcp              host
    other            host
    memory           host
    ontology         host
    browser          host
    external_data    host
    desktop          host
    exec, session    native

    Tools on the host need no workspace and reach what rules allow; overrides don't move them.
    A list of programs (--programs, or a level's) moves tools in docker and subprocess to native sandboxes.

    subprocess: memory, processors, processes and scratch as the host has them
      requires seccomp

    docker: memory 512m, processors 1, 64 processes, scratch 128m
      requires seccomp

    native: memory 4g, processors as the host has it, 1024 processes, scratch 1g
      requires seccomp
    ");
}

#[test]
fn every_mistake_is_shown_with_file_line_and_column() {
    let world = World::new(BELLJAR);
    world.write(
        "belljar.yaml",
        "sandboxing:\n  docker:\n    network: host\n    pids_limit: 0\n    \"\\e[31m\": 1\n",
    );
    let ran = world.run(&["config", "check", "belljar.yaml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stdout, @r#"
    belljar.yaml:3:14: sandboxing.docker.network
      found     "host"
      expected  one of: bridge, none
    belljar.yaml:4:17: sandboxing.docker.pids_limit
      found     `0`
      expected  a whole number from 1 to 1024
    belljar.yaml:5:5: sandboxing.docker."\u{1b}[31m"
      found     an unknown member
      expected  one of: allowed_hosts, auto_remove, cpu_limit, disk_limit, dns_allowed, image, lifecycle, loopback_allowed, memory_limit, mount_mode, network, network_overrides, pids_limit, required, runtime, runtime_overrides, sidecar_pids_limit, sidecar_tmpfs_size, timeout_seconds, tmpfs_size
    "#);
}

#[test]
fn json_output_reports_the_same_mistakes() {
    let world = World::new(BELLJAR);
    world.write("good.yaml", "sandboxing: {default_backend: native}");
    let told = world.run(&["config", "check", "--json", "good.yaml"]).succeeded().json();
    assert_eq!((&told["valid"], &told["categories"]["terminal"]), (&json!(true), &json!("native")));
    assert_eq!((&told["categories"]["database"], &told["commands"]), (&json!("host"), &json!("native")));
    assert_eq!(told["backends"]["native"]["limits"]["memory_bytes"], json!(4_u64 << 30));
    world.write("bad.yaml", "sandboxing: {default_backend: nativ}");
    let ran = world.run(&["config", "check", "--json", "bad.yaml"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stdout, @r#"
    {
      "mistakes": [
        {
          "column": 31,
          "expected": "`native`, perhaps; known here: docker, native, subprocess",
          "found": "\"nativ\"",
          "line": 1,
          "path": "sandboxing.default_backend"
        }
      ],
      "unlisted": 0,
      "valid": false
    }
    "#);
}

#[test]
fn unreadable_file_is_not_reported_as_a_mistake_in_it() {
    let world = World::new(BELLJAR);
    let ran = world.run(&["config", "check", "missing.yaml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""));
    insta::assert_snapshot!(ran.stderr, @"belljar: can't read missing.yaml: No such file or directory (os error 2)");
}

#[test]
fn models_web_and_agents_sections_are_checked_and_shown() {
    let world = World::new(BELLJAR);
    let good = "inference:\n  providers: [{name: house, kind: ollama, url: 'unix:/run/models'}]\n  \
                models: [{name: small, provider: house, upstream: 'llama3:8b', price: {input: 0.15, output: 3}}]\n\
                agents: [{name: mine, description: my own, argv: [mine, '{prompt}']}]\n";
    let good = &format!(
        "{good}egress: {{rules: [{{host: pkgs.example, methods: [GET]}}, {{host: '**.b.example', ports: [443], inspect: true}}]}}\n"
    );
    world.write("good.yaml", good);
    let shown = world.run(&["config", "check", "good.yaml"]).succeeded();
    let expected = "model small: llama3:8b of house (ollama), $0.15 in and $3 out for a million tokens\n\
                    web rule 0: pkgs.example at 80, 443, methods GET\n\
                    web rule 1: **.b.example at 443, inspected\nagent mine: my own\n";
    assert_eq!(shown.stdout, expected);
    let told = world.run(&["config", "check", "--json", "good.yaml"]).succeeded().json();
    let price = json!({"input": 0.15, "output": 3.0});
    let model = json!({"name": "small", "upstream": "llama3:8b", "provider": "house", "kind": "ollama", "price": price});
    assert_eq!((&told["models"], &told["agents"]), (&json!([model]), &json!(["mine"])));
    assert_eq!(
        (&told["egress"][1]["host"], &told["egress"][1]["ports"]),
        (&json!("**.b.example"), &json!([443]))
    );
    world.write("bad.yaml", good.replace("house, upstream", "hose, upstream").replace("argv", "arg"));
    let ran = world.run(&["config", "check", "bad.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stdout.contains("inference.models[0].provider") && ran.stdout.contains("agents[0].arg"),
        "{ran:?}"
    );
}
