//! Tests of the section, and of every mistake in it.

use super::*;
use belljar_contract::yaml::{self, Mistakes};

fn parse(text: &str) -> Result<ServersConfig, Mistakes> {
    let mut log = MistakeLog::default();
    let root = yaml::parse(text.as_bytes(), &mut log);
    let read = root.and_then(|root| {
        let mut members = Members::open(&root, &mut log)?;
        let read = members.section("servers", ServersConfig::read);
        members.finish();
        Some(read)
    });
    let read = read.unwrap_or_default();
    log.finish().map(|()| read)
}

#[test]
fn server_config_defaults_are_restrictive() {
    let text = "servers:\n  - {name: files, transport: stdio, command: server}\n";
    let server = parse(text).unwrap().0.remove(0);
    let ServerTransport::Stdio(stdio) = &server.way else { panic!("{server:?}") };
    assert!(!stdio.is_unsealed && stdio.workspace.is_none() && stdio.lend.is_empty());
    assert_eq!((server.scope, server.is_enabled), (ToolScope::Pm, true));
    assert_eq!((server.timeout.as_secs(), server.connect_timeout.as_secs()), (30, 10));
    assert_eq!((server.cache.ttl.as_secs(), server.cache.size), (60, 256));
    assert!(server.is_meant("anything"));
}

#[test]
fn enabled_and_disabled_tools_filter_a_servers_tools() {
    let text = "servers:\n  - {name: a, transport: stdio, command: x, enabled_tools: [one, two], disabled_tools: [three]}\n";
    let server = parse(text).unwrap().0.remove(0);
    assert_eq!(["one", "two", "three", "four"].map(|tool| server.is_meant(tool)), [true, true, false, false]);
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let text = "servers:
  - {name: Files, transport: stdio, command: bin/server, args: [1, two], env: {PATH: /bin, 'a b': c}}
  - {name: a, transport: carrier_pigeon}
  - {name: a, transport: stdio, url: 'https://x.example/'}
  - {name: b, transport: stdio, command: x, timeout_seconds: 601, connect_timeout_seconds: 121, cache_ttl_seconds: -1}
  - {name: b_c, transport: stdio, command: x, enabled_tools: [one], disabled_tools: [one], scope: everybody}
  - {name: b, transport: stdio, command: x, workspace: {path: ../x, mode: rw}, lend: [/], unsealed: yes}
  - {name: d, transport: streamable_http, command: x, limits: {calls: 0, answer: 1g, tools: 100000}}
  - {name: e, transport: streamable_http, url: 'ftp://x.example/', headers: {host: {value: x}, 'a b': {value: x}, x-a: {}}}
  - {name: f, transport: streamable_http, url: 'http://x.example/', headers: {x-key: {secret: {env: KEY}}}}
";
    insta::assert_snapshot!(parse(text).unwrap_err().to_string());
}

#[test]
fn call_scope_names_the_server_without_credentials() {
    let of = |text: &str| parse(&format!("servers:\n  - {{name: s, {text}}}\n")).unwrap().0.remove(0).scope();
    let stdio = |args: &str| {
        of(&format!("transport: stdio, command: server, args: [{args}], workspace: {{path: /srv/docs}}"))
    };
    let scope = stdio("a-credential");
    assert_eq!((&scope["command"], &scope["workspace"]), (&json!("server"), &json!("/srv/docs")));
    assert!(!scope.to_string().contains("a-credential"), "{scope}");
    assert_ne!(scope, stdio("other"));
    let http = of("transport: streamable_http, url: 'https://tools.example/mcp'");
    assert_eq!(http, json!({ "name": "s", "url": "https://tools.example/mcp" }));
}
