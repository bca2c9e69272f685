//! Processes that use approvals are killed at any moment: each approved call is made at most once.

use super::{answer, call, now, question};
use crate::jobs::on_both_engines;
use crate::jobs::world::StoreFixture;
use belljar_contract::approval::{ApprovalStatus, Ruling};
use belljar_contract::tool::ToolName;
use belljar_store::approvals::{Approvals, CallKey};
use belljar_store::audit::AuditLog;
use belljar_store::database::{Database, Location};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Variables for the child process: location of the database, and its folder.
const DATABASE: &str = "BELLJAR_TEST_APPROVALS_DATABASE";
const FOLDER: &str = "BELLJAR_TEST_APPROVALS_FOLDER";

/// Number of approved calls.
const CALLS: usize = 150;

fn numbered(number: usize) -> CallKey {
    CallKey { tool: ToolName::parse(&format!("tell_{number}")).unwrap(), ..call('a') }
}

/// Child process that makes every approved call until it is killed. As a test, it gets no database and makes none.
#[test]
fn child_process_makes_approved_calls_until_killed() {
    let (Ok(database), Ok(folder)) = (std::env::var(DATABASE), std::env::var(FOLDER)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let database = Database::open(&Location::parse(&database).unwrap()).await.unwrap();
        let audit = Arc::new(AuditLog::open(&Path::new(&folder).join("audit")).unwrap());
        let approvals = Approvals::new(database, audit);
        for number in 0..CALLS {
            if approvals.begin_use(&numbered(number), now()).await.unwrap().is_some() {
                make(Path::new(&folder), number);
            }
        }
    });
    std::fs::write(Path::new(&folder).join("finished"), "").unwrap();
}

/// Effect of the call: appends a line to a file and syncs it.
fn make(folder: &Path, number: usize) {
    let mut made = OpenOptions::new().create(true).append(true).open(folder.join("made")).unwrap();
    made.write_all(format!("{number}\n").as_bytes()).unwrap();
    made.sync_all().unwrap();
}

fn begin(location: &Location, folder: &Path) -> Child {
    let database = match location {
        Location::File(path) => format!("sqlite:{}", path.display()),
        Location::Server(url) => url.clone(),
    };
    let this = "approvals::killed::child_process_makes_approved_calls_until_killed";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this, "--test-threads=1"])
        .env(DATABASE, database)
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn made(folder: &Path) -> BTreeMap<usize, u32> {
    let mut times = BTreeMap::new();
    let text = std::fs::read_to_string(folder.join("made")).unwrap_or_default();
    text.lines().for_each(|line| *times.entry(line.parse().unwrap()).or_default() += 1);
    times
}

on_both_engines! {
    async fn killed_between_the_yes_and_the_call_a_call_is_made_at_most_once(world: StoreFixture) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let audit = Arc::new(AuditLog::open(&folder.join("audit")).unwrap());
        let approvals = Approvals::new(world.database.clone(), Arc::clone(&audit));
        for number in 0..CALLS {
            let asked = approvals.ask(question(numbered(number)), now(), None).await.unwrap();
            approvals.decide(&asked.id, answer(Ruling::Approve), now()).await.unwrap();
        }
        let mut killed = 0;
        for turn in 0_u64.. {
            // Two at once, of which one goes on when the other is killed.
            let mut children = [begin(&world.location, folder), begin(&world.location, folder)];
            let before = made(folder).len();
            while made(folder).len() <= before && children.iter_mut().all(|one| one.try_wait().unwrap().is_none()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Numbers without a pattern, the same in each run.
            std::thread::sleep(Duration::from_micros(turn * 7919 % 20_000));
            for child in &mut children {
                child.kill().unwrap();
                killed += u32::from(child.wait().unwrap().code().is_none());
            }
            if folder.join("finished").exists() { break }
        }
        let times = made(folder);
        assert!(times.values().all(|times| *times == 1), "{times:?}");
        // The control: calls were made, and some of the processes that made them were killed.
        assert!(killed > 0 && times.len() > CALLS / 2, "{killed} killed, {} calls", times.len());
        let used = approvals.list(Some(ApprovalStatus::Used), (None, 500), now()).await.unwrap().entries.len();
        assert!(used >= times.len() && used == CALLS, "{used} used, {} made", times.len());
    }
}
