//! What is said of mistakes.

use belljar_sandbox::config::Config;

/// What a configuration is refused with.
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
    2:20: sandboxing.default_backend: found "dokcer"; expected `docker`, perhaps; known here: docker, k8s, native, subprocess
    5:5: sandboxing.overrides.version_control: found `version_control` beside `git`, which is the same category; expected each category once
    6:5: sandboxing.overrides.shell: found an unknown category; expected one of: analytics, browser, code_execution, communication, database, deployment, design, desktop, external_data, file_system, git, mcp, memory, ontology, other, terminal, version_control, web
    8:12: sandboxing.docker.image: found "--privileged"; expected the name of an image, such as synthorg-sandbox:latest
    9:14: sandboxing.docker.network: found "host"; expected one of: bridge, none
    10:21: sandboxing.docker.allowed_hosts[0]: found "*.example.com:443"; expected host:port, such as db.example.com:5432: a name or an IPv4 address, a port from 1 to 65535
    11:5: sandboxing.docker.memroy_limit: found an unknown member; expected `memory_limit`, perhaps; known here: allowed_hosts, auto_remove, cpu_limit, disk_limit, dns_allowed, image, lifecycle, loopback_allowed, memory_limit, mount_mode, network, network_overrides, pids_limit, required, runtime, runtime_overrides, sidecar_pids_limit, sidecar_tmpfs_size, timeout_seconds, tmpfs_size
    12:16: sandboxing.docker.cpu_limit: found "32"; expected a number of processors above 0 up to 16, such as 1.5
    13:17: sandboxing.docker.pids_limit: found `010`; expected a whole number from 1 to 1024
    14:18: sandboxing.docker.auto_remove: found `yes`; expected `true` or `false`
    15:5: sandboxing.docker.image: found the member again, which is in line 8 too; expected each member once
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
fn what_contradicts_itself_is_refused() {
    let requests = "sandboxing:\n  k8s:\n    resource_requests: {cpu: 2, memory: 2Gi}\n";
    insta::assert_snapshot!(refused(requests), @"3:24: sandboxing.k8s.resource_requests: found requests above the limits; expected at most what `resource_limits` says");
}

#[test]
fn ranges_are_those_of_the_documentation() {
    let cases = [
        ("subprocess", "timeout_seconds", ["0", "600.001", "-1"], ["0.001", "600"]),
        ("docker", "timeout_seconds", ["0", "601", "1e2"], ["1", "600"]),
        ("docker", "cpu_limit", ["0", "16.001", "\"1,0\""], ["0.001", "\"16\""]),
        ("docker", "pids_limit", ["0", "1025", "\"64\""], ["1", "1024"]),
        ("docker", "sidecar_pids_limit", ["0", "1025", "1.0"], ["1", "1024"]),
        ("docker", "memory_limit", ["0", "5m", "0x10"], ["6m", "\"512m\""]),
        ("docker", "tmpfs_size", ["0", "064m", "64M"], ["64m", "1g"]),
        ("docker", "mount_mode", ["wr", "true", "[]"], ["ro", "\"rw\""]),
        ("docker", "image", ["\"\"", "\" \"", "-x"], ["a/b:c", "\"x@sha256:00\""]),
        (
            "docker",
            "lifecycle",
            ["{strategy: per_agent}", "{health_check_interval_seconds: 0}", "{grace_period_seconds: -1}"],
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
        ("k8s", "namespace", ["A", "a_b", "\"\""], ["a", "a-b"]),
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
