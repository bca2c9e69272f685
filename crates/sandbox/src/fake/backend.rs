//! The fake backend. It is used only when a caller asks for it by its name.

use super::WARNING;
use super::faults::{Call, FaultScript, Operation};
use super::sandbox::FakeSandbox;
use crate::backend::{Backend, BackendError, Sandbox, SandboxRequest};
use crate::hatch::none_of;
use crate::host_directories::{SandboxDirectories, owner};
use crate::state::StateDirectory;
use belljar_contract::id::RunId;
use belljar_contract::isolation::{Isolation, LAYERS, Layer};

/// Makes directories in which programs run as they are.
#[derive(Debug)]
pub struct FakeBackend {
    state: StateDirectory,
    script: FaultScript,
}

/// Refusal of the fake backend: no caller gets a backend that seals nothing because another is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("backend {name:?} was requested, and the fake backend seals nothing")]
pub struct FakeNotRequestedError {
    /// Name that was asked for.
    pub name: String,
}

// === impl FakeBackend ===

impl FakeBackend {
    /// The name in configurations and reports.
    pub const NAME: &'static str = "fake";

    /// Makes a backend that keeps its folders in `state`, if it was asked for by name.
    ///
    /// # Errors
    /// [`FakeNotRequestedError`] for any other name.
    pub fn asked_for_as(
        name: &str,
        state: StateDirectory,
        script: FaultScript,
    ) -> Result<Self, FakeNotRequestedError> {
        match name == Self::NAME {
            true => Ok(Self { state, script }),
            false => Err(FakeNotRequestedError { name: name.to_owned() }),
        }
    }

    fn pass(&self, operation: Operation) -> Result<bool, BackendError> {
        self.script.pass(Call { operation, sandbox: None, detail: String::new() })
    }
}

impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn has_own_root(&self) -> bool {
        false
    }

    fn health(&self) -> Result<(), BackendError> {
        self.pass(Operation::Health).map(drop)
    }

    fn create(&self, wanted: SandboxRequest) -> Result<Box<dyn Sandbox>, BackendError> {
        none_of(self.name(), &wanted.provision.hatches)?;
        let is_out_of_memory = self.pass(Operation::Create)?;
        let isolation = none();
        let missing = isolation.missing(&wanted.provision.required);
        if !missing.is_empty() {
            return Err(BackendError::Weaker { backend: Self::NAME, missing });
        }
        let folder = self.state.begin_run(owner()).map_err(|error| BackendError::Create(error.into()))?;
        let rooms = SandboxDirectories::make(&folder, &wanted.workspace, &wanted.provision.home, owner())
            .map_err(BackendError::Create)?;
        let sandbox = FakeSandbox::new(folder, rooms, (wanted.provision.env, isolation), self.script.clone());
        if is_out_of_memory {
            sandbox.run_out_of_memory();
        }
        Ok(Box::new(sandbox))
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        self.pass(Operation::Reconcile)?;
        self.state.reconcile().map_err(|error| BackendError::Clear(error.into()))
    }
}

fn none() -> Isolation {
    let layer = |name: &str| Layer { name: name.to_owned(), in_force: false, detail: WARNING.to_owned() };
    Isolation { backend: FakeBackend::NAME.to_owned(), container_id: None, layers: LAYERS.map(layer).into() }
}
