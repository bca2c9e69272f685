//! A sandbox without namespaces.

use super::environment::Variables;
use crate::archive;
use crate::backend::{BackendError, Execution, Sandbox, Stats};
use crate::execution::{ResidentExecution, reach};
use crate::host_directories::SandboxDirectories;
use crate::limits::Limit;
use crate::native::StartError;
use crate::native::c_string;
use crate::spec::Program;
use crate::state::RunFolder;
use crate::workspace::imprint::Imprint;
use belljar_confine::execution::ResidentSandbox;
use belljar_confine::plan::{Command, Identity, Stdio};
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use std::ffi::{CString, OsString};
use std::io::{Read, Write};
use std::path::PathBuf;

/// A sandbox without namespaces.
#[derive(Debug)]
pub(super) struct SubprocessSandbox {
    // Before the folder: that can be cleared away only when no process works in it any more.
    pub(super) resident: ResidentSandbox,
    pub(super) folder: RunFolder,
    pub(super) rooms: SandboxDirectories,
    pub(super) env: Variables,
    pub(super) isolation: Isolation,
    pub(super) owner: Identity,
}

// === impl SubprocessSandbox ===

impl SubprocessSandbox {
    fn command(&self, program: &Program, has_terminal: bool) -> Result<Command, StartError> {
        let mut env = self.env.clone();
        if has_terminal {
            env.entry("TERM".into()).or_insert_with(|| "xterm-256color".into());
        }
        let variable = |(name, value): (OsString, OsString)| {
            let shown = name.to_string_lossy().into_owned();
            c_string([name, value].join("=".as_ref()), &shown)
        };
        let argv = program.argv.iter().map(|argument| c_string(argument.clone(), "an argument"));
        let directory = self.rooms.working_directory(&program.directory);
        Ok(Command {
            argv: argv.collect::<Result<_, _>>()?,
            env: env.into_iter().map(variable).collect::<Result<Vec<CString>, _>>()?,
            directory: c_string(directory.into(), "the working directory")?,
        })
    }
}

impl Sandbox for SubprocessSandbox {
    fn id(&self) -> &RunId {
        self.folder.id()
    }

    fn imprint(&self) -> Option<&Imprint> {
        self.rooms.imprint()
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        let has_terminal = matches!(stdio, Stdio::Terminal);
        let command =
            self.command(program, has_terminal).map_err(|error| BackendError::Reach(error.into()))?;
        let execution = self.resident.start(command, stdio).map_err(reach)?;
        Ok(Box::new(ResidentExecution::new(execution, None)))
    }

    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        let found = self.rooms.find(inside)?;
        let base = found.directory.open(found.openable());
        let base = base.map_err(|error| archive::failed(inside)(error.into()))?;
        archive::unpack(&base, "/", archive, self.owner)
    }

    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        let found = self.rooms.find(inside)?;
        let name = PathBuf::from(inside).file_name().map_or_else(|| ".".into(), PathBuf::from);
        archive::pack_as(found.directory, found.path, name, archive)
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        let load = self.resident.load().map_err(reach)?;
        Ok(Stats { processes: load.processes, memory_bytes: load.resident_bytes, cpu: load.cpu })
    }

    fn has_ended(&self) -> bool {
        self.resident.has_ended()
    }

    fn ended_by(&self) -> Option<Limit> {
        None
    }

    fn pause(&self) -> Result<(), BackendError> {
        self.resident.stop_all(true).map_err(reach)?;
        // It does one thing after the other: when this is answered, that is done.
        self.resident.load().map(drop).map_err(reach)
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.resident.stop_all(false).map_err(reach)
    }

    fn kill(&self) {
        self.resident.kill();
    }

    fn destroy(self: Box<Self>) -> Result<(), BackendError> {
        let Self { resident, folder, rooms, .. } = *self;
        drop(rooms);
        resident.end();
        folder.end().map_err(|error| BackendError::Clear(error.into()))
    }
}
