//! The files that tasks keep, on both engines.

use crate::jobs::on_both_engines;
use crate::jobs::world::{OWNER, StoreFixture, assignment, now, outcome, report, task_id};
use belljar_contract::id::{RunId, TaskId};
use belljar_contract::media::MediaType;
use belljar_contract::path::ArtifactPath;
use belljar_contract::result::Artifact;
use belljar_contract::worker::job::JobOutcome;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::artifacts::Content;
use belljar_store::jobs::RetentionCutoffs;
use belljar_store::task_artifacts::{
    NewTaskArtifact, PutError, TaskArtifactLimit, TaskArtifactLimits, TaskArtifacts,
};
use jiff::{SignedDuration, Timestamp};

const LIMITS: TaskArtifactLimits = TaskArtifactLimits { files: 4, total_bytes: 100 };

fn path(text: &str) -> ArtifactPath {
    ArtifactPath::parse(text).unwrap()
}

fn put(at: &str, bytes: &str) -> NewTaskArtifact {
    let content = Content::of(bytes.as_bytes());
    NewTaskArtifact { path: path(at), content, content_type: None, job_id: None, run_id: None }
}

fn of(world: &StoreFixture) -> TaskArtifacts {
    TaskArtifacts::new(world.database.clone(), LIMITS)
}

async fn paths(artifacts: &TaskArtifacts, task: &TaskId, prefix: &str) -> Vec<String> {
    let page = artifacts.list(task, prefix, None, 100).await.unwrap();
    page.entries.iter().map(|artifact| artifact.path.to_string()).collect()
}

on_both_engines! {
    async fn a_file_is_found_by_its_path_with_all_that_was_told_of_it(world: StoreFixture) {
        let (artifacts, task, job) = (of(&world), task_id(), assignment().job_id);
        let run_id = RunId::from_uuid(uuid::Uuid::new_v4());
        let (first, later) = (now(), now() + SignedDuration::from_secs(1));
        let full = NewTaskArtifact {
            content_type: MediaType::parse("text/plain").ok(),
            job_id: Some(job.clone()),
            run_id: Some(run_id.clone()),
            ..put("a/b.txt", "one")
        };
        let kept = artifacts.put(&task, full, first).await.unwrap();
        assert_eq!(kept.replaced, None);
        assert_eq!(artifacts.find(&task, &path("a/b.txt")).await.unwrap(), Some(kept.artifact.clone()));
        assert_eq!((kept.artifact.job_id, kept.artifact.run_id), (Some(job), Some(run_id)));
        assert_eq!(kept.artifact.content_type.unwrap().as_str(), "text/plain");
        let again = artifacts.put(&task, put("a/b.txt", "other"), later).await.unwrap();
        assert_eq!(again.replaced, Some(Content::of(b"one")));
        assert_eq!((again.artifact.created_at, again.artifact.updated_at), (first, later));
        assert_eq!(again.artifact.content, Content::of(b"other"));
        assert_eq!(again.artifact.job_id, None);
    }

    async fn a_task_has_its_own_files_alone_however_its_id_is_written(world: StoreFixture) {
        let (artifacts, one, other) = (of(&world), task_id(), task_id());
        artifacts.put(&one, put("a", "x"), now()).await.unwrap();
        let upper = TaskId::parse(&one.as_str().to_uppercase()).unwrap();
        assert!(artifacts.find(&upper, &path("a")).await.unwrap().is_some());
        assert_eq!(artifacts.find(&other, &path("a")).await.unwrap(), None);
        assert!(!artifacts.delete(&other, &path("a")).await.unwrap());
        assert_eq!(paths(&artifacts, &other, "").await, Vec::<String>::new());
        assert_eq!(paths(&artifacts, &one, "").await, ["a"]);
    }

    async fn a_list_is_of_those_that_begin_with_a_text_as_it_is_written(world: StoreFixture) {
        let (artifacts, task) = (of(&world), task_id());
        for at in ["a%/x", "a_/x", "ab/x", "Ab"] {
            artifacts.put(&task, put(at, "x"), now()).await.unwrap();
        }
        assert_eq!(paths(&artifacts, &task, "a").await, ["a%/x", "a_/x", "ab/x"]);
        assert_eq!(paths(&artifacts, &task, "a_").await, ["a_/x"]);
        assert_eq!(paths(&artifacts, &task, "a%").await, ["a%/x"]);
        assert_eq!(paths(&artifacts, &task, "a\0").await, Vec::<String>::new());
        let first = artifacts.list(&task, "a", None, 2).await.unwrap();
        let rest = artifacts.list(&task, "a", first.next.as_ref(), 2).await.unwrap();
        let both: Vec<_> = first.entries.iter().chain(&rest.entries).map(|one| one.path.as_str()).collect();
        assert_eq!((both, rest.next), (vec!["a%/x", "a_/x", "ab/x"], None));
    }

    async fn a_task_keeps_no_more_than_it_may_and_what_it_replaces_does_not_count(world: StoreFixture) {
        let (artifacts, task) = (of(&world), task_id());
        for at in ["a", "b", "c"] {
            artifacts.put(&task, put(at, &"x".repeat(30)), now()).await.unwrap();
        }
        let too_much = artifacts.put(&task, put("d", &"x".repeat(11)), now()).await.unwrap_err();
        assert!(matches!(too_much, PutError::TooMuch { limit: TaskArtifactLimit::TotalBytes, would_be: 101, most: 100 }));
        artifacts.put(&task, put("a", &"x".repeat(40)), now()).await.unwrap();
        artifacts.put(&task, put("d", ""), now()).await.unwrap();
        let too_many = artifacts.put(&task, put("e", ""), now()).await.unwrap_err();
        assert!(matches!(too_many, PutError::TooMuch { limit: TaskArtifactLimit::Files, would_be: 5, most: 4 }));
        // Another task may all the same.
        artifacts.put(&task_id(), put("e", ""), now()).await.unwrap();
    }

    async fn those_who_come_at_once_do_not_go_past_a_limit_together(world: StoreFixture) {
        let task = task_id();
        let all = world.at_once(12, |number, database| {
            let (artifacts, task) = (TaskArtifacts::new(database, LIMITS), task.clone());
            async move { artifacts.put(&task, put(&format!("f{number}"), ""), now()).await }
        });
        let mut kept = 0;
        for one in all.await {
            match one {
                Ok(_) => kept += 1,
                Err(error) => assert!(matches!(error, PutError::TooMuch { limit: TaskArtifactLimit::Files, .. }), "{error}"),
            }
        }
        assert_eq!((kept, paths(&of(&world), &task, "").await.len()), (4, 4));
    }

    async fn a_content_is_wanted_while_a_task_or_a_job_keeps_it_and_no_longer(world: StoreFixture) {
        let (artifacts, task, other) = (of(&world), task_id(), task_id());
        let content = Content::of(b"content");
        let is_wanted = async || world.jobs.is_referenced(content.sha256()).await.unwrap();
        assert!(!is_wanted().await);
        artifacts.put(&task, put("a", "content"), now()).await.unwrap();
        assert!(is_wanted().await);
        artifacts.delete(&task, &path("a")).await.unwrap();
        assert!(!is_wanted().await);
        artifacts.put(&task, put("a", "content"), now()).await.unwrap();
        artifacts.put(&other, put("b", "content"), now()).await.unwrap();
        let wanted = assignment();
        world.accepted(&wanted).await;
        let claimed = world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
        let left = Artifact { path: "/job/artifacts/a".to_owned(), sha256: content.sha256().to_owned(), size_bytes: 7 };
        let outcome = JobOutcome { artifacts: vec![left], ..outcome("") };
        world.jobs.end(&wanted.job_id, claimed.fence(), report(ReportedEnding::Completed, outcome), now()).await.unwrap();
        artifacts.put(&task, put("a", "something else"), now()).await.unwrap();
        assert!(is_wanted().await);
        artifacts.delete(&other, &path("b")).await.unwrap();
        assert!(is_wanted().await);
        let later = now() + SignedDuration::from_hours(1);
        let retention = RetentionCutoffs { acknowledged_before: Timestamp::UNIX_EPOCH, ended_before: later };
        world.jobs.expire(retention).await.unwrap();
        assert!(!is_wanted().await);
    }

    async fn old_files_go_when_no_job_of_their_task_is_kept_and_not_before(world: StoreFixture) {
        let artifacts = of(&world);
        let wanted = assignment();
        world.accepted(&wanted).await;
        let gone = task_id();
        let (old, new) = (now(), now() + SignedDuration::from_hours(2));
        let before = old + SignedDuration::from_hours(1);
        artifacts.put(&wanted.task_id, put("a", "x"), old).await.unwrap();
        artifacts.put(&gone, put("a", "x"), old).await.unwrap();
        artifacts.put(&gone, put("b", "x"), new).await.unwrap();
        assert_eq!(artifacts.expire(before).await.unwrap(), 1);
        assert_eq!(artifacts.expire(before).await.unwrap(), 0);
        assert_eq!(paths(&artifacts, &gone, "").await, ["b"]);
        assert_eq!(paths(&artifacts, &wanted.task_id, "").await, ["a"]);
    }
}
