//! Real clients with TLS interception, and the credentials that the proxy injects for them.

use super::git_server::GitServer;
use super::registries::{PackageRegistry, node};
use super::{policy, policy_text};
use crate::BELLJAR;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};

#[test]
fn clients_trust_the_interception_ca_and_are_limited_to_allowed_methods() {
    let registry = match PackageRegistry::of_python() {
        Ok(registry) => registry,
        Err(why) => return skip("clients with TLS interception", &why),
    };
    let world = World::new(BELLJAR);
    policy(&world, &registry.rules().replace("networks:", "methods: [GET, HEAD], networks:"));
    let script = "there=\"$PIP_INDEX_URL/six/\"\n\
        test $(curl -sS -o /dev/null -w '%{http_code}' \"$there\") = 200\n\
        test $(curl -sS -o said -w '%{http_code}' -d x \"$there\") = 403 && grep -q urn:belljar:egress:not_allowed said\n\
        curl -sSv \"$there\" 2>&1 -o /dev/null | grep -i 'issuer: CN=Belljar run'\n\
        python3 -m pip install --quiet --no-cache-dir --retries 0 --target lib six && ls lib/six.py\n\
        /opt/node/bin/node -e 'fetch(process.argv[1]).then(a => console.log(\"node\", a.status))' \"$there\"\n";
    let lent = format!("{}:/opt/node", node().display());
    let variables = registry.variables.iter().flat_map(|variable| ["-e", variable.as_str()]);
    let before: Vec<&str> =
        ["exec", "--egress", "policy.yaml", "--ro", &lent].into_iter().chain(variables).collect();
    let ran = world.run(&[&before[..], &["--", "sh", "-ec", script]].concat());
    assert!(ran.code == 0 && ran.stdout.ends_with("lib/six.py\nnode 200\n"), "{ran:?}");
    let shown = world.run(&["audit", "show", "--json", "--kind", "egress"]).succeeded().stdout;
    assert!(shown.contains("\"method\":\"GET\"") && shown.contains("\"no_rule_for_method\""), "{shown}");
}

#[test]
fn git_credential_is_injected_by_the_proxy_and_never_visible_inside() {
    const SECRET: &str = "a-secret/of+the=house";
    let world = World::new(BELLJAR);
    let token = world.write("token", SECRET).display().to_string();
    for from in [
        format!("{{file: {token}}}"),
        "{env: HOUSE_TOKEN}".to_owned(),
        format!("{{command: [cat, {token}]}}"),
    ] {
        let_in_by(&world, SECRET, &from);
    }
}

/// Clones with a credential from that source on the host.
fn let_in_by(world: &World, secret: &str, from: &str) {
    let (server, other) = (GitServer::start(), GitServer::start());
    let ca = server.authority();
    let host = |port: u16| format!("{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]");
    policy_text(
        world,
        &format!(
            "rules:\n- {}, paths: [/repository.git], credentials: [house]}}\n- {}}}\n\
             credentials:\n- {{name: house, from: {from}}}\nauthorities: {ca}\n",
            host(server.port()),
            host(other.port()),
        ),
    );
    let script = "unset NO_PROXY no_proxy\n\
        said=$(printf git-user:belljar:cred:house | base64)\n\
        git -c http.extraHeader=\"Authorization: Basic $said\" clone --quiet \"https://$WHERE\" cloned\n\
        cat cloned/file; env; find / -xdev -type f -newer /etc/passwd -not -path '/proc/*' 2>/dev/null | head -2000 | xargs -r grep -l 'a-secret' || echo nowhere\n";
    let clone = |server: &GitServer| {
        let place = format!("WHERE={}", server.url().trim_start_matches("https://"));
        let arguments = ["exec", "--egress", "policy.yaml", "-e", &place, "--", "sh", "-c", script];
        ProgramOutput::from(world.command(&arguments).env("HOUSE_TOKEN", secret).output().unwrap())
    };
    let ran = clone(&server);
    assert!(ran.stdout.contains("cloned\n") && ran.stdout.ends_with("nowhere\n"), "{from}: {ran:?}");
    assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{from}: {ran:?}");
    let filled = format!("Basic {}", STANDARD.encode(format!("git-user:{secret}")));
    let shown = server.shown();
    assert!(shown.contains(&filled), "{from}: {shown:?}");
    // It is sent to no other server. The audit log has its name, and no part of its value.
    clone(&other);
    assert!(!other.shown().contains(&filled), "{:?}", other.shown());
    let audit = world.run(&["audit", "show", "--json"]).succeeded().stdout;
    assert!(audit.contains("\"credentials\":[\"house\"]") && !audit.contains(secret), "{audit}");
}

#[test]
fn session_fork_has_its_own_interception_ca() {
    let registry = match PackageRegistry::of_python() {
        Ok(registry) => registry,
        Err(why) => return skip("a fork with TLS interception", &why),
    };
    let world = World::new(BELLJAR);
    policy(&world, &registry.rules().replace("networks:", "methods: [GET, HEAD], networks:"));
    let _sessions = crate::session::SessionCleanup(&world);
    let variables = registry.variables.iter().flat_map(|variable| ["-e", variable.as_str()]);
    let create: Vec<&str> =
        ["--name", "first", "--egress", "policy.yaml"].into_iter().chain(variables).collect();
    crate::session::create(&world, &create);
    world.run(&["session", "fork", "first", "--name", "second"]).succeeded();
    world.run(&["session", "fork", "second", "--name", "third"]).succeeded();
    let ask = "there=\"$PIP_INDEX_URL/six/\"\n\
        test $(curl -sS -o /dev/null -w '%{http_code}' \"$there\") = 200\n\
        test $(curl -sS -o said -w '%{http_code}' -d x \"$there\") = 403\n\
        curl -sSv \"$there\" 2>&1 -o /dev/null | grep -q 'issuer: CN=Belljar run'\n\
        python3 -m pip download --quiet --no-cache-dir --retries 0 --dest lib six && ls lib | wc -l\n\
        sha256sum <\"$SSL_CERT_FILE\"\n";
    let ask = format!("set -e; {ask}");
    let said = ["first", "second", "third"].map(|name| {
        let ran = crate::session::exec(&world, name, &ask).succeeded();
        assert!(ran.stdout.starts_with("1\n"), "{name}: {ran:?}");
        ran.stdout
    });
    // Each session has a CA of its own.
    assert!(said[0] != said[1] && said[1] != said[2] && said[0] != said[2], "{said:?}");
    // The end of a session leaves its forks working.
    world.run(&["session", "end", "--discard", "first"]).succeeded();
    crate::session::exec(&world, "second", &ask).succeeded();
}

/// The host's curl for a root that has none, started with the loader that belongs to it.
const LENT_CURL: &str = "curl() { /opt/usr/lib64/ld-linux-x86-64.so.2 \
    --library-path /opt/usr/lib/x86_64-linux-gnu /opt/usr/bin/curl -sS -o /dev/null -w '%{http_code}\\n' \"$@\"; }; ";

#[test]
fn container_clients_trust_the_image_host_and_interception_cas() {
    let test = "container_clients_trust_the_image_host_and_interception_cas";
    let (engine, registry) = match (Docker::start(), PackageRegistry::of_python()) {
        (Ok(engine), Ok(registry)) => (engine, registry),
        (Err(why), _) | (_, Err(why)) => return skip(test, &why),
    };
    let world = World::new(BELLJAR);
    let socket = engine.socket().display().to_string();
    let variables: Vec<&str> = registry.variables.iter().flat_map(|one| ["-e", one.as_str()]).collect();
    let run = |image: &str, script: &str| {
        let docker = ["exec", "--backend", "docker", "--image", image, "--docker-socket", &socket];
        let rest = ["--egress", "policy.yaml", "--ro", "/usr:/opt/usr"];
        let script = format!("{LENT_CURL}{script}");
        world.run(&[&docker[..], &rest, &variables, &["--", "sh", "-c", &script]].concat())
    };
    let ask = "curl \"$PIP_INDEX_URL/six/\"; echo \"$SSL_CERT_FILE\"";
    // An image without a CA list: the host's list is used.
    policy(&world, &registry.rules());
    let ran = run(IMAGE, ask);
    assert!(ran.stdout.starts_with("200\n/home/agent/.belljar/authorities.pem\n"), "{ran:?}");
    // The control: without these variables no CA is trusted there.
    let ran = run(IMAGE, "unset SSL_CERT_FILE CURL_CA_BUNDLE; curl \"$PIP_INDEX_URL/six/\"; echo $?");
    assert!(ran.stdout.starts_with("000\n") && !ran.stdout.ends_with("\n0\n"), "{ran:?}");
    // An image with a CA list of its own gets no variables.
    let id = engine.command(&["create", IMAGE, "true"]).unwrap().trim().to_owned();
    let list = world.write("ssl/certs/ca-certificates.crt", "its own\n");
    let from = list.parent().and_then(std::path::Path::parent).unwrap().display().to_string();
    engine.command(&["cp", &from, &format!("{id}:/etc/")]).unwrap();
    engine.command(&["commit", &id, "belljar/listed"]).unwrap();
    engine.command(&["rm", &id]).unwrap();
    let ran = run("belljar/listed", "echo \"<$SSL_CERT_FILE>\"; cat /etc/ssl/certs/ca-certificates.crt");
    assert_eq!(ran.stdout, "<>\nits own\n", "{ran:?}");
    // With TLS interception, the proxy's CA takes precedence over any list.
    policy(&world, &registry.rules().replace("networks:", "methods: [GET, HEAD], networks:"));
    for image in [IMAGE, "belljar/listed"] {
        let ran = run(image, "curl \"$PIP_INDEX_URL/six/\"; curl -d x \"$PIP_INDEX_URL/six/\"");
        assert_eq!(ran.stdout, "200\n403\n", "{image}: {ran:?}");
    }
    engine.command(&["rmi", "belljar/listed"]).unwrap();
}
