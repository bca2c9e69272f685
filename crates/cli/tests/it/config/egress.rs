//! The effects of members of `egress` on programs in sandboxes.

use crate::BELLJAR;
use crate::egress::HelloServer;
use crate::recording_server::RecordingServer;
use belljar_testkit::world::{ProgramOutput, World};

/// Prefix of every request here: clients would otherwise bypass the proxy for `localhost`.
const BY_PROXY: &str = "unset NO_PROXY no_proxy; ";

/// Runs a shell script with that policy.
fn exec(world: &World, policy: &str, script: &str) -> ProgramOutput {
    world.write("policy.yaml", policy);
    let script = format!("{BY_PROXY}{script}");
    let mut command = world.command(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", &script]);
    ProgramOutput::from(
        command
            .envs([("HOUSE_KEY", KEY), ("HOUSE_KEY_ID", KEY_ID), ("HOUSE_TOKEN", TOKEN)])
            .output()
            .unwrap(),
    )
}

/// Returns a policy with one rule, for a port of this machine.
fn rule(port: u16, more: &str) -> String {
    format!("rules: [{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]{more}}}]\n")
}

/// Opens a tunnel to a port of this machine, and makes a TLS handshake in it with each of these names as SNI; `-` sends no
/// SNI.
const HANDSHAKES: &str = r#"
import socket, ssl, sys
port, *names = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
for name in names:
    tunnel = socket.create_connection(('127.0.0.1', 3128), 60)
    tunnel.sendall(f'CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n'.encode())
    head = b''
    while not head.endswith(b'\r\n\r\n'): head += tunnel.recv(1)
    try:
        context.wrap_socket(tunnel, server_hostname=None if name == '-' else name)
        print(name, 'shown')
    except OSError: print(name, 'refused')
"#;

#[test]
fn tunnel_carries_only_tls_and_sni_that_its_rule_allows() {
    let (world, plain, tls) = (World::new(BELLJAR), HelloServer::start(), RecordingServer::start());
    let port = plain.address.port();
    let by_tunnel = format!("curl -sS --proxytunnel http://localhost:{port}/");
    for (more, said) in [("", "hello\n"), (", tls: optional", "hello\n"), (", tls: required", "")] {
        let ran = exec(&world, &rule(port, more), &by_tunnel);
        assert_eq!(ran.stdout, said, "{more}: {ran:?}");
    }
    let handshakes = format!("python3 - {} - localhost <<'END'\n{HANDSHAKES}\nEND", tls.port());
    for (more, unnamed) in [("", "refused"), (", sni: required", "refused"), (", sni: optional", "shown")] {
        let ran = exec(&world, &rule(tls.port(), more), &handshakes);
        assert_eq!(ran.stdout, format!("- {unnamed}\nlocalhost shown\n"), "{more}: {ran:?}");
    }
}

#[test]
fn inspect_rule_intercepts_tls_and_reaches_only_hosts_with_known_authorities() {
    let (world, server) = (World::new(BELLJAR), RecordingServer::start());
    let authorities = format!("authorities: {}\n", server.authority().display());
    let script = format!("curl -skSv -o /dev/null -w '%{{http_code}}' {}/ 2>&1", server.url());
    let asked = |more: &str, authorities: &str| {
        let said = exec(&world, &(rule(server.port(), more) + authorities), &script).stdout;
        (said.contains("issuer: CN=Belljar run"), said.ends_with("200"))
    };
    assert_eq!(asked("", ""), (false, true), "the client alone verifies the certificate");
    assert_eq!(asked(", inspect: false", &authorities), (false, true));
    assert_eq!(asked(", inspect: true", &authorities), (true, true));
    assert_eq!(asked(", inspect: true", ""), (true, false));
}

#[test]
fn hostnames_below_a_wildcard_are_limited_by_its_rule() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let (ok, many, much) = ("hello", "too_many_names", "name_says_too_much");
    let (names, short) = (["a", "b", "c", "a"], ["short", "longer"]);
    let cases: [(&str, &[&str], &[&str]); 8] = [
        ("", &names, &[ok; 4]),
        (", names: {at_once: 2, an_hour: 1}", &names, &[ok, ok, many, ok]),
        (", names: {at_once: 1, an_hour: 1}", &names, &[ok, many, many, ok]),
        // A million per hour is about one every four milliseconds.
        (", names: {at_once: 1, an_hour: 1000000}", &names, &[ok; 4]),
        (", names: {characters: 5}", &short, &[ok, much]),
        (", names: {characters: 6}", &short, &[ok, ok]),
        // Four different letters count as two bits each.
        (", names: {bits: 7}", &["aaaa", "abcd"], &[ok, much]),
        (", names: {bits: 8}", &["aaaa", "abcd"], &[ok, ok]),
    ];
    // Each rule is for a zone of its own, and the upstream proxy answers for every name, so none is looked up.
    let (mut rules, mut script, mut expected) = (Vec::new(), String::new(), String::new());
    for (number, (limits, names, ends)) in cases.iter().enumerate() {
        rules.push(format!("{{host: '**.zone{number}.test', ports: [80]{limits}}}"));
        for (name, end) in names.iter().zip(*ends) {
            let said = format!("grep -o -e '^{ok}$' -e {many} -e {much} | head -n 1");
            script.push_str(&format!("sleep 0.05; curl -s http://{name}.zone{number}.test/ | {said}; "));
            expected.push_str(&format!("{end}\n"));
        }
    }
    let proxy = format!("proxy: {{url: 'http://{}', names: there}}\n", server.address);
    let ran = exec(&world, &format!("rules: [{}]\n{proxy}", rules.join(", ")), &script);
    assert_eq!(ran.stdout, expected, "{cases:?}");
}

/// The secret that replaces placeholders.
const KEY: &str = "ghp_a-key-of-the-house-0123456789";

#[test]
fn placeholder_is_replaced_only_where_its_credential_is_allowed() {
    let (world, server) = (World::new(BELLJAR), RecordingServer::start());
    let place = "belljar:cred:house";
    let asked = [
        format!("-H 'Authorization: Bearer {place}' {}/bearer", server.url()),
        format!("-H 'X-Api-Key: {place}' {}/header", server.url()),
        format!("'{}/query?key={place}'", server.url()),
    ];
    let script: String =
        asked.map(|asked| format!("curl -sS -o /dev/null -w '%{{http_code}} ' {asked}; ")).concat();
    for (more, expected) in [
        // Without either member it may be in `authorization`.
        ("", [true, false, false]),
        (", headers: [x-api-key]", [false, true, false]),
        (", query: [key]", [false, false, true]),
        (", headers: [authorization, x-api-key], query: [key]", [true, true, true]),
    ] {
        let policy = format!(
            "{}credentials: [{{name: house, from: {{env: HOUSE_KEY}}{more}}}]\nauthorities: {}\n",
            rule(server.port(), ", credentials: [house]"),
            server.authority().display()
        );
        let before = server.heads().len();
        let codes = exec(&world, &policy, &script).stdout;
        assert_eq!(
            codes,
            expected.map(|is_filled| if is_filled { "200 " } else { "403 " }).concat(),
            "{more}"
        );
        // A request whose placeholder isn't replaced isn't sent.
        let heads = server.heads().split_off(before);
        let filled = ["/bearer", "/header", "/query"]
            .map(|path| heads.iter().any(|head| head.contains(path) && head.contains(KEY)));
        assert_eq!((filled, heads.len()), (expected, filled.iter().filter(|one| **one).count()), "{more}");
    }
}

const KEY_ID: &str = "AKIAHOUSE01234567890";
const TOKEN: &str = "a-token-of-a-session-0123456789";

#[test]
fn request_signed_with_a_placeholder_is_re_signed_for_allowed_services_and_regions() {
    let (world, server) = (World::new(BELLJAR), RecordingServer::start());
    let file = |name: &str, content: &str| {
        format!("file: '{}'", world.write(&format!("keys/{name}"), content).display())
    };
    let (id, key, token) = (file("id", KEY_ID), file("key", KEY), file("session", TOKEN));
    let key_of = |id: &str, key: &str, more: &str| {
        format!("access_key_id: {{{id}}}, secret_access_key: {{{key}}}, {more}")
    };
    let of_files = |more: &str| key_of(&id, &key, more);
    let keys = [
        ("by-file", of_files("services: [s3]")),
        ("by-env", key_of("env: HOUSE_KEY_ID", "env: HOUSE_KEY", "services: [s3]")),
        (
            "by-command",
            key_of("command: [printenv, HOUSE_KEY_ID]", "command: [printenv, HOUSE_KEY]", "services: [s3]"),
        ),
        ("other", key_of(&id, &file("other", "another-key"), "services: [s3]")),
        ("for-iam", of_files("services: [iam]")),
        ("for-both", of_files("services: [iam, s3]")),
        ("in-us", of_files("services: [s3], regions: [us-east-1]")),
        ("in-both", of_files("services: [s3], regions: [us-east-1, eu-west-1]")),
        ("lent-file", of_files(&format!("services: [s3], session_token: {{{token}}}"))),
        ("lent-env", of_files("services: [s3], session_token: {env: HOUSE_TOKEN}")),
        ("lent-command", of_files("services: [s3], session_token: {command: [printenv, HOUSE_TOKEN]}")),
    ];
    let names = keys.each_ref().map(|(name, _)| *name);
    let rows = keys.each_ref().map(|(name, members)| format!("- {{name: {name}, {members}}}\n")).concat();
    let policy = format!(
        "{}aws_keys:\n{rows}authorities: {}\n",
        rule(server.port(), &format!(", credentials: [{}]", names.join(", "))),
        server.authority().display()
    );
    let script = names.map(|name| {
        format!(
            "curl -sS -o /dev/null -H 'X-Amz-Date: 20260101T123600Z' -H 'Authorization: AWS4-HMAC-SHA256 \
             Credential=belljar:cred:{name}/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, \
             Signature=00' {}/bucket -H 'X-Name: {name}'; ",
            server.url()
        )
    });
    exec(&world, &policy, &script.concat()).succeeded();
    let heads = server.heads();
    let head_of = |name: &str| heads.iter().find(|head| head.contains(&format!("x-name: {name}\n")));
    let sent = names.iter().filter(|name| head_of(name).is_some()).copied().collect::<Vec<_>>();
    assert_eq!(
        sent,
        names.into_iter().filter(|name| !["for-iam", "in-us"].contains(name)).collect::<Vec<_>>()
    );
    let signature = |name: &str| {
        let head = head_of(name).unwrap();
        assert!(head.contains(&format!("Credential={KEY_ID}/20260101/eu-west-1/s3/aws4_request")), "{head}");
        head.split("Signature=").nth(1).unwrap()[..64].to_owned()
    };
    // The key is the same from every source, and another key makes another signature.
    let same = ["by-env", "by-command", "for-both", "in-both"].map(signature);
    assert!(same.iter().all(|one| *one == signature("by-file")), "{same:?}");
    assert_ne!(signature("other"), signature("by-file"));
    let has_token =
        |name: &str| head_of(name).unwrap().contains(&format!("\nx-amz-security-token: {TOKEN}\n"));
    assert_eq!(
        ["lent-file", "lent-env", "lent-command", "by-file"].map(has_token),
        [true, true, true, false]
    );
}
