//! Approvals, on both engines.

mod killed;

use crate::jobs::on_both_engines;
use crate::jobs::world::StoreFixture;
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::{Approval, ApprovalStatus, CallScope, LARGEST_ARGUMENTS_BYTES, Ruling};
use belljar_contract::id::{AgentId, ApprovalId, RunId, UserId};
use belljar_contract::tool::{AgentKind, ToolName, ToolSubject};
use belljar_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalRequest, Approvals, CallKey, MOST_OPEN_BYTES,
};
use belljar_store::audit::{AuditLog, Settings, reading};
use belljar_store::database::Location;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

/// The approvals of a world, with an audit of their own.
struct ApprovalsFixture {
    approvals: Approvals,
    audit: Arc<AuditLog>,
    folder: TempDir,
}

impl ApprovalsFixture {
    fn of(world: &StoreFixture) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let audit = Arc::new(AuditLog::open(folder.path()).unwrap());
        Self { approvals: Approvals::new(world.database.clone(), Arc::clone(&audit)), audit, folder }
    }

    async fn ask(&self, call: CallKey) -> Approval {
        self.approvals.ask(question(call), now(), None).await.unwrap()
    }

    async fn approve(&self, id: &ApprovalId) -> Approval {
        self.approvals.decide(id, answer(Ruling::Approve), now()).await.unwrap()
    }

    async fn is_used(&self, call: &CallKey, at: Timestamp) -> bool {
        self.approvals.begin_use(call, at).await.unwrap().is_some()
    }

    fn recorded(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        reading::each(self.folder.path(), &mut |record, _| {
            if record.kind.starts_with("approval_") {
                all.push((record.kind.to_owned(), serde_json::from_str(record.event).unwrap()));
            }
        })
        .unwrap();
        all
    }
}

fn call(arguments: char) -> CallKey {
    CallKey {
        agent_id: AgentId::parse("asks").ok(),
        subject: subject("belljar"),
        tool: ToolName::parse("tell").unwrap(),
        arguments_sha256: digest(&arguments_of(arguments)),
        scope: CallScope::new(),
    }
}

fn arguments_of(name: char) -> Value {
    json!({ "text": format!("\0 {name}") })
}

fn digest(arguments: &Value) -> String {
    Sha256::digest(arguments.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn subject(name: &str) -> ToolSubject {
    ToolSubject {
        subject_type: AgentKind::Operator,
        subject_id: Some(name.to_owned()),
        user_id: None,
        group_ids: Vec::new(),
        project_id: None,
        task_id: None,
        job_id: None,
        run_id: Some(RunId::from_uuid(Uuid::now_v7())),
    }
}

fn question(call: CallKey) -> ApprovalRequest {
    let is_of_call = |arguments: &Value| digest(arguments) == call.arguments_sha256;
    let arguments = ('a'..='z').map(arguments_of).find(is_of_call).unwrap();
    with_arguments(call, arguments)
}

fn with_arguments(call: CallKey, arguments: Value) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::from_uuid(Uuid::now_v7()),
        decision_id: Uuid::now_v7(),
        reason: "documents take a yes".to_owned(),
        arguments,
        action: ActionType::parse("docs:write").unwrap(),
        risk: Risk::Low,
        call,
    }
}

fn answer(ruling: Ruling) -> ApprovalDecision {
    let reason = (ruling == Ruling::Deny).then(|| "too risky".to_owned());
    ApprovalDecision { ruling, by: UserId::parse("ada").unwrap(), reason, arguments_sha256: None }
}

const HOUR: Duration = Duration::from_secs(3_600);

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn after(duration: SignedDuration) -> Timestamp {
    now() + duration
}

fn scoped(arguments: char, workspace: &str) -> CallKey {
    let scope = CallScope::from_iter([("workspace".to_owned(), json!(workspace))]);
    CallKey { scope, ..call(arguments) }
}

on_both_engines! {
    async fn an_approval_is_used_only_by_a_call_with_an_equal_scope(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        // As earlier versions asked: without a scope.
        let unscoped = desk.ask(call('a')).await;
        let asked = desk.ask(scoped('a', "/srv/one")).await;
        assert_ne!(asked.id, unscoped.id);
        assert_eq!((&unscoped.scope, &asked.scope), (&CallScope::new(), &scoped('a', "/srv/one").scope));
        for id in [&unscoped.id, &asked.id] {
            desk.approve(id).await;
        }
        assert!(!desk.is_used(&scoped('a', "/srv/other"), now()).await);
        assert_ne!(desk.ask(scoped('a', "/srv/other")).await.id, asked.id);
        let listed = desk.approvals.list(None, (None, 10), now()).await.unwrap().entries;
        assert_eq!(listed[1].scope, asked.scope);
        let (kind, event) = desk.recorded().swap_remove(1);
        assert_eq!((kind.as_str(), &event["scope"]), ("approval_asked", &json!({ "workspace": "/srv/one" })));
        // The control: each approval is used by the very call that it was asked for.
        assert!(desk.is_used(&scoped('a', "/srv/one"), now()).await);
        assert!(desk.is_used(&call('a'), now()).await);
        // Purging an approval removes its scope.
        while desk.approvals.purge(after(SignedDuration::from_hours(1))).await.unwrap() > 0 {}
    }

    async fn the_same_call_is_the_same_question_and_another_is_another(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let first = desk.ask(call('a')).await;
        assert_eq!((first.status, &first.decision, first.used_at), (ApprovalStatus::Pending, &None, None));
        assert_eq!(first.arguments, json!({ "text": "\0 a" }));
        // Another attempt of the same job is the same caller.
        assert_eq!(desk.ask(call('a')).await.id, first.id);
        let others = [
            call('b'),
            CallKey { subject: subject("other"), ..call('a') },
            CallKey { agent_id: None, ..call('a') },
            CallKey { tool: ToolName::parse("write").unwrap(), ..call('a') },
        ];
        for other in others {
            assert_ne!(desk.ask(other.clone()).await.id, first.id, "{other:?}");
        }
        desk.approve(&first.id).await;
        assert_eq!(desk.ask(call('a')).await.id, first.id);
        let kinds: Vec<_> = desk.recorded().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [["approval_asked"; 5].as_slice(), &["approval_decided"]].concat());
    }

    async fn many_who_ask_at_once_ask_one_question(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let audit = Arc::clone(&desk.audit);
        let asked = world.at_once(8, move |_, database| {
            let approvals = Approvals::new(database, Arc::clone(&audit));
            async move { approvals.ask(question(call('a')), now(), None).await.unwrap().id }
        });
        let asked = asked.await;
        assert!(asked.iter().all(|id| *id == asked[0]), "{asked:?}");
        assert_eq!(desk.recorded().len(), 1);
    }

    async fn a_yes_is_good_for_exactly_its_call_and_once(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let asked = desk.ask(call('a')).await;
        assert!(!desk.is_used(&call('a'), now()).await, "before anybody has said anything");
        desk.approve(&asked.id).await;
        for other in [call('b'), CallKey { subject: subject("other"), ..call('a') }] {
            assert!(!desk.is_used(&other, now()).await, "{other:?}");
        }
        // The control: the same call is allowed.
        assert!(desk.is_used(&call('a'), now()).await);
        assert!(!desk.is_used(&call('a'), now()).await);
        let used = desk.approvals.find(&asked.id, now()).await.unwrap().unwrap();
        assert_eq!((used.status, used.used_at.is_some()), (ApprovalStatus::Used, true));
        let (kind, event) = desk.recorded().pop().unwrap();
        assert_eq!((kind.as_str(), &event["approval_id"]), ("approval_used", &json!(asked.id)));
        assert_ne!(desk.ask(call('a')).await.id, asked.id, "it takes a new yes");
    }

    async fn of_many_who_use_a_yes_at_once_one_does(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let asked = desk.ask(call('a')).await;
        desk.approve(&asked.id).await;
        let audit = Arc::clone(&desk.audit);
        let used = world.at_once(8, move |_, database| {
            let approvals = Approvals::new(database, Arc::clone(&audit));
            async move { approvals.begin_use(&call('a'), now()).await.unwrap().is_some() }
        });
        assert_eq!(used.await.into_iter().filter(|used| *used).count(), 1);
    }

    async fn the_same_answer_again_is_fine_and_another_one_is_not(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let asked = desk.ask(call('a')).await;
        let approved = desk.approve(&asked.id).await;
        assert_eq!(desk.approve(&asked.id).await, approved);
        let no = desk.approvals.decide(&asked.id, answer(Ruling::Deny), now()).await.unwrap_err();
        assert!(matches!(no, ApprovalError::Decided { status: ApprovalStatus::Approved, .. }), "{no}");
        assert!(desk.is_used(&call('a'), now()).await);
        assert_eq!(desk.approve(&asked.id).await.status, ApprovalStatus::Used);

        let asked = desk.ask(call('a')).await;
        let silent = ApprovalDecision { reason: None, ..answer(Ruling::Deny) };
        let silent = desk.approvals.decide(&asked.id, silent, now()).await.unwrap_err();
        assert!(matches!(silent, ApprovalError::Reason));
        let denied = desk.approvals.decide(&asked.id, answer(Ruling::Deny), now()).await.unwrap();
        let decision = denied.decision.unwrap();
        assert_eq!((decision.decided_by.as_str(), decision.decision_reason.as_deref()), ("ada", Some("too risky")));
        let yes = desk.approvals.decide(&asked.id, answer(Ruling::Approve), now()).await.unwrap_err();
        assert!(matches!(yes, ApprovalError::Decided { status: ApprovalStatus::Denied, .. }), "{yes}");
        assert!(!desk.is_used(&call('a'), now()).await);
        let nothing = ApprovalId::from_uuid(Uuid::now_v7());
        let unknown = desk.approvals.decide(&nothing, answer(Ruling::Approve), now()).await.unwrap_err();
        assert!(matches!(unknown, ApprovalError::Unknown { .. }));
    }

    async fn what_has_expired_is_never_approved_nor_used_whatever_a_later_clock_says(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let (early, late) = (after(SignedDuration::from_secs(3_599)), after(SignedDuration::from_secs(3_600)));
        let asked = desk.approvals.ask(question(call('a')), now(), Some(HOUR)).await.unwrap();
        assert_eq!(asked.expires_at, Some(late));
        let no = desk.approvals.decide(&asked.id, answer(Ruling::Approve), late).await.unwrap_err();
        assert!(matches!(no, ApprovalError::Expired { .. }), "{no}");
        let no = desk.approvals.decide(&asked.id, answer(Ruling::Approve), early).await.unwrap_err();
        assert!(matches!(no, ApprovalError::Expired { .. }), "{no}");

        let asked = desk.approvals.ask(question(call('b')), now(), Some(HOUR)).await.unwrap();
        desk.approvals.decide(&asked.id, answer(Ruling::Approve), early).await.unwrap();
        assert!(!desk.is_used(&call('b'), late).await);
        let found = desk.approvals.find(&asked.id, late).await.unwrap().unwrap();
        assert_eq!(found.status, ApprovalStatus::Expired);
        let anew = desk.approvals.ask(question(call('b')), late, Some(HOUR)).await.unwrap();
        assert_ne!(anew.id, asked.id);
        assert!(!desk.is_used(&call('b'), early).await);
        // The control: in time it is used.
        let asked = desk.approvals.ask(question(call('c')), now(), Some(HOUR)).await.unwrap();
        desk.approvals.decide(&asked.id, answer(Ruling::Approve), early).await.unwrap();
        assert!(desk.is_used(&call('c'), early).await);
    }

    async fn an_answer_that_names_other_arguments_is_refused(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let asked = desk.ask(call('a')).await;
        let naming = |ruling, sha256: String| ApprovalDecision { arguments_sha256: Some(sha256), ..answer(ruling) };
        for ruling in [Ruling::Approve, Ruling::Deny] {
            let other = naming(ruling, call('b').arguments_sha256);
            let refused = desk.approvals.decide(&asked.id, other, now()).await.unwrap_err();
            assert!(matches!(refused, ApprovalError::OtherArguments { .. }), "{refused}");
        }
        assert!(!desk.is_used(&call('a'), now()).await);
        // The control: its own digest.
        let own = naming(Ruling::Approve, call('a').arguments_sha256);
        desk.approvals.decide(&asked.id, own, now()).await.unwrap();
        assert!(desk.is_used(&call('a'), now()).await);
    }

    async fn arguments_that_are_not_those_of_the_digest_are_neither_asked_about_nor_approved(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let cut = with_arguments(call('a'), json!({ "text": "cut… (9 bytes)" }));
        let refused = desk.approvals.ask(cut.clone(), now(), None).await.unwrap_err();
        assert!(matches!(refused, ApprovalError::NotWhole { .. }), "{refused}");
        // Stored as by an earlier version; reading it doesn't depend on the engine.
        let Location::File(file) = &world.location else { return };
        let asked = desk.ask(call('a')).await;
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.execute("UPDATE approvals SET arguments = ?1", [cut.arguments.to_string()]).unwrap();
        let refused = desk.approvals.decide(&asked.id, answer(Ruling::Approve), now()).await.unwrap_err();
        assert!(matches!(refused, ApprovalError::NotWhole { .. }), "{refused}");
        // It can still be denied.
        desk.approvals.decide(&asked.id, answer(Ruling::Deny), now()).await.unwrap();
    }

    async fn long_arguments_are_kept_whole_and_lists_have_a_preview_that_says_so(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let long = json!({ "line": format!("echo {}; evil ü", " ".repeat(3_000)) });
        let key = CallKey { arguments_sha256: digest(&long), ..call('a') };
        let asked = desk.approvals.ask(with_arguments(key.clone(), long.clone()), now(), None).await.unwrap();
        desk.ask(call('b')).await;
        assert_eq!((&asked.arguments, asked.is_preview), (&long, false));
        let page = desk.approvals.list(None, (None, 10), now()).await.unwrap().entries;
        let [short, listed] = page.as_slice() else { panic!("{page:?}") };
        assert_eq!((&short.arguments, short.is_preview), (&arguments_of('b'), false));
        let bytes = long.to_string().len() as u64;
        assert_eq!((listed.is_preview, listed.arguments_bytes), (true, bytes));
        let preview = listed.arguments.as_str().unwrap();
        assert!(preview.ends_with(&format!("… (2048 of {bytes} bytes; sha256 {})", key.arguments_sha256)), "{preview}");
        let found = desk.approvals.find(&asked.id, now()).await.unwrap().unwrap();
        assert_eq!((&found.arguments, found.is_preview, found.arguments_bytes), (&long, false, bytes));
        desk.approve(&asked.id).await;
        assert!(desk.is_used(&key, now()).await);
    }

    async fn what_waits_for_an_answer_has_a_largest_size_alone_and_together(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let ask = async |name: u64, bytes: usize| {
            let arguments = json!({ "n": name, "text": "x".repeat(bytes) });
            let key = CallKey { arguments_sha256: digest(&arguments), ..call('a') };
            desk.approvals.ask(with_arguments(key, arguments), now(), None).await
        };
        let refused = ask(0, LARGEST_ARGUMENTS_BYTES).await.unwrap_err();
        assert!(matches!(refused, ApprovalError::TooLarge { .. }), "{refused}");
        let large = LARGEST_ARGUMENTS_BYTES - 100;
        let most = MOST_OPEN_BYTES / (LARGEST_ARGUMENTS_BYTES as u64);
        for name in 0..most {
            ask(name, large).await.unwrap();
        }
        let refused = ask(most, large).await.unwrap_err();
        assert!(matches!(refused, ApprovalError::Full { .. }), "{refused}");
        // The control: another agent, and the same one once something was answered.
        let other = CallKey { agent_id: None, ..call('b') };
        desk.approvals.ask(question(other), now(), None).await.unwrap();
        let page = desk.approvals.list(None, (None, 2), now()).await.unwrap().entries;
        desk.approvals.decide(&page[1].id, answer(Ruling::Deny), now()).await.unwrap();
        ask(most, large).await.unwrap();
    }

    async fn what_can_not_be_recorded_does_not_happen(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let [pending, approved] = [desk.ask(call('a')).await, desk.ask(call('b')).await];
        desk.approve(&approved.id).await;
        let ApprovalsFixture { approvals, audit, folder } = desk;
        drop((approvals, audit));
        // A log with no space in its queue rejects all records.
        let full = Settings { most_waiting: 0, ..Settings::default() };
        let audit = Arc::new(AuditLog::open_with(folder.path(), full).unwrap());
        let approvals = Approvals::new(world.database.clone(), audit);
        let is_audit = |error: ApprovalError| matches!(error, ApprovalError::Audit(_));
        assert!(is_audit(approvals.ask(question(call('c')), now(), None).await.unwrap_err()));
        assert!(is_audit(approvals.decide(&pending.id, answer(Ruling::Approve), now()).await.unwrap_err()));
        assert!(is_audit(approvals.begin_use(&call('b'), now()).await.unwrap_err()));
        let all = approvals.list(None, (None, 10), now()).await.unwrap().entries;
        let status: Vec<_> = all.iter().map(|one| one.status.as_str()).collect();
        assert_eq!(status, ["approved", "pending"]);
    }

    async fn pages_have_each_approval_once_by_what_has_become_of_it(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let late = after(SignedDuration::from_hours(1));
        let mut asked = Vec::new();
        for name in ['a', 'b', 'c', 'd', 'e'] {
            asked.push(desk.ask(call(name)).await.id);
        }
        desk.approvals.ask(question(call('f')), now(), Some(HOUR)).await.unwrap();
        desk.approve(&asked[1]).await;
        desk.approvals.decide(&asked[2], answer(Ruling::Deny), now()).await.unwrap();
        let (mut before, mut pending) = (None, Vec::new());
        loop {
            let page = desk.approvals.list(Some(ApprovalStatus::Pending), (before, 2), late).await.unwrap();
            pending.extend(page.entries.into_iter().map(|one| one.id));
            before = page.next;
            if before.is_none() { break }
        }
        assert_eq!(pending, [&asked[4], &asked[3], &asked[0]].map(Clone::clone));
        let of = async |status| desk.approvals.list(status, (None, 10), late).await.unwrap().entries.len();
        let counts = [of(None).await, of(Some(ApprovalStatus::Expired)).await, of(Some(ApprovalStatus::Denied)).await];
        assert_eq!(counts, [6, 1, 1]);
    }

    async fn what_is_over_for_long_is_removed_and_nothing_else(world: StoreFixture) {
        let desk = ApprovalsFixture::of(&world);
        let late = after(SignedDuration::from_hours(2));
        let pending = desk.ask(call('a')).await.id;
        let denied = desk.ask(call('b')).await.id;
        desk.approvals.decide(&denied, answer(Ruling::Deny), now()).await.unwrap();
        desk.approvals.ask(question(call('c')), now(), Some(HOUR)).await.unwrap();
        assert_eq!(desk.approvals.purge(now()).await.unwrap(), 0);
        assert_eq!(desk.approvals.purge(late).await.unwrap(), 2);
        let left = desk.approvals.list(None, (None, 10), late).await.unwrap().entries;
        assert_eq!(left.into_iter().map(|one| one.id).collect::<Vec<_>>(), [pending]);
    }
}
