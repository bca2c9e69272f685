//! Directories, and the processes that were started in them.

use super::execution::FakeExecution;
use super::faults::{Call, FaultScript, Operation};
use crate::archive;
use crate::backend::{BackendError, Execution, Sandbox, Stats};
use crate::host_directories::{SandboxDirectories, owner};
use crate::limits::Limit;
use crate::spec::Program;
use crate::state::RunFolder;
use crate::workspace::imprint::Imprint;
use belljar_confine::plan::Stdio;
use belljar_confine::process_group::{self, HeldProcess};
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use rustix::process::Signal;
use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Variable by which a sandbox's processes are recognised.
const MARK: &str = "BELLJAR_FAKE_SANDBOX";

/// The fake in place of a sandbox.
#[derive(Debug)]
pub(super) struct FakeSandbox {
    life: Arc<FakeState>,
    /// Gone when it has been cleared away.
    folder: Option<RunFolder>,
    id: RunId,
    rooms: SandboxDirectories,
    env: BTreeMap<String, String>,
    isolation: Isolation,
    script: FaultScript,
}

/// State shared by a sandbox and its programs.
#[derive(Debug)]
pub(super) struct FakeState {
    mark: String,
    course: Mutex<FakeUsage>,
}

#[derive(Debug, Default)]
struct FakeUsage {
    is_over: bool,
    ended_by: Option<Limit>,
    /// Processor time of programs that have ended.
    used: Duration,
}

// === impl FakeSandbox ===

impl FakeSandbox {
    pub(super) fn new(
        folder: RunFolder,
        rooms: SandboxDirectories,
        (env, isolation): (BTreeMap<String, String>, Isolation),
        script: FaultScript,
    ) -> Self {
        let id = folder.id().clone();
        let life = FakeState { mark: format!("{MARK}={}", id.as_str()), course: Mutex::default() };
        Self { life: Arc::new(life), folder: Some(folder), id, rooms, env, isolation, script }
    }

    /// Ends everything as the kernel would.
    pub(super) fn run_out_of_memory(&self) {
        self.life.end(Some(Limit::Memory));
    }

    /// Records the call, and fails it when the script does.
    fn pass(&self, operation: Operation, detail: String) -> Result<(), BackendError> {
        let call = Call { operation, sandbox: Some(self.id.clone()), detail };
        if self.script.pass(call)? {
            self.run_out_of_memory();
        }
        if self.life.is_over() { Err(BackendError::Gone) } else { Ok(()) }
    }

    fn environment(&self, has_terminal: bool) -> BTreeMap<String, String> {
        let mut env = BTreeMap::from([
            ("HOME".to_owned(), self.rooms.home().display().to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned()),
            ("TMPDIR".to_owned(), self.rooms.temporary().display().to_string()),
        ]);
        env.extend(has_terminal.then(|| ("TERM".to_owned(), "xterm-256color".to_owned())));
        env.extend(self.env.clone());
        env.insert(MARK.to_owned(), self.id.to_string());
        env
    }

    /// Signals every process, until none is left that was not signalled.
    fn signal_all(&self, signal: Signal) {
        let mut signalled = HashSet::new();
        loop {
            let mut members = self.life.members();
            members.retain(|member| signalled.insert(member.pid));
            if members.is_empty() {
                return;
            }
            for member in members {
                let _ = member.signal(signal);
            }
        }
    }
}

impl Sandbox for FakeSandbox {
    fn id(&self) -> &RunId {
        &self.id
    }

    fn imprint(&self) -> Option<&Imprint> {
        self.rooms.imprint()
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        if self.life.is_over() {
            return Err(BackendError::Gone);
        }
        let words: Vec<_> = program.argv.iter().map(|word| word.to_string_lossy()).collect();
        let detail = words.join(" ");
        let call = Call { operation: Operation::Exec, sandbox: Some(self.id.clone()), detail };
        let is_out_of_memory = self.script.pass(call)?;
        let directory = self.rooms.workspace().path.join(self.rooms.working_directory(&program.directory));
        let env = self.environment(matches!(stdio, Stdio::Terminal));
        let execution = FakeExecution::start(program, (&directory, &env), stdio, &self.life)?;
        if is_out_of_memory {
            self.run_out_of_memory();
        }
        Ok(Box::new(execution))
    }

    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        self.pass(Operation::CopyIn, inside.to_owned())?;
        let found = self.rooms.find(inside)?;
        let base = found.directory.open(found.openable());
        let base = base.map_err(|error| archive::failed(inside)(error.into()))?;
        archive::unpack(&base, "/", archive, owner())
    }

    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        self.pass(Operation::CopyOut, inside.to_owned())?;
        let found = self.rooms.find(inside)?;
        let name = PathBuf::from(inside).file_name().map_or_else(|| ".".into(), PathBuf::from);
        archive::pack_as(found.directory, found.path, name, archive)
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        self.pass(Operation::Stats, String::new())?;
        let mut stats = Stats { cpu: self.life.course().used, ..Stats::default() };
        for member in self.life.members() {
            stats.processes += 1;
            stats.memory_bytes += member.resident_bytes;
            stats.cpu += member.cpu;
        }
        Ok(stats)
    }

    fn has_ended(&self) -> bool {
        self.life.course().is_over
    }

    fn ended_by(&self) -> Option<Limit> {
        self.life.course().ended_by
    }

    fn pause(&self) -> Result<(), BackendError> {
        self.pass(Operation::Pause, String::new())?;
        self.signal_all(Signal::STOP);
        Ok(())
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.pass(Operation::Resume, String::new())?;
        self.signal_all(Signal::CONT);
        Ok(())
    }

    fn destroy(mut self: Box<Self>) -> Result<(), BackendError> {
        let call =
            Call { operation: Operation::Destroy, sandbox: Some(self.id.clone()), detail: String::new() };
        let passed = self.script.pass(call);
        self.life.end(None);
        let Some(folder) = self.folder.take() else { return Ok(()) };
        if passed.is_err() {
            // As in a real backend: it stays to be reconciled, once it is not held any more.
            folder.leave();
            return passed.map(drop);
        }
        folder.end().map_err(|error| BackendError::Clear(error.into()))
    }
}

impl Drop for FakeSandbox {
    fn drop(&mut self) {
        self.life.end(None);
    }
}

// === impl FakeState ===

impl FakeState {
    /// Returns the processes that run in the sandbox.
    pub(super) fn members(&self) -> Vec<HeldProcess> {
        process_group::all_that(|pid| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
                env.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
            })
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.course().is_over
    }

    /// Adds to what ended programs have used.
    pub(super) fn add_used(&self, cpu: Duration) {
        self.course().used += cpu;
    }

    /// Ends everything; back when nothing runs any more.
    fn end(&self, limit: Option<Limit>) {
        {
            let mut course = self.course();
            course.ended_by = course.ended_by.or(limit);
            course.is_over = true;
        }
        loop {
            let members = self.members();
            if members.is_empty() {
                return;
            }
            for member in members {
                let _ = member.signal(Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn course(&self) -> std::sync::MutexGuard<'_, FakeUsage> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
