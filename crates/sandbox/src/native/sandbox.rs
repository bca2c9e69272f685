//! A native sandbox that lives on.

use super::disk_quota::QuotaOutcome;
use super::teardown::MountTeardown;
use super::{command, quiesce};
use crate::archive;
use crate::backend::{BackendError, Execution, Sandbox, Stats};
use crate::execution::{ResidentExecution, reach};
use crate::limits::Limit;
use crate::spec::{Program, SandboxSpec};
use crate::state::RunFolder;
use crate::workspace::live_workspace::HeldWorkspace;
use belljar_confine::execution::ResidentSandbox;
use belljar_confine::group::Cgroup;
use belljar_confine::plan::Stdio;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use belljar_files::directory::Directory;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A native sandbox.
#[derive(Debug)]
pub(super) struct NativeSandbox {
    spec: SandboxSpec,
    made: SandboxParts,
    isolation: Isolation,
}

/// Parts of a sandbox, in the order in which they are dropped: a group and a folder can be cleared away only when no
/// process is in them any more.
#[derive(Debug)]
pub(super) struct SandboxParts {
    /// Root directory, as the sandbox sees it.
    pub(super) root: Directory,
    pub(super) workspace: HeldWorkspace,
    pub(super) resident: ResidentSandbox,
    /// Mounts of the sandbox, if their teardown need not be waited for.
    pub(super) mounts: Option<OwnedFd>,
    /// Its listening sockets, until the caller takes them to serve.
    pub(super) hatches: Vec<OwnedFd>,
    pub(super) remains: Arc<MountTeardown>,
    pub(super) group: Option<Cgroup>,
    pub(super) fate: QuotaOutcome,
    pub(super) folder: Option<RunFolder>,
}

// === impl NativeSandbox ===

impl NativeSandbox {
    pub(super) fn new(spec: SandboxSpec, made: SandboxParts, isolation: Isolation) -> Self {
        Self { spec, made, isolation }
    }
}

impl Sandbox for NativeSandbox {
    fn id(&self) -> &RunId {
        &self.spec.id
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn workspace(&self) -> Option<&HeldWorkspace> {
        Some(&self.made.workspace)
    }

    fn take_hatches(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.made.hatches)
    }

    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        let has_terminal = matches!(stdio, Stdio::Terminal);
        let command =
            command(&self.spec, program, has_terminal).map_err(|error| BackendError::Reach(error.into()))?;
        let execution = self.made.resident.start(command, stdio).map_err(reach)?;
        Ok(Box::new(ResidentExecution::new(execution, self.made.resident.handle().ok())))
    }

    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        archive::unpack(&self.made.root, inside, archive, self.spec.user.identity())
    }

    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        archive::pack(&self.made.root, inside, archive)
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        let load = self.made.resident.load().map_err(reach)?;
        // A group also counts memory that is in no address space: files in memory, and what the kernel keeps for it.
        let memory_bytes = self.made.group.as_ref().and_then(Cgroup::memory_bytes);
        let memory_bytes = memory_bytes.unwrap_or(load.resident_bytes);
        Ok(Stats { processes: load.processes, memory_bytes, cpu: load.cpu })
    }

    fn has_ended(&self) -> bool {
        self.made.resident.has_ended()
    }

    fn ended_by(&self) -> Option<Limit> {
        let has_run_out = self.made.group.as_ref().is_some_and(|group| group.oom_kills() > 0);
        match self.made.fate.has_outgrown() {
            true => Some(Limit::Disk),
            false => (has_run_out || self.made.resident.has_run_out_of_memory()).then_some(Limit::Memory),
        }
    }

    fn pause(&self) -> Result<(), BackendError> {
        quiesce::bring_about(&self.made.root, || self.made.resident.stop_all(true)).map_err(reach)
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.made.resident.stop_all(false).map_err(reach)
    }

    fn kill(&self) {
        self.made.resident.kill();
    }

    fn destroy(self: Box<Self>) -> Result<(), BackendError> {
        let SandboxParts { resident, mounts, remains, group, folder, root, workspace, fate: _, hatches: _ } =
            self.made;
        drop((root, workspace));
        resident.end();
        mounts.into_iter().for_each(|mounts| remains.clear_away(mounts));
        let group = group.map_or(Ok(()), Cgroup::remove).map_err(|error| BackendError::Clear(error.into()));
        let folder = folder.map_or(Ok(()), RunFolder::end);
        folder.map_err(|error| BackendError::Clear(error.into())).and(group)
    }
}
