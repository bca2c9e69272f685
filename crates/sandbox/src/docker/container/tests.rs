//! Snapshot tests of the request: any change in it changes what a container may do.

use super::*;
use crate::config::DockerConfig;
use crate::docker::settings::{DeploymentId, ImageName};
use belljar_files::host_path::HostPath;

fn settings() -> DockerSettings {
    DockerSettings {
        socket: "/run/docker.sock".into(),
        image: ImageName::parse("belljar/debian").unwrap(),
        deployment: DeploymentId::parse("node-7").unwrap(),
        runtime: None,
        helper: "/usr/bin/belljar".into(),
    }
}

fn body(
    settings: &DockerSettings,
    workspace: Option<&Path>,
    lent: &[Lent],
    limits: Limits,
) -> serde_json::Value {
    let run = RunId::parse("01a20073-e9f5-7598-b496-5102b8186da2").unwrap();
    let body = ContainerBlueprint {
        settings,
        image_id: "sha256:0123",
        run: &run,
        owner: Path::new("/var/lib/belljar/runs/01a20073-e9f5-7598-b496-5102b8186da2"),
        user: ContainerUser { uid: 1000, gid: 1000 },
        workspace,
        job: None,
        writable: WritableMounts { workspace: true, job: false },
        lent,
        limits,
        doors: None,
    }
    .body();
    let mut body = serde_json::to_value(body).unwrap();
    // Held by another check; and maps come in any order.
    let profile = body["HostConfig"]["SecurityOpt"][1].as_str().unwrap().to_owned();
    assert_eq!(profile, format!("seccomp={PROFILE}"));
    body["HostConfig"]["SecurityOpt"][1] = "seccomp=<the profile>".into();
    body
}

#[test]
fn what_an_empty_sandbox_is() {
    let limits = Limits { millicpus: Some(1500), ..Limits::default() };
    insta::assert_snapshot!(serde_json::to_string_pretty(&body(&settings(), None, &[], limits)).unwrap());
}

#[test]
fn what_a_workspace_and_something_lent_change() {
    let lent = [Lent { path: HostPath::resolve("/usr").unwrap(), inside: "opt/tools".to_owned() }];
    let runtime = DockerSettings { runtime: Some("runsc".to_owned()), ..settings() };
    let limits = Limits { memory_bytes: None, ..Limits::default() };
    let body = body(&runtime, Some(Path::new("/srv/work")), &lent, limits);
    let host = &body["HostConfig"];
    let shown = serde_json::json!({
        "Mounts": host["Mounts"],
        "Tmpfs": host["Tmpfs"],
        "ShmSize": host["ShmSize"],
        "Memory": host["Memory"],
        "Runtime": host["Runtime"],
        "Cmd": body["Cmd"],
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap());
}

#[test]
fn what_is_held_in_memory_together_is_no_more_than_may_be() {
    let limits = Limits { scratch_bytes: 1_000_003, ..Limits::default() };
    for is_in_memory in [true, false] {
        let of_configuration = TmpfsShares::of(&DockerConfig::default().limits(), is_in_memory);
        assert_eq!(of_configuration.temporary, 64 << 20, "what `tmpfs_size` says");
        let TmpfsShares { temporary, home, shared_memory, workspace } =
            TmpfsShares::of(&limits, is_in_memory);
        let together = temporary + home + shared_memory + workspace.unwrap_or(0);
        assert!(together <= limits.scratch_bytes && together > limits.scratch_bytes - 8, "{together}");
    }
}
