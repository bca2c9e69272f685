//! A container that lives on, as a sandbox.

use super::channel::Channel;
use super::container::ContainerBlueprint;
use super::copier::Copier;
use super::engine::{Engine, EngineRequestError};
use super::execution::DockerExecution;
use super::frame::{HostMessage, RelayMessage, StartRequest};
use super::measured::{MeasuredIsolation, namespace_of};
use super::watched::WatchedContainer;
use crate::backend::{BackendError, Execution, Sandbox, Stats};
use crate::disk_quota::QuotaOutcome;
use crate::limits::Limit;
use crate::native::environment::made_from_nothing;
use crate::spec::Program;
use crate::state::RunFolder;
use crate::workspace::imprint::Imprint;
use belljar_confine::inner_init::OUT_OF_MEMORY;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::InitHandle;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A container that goes when this is dropped.
#[derive(Debug)]
pub(super) struct Container {
    engine: Arc<Engine>,
    id: String,
    channel: Option<Arc<Channel>>,
    is_removed: bool,
}

/// A sandbox that is a container.
#[derive(Debug)]
pub(super) struct DockerSandbox {
    // Before the folder: that can be cleared away only when no process works in it any more.
    container: Container,
    watched: Arc<WatchedContainer>,
    /// The run's folder, if it goes with the sandbox.
    pub(super) folder: Option<RunFolder>,
    run: RunId,
    /// Imprint of its workspace, if that is a copy.
    pub(super) imprint: Option<Imprint>,
    env: BTreeMap<String, String>,
    hatches: Vec<OwnedFd>,
    isolation: Isolation,
    has_run_out_of_memory: Arc<AtomicBool>,
    /// Result of the disk quota watch, if there is one.
    pub(super) fate: QuotaOutcome,
}

/// Maximum time for an engine to notice that a container has ended, and the interval of the checks.
const LATEST_WORD: Duration = Duration::from_secs(5);
const BETWEEN_WORDS: Duration = Duration::from_millis(20);

// === impl Container ===

impl Container {
    /// Makes it.
    pub(super) fn create(
        engine: &Arc<Engine>,
        blueprint: &ContainerBlueprint<'_>,
    ) -> Result<Self, BackendError> {
        let id = engine.create(blueprint.body()).map_err(|error| BackendError::Create(error.into()))?;
        Ok(Self { engine: Arc::clone(engine), id, channel: None, is_removed: false })
    }

    /// Starts it, and waits until its PID 1 has put up its walls.
    pub(super) fn start(&mut self) -> Result<(Arc<Channel>, MeasuredIsolation), BackendError> {
        let create = |error: EngineRequestError| BackendError::Create(error.into());
        let attached = self.engine.attach(&self.id).map_err(create)?;
        let channel =
            Channel::open(&self.engine, attached).map_err(|errno| BackendError::Create(errno.into()))?;
        self.channel = Some(Arc::clone(&channel));
        self.engine.start(&self.id).map_err(create)?;
        let measured = channel.begin()?;
        Ok((channel, measured))
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns its PID 1, if that is a process of this kernel which may be looked at. The process id from the engine is
    /// accepted only if that process is in the namespace that was measured inside.
    pub(super) fn handle(&self, measured: &MeasuredIsolation) -> Option<InitHandle> {
        const NAMESPACE: &str = "pid";
        let state = self.engine.inspect(&self.id).ok()?.state?;
        let pid = state.pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0)?;
        let handle = InitHandle::of_process(pid).ok()?;
        let found = namespace_of(pid, NAMESPACE)?;
        // Only now is it known that the number was still its own when it was looked at.
        let is_it = measured.namespaces.get(NAMESPACE) == Some(&found) && !handle.has_ended();
        is_it.then_some(handle)
    }

    /// Returns true if an OOM kill has ended it, as far as the engine reports. The engine notices an end later than the
    /// client that is connected to PID 1.
    fn has_run_out_of_memory(&self, channel: &Channel) -> bool {
        let given_up = Instant::now() + LATEST_WORD;
        loop {
            let Some(state) = self.engine.inspect(&self.id).ok().and_then(|found| found.state) else {
                return false;
            };
            let is_awaited = channel.is_gone() && state.running == Some(true) && Instant::now() < given_up;
            if !is_awaited {
                let said = state.exit_code == Some(OUT_OF_MEMORY.into()) && state.running == Some(false);
                return said || state.oom_killed == Some(true);
            }
            std::thread::sleep(BETWEEN_WORDS);
        }
    }

    fn remove(&mut self) -> Result<(), BackendError> {
        let removed = self.engine.remove(&self.id).map_err(|error| BackendError::Clear(error.into()));
        if let Some(channel) = self.channel.take() {
            channel.close();
        }
        self.is_removed = true;
        removed
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if !self.is_removed {
            // One that stays behind has no owner any more, and is found by its labels.
            let _ = self.remove();
        }
    }
}

/// Container that is ready for programs.
pub(super) struct ReadyContainer {
    pub(super) container: Container,
    pub(super) watched: Arc<WatchedContainer>,
    pub(super) run: RunId,
    /// Variables of every program.
    pub(super) env: BTreeMap<String, String>,
    pub(super) hatches: Vec<OwnedFd>,
    pub(super) isolation: Isolation,
    /// Set when the engine reports that the container ran out of memory.
    pub(super) has_run_out_of_memory: Arc<AtomicBool>,
}

// === impl DockerSandbox ===

impl DockerSandbox {
    pub(super) fn new(running: ReadyContainer) -> Self {
        let ReadyContainer { container, watched, run, env, hatches, isolation, has_run_out_of_memory } =
            running;
        Self {
            container,
            watched,
            folder: None,
            run,
            imprint: None,
            env,
            hatches,
            isolation,
            has_run_out_of_memory,
            fate: QuotaOutcome::default(),
        }
    }
}

impl Sandbox for DockerSandbox {
    fn id(&self) -> &RunId {
        &self.run
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn imprint(&self) -> Option<&Imprint> {
        self.imprint.as_ref()
    }

    fn take_hatches(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.hatches)
    }

    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        let has_terminal = matches!(stdio, Stdio::Terminal);
        let env = made_from_nothing(&self.env, has_terminal);
        let start = StartRequest {
            argv: program.argv.iter().map(|argument| argument.as_bytes().to_vec()).collect(),
            env: env.into_iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect(),
            directory: program.directory.clone().into_bytes(),
            has_terminal,
        };
        Ok(Box::new(DockerExecution::start(&self.watched, start, stdio)?))
    }

    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        Copier::unpack(&self.watched, inside)?.give(archive)
    }

    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        Copier::pack(&self.watched, inside)?.take(archive)
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        let RelayMessage::Counted(_, processes) = self.watched.channel().ask(HostMessage::Count)? else {
            return Err(BackendError::Reach("the sandbox answers something else".into()));
        };
        let used = self.container.engine.stats(&self.container.id)?;
        let memory = used.memory_stats.and_then(|memory| memory.usage).unwrap_or(0);
        let cpu = used.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|cpu| cpu.total_usage).unwrap_or(0);
        Ok(Stats { processes, memory_bytes: memory, cpu: Duration::from_nanos(cpu) })
    }

    fn has_ended(&self) -> bool {
        self.watched.channel().is_gone()
    }

    fn ended_by(&self) -> Option<Limit> {
        if self.fate.has_outgrown() {
            return Some(Limit::Disk);
        }
        let is_known = || self.has_run_out_of_memory.load(Ordering::Acquire);
        (is_known() || self.container.has_run_out_of_memory(self.watched.channel()) || is_known())
            .then_some(Limit::Memory)
    }

    fn pause(&self) -> Result<(), BackendError> {
        self.watched.channel().ask(|id| HostMessage::StopAll(id, true)).map(drop)
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.watched.channel().ask(|id| HostMessage::StopAll(id, false)).map(drop)
    }

    fn destroy(self: Box<Self>) -> Result<(), BackendError> {
        let Self { mut container, folder, .. } = *self;
        container.remove()?;
        folder.map_or(Ok(()), RunFolder::end).map_err(|error| BackendError::Clear(error.into()))
    }
}
