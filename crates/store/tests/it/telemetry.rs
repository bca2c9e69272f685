//! Telemetry of a node is kept for a while, and in order.

use belljar_contract::id::RunId;
use belljar_contract::worker::telemetry::{ContainerKind, ContainerStatus};
use belljar_store::telemetry::{
    ContainerFilter, LogFilter, NodeBoot, SandboxRecord, ServiceLogEvent, Telemetry,
};
use jiff::{SignedDuration, Timestamp};

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn run<F: Future<Output = ()>>(test: impl FnOnce(Telemetry, Timestamp) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let telemetry = Telemetry::open(folder.path()).await.unwrap();
        test(telemetry, Timestamp::now()).await;
    });
}

fn made(at: Timestamp) -> SandboxRecord {
    SandboxRecord {
        at,
        run_id: RunId::from_uuid(uuid::Uuid::new_v4()),
        name: "a".to_owned(),
        kind: ContainerKind::Sandbox,
        runtime: "native",
        image: "native".to_owned(),
        task_id: None,
        job_id: None,
        labels: vec![("a.label", "its value".to_owned())],
    }
}

fn said(at: Timestamp, message: &str) -> ServiceLogEvent {
    ServiceLogEvent {
        at,
        service: "worker_api",
        level: "info",
        message: message.to_owned(),
        fields: serde_json::json!({}),
    }
}

async fn messages(telemetry: &Telemetry) -> Vec<String> {
    let filter = LogFilter { service: "worker_api".to_owned(), ..LogFilter::default() };
    let logs = telemetry.logs(&filter, 100).await.unwrap();
    logs.into_iter().map(|(_, event)| event.message).collect()
}

#[test]
fn retention_deletes_old_telemetry_but_keeps_running_sandboxes() {
    run(async |telemetry, now| {
        let (old, running) = (made(now - 31 * DAY), made(now - 31 * DAY));
        telemetry.made(old.clone());
        telemetry.ended(now - 31 * DAY, &old.run_id, 0);
        telemetry.made(running.clone());
        telemetry.log(said(now - 8 * DAY, "old"));
        telemetry.log(said(now, "new"));
        telemetry.flush().await;
        // The control.
        assert_eq!(messages(&telemetry).await, ["old", "new"]);
        assert!(telemetry.container(old.run_id.as_str()).await.unwrap().is_some());
        telemetry.expire(now).await.unwrap();
        assert_eq!(messages(&telemetry).await, ["new"]);
        assert!(telemetry.container(old.run_id.as_str()).await.unwrap().is_none());
        assert!(telemetry.container(running.run_id.as_str()).await.unwrap().is_some());
        telemetry.close().await;
    });
}

#[test]
fn sandbox_running_at_a_node_crash_is_unknown_after_restart() {
    run(async |telemetry, now| {
        let (ended, running) = (made(now), made(now));
        telemetry.made(ended.clone());
        telemetry.ended(now, &ended.run_id, 7);
        telemetry.made(running.clone());
        telemetry.booted(NodeBoot {
            at: now,
            boot_id: "1".to_owned(),
            node_slug: "n".to_owned(),
            build_version: "1".to_owned(),
            kernel_version: "1".to_owned(),
        });
        telemetry.flush().await;
        let status =
            async |run_id: &RunId| telemetry.container(run_id.as_str()).await.unwrap().unwrap().status;
        assert_eq!(status(&ended.run_id).await, ContainerStatus::Exited);
        assert_eq!(status(&running.run_id).await, ContainerStatus::Unknown);
        let (all, next) = telemetry.containers(&ContainerFilter::default(), 1).await.unwrap();
        assert_eq!((all[0].container_id.as_str(), next.is_some()), (running.run_id.as_str(), true));
        assert_eq!(all[0].labels["a.label"], "its value");
        telemetry.close().await;
    });
}

#[test]
fn telemetry_overflow_is_dropped_counted_and_logged() {
    run(async |telemetry, now| {
        for _ in 0..100_000 {
            telemetry.log(said(now, "one of many"));
        }
        telemetry.flush().await;
        telemetry.log(said(now, "the last"));
        telemetry.flush().await;
        let filter = LogFilter { service: "node_manager".to_owned(), ..LogFilter::default() };
        let told = telemetry.logs(&filter, 10).await.unwrap();
        assert!(told.iter().any(|(_, event)| event.message.contains("notes are lost")), "{told:?}");
        telemetry.close().await;
    });
}
