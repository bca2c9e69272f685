//! Tests of the meaning of a configuration.

use belljar_contract::category::Category;
use belljar_sandbox::config::{
    BackendName, Config, LifecycleConfig, MountMode, Network, Sandboxing, Strategy,
};
use belljar_sandbox::limits::Limits;
use std::time::Duration;

/// The default configuration of the contract (`docs/contracts/tools.md#t4`).
const LAYERED: &str = include_str!("layered.yaml");

#[test]
fn the_example_of_the_specification_is_what_stands_when_nothing_is_written() {
    let example = Config::parse(LAYERED.as_bytes()).unwrap();
    assert_eq!(example, Config::default());
    assert_eq!(Config::parse(b"sandboxing: {}").unwrap(), example);
}

#[test]
fn every_default_has_the_value_that_the_specification_gives() {
    let Sandboxing { default_backend, subprocess, docker, .. } = Sandboxing::default();
    assert_eq!(default_backend, BackendName::Subprocess);
    assert_eq!(subprocess.timeout, Duration::from_secs(30));
    assert!(subprocess.workspace_only && subprocess.restricted_path);
    assert_eq!(docker.image, "synthorg-sandbox:latest");
    assert_eq!(docker.network, Network::None);
    assert_eq!(docker.network_for(Category::Database), Network::Bridge);
    assert_eq!(docker.network_for(Category::Web), Network::Bridge);
    assert_eq!(docker.network_for(Category::Terminal), Network::None);
    assert_eq!((docker.memory_bytes, docker.millicpus), (512 << 20, 1_000));
    assert_eq!(docker.timeout, Duration::from_secs(120));
    assert_eq!((docker.processes, docker.tmpfs_bytes), (64, 64 << 20));
    assert_eq!(docker.mount_mode, MountMode::ReadOnly);
    let kept = LifecycleConfig::default();
    assert_eq!(kept.strategy, Strategy::PerAgent);
    let seconds = [kept.grace_period, kept.health_check_interval, kept.max_idle.unwrap()];
    assert_eq!(seconds, [30, 10, 300].map(Duration::from_secs));
    let shipping = Config::default().log_shipping;
    assert!(shipping.enabled && !shipping.ship_raw_logs);
}

#[test]
fn one_override_takes_no_other_category_out_of_its_sandbox() {
    let written = "sandboxing:\n  overrides:\n    web: native\n";
    let sandboxing = Config::parse(written.as_bytes()).unwrap().sandboxing;
    assert_eq!(sandboxing.backend_for(Category::Web), BackendName::Native);
    assert_eq!(sandboxing.backend_for(Category::Terminal), BackendName::Docker);
    assert_eq!(sandboxing.backend_for(Category::FileSystem), BackendName::Subprocess);
    assert_eq!(sandboxing.backend_for(Category::Mcp), BackendName::Subprocess);
}

#[test]
fn a_default_that_is_a_sandbox_in_earnest_is_for_every_category_without_an_override() {
    let written = "sandboxing:\n  default_backend: native\n  overrides:\n    git: subprocess\n";
    let sandboxing = Config::parse(written.as_bytes()).unwrap().sandboxing;
    for category in Category::ALL {
        let expected = match category {
            Category::VersionControl => BackendName::Subprocess,
            _ => BackendName::Native,
        };
        assert_eq!(sandboxing.backend_for(category), expected, "{category}");
    }
}

#[test]
fn network_overrides_that_are_written_replace_those_that_open_the_network() {
    let written = "sandboxing:\n  docker:\n    network_overrides:\n      database: bridge\n";
    let docker = Config::parse(written.as_bytes()).unwrap().sandboxing.docker;
    assert_eq!(docker.network_for(Category::Database), Network::Bridge);
    assert_eq!(docker.network_for(Category::Web), Network::None);
}

#[test]
fn limits_and_required_layers_are_those_of_the_backend() {
    let written = r#"
sandboxing:
  required: [seccomp]
  docker:
    memory_limit: "1g"
    cpu_limit: 1.5
    pids_limit: 100
    tmpfs_size: 8m
    required: [network_namespace, memory_limit]
  native:
    memory_limit: 256m
    disk_limit: 1g
    open_files_limit: 512
    ptys_limit: 16
    seccomp_filters_limit: 8
"#;
    let sandboxing = Config::parse(written.as_bytes()).unwrap().sandboxing;
    let docker = sandboxing.limits_of(BackendName::Docker);
    assert_eq!(docker.memory_bytes, Some(1 << 30));
    assert_eq!(docker.millicpus, Some(1_500));
    assert_eq!((docker.processes, docker.scratch_bytes), (100, 16 << 20));
    let native = sandboxing.limits_of(BackendName::Native);
    let expected = Limits {
        memory_bytes: Some(256 << 20),
        disk_bytes: Some(1 << 30),
        open_files: 512,
        terminals: 16,
        filters: 8,
        ..Limits::default()
    };
    assert_eq!(native, expected);
    let required = |backend| sandboxing.required_of(backend).names().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(required(BackendName::Docker), ["memory_limit", "network_namespace", "seccomp"]);
    assert_eq!(required(BackendName::Native), ["seccomp"]);
    assert_eq!(required(BackendName::Subprocess), ["seccomp"]);
}

#[test]
fn a_lifecycle_and_the_shipping_of_logs_are_read() {
    let written = r"
sandboxing:
  docker:
    lifecycle:
      strategy: per-call
      max_idle_seconds: 0
log:
  container_log_shipping:
    enabled: false
    collection_timeout_seconds: 0.5
    max_log_bytes: 4096
    ship_raw_logs: true
";
    let config = Config::parse(written.as_bytes()).unwrap();
    let lifecycle = config.sandboxing.docker.lifecycle;
    assert_eq!((lifecycle.strategy, lifecycle.max_idle), (Strategy::PerCall, None));
    let shipping = config.log_shipping;
    assert!(!shipping.enabled && shipping.ship_raw_logs);
    assert_eq!((shipping.collection_timeout, shipping.max_log_bytes), (Duration::from_millis(500), 4_096));
}

#[test]
fn the_reference_shows_what_stands_when_nothing_is_written_and_names_every_category() {
    let reference = include_str!("../../../../docs/reference/sandboxing.md");
    let shown = reference.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Config::parse(shown.as_bytes()).unwrap(), Config::default());
    for category in Category::ALL {
        assert!(reference.contains(&format!("`{category}`")), "{category}");
    }
}
