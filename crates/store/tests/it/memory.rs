//! Notes of an agent for its job, on both engines.

use crate::jobs::on_both_engines;
use crate::jobs::world::{OWNER, StoreFixture, assignment, assignment_of, now, outcome, report, task_id};
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::jobs::RetentionCutoffs;
use belljar_store::memory::{
    Memory, MemoryError, MemoryKey, MemoryLimitKind, MemoryLimits, MemoryNote, MemoryScope, NotePart,
    NoteWrite, SearchQuery, Summary,
};
use jiff::{SignedDuration, Timestamp};

const LIMITS: MemoryLimits =
    MemoryLimits { entries: 4, entry_bytes: 10, total_bytes: 30, key_bytes: 4, summary_bytes: 3 };

fn key(text: &str) -> MemoryKey {
    MemoryKey::parse(text).unwrap()
}

fn note(name: &str, content: &str) -> MemoryNote {
    MemoryNote::new(key(name), content.to_owned(), None).unwrap()
}

async fn with_job(world: &StoreFixture) -> (Memory, MemoryScope) {
    let wanted = assignment();
    world.accepted(&wanted).await;
    let of = MemoryScope { task_id: wanted.task_id, job_id: wanted.job_id };
    (Memory::new(world.database.clone(), LIMITS), of)
}

async fn keys(memory: &Memory, of: &MemoryScope) -> Vec<String> {
    let page = memory.list(of, None, 100).await.unwrap();
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// Returns the limit that a note would exceed, and the amount that would be reached.
async fn refused(memory: &Memory, of: &MemoryScope, note: MemoryNote) -> (MemoryLimitKind, u64) {
    match memory.add(of, note, now()).await.unwrap_err() {
        MemoryError::TooMuch { limit, would_be, .. } => (limit, would_be),
        other => panic!("{other}"),
    }
}

on_both_engines! {
    async fn what_is_noted_is_found_by_its_key_and_replaced_under_it(world: StoreFixture) {
        let (memory, of) = with_job(&world).await;
        let (first, later) = (now(), now() + SignedDuration::from_secs(1));
        let summary = Summary::parse("s").unwrap();
        let full = MemoryNote::new(key("k"), "one\ntwo".to_owned(), Some(summary)).unwrap();
        assert_eq!(memory.add(&of, full, first).await.unwrap(), NoteWrite::New);
        let (entry, content) = memory.retrieve(&of, &key("k")).await.unwrap();
        assert_eq!((content.as_str(), entry.summary.as_deref(), entry.size_bytes), ("one\ntwo", Some("s"), 9));
        assert_eq!(memory.add(&of, note("k", "x"), later).await.unwrap(), NoteWrite::Replaced);
        let (entry, content) = memory.retrieve(&of, &key("k")).await.unwrap();
        assert_eq!((content.as_str(), entry.summary, entry.size_bytes), ("x", None, 2));
        assert_eq!((entry.created_at, entry.updated_at), (first, later));
        memory.delete(&of, &key("k")).await.unwrap();
        assert!(matches!(memory.delete(&of, &key("k")).await, Err(MemoryError::Missing { .. })));
        assert!(matches!(memory.retrieve(&of, &key("k")).await, Err(MemoryError::Missing { .. })));
    }

    async fn notes_are_found_by_their_words_in_one_order_and_only_those_of_the_job(world: StoreFixture) {
        let (of, other) = (with_job(&world).await.1, with_job(&world).await.1);
        let memory = Memory::new(world.database.clone(), MemoryLimits::default());
        let add = async |of: &MemoryScope, name: &str, content: &str, summary: Option<&str>, seconds: i64| {
            let summary = summary.map(|text| Summary::parse(text).unwrap());
            let note = MemoryNote::new(key(name), content.to_owned(), summary).unwrap();
            memory.add(of, note, now() + SignedDuration::from_secs(seconds)).await.unwrap();
        };
        add(&of, "both", "the DEPLOY of the database", None, 0).await;
        add(&of, "deploy", "nothing", None, 1).await;
        add(&of, "later", "deploy_ it", None, 3).await;
        add(&of, "sooner-b", "deploy", None, 2).await;
        add(&of, "sooner-a", "deploy", None, 2).await;
        add(&of, "told", "x", Some("how we deploy"), 0).await;
        add(&of, "none", "100%", None, 9).await;
        add(&other, "deploy", "deploy of another job's", None, 9).await;
        let found = async |text: &str| {
            let found = memory.search(&of, &SearchQuery::parse(text).unwrap()).await.unwrap();
            found.into_iter().map(|one| one.entry.key.to_string()).collect::<Vec<_>>()
        };
        let expected = ["both", "deploy", "told", "later", "sooner-a", "sooner-b"];
        assert_eq!(found("Deploy DATABASE").await, expected);
        // Pattern characters have no special meaning.
        assert_eq!((found("deploy_").await, found("%").await), (vec!["later".to_owned()], vec!["none".to_owned()]));
        assert!(found("'").await.is_empty());
        let first = memory.search(&of, &SearchQuery::parse("database how").unwrap()).await.unwrap();
        assert_eq!((first[0].words, &first[0].places), (1, &vec![NotePart::Summary]));
        assert_eq!((first[1].snippet.as_str(), &first[1].places), ("the DEPLOY of the database", &vec![NotePart::Content]));
        let of_other_task = MemoryScope { task_id: task_id(), ..of.clone() };
        let refused = memory.search(&of_other_task, &SearchQuery::parse("deploy").unwrap()).await;
        assert!(matches!(refused, Err(MemoryError::UnknownJob { .. })));
    }

    async fn pages_are_in_the_order_of_the_bytes_of_keys_and_have_each_once(world: StoreFixture) {
        let (memory, of) = with_job(&world).await;
        for name in ["b", "B", "a_", "ä"] {
            memory.add(&of, note(name, ""), now()).await.unwrap();
        }
        let first = memory.list(&of, None, 3).await.unwrap();
        memory.delete(&of, &key("a_")).await.unwrap();
        let second = memory.list(&of, first.next.as_ref(), 3).await.unwrap();
        let all: Vec<_> = first.entries.iter().chain(&second.entries).map(|entry| entry.key.as_str()).collect();
        assert_eq!((all, second.next), (vec!["B", "a_", "b", "ä"], None));
        assert_eq!(memory.list(&of, None, 0).await.unwrap().entries.len(), 1);
    }

    async fn each_limit_is_named_by_whoever_would_go_past_it_and_what_is_within_is_noted(world: StoreFixture) {
        let (memory, of) = with_job(&world).await;
        assert_eq!(refused(&memory, &of, note("abcde", "")).await, (MemoryLimitKind::KeyBytes, 5));
        assert_eq!(refused(&memory, &of, note("a", "01234567890")).await, (MemoryLimitKind::EntryBytes, 11));
        let long = MemoryNote::new(key("a"), String::new(), Summary::parse("four").ok()).unwrap();
        assert_eq!(refused(&memory, &of, long).await, (MemoryLimitKind::SummaryBytes, 4));
        memory.add(&of, note("a", "0123456789"), now()).await.unwrap();
        memory.add(&of, note("b", "0123456789"), now()).await.unwrap();
        assert_eq!(refused(&memory, &of, note("c", "01234567")).await, (MemoryLimitKind::TotalBytes, 31));
        // Replaced notes don't count.
        memory.add(&of, note("b", "0123456789"), now()).await.unwrap();
        memory.add(&of, note("c", ""), now()).await.unwrap();
        memory.add(&of, note("d", ""), now()).await.unwrap();
        assert_eq!(refused(&memory, &of, note("e", "")).await, (MemoryLimitKind::Entries, 5));
        assert_eq!(keys(&memory, &of).await, ["a", "b", "c", "d"]);
    }

    async fn those_who_come_at_once_do_not_go_past_a_limit_together(world: StoreFixture) {
        let (memory, of) = with_job(&world).await;
        let all = world.at_once(12, |number, database| {
            let (memory, of) = (Memory::new(database, LIMITS), of.clone());
            async move { memory.add(&of, note(&format!("k{number}"), "x"), now()).await }
        });
        let mut added = 0;
        for one in all.await {
            match one {
                Ok(became) => {
                    assert_eq!(became, NoteWrite::New);
                    added += 1;
                }
                Err(error) => assert!(matches!(error, MemoryError::TooMuch { limit: MemoryLimitKind::Entries, .. }), "{error}"),
            }
        }
        assert_eq!((added, keys(&memory, &of).await.len()), (4, 4));
    }

    async fn a_job_has_nothing_of_another_and_no_other_task_has_its(world: StoreFixture) {
        let (memory, of) = with_job(&world).await;
        let sibling = assignment_of(&of.task_id);
        world.accepted(&sibling).await;
        let of_sibling = MemoryScope { job_id: sibling.job_id, ..of.clone() };
        memory.add(&of, note("k", "mine"), now()).await.unwrap();
        assert_eq!(keys(&memory, &of_sibling).await, Vec::<String>::new());
        let of_stranger = MemoryScope { task_id: task_id(), ..of.clone() };
        let unknown = |error: &MemoryError| matches!(error, MemoryError::UnknownJob { .. });
        assert!(unknown(&memory.retrieve(&of_stranger, &key("k")).await.unwrap_err()));
        assert!(unknown(&memory.list(&of_stranger, None, 1).await.unwrap_err()));
        assert!(unknown(&memory.delete(&of_stranger, &key("k")).await.unwrap_err()));
        assert!(unknown(&memory.add(&of_stranger, note("k", "theirs"), now()).await.unwrap_err()));
        assert_eq!(memory.retrieve(&of, &key("k")).await.unwrap().1, "mine");
    }

    async fn a_job_that_is_over_can_be_read_and_not_written_and_takes_its_memory_with_it(world: StoreFixture) {
        let wanted = assignment();
        let claimed = world.claimed(&wanted).await;
        let of = MemoryScope { task_id: wanted.task_id.clone(), job_id: wanted.job_id.clone() };
        let memory = Memory::new(world.database.clone(), LIMITS);
        memory.add(&of, note("k", "x"), now()).await.unwrap();
        let ended = report(ReportedEnding::Completed, outcome(""));
        world.jobs.end(&wanted.job_id, claimed.fence(), ended, now()).await.unwrap();
        assert!(matches!(memory.add(&of, note("l", "x"), now()).await, Err(MemoryError::Over { .. })));
        assert_eq!(keys(&memory, &of).await, ["k"]);
        let later = now() + SignedDuration::from_hours(1);
        let retention = RetentionCutoffs { acknowledged_before: Timestamp::UNIX_EPOCH, ended_before: later };
        assert_eq!(world.jobs.expire(retention).await.unwrap(), 1);
        assert!(matches!(memory.list(&of, None, 1).await, Err(MemoryError::UnknownJob { .. })));
        // SQLite reuses the number of a deleted job; the new job finds no notes of the old one.
        world.accepted(&wanted).await;
        assert_eq!(keys(&memory, &of).await, Vec::<String>::new());
        assert!(world.jobs.claim(OWNER, now()).await.unwrap().is_some());
    }
}

#[test]
fn keys_and_summaries_are_on_one_line_and_contents_have_no_nul() {
    for text in ["", "a\nb", "a\0", "a\u{202e}"] {
        assert!(MemoryKey::parse(text).is_err(), "{text:?}");
    }
    assert!(Summary::parse("a\nb").is_err());
    assert!(MemoryNote::new(key("a"), "a\0b".to_owned(), None).is_err());
}
