//! Tokens of agents, on both engines.

use crate::jobs::on_both_engines;
use crate::jobs::world::{OWNER, StoreFixture, assignment, now, outcome, report, task_id};
use belljar_contract::id::{AgentId, ProjectId, SessionId, UserId};
use belljar_contract::worker::assignment::Assignment;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::database::Location;
use belljar_store::jobs::ReleaseReason;
use belljar_store::tokens::{
    FindError, HolderKind, IssueError, LONGEST_LIFE, MOST_OF_A_JOB, TokenDenied, TokenHolder, TokenSecret,
    Tokens,
};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

fn of(job: &Assignment) -> TokenHolder {
    let (task_id, job_id) = (Some(job.task_id.clone()), Some(job.job_id.clone()));
    TokenHolder { task_id, job_id, ..TokenHolder::new(HolderKind::Sandbox) }
}

fn in_an_hour() -> Timestamp {
    now() + SignedDuration::from_hours(1)
}

async fn issued(tokens: &Tokens, holder: TokenHolder) -> TokenSecret {
    tokens.issue(holder, now(), in_an_hour()).await.unwrap().0
}

/// Returns the reason why a token is rejected; `None` if it is accepted.
async fn denied(tokens: &Tokens, shown: &str, at: Timestamp) -> Option<TokenDenied> {
    match tokens.find(shown, at).await {
        Ok(_) => None,
        Err(FindError::Denied(denied)) => Some(denied),
        Err(FindError::Database(error)) => panic!("{error}"),
    }
}

async fn is_good(tokens: &Tokens, secret: &TokenSecret) -> bool {
    denied(tokens, secret.reveal(), now()).await.is_none()
}

/// Everything that is kept of tokens, as text.
fn kept(world: &StoreFixture) -> String {
    match (&world.location, &world.postgres) {
        (Location::File(path), _) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            let all = "SELECT group_concat(sha256 || kind || coalesce(task_id, '') || coalesce(session, '')) FROM agent_tokens";
            connection.query_row(all, (), |row| row.get(0)).unwrap()
        }
        (Location::Server(url), Some((server, _))) => server.ask(url, "SELECT * FROM agent_tokens").unwrap(),
        (Location::Server(_), None) => panic!("a server without a server"),
    }
}

on_both_engines! {
    async fn a_token_tells_whose_it_is_and_its_secret_is_kept_nowhere(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let job = assignment();
        world.accepted(&job).await;
        let holder = TokenHolder {
            project_id: ProjectId::parse("apollo").ok(),
            session: Some(SessionId::from_uuid(uuid::Uuid::new_v4())),
            user: UserId::parse("ada").ok(),
            ..of(&job)
        };
        let (secret, record) = tokens.issue(holder.clone(), now(), in_an_hour()).await.unwrap();
        assert!(secret.reveal().starts_with("bjt_"));
        assert_eq!(record.holder, holder);
        let found = Tokens::new(world.database.clone()).find(secret.reveal(), now()).await.unwrap();
        assert_eq!(found.holder, record.holder);
        assert_eq!(found.revoked_at, None);
        let kept = kept(&world);
        assert!(kept.contains("sandbox"), "{kept}");
        assert!(!kept.contains(&secret.reveal()[4..]));
    }

    async fn a_token_tells_as_which_agent_its_holder_calls_and_a_sandbox_has_none_of_its_own(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let job = assignment();
        world.accepted(&job).await;
        let agent_id = AgentId::parse("lead").ok();
        let named = TokenHolder { agent_id: agent_id.clone(), ..TokenHolder::new(HolderKind::ProjectManager) };
        let (named, unnamed) = (issued(&tokens, named).await, issued(&tokens, of(&job)).await);
        let agent_of = async |secret: &TokenSecret| {
            tokens.find(secret.reveal(), now()).await.unwrap().holder.agent_id
        };
        assert_eq!((agent_of(&named).await, agent_of(&unnamed).await), (agent_id.clone(), None));
        let sandbox = TokenHolder { agent_id, ..of(&job) };
        let refused = tokens.issue(sandbox, now(), in_an_hour()).await.map(drop).unwrap_err();
        assert!(refused.to_string().contains("calls as its job says"), "{refused}");
        // With the token, its holder's data is deleted.
        let later = now() + SignedDuration::from_hours(2);
        assert_eq!(tokens.purge(later).await.unwrap(), 2);
    }

    async fn a_token_that_is_not_good_lets_nobody_in_and_the_reason_stays_inside(world: StoreFixture) {
        use TokenDenied::{Expired, Malformed, Revoked, Unknown};
        let tokens = Tokens::new(world.database.clone());
        let job = assignment();
        world.accepted(&job).await;
        let (begin, end) = (now(), in_an_hour());
        let (good, _) = tokens.issue(of(&job), begin, end).await.unwrap();
        let good = good.reveal();
        let a_moment = SignedDuration::from_millis(1);
        assert_eq!(denied(&tokens, good, begin).await, None);
        assert_eq!(denied(&tokens, good, end - a_moment).await, None);
        assert_eq!(denied(&tokens, good, end).await, Some(Expired));
        assert_eq!(denied(&tokens, good, begin - a_moment).await, Some(Expired));
        let other = format!("bjt_{}", "0".repeat(64));
        assert_eq!(denied(&tokens, &other, begin).await, Some(Unknown));
        for text in ["", "bjt_", &good[4..], &good.to_uppercase(), &format!("{good}\n"), "bjt_%", "' OR 1=1 --", "\0"] {
            assert_eq!(denied(&tokens, text, begin).await, Some(Malformed), "{text:?}");
        }
        assert!(tokens.revoke(good, now()).await.unwrap());
        assert!(!tokens.revoke(good, now()).await.unwrap());
        assert_eq!(denied(&tokens, good, begin).await, Some(Revoked));
        assert_eq!(denied(&tokens, good, end).await, Some(Revoked));
        let said: Vec<_> = [Malformed, Unknown, Revoked, Expired].iter().map(ToString::to_string).collect();
        assert!(said.iter().all(|text| text == &said[0]));
    }

    async fn the_end_of_a_job_is_the_end_of_its_tokens_however_it_ends(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let manager = issued(&tokens, TokenHolder::new(HolderKind::ProjectManager)).await;
        let ended = assignment();
        let claimed = world.claimed(&ended).await;
        let of_ended = issued(&tokens, of(&ended)).await;
        assert!(is_good(&tokens, &of_ended).await);
        let report = report(ReportedEnding::Completed, outcome(""));
        world.jobs.end(&ended.job_id, claimed.fence(), report, now()).await.unwrap();
        assert!(!is_good(&tokens, &of_ended).await);

        let canceled = assignment();
        world.accepted(&canceled).await;
        let of_canceled = issued(&tokens, of(&canceled)).await;
        world.jobs.cancel(&canceled.job_id, Duration::ZERO, now()).await.unwrap();
        assert!(!is_good(&tokens, &of_canceled).await);

        let lost = assignment();
        let claimed = world.started(&lost).await;
        let of_lost = issued(&tokens, of(&lost)).await;
        world.jobs.leave(&lost.job_id, claimed.fence(), ReleaseReason::Gone, now()).await.unwrap();
        assert!(!is_good(&tokens, &of_lost).await);
        assert!(is_good(&tokens, &manager).await);
    }

    async fn an_attempt_that_was_left_takes_its_tokens_with_it_and_the_next_has_its_own(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let job = Assignment { max_attempts: 2, ..assignment() };
        let claimed = world.started(&job).await;
        let first = issued(&tokens, of(&job)).await;
        world.jobs.leave(&job.job_id, claimed.fence(), ReleaseReason::Gone, now()).await.unwrap();
        assert!(!is_good(&tokens, &first).await);
        world.jobs.claim(OWNER, now()).await.unwrap().unwrap();
        let second = issued(&tokens, of(&job)).await;
        assert!(is_good(&tokens, &second).await);
    }

    async fn whoever_asks_for_a_token_while_the_job_ends_has_none_that_is_good_afterwards(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let (mut issued, mut refused) = (0, 0);
        for _ in 0..20 {
            let job = assignment();
            let claimed = world.claimed(&job).await;
            let elsewhere = Tokens::new(belljar_store::database::Database::open(&world.location).await.unwrap());
            let holder = of(&job);
            let asking = tokio::spawn(async move {
                let mut secrets = Vec::new();
                loop {
                    match elsewhere.issue(holder.clone(), now(), in_an_hour()).await {
                        Ok((secret, _)) => secrets.push(secret),
                        Err(IssueError::Over { .. }) => return (secrets, true),
                        Err(IssueError::TooMany { .. }) => return (secrets, false),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            let report = report(ReportedEnding::Completed, outcome(""));
            world.jobs.end(&job.job_id, claimed.fence(), report, now()).await.unwrap();
            let (secrets, was_over) = asking.await.unwrap();
            refused += usize::from(was_over);
            issued += secrets.len();
            for secret in &secrets {
                assert!(!is_good(&tokens, secret).await);
            }
        }
        assert!(refused > 0, "no job was over before there were enough tokens ({issued})");
    }

    async fn nobody_is_issued_a_token_for_what_there_is_not(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let job = assignment();
        let refused = async |holder: TokenHolder| tokens.issue(holder, now(), in_an_hour()).await.map(drop).unwrap_err();
        assert!(matches!(refused(of(&job)).await, IssueError::UnknownJob { .. }));
        world.accepted(&job).await;
        let of_another_task = TokenHolder { task_id: Some(task_id()), ..of(&job) };
        assert!(matches!(refused(of_another_task).await, IssueError::UnknownJob { .. }));
        world.jobs.cancel(&job.job_id, Duration::ZERO, now()).await.unwrap();
        assert!(matches!(refused(of(&job)).await, IssueError::Over { .. }));
        let user = UserId::parse("ada").ok();
        for holder in [
            TokenHolder::new(HolderKind::Sandbox),
            TokenHolder { task_id: None, ..of(&job) },
            TokenHolder { job_id: None, ..of(&job) },
            TokenHolder::new(HolderKind::ProjectAnalyst),
            TokenHolder { user: user.clone(), ..TokenHolder::new(HolderKind::ProjectManager) },
            TokenHolder { kind: HolderKind::Operator, ..of(&job) },
        ] {
            assert!(matches!(refused(holder.clone()).await, IssueError::Incomplete(_)), "{holder:?}");
        }
        for expires_at in [now() - SignedDuration::from_secs(1), now() + LONGEST_LIFE + SignedDuration::from_secs(9)] {
            let issued = tokens.issue(TokenHolder::new(HolderKind::Operator), now(), expires_at).await;
            assert!(matches!(issued.map(drop), Err(IssueError::Lifetime)));
        }
        let analyst = TokenHolder { user, ..TokenHolder::new(HolderKind::ProjectAnalyst) };
        assert!(is_good(&tokens, &issued(&tokens, analyst).await).await);
    }

    async fn a_job_has_no_more_tokens_at_once_than_it_may(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let job = assignment();
        world.accepted(&job).await;
        let mut asking = Vec::new();
        for _ in 0..MOST_OF_A_JOB + 8 {
            let (tokens, holder) = (tokens.clone(), of(&job));
            asking.push(tokio::spawn(async move { tokens.issue(holder, now(), in_an_hour()).await }));
        }
        let mut issued = Vec::new();
        for asking in asking {
            match asking.await.unwrap() {
                Ok((secret, _)) => issued.push(secret),
                Err(error) => assert!(matches!(error, IssueError::TooMany { .. }), "{error}"),
            }
        }
        assert_eq!(issued.len() as u64, MOST_OF_A_JOB);
        assert!(tokens.revoke(issued[0].reveal(), now()).await.unwrap());
        tokens.issue(of(&job), now(), in_an_hour()).await.unwrap();
    }

    async fn what_is_long_dead_is_removed_and_what_is_not_stays(world: StoreFixture) {
        let tokens = Tokens::new(world.database.clone());
        let begin = now();
        let issue = async |hours: i64| {
            let end = begin + SignedDuration::from_hours(hours);
            tokens.issue(TokenHolder::new(HolderKind::Operator), begin, end).await.unwrap().0
        };
        let (short, long) = (issue(1).await, issue(3).await);
        let later = begin + SignedDuration::from_hours(2);
        assert_eq!(tokens.purge(later).await.unwrap(), 1);
        assert_eq!(tokens.purge(later).await.unwrap(), 0);
        assert_eq!(denied(&tokens, short.reveal(), begin).await, Some(TokenDenied::Unknown));
        assert_eq!(denied(&tokens, long.reveal(), later).await, None);
    }
}
