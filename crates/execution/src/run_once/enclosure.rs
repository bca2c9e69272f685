//! Starts a program in a sandbox of either kind, with the copy that it works on.

use super::messages::MESSAGES;
use super::workspace_copy::CopiedDirectory;
use super::{OnceError, OnceSpec, RunReservation};
use belljar_confine::plan::{Identity, Stdio};
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use belljar_files::host_path::HostPath;
use belljar_sandbox::archive;
use belljar_sandbox::backend::SandboxRequest;
use belljar_sandbox::docker::DockerBackend;
use belljar_sandbox::enclosure::{Enclosure, EnclosureMaker, EnclosureSite};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::kept::{CopyRecord, HostFile, RunKind, RunLabel};
use belljar_sandbox::native::HOME;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::{Program, SandboxSpec, Workspace};
use belljar_sandbox::state::StateError;
use belljar_sandbox::workspace::COPY;
use belljar_sandbox::workspace::imprint::Imprint;
use belljar_sandbox::workspace::snapshot::SnapshotLimits;
use std::collections::BTreeMap;
use std::path::Path;

/// Working directory of a program.
const WORKSPACE: &str = "/workspace";

/// Program that is to be started in a sandbox of its own.
pub(super) struct ProgramStart<'s> {
    pub(super) place: &'s RunReservation,
    pub(super) spec: &'s OnceSpec,
    pub(super) stdio: Stdio,
    /// Gets the copy that the program works on, once it exists.
    pub(super) copied: &'s mut Option<CopiedDirectory>,
}

/// Makes the copy that the program works on, writes its messages, and starts it. The copy may exist even if that fails.
pub(super) fn begin(
    site: &EnclosureSite<'_>,
    start: ProgramStart<'_>,
    is_canceled: &dyn Fn() -> bool,
) -> Result<Enclosure, OnceError> {
    match site.maker {
        EnclosureMaker::Itself | EnclosureMaker::Launcher(_) => natively(site, start),
        EnclosureMaker::Docker(docker) => in_container(docker, start, is_canceled),
    }
}

fn natively(site: &EnclosureSite<'_>, start: ProgramStart<'_>) -> Result<Enclosure, OnceError> {
    let ProgramStart { place, spec, stdio, copied } = start;
    let choice = WorkspaceChoice::Copy(spec.source.clone());
    // A source inside the run's own folder isn't changed by others, so it needs no snapshot.
    let is_own = spec.source.as_path().starts_with(place.folder.path());
    let cheap = if is_own { SnapshotLimits { names: 0, bytes: 0 } } else { SnapshotLimits::FOR_LONG_RUN };
    let (workspace, base) = Workspace::of_run_on_snapshot((&choice, cheap), Some(&place.folder), place.user)?;
    let Workspace::Copy { source, upper, .. } = &workspace else { return Err(StateError::NoFolder.into()) };
    let held = CopiedDirectory::as_layer(source, upper)?;
    if let Some(messages) = &spec.messages {
        held.tell(messages, place.user.identity())?;
    }
    record(place, spec, (upper.as_path(), None), base.as_ref())?;
    *copied = Some(held);
    let sandbox = SandboxSpec {
        workspace,
        provision: provision(spec, place.run_id()),
        ..SandboxSpec::new(place.run_id().clone(), place.user)
    };
    Ok(site.start(&sandbox, &program(spec), stdio)?)
}

fn in_container(
    docker: &DockerBackend,
    start: ProgramStart<'_>,
    is_canceled: &dyn Fn() -> bool,
) -> Result<Enclosure, OnceError> {
    let ProgramStart { place, spec, stdio, copied } = start;
    // Home files are copied in below, so that the program owns them.
    let provision = Provision { home: BTreeMap::new(), ..provision(spec, place.run_id()) };
    let wanted = SandboxRequest { workspace: WorkspaceChoice::Copy(spec.source.clone()), provision };
    let mut told = None;
    let made = docker.create_in(&place.folder, wanted, &mut |copy, owner| {
        let held = told_whole(spec, copy, owner);
        let is_told = held.is_ok();
        told = Some(held);
        if is_told { Ok(()) } else { Err("the copy can't be prepared".into()) }
    });
    // A failure of the copy is reported as such, not as the container's.
    let held = told.transpose()?;
    let sandbox = made?;
    if is_canceled() {
        return Err(OnceError::Canceled);
    }
    *copied = held.map(|held| held.was(sandbox.imprint()));
    if sandbox.imprint().is_some() {
        record(place, spec, (&place.folder.private().join(COPY), sandbox.imprint()), None)?;
    }
    if !spec.provision.home.is_empty() {
        let home = archive::of_texts(&spec.provision.home).map_err(|source| OnceError::Home { source })?;
        sandbox.copy_in(HOME, &mut home.as_slice())?;
    }
    let execution = sandbox.exec(&program(spec), stdio)?;
    Ok(Enclosure::Container { execution, sandbox, workspace: None })
}

/// Records the data that is needed to keep the changes, however the run ends.
fn record(
    place: &RunReservation,
    spec: &OnceSpec,
    (layer, imprint): (&Path, Option<&Imprint>),
    base: Option<&HostPath>,
) -> Result<(), OnceError> {
    let program = spec.argv.first().map(Path::new).and_then(Path::file_name);
    let label = RunLabel::of_command(RunKind::Agent, program.into_iter());
    let messages = spec.messages.as_deref().map(|messages| HostFile::new(MESSAGES, messages));
    let folder = place.folder.path();
    let record = CopyRecord::begin(label, folder, (&spec.source, layer)).with_host_file(messages);
    let record = match imprint {
        Some(imprint) => record.of_whole(imprint),
        None => record.on_base(folder, base),
    };
    record.write(folder).map_err(|source| OnceError::Record { source })
}

fn told_whole(spec: &OnceSpec, copy: &Directory, owner: Identity) -> Result<CopiedDirectory, OnceError> {
    let held = CopiedDirectory::as_whole(&spec.source, copy)?;
    if let Some(messages) = &spec.messages {
        held.tell(messages, owner)?;
    }
    Ok(held)
}

fn program(spec: &OnceSpec) -> Program {
    Program { argv: spec.argv.clone(), directory: WORKSPACE.to_owned() }
}

/// Returns the hatches of the sandbox.
pub(super) fn hatches(spec: &OnceSpec) -> Vec<Hatch> {
    let wanted = [(Hatch::Inference, spec.models.is_some()), (Hatch::Web, spec.web.is_some())];
    wanted.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(hatch, _)| hatch).collect()
}

/// Returns what the sandbox is given. `RUN_ID` is the host's id, whatever the request sets.
fn provision(spec: &OnceSpec, id: &RunId) -> Provision {
    let mut provision = Provision { hatches: hatches(spec), ..spec.provision.clone() };
    provision.env.insert("RUN_ID".to_owned(), id.to_string());
    provision
}
