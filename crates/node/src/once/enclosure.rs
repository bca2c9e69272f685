//! A sandbox with the one program that it is for, of whichever kind it is.

use super::copied::Copied;
use super::spec::Maker;
use super::{OnceError, OnceSpec, Place, Site};
use belljar_confine::plan::{Identity, Stdio};
use belljar_confine::sealed::{Ending, Outcome};
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use belljar_sandbox::archive;
use belljar_sandbox::backend::{BackendError, Execution, Sandbox, Wanted};
use belljar_sandbox::directory::Directory;
use belljar_sandbox::docker::DockerBackend;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::limits::Limit;
use belljar_sandbox::native::{self, HOME, Running};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::{Program, SandboxSpec, Workspace};
use belljar_sandbox::state::StateError;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::collections::BTreeMap;

/// Such a sandbox. Dropping it ends everything in it.
pub(super) enum Enclosure {
    /// It lasts as long as its program.
    Native(Box<Running>),
    /// It lasts until it is ended.
    Container { execution: Box<dyn Execution>, sandbox: Box<dyn Sandbox> },
}

/// Where a program starts.
const WORKSPACE: &str = "/workspace";

// === impl Enclosure ===

impl Enclosure {
    /// Makes the copy that the program works on, puts what it is told there, and starts it. The copy is there also if that
    /// fails.
    pub(super) fn begin(
        place: &Place,
        spec: &OnceSpec,
        site: &Site<'_>,
        (stdio, copied): (Stdio, &mut Option<Copied>),
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Self, OnceError> {
        match site.maker {
            Maker::Itself | Maker::Launcher(_) => natively(place, spec, site, (stdio, copied)),
            Maker::Docker(docker) => in_container(place, spec, docker, (stdio, copied), is_canceled),
        }
    }

    pub(super) fn isolation(&self) -> &Isolation {
        match self {
            Self::Native(running) => &running.isolation,
            Self::Container { sandbox, .. } => sandbox.isolation(),
        }
    }

    /// The listening sockets of its hatches. They are given out once.
    pub(super) fn take_hatches(&mut self) -> Vec<OwnedFd> {
        match self {
            Self::Native(running) => std::mem::take(&mut running.launched.hatches),
            Self::Container { sandbox, .. } => sandbox.take_hatches(),
        }
    }

    /// Becomes readable when its program has ended.
    pub(super) fn ending(&self) -> BorrowedFd<'_> {
        match self {
            Self::Native(running) => running.launched.sealed.ending(),
            Self::Container { execution, .. } => execution.ending(),
        }
    }

    /// Kills its program.
    pub(super) fn kill(&mut self) -> Result<(), OnceError> {
        match self {
            Self::Native(running) => running.launched.sealed.kill(),
            Self::Container { execution, .. } => execution.kill().map_err(OnceError::Lost)?,
        }
        Ok(())
    }

    /// How its program has ended; waits until it has.
    pub(super) fn wait(&mut self) -> Result<Ending, OnceError> {
        match self {
            Self::Native(running) => {
                running.launched.sealed.wait().map_err(|source| OnceError::Watch { source })
            }
            Self::Container { execution, .. } => {
                let ending = execution.wait_until(None).map_err(OnceError::Lost)?;
                ending.ok_or(OnceError::Lost(BackendError::Gone))
            }
        }
    }

    /// The limit that has ended it, if one has.
    pub(super) fn ended_by(&self, outcome: Outcome) -> Option<Limit> {
        match self {
            Self::Native(running) => running.ended_by(outcome),
            Self::Container { sandbox, .. } => sandbox.ended_by(),
        }
    }

    /// Ends everything that is left in it; back when nothing of it is there any more.
    pub(super) fn end(self) -> Result<(), OnceError> {
        match self {
            Self::Native(running) => drop(running),
            Self::Container { execution, sandbox } => {
                drop(execution);
                sandbox.destroy().map_err(OnceError::Lost)?;
            }
        }
        Ok(())
    }
}

fn natively(
    place: &Place,
    spec: &OnceSpec,
    site: &Site<'_>,
    (stdio, copied): (Stdio, &mut Option<Copied>),
) -> Result<Enclosure, OnceError> {
    let workspace =
        Workspace::of_run(&WorkspaceChoice::Copy(spec.source.clone()), Some(&place.folder), place.user)?;
    let Workspace::Copy { source, upper, .. } = &workspace else { return Err(StateError::NoFolder.into()) };
    let held = Copied::as_layer(source, upper)?;
    if let Some(messages) = &spec.messages {
        held.tell(messages, place.user.identity())?;
    }
    *copied = Some(held);
    let sandbox = SandboxSpec {
        workspace,
        lent: spec.lent.clone(),
        env: env(spec, place.run_id()),
        home: spec.home.clone(),
        hatches: hatches(spec),
        limits: spec.limits.sandbox,
        required: spec.required.clone(),
        ..SandboxSpec::new(place.run_id().clone(), place.user)
    };
    let running = match site.maker {
        Maker::Launcher(launcher) => {
            native::start_through(launcher, &sandbox, site.state, &program(spec), stdio)?
        }
        _ => native::start(&sandbox, site.state, &program(spec), stdio)?,
    };
    Ok(Enclosure::Native(Box::new(running)))
}

fn in_container(
    place: &Place,
    spec: &OnceSpec,
    docker: &DockerBackend,
    (stdio, copied): (Stdio, &mut Option<Copied>),
    is_canceled: &dyn Fn() -> bool,
) -> Result<Enclosure, OnceError> {
    let wanted = Wanted {
        workspace: WorkspaceChoice::Copy(spec.source.clone()),
        lent: spec.lent.clone(),
        env: env(spec, place.run_id()),
        limits: spec.limits.sandbox,
        required: spec.required.clone(),
        hatches: hatches(spec),
    };
    let mut told = None;
    let made = docker.create_in(&place.folder, wanted, &mut |copy, owner| {
        let held = told_whole(spec, copy, owner);
        let is_told = held.is_ok();
        told = Some(held);
        if is_told { Ok(()) } else { Err("the copy can't be prepared".into()) }
    });
    // What is wrong with the copy is not the container's doing.
    let held = told.transpose()?;
    let sandbox = made?;
    if is_canceled() {
        return Err(OnceError::Canceled);
    }
    *copied = held.map(|held| held.was(sandbox.imprint()));
    if !spec.home.is_empty() {
        let home = archive::of_texts(&spec.home).map_err(|source| OnceError::Home { source })?;
        sandbox.copy_in(HOME, &mut home.as_slice())?;
    }
    let execution = sandbox.exec(&program(spec), stdio)?;
    Ok(Enclosure::Container { execution, sandbox })
}

fn told_whole(spec: &OnceSpec, copy: &Directory, owner: Identity) -> Result<Copied, OnceError> {
    let held = Copied::as_whole(&spec.source, copy)?;
    if let Some(messages) = &spec.messages {
        held.tell(messages, owner)?;
    }
    Ok(held)
}

fn program(spec: &OnceSpec) -> Program {
    Program { argv: spec.argv.clone(), directory: WORKSPACE.to_owned() }
}

fn hatches(spec: &OnceSpec) -> Vec<Hatch> {
    spec.models.iter().map(|_| Hatch::Inference).collect()
}

/// The id is the host's, whatever was asked for.
fn env(spec: &OnceSpec, id: &RunId) -> BTreeMap<String, String> {
    let mut env = spec.env.clone();
    env.insert("RUN_ID".to_owned(), id.to_string());
    env
}
