//! A native sandbox that lives on.

use super::command;
use crate::archive;
use crate::backend::{BackendError, Execution, Sandbox, Stats};
use crate::directory::Directory;
use crate::execution::{ResidentExecution, reach};
use crate::limits::Limit;
use crate::spec::{Program, SandboxSpec};
use crate::state::RunFolder;
use belljar_confine::execution::Resident;
use belljar_confine::plan::{Identity, Stdio};
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
    owner: Identity,
}

// === impl NativeSandbox ===

impl NativeSandbox {
    pub(super) fn new(
        folder: RunFolder,
        spec: SandboxSpec,
        resident: Resident,
        isolation: Isolation,
        (root, owner): (Directory, Identity),
    ) -> Self {
        Self { resident, folder, spec, isolation, root, owner }
    }
}

impl Sandbox for NativeSandbox {
    fn id(&self) -> &RunId {
        self.folder.id()
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        let has_terminal = matches!(stdio, Stdio::Terminal);
        let command =
            command(&self.spec, program, has_terminal).map_err(|error| BackendError::Reach(error.into()))?;
        let execution = self.resident.start(command, stdio).map_err(reach)?;
        Ok(Box::new(ResidentExecution::new(execution)))
    }

    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        archive::unpack(&self.root, inside, archive, self.owner)
    }

    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        archive::pack(&self.root, inside, archive)
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        let load = self.resident.load().map_err(reach)?;
        Ok(Stats { processes: load.processes, memory_bytes: load.resident_bytes, cpu: load.cpu })
    }

    fn ended_by(&self) -> Option<Limit> {
        None
    }

    fn pause(&self) -> Result<(), BackendError> {
        self.resident.stop_all(true).map_err(reach)
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.resident.stop_all(false).map_err(reach)
    }

    fn destroy(self: Box<Self>) -> Result<(), BackendError> {
        let Self { resident, folder, root, .. } = *self;
        drop(root);
        resident.end();
        folder.remove().map_err(|error| BackendError::Clear(error.into()))
    }
}
