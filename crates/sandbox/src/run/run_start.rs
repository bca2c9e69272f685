//! Start of a job's program in its sandbox, on any backend.

use super::{RunError, WorkspaceChoice};
use crate::backend::SandboxRequest;
use crate::docker::DockerBackend;
use crate::enclosure::{Enclosure, EnclosureError, EnclosureMaker, EnclosureSite};
use crate::spec::{Program, SandboxSpec, Workspace};
use crate::state::RunFolder;
use belljar_confine::plan::Stdio;

/// Makes the sandbox of a run, and starts its program there.
pub(super) fn begin(
    site: &EnclosureSite<'_>,
    (folder, spec): (&RunFolder, &SandboxSpec),
    program: &Program,
    stdio: Stdio,
) -> Result<Enclosure, RunError> {
    match site.maker {
        EnclosureMaker::Itself | EnclosureMaker::Launcher(_) => {
            Ok(site.start(spec, program, stdio).map_err(EnclosureError::Start)?)
        }
        EnclosureMaker::Docker(docker) => in_container(docker, (folder, spec), program, stdio),
    }
}

fn in_container(
    docker: &DockerBackend,
    (folder, spec): (&RunFolder, &SandboxSpec),
    program: &Program,
    stdio: Stdio,
) -> Result<Enclosure, RunError> {
    let Workspace::Empty = spec.workspace else { return Err(RunError::Workspace) };
    let wanted = SandboxRequest { workspace: WorkspaceChoice::Empty, provision: spec.provision.clone() };
    let (sandbox, workspace) = docker.create_for_job(folder, wanted).map_err(EnclosureError::Container)?;
    let execution = sandbox.exec(program, stdio).map_err(EnclosureError::Container)?;
    Ok(Enclosure::Container { execution, sandbox, workspace: workspace.map(Into::into) })
}
