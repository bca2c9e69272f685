//! Tests of the errors that mistakes cause.

use belljar_sandbox::config::Config;

/// Returns the error with which a configuration is refused.
#[track_caller]
pub(crate) fn refused(written: impl AsRef<[u8]>) -> String {
    Config::parse(written.as_ref()).unwrap_err().to_string()
}

#[test]
fn twelve_mistakes_are_told_at_once_each_with_its_place_and_what_would_be_right() {
    let written = r#"sandboxing:
  default_backend: "dokcer"
  overrides:
    git: subprocess
    version_control: native
    shell: docker
  docker:
    image: --privileged
    network: host
    allowed_hosts: ["*.example.com:443", db:5432]
    memroy_limit: 512m
    cpu_limit: 32
    pids_limit: 010
    auto_remove: yes
    image: other
  required: [seccomp, firewall]
"#;
    assert_eq!(Config::parse(written.as_bytes()).unwrap_err().as_slice().len(), 12);
    insta::assert_snapshot!(refused(written), @r#"
    2:20: sandboxing.default_backend: found "dokcer"; expected `docker`, perhaps; known here: docker, native, subprocess
    5:5: sandboxing.overrides.version_control: found `version_control` beside `git`, which is the same category; expected each category once
    6:5: sandboxing.overrides.shell: found an unknown category; expected one of: analytics, browser, code_execution, communication, database, deployment, design, desktop, external_data, file_system, git, mcp, memory, ontology, other, terminal, version_control, web
    8:12: sandboxing.docker.image: found "--privileged"; expected the name of an image, such as synthorg-sandbox:latest
    9:14: sandboxing.docker.network: found "host"; expected one of: bridge, none
    10:20: sandboxing.docker.allowed_hosts: found a list of 2; expected `[]`: containers reach the web by the rules of `egress` alone, which name hosts and ports
    11:5: sandboxing.docker.memroy_limit: found an unknown member; expected `memory_limit`, perhaps; known here: allowed_hosts, auto_remove, cpu_limit, disk_limit, dns_allowed, image, lifecycle, loopback_allowed, memory_limit, mount_mode, network, network_overrides, pids_limit, required, runtime, runtime_overrides, sidecar_pids_limit, sidecar_tmpfs_size, timeout_seconds, tmpfs_size
    12:16: sandboxing.docker.cpu_limit: found "32"; expected a number of processors above 0 up to 16, such as 1.5
    13:17: sandboxing.docker.pids_limit: found `010`; expected a whole number from 1 to 1024
    14:18: sandboxing.docker.auto_remove: found `yes`; expected `true`: containers are always removed
    15:5: sandboxing.docker.image: found the member again, after line 8; expected each member once
    16:23: sandboxing.required[1]: found "firewall"; expected one of: capabilities, cgroup_namespace, cpu_limit, disk_limit, host_user, ipc_namespace, kernel_tables, landlock, memory_limit, mount_namespace, network_namespace, no_new_privs, pid_namespace, process_limit, resource_limits, scratch_limit, seccomp, user_namespace, uts_namespace
    "#);
}

#[test]
fn a_file_that_says_nothing_is_no_configuration() {
    insta::assert_snapshot!(refused(""), @"1:1: the file: found nothing; expected a mapping with the member `sandboxing`");
    insta::assert_snapshot!(refused("# nothing\n"), @"1:1: the file: found nothing; expected a mapping with the member `sandboxing`");
    insta::assert_snapshot!(refused("log: {}\n"), @"1:1: sandboxing: found nothing; expected this required member");
    insta::assert_snapshot!(refused("sandboxing:\n"), @"1:11: sandboxing: found nothing; expected a mapping");
    insta::assert_snapshot!(refused("- sandboxing\n"), @"1:1: the file: found a list of 1; expected a mapping");
}

#[test]
fn values_that_nothing_would_hold_are_refused_with_the_reason() {
    let written = r#"sandboxing:
  default_backend: k8s
  overrides: {web: "k8s"}
  docker:
    allowed_hosts: ["db.example:5432"]
    dns_allowed: false
    loopback_allowed: false
    sidecar_pids_limit: 16
    sidecar_tmpfs_size: 16m
    auto_remove: false
    lifecycle: {strategy: per-task, grace_period_seconds: 0, health_check_interval_seconds: 60}
  k8s:
    namespace: others
    resource_requests: {cpu: 2, memory: 2Gi}
    resource_limits: {cpu: 3, memory: 3Gi}
    network_policy: allow-all
"#;
    insta::assert_snapshot!(refused(written), @"
    2:20: sandboxing.default_backend: found `k8s`, and this version makes no pods; expected one of: docker, native, subprocess
    3:20: sandboxing.overrides.web: found `k8s`, and this version makes no pods; expected one of: docker, native, subprocess
    5:20: sandboxing.docker.allowed_hosts: found a list of 1; expected `[]`: containers reach the web by the rules of `egress` alone, which name hosts and ports
    6:18: sandboxing.docker.dns_allowed: found `false`; expected `true`: containers have no resolver; the proxy resolves the hosts that rules allow
    7:23: sandboxing.docker.loopback_allowed: found `false`; expected `true`: a container has a loopback interface of its own, and nothing of the host is on it
    8:25: sandboxing.docker.sidecar_pids_limit: found `16`; expected `32`: containers have no sidecar
    9:25: sandboxing.docker.sidecar_tmpfs_size: found `16m`; expected `8m`: containers have no sidecar
    10:18: sandboxing.docker.auto_remove: found `false`; expected `true`: containers are always removed
    11:27: sandboxing.docker.lifecycle.strategy: found `per-task`, and a session is one task of one agent, so that `per-agent` means the same; expected one of: per-agent, per-call
    11:59: sandboxing.docker.lifecycle.grace_period_seconds: found `0`; expected `30`: an agent's sandboxes end with its session, which `--idle` and `--keep` govern
    11:93: sandboxing.docker.lifecycle.health_check_interval_seconds: found `60`; expected `10`: a sandbox that has ended is replaced at the next call, and not looked at meanwhile
    13:16: sandboxing.k8s.namespace: found `others`; expected `synthorg-agents`: this version makes no pods
    14:30: sandboxing.k8s.resource_requests.cpu: found `2`; expected `250m`: this version makes no pods
    14:41: sandboxing.k8s.resource_requests.memory: found `2Gi`; expected `256Mi`: this version makes no pods
    15:28: sandboxing.k8s.resource_limits.cpu: found `3`; expected `1`: this version makes no pods
    15:39: sandboxing.k8s.resource_limits.memory: found `3Gi`; expected `1Gi`: this version makes no pods
    16:21: sandboxing.k8s.network_policy: found `allow-all`; expected `deny-all`: this version makes no pods
    ");
    // The control: the values of the specification stand.
    Config::parse(include_bytes!("layered.yaml")).unwrap();
}

#[test]
fn ranges_are_those_of_the_documentation() {
    let cases = [
        ("subprocess", "timeout_seconds", ["0", "600.001", "-1"], ["0.001", "600"]),
        ("docker", "timeout_seconds", ["0", "601", "1e2"], ["1", "600"]),
        ("docker", "cpu_limit", ["0", "16.001", "\"1,0\""], ["0.001", "\"16\""]),
        ("docker", "pids_limit", ["0", "1025", "\"64\""], ["1", "1024"]),
        ("docker", "sidecar_pids_limit", ["0", "1025", "1.0"], ["32", "32"]),
        ("docker", "memory_limit", ["0", "5m", "0x10"], ["6m", "\"512m\""]),
        ("docker", "tmpfs_size", ["0", "064m", "64M"], ["64m", "1g"]),
        ("docker", "mount_mode", ["wr", "true", "[]"], ["ro", "\"rw\""]),
        ("docker", "image", ["\"\"", "\" \"", "-x"], ["a/b:c", "\"x@sha256:00\""]),
        (
            "docker",
            "lifecycle",
            ["{strategy: per_agent}", "{max_idle_seconds: 86401}", "{max_idle_seconds: -1}"],
            ["{strategy: per-call}", "{max_idle_seconds: 0}"],
        ),
        ("subprocess", "extra_safe_path_prefixes", ["[/]", "[opt]", "[/opt/../etc]"], ["[/opt/bin]", "[]"]),
        (
            "subprocess",
            "extra_safe_path_prefixes",
            ["[\"/opt\\0x\"]", "[//opt]", "[\"/a:/b\"]"],
            ["[/opt/bin/]", "[/a, /b]"],
        ),
        ("subprocess", "env_allowlist", ["[A=B]", "PATH", "[\"\"]"], ["[PATH, LC_*]", "[]"]),
        ("k8s", "network_policy", ["allow-all", "none", "no"], ["deny-all", "\"deny-all\""]),
        ("k8s", "namespace", ["A", "a_b", "\"\""], ["synthorg-agents", "\"synthorg-agents\""]),
    ];
    for (section, member, wrong, right) in cases {
        let write = |value: &str| format!("sandboxing:\n  {section}:\n    {member}: {value}\n");
        for value in wrong {
            assert_eq!(
                Config::parse(write(value).as_bytes()).unwrap_err().as_slice().len(),
                1,
                "{member}: {value}"
            );
        }
        for value in right {
            Config::parse(write(value).as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
