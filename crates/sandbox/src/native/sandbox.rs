//! A native sandbox that lives on.

use super::execution::NativeExecution;
use super::{command, files, stillness};
use crate::backend::{BackendError, Execution, Sandbox, Stats};
use crate::directory::Directory;
use crate::limits::Limit;
use crate::spec::{Program, SandboxSpec};
use crate::state::RunFolder;
use crate::workspace::held::HeldWorkspace;
use belljar_confine::execution::{ExecutionError, Resident};
use belljar_confine::plan::Stdio;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use std::io::{Read, Write};

/// A native sandbox.
#[derive(Debug)]
pub(super) struct NativeSandbox {
    // Before the folder: that can be cleared away only when nobody works in it any more.
    resident: Resident,
    folder: RunFolder,
    spec: SandboxSpec,
    isolation: Isolation,
    /// Its root directory, as it sees it.
    root: Directory,
    workspace: HeldWorkspace,
}

// === impl NativeSandbox ===

impl NativeSandbox {
    pub(super) fn new(
        folder: RunFolder,
        spec: SandboxSpec,
        resident: Resident,
        isolation: Isolation,
        (root, workspace): (Directory, HeldWorkspace),
    ) -> Self {
        Self { resident, folder, spec, isolation, root, workspace }
    }
}

impl Sandbox for NativeSandbox {
    fn id(&self) -> &RunId {
        self.folder.id()
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn workspace(&self) -> Option<&HeldWorkspace> {
        Some(&self.workspace)
    }

    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        let has_terminal = matches!(stdio, Stdio::Terminal);
        let command =
            command(&self.spec, program, has_terminal).map_err(|error| BackendError::Reach(error.into()))?;
        let execution = self.resident.start(command, stdio).map_err(reach)?;
        Ok(Box::new(NativeExecution::new(execution)))
    }

    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        files::unpack(&self.root, inside, archive, self.workspace.owner)
    }

    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        files::pack(&self.root, inside, archive)
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        let load = self.resident.load().map_err(reach)?;
        Ok(Stats { processes: load.processes, memory_bytes: load.resident_bytes, cpu: load.cpu })
    }

    fn ended_by(&self) -> Option<Limit> {
        None
    }

    fn pause(&self) -> Result<(), BackendError> {
        stillness::bring_about(&self.root, || self.resident.stop_all(true)).map_err(reach)
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.resident.stop_all(false).map_err(reach)
    }

    fn destroy(self: Box<Self>) -> Result<(), BackendError> {
        let Self { resident, folder, root, workspace, .. } = *self;
        drop((root, workspace));
        resident.end();
        folder.remove().map_err(|error| BackendError::Clear(error.into()))
    }
}

pub(super) fn reach(error: ExecutionError) -> BackendError {
    match error {
        ExecutionError::NotStarted { subject, source } => {
            BackendError::NotStarted { program: subject, source }
        }
        ExecutionError::Gone => BackendError::Gone,
        channel @ ExecutionError::Channel { .. } => BackendError::Reach(channel.into()),
    }
}
