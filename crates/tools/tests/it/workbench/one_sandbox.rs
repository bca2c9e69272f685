//! A workbench in one sandbox, which replaces the session of a server's tools.

use super::call::SandboxCall;
use belljar_contract::category::Category;
use belljar_contract::path::WORKSPACE;
use belljar_contract::workbench::{Answer, Request, SUBCOMMAND};
use belljar_sandbox::backend::{Backend, Sandbox, SandboxRequest};
use belljar_sandbox::run::RUNNER_INSIDE;
use belljar_sandbox::spec::{HostPath, Lent, Program};
use belljar_sandbox::streams::PipedStreams;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Caller;
use belljar_tools::workbench::{Workbench, failure, time_for};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// Runs work in one sandbox.
pub(crate) struct OneSandbox {
    // Declared before the backend, so that it is dropped first.
    sandbox: Arc<dyn Sandbox>,
    program: Program,
    _backend: Box<dyn Backend>,
}

// === impl OneSandbox ===

impl OneSandbox {
    /// Creates the sandbox. `helper` is the path of the helper program: this test binary under another name.
    pub(crate) fn make(backend: Box<dyn Backend>, mut wanted: SandboxRequest, helper: &Path) -> Self {
        let (called, lent): (OsString, _) = match backend.has_own_root() {
            true => {
                let lent =
                    Lent { path: HostPath::resolve(helper).unwrap(), inside: RUNNER_INSIDE.to_owned() };
                (format!("/{RUNNER_INSIDE}").into(), lent)
            }
            false => {
                let file = HostPath::resolve(helper).unwrap();
                (helper.into(), Lent::at_its_place(file.as_path()).unwrap())
            }
        };
        wanted.provision.lent.push(lent);
        let program = Program { argv: vec![called, SUBCOMMAND.into()], directory: WORKSPACE.to_owned() };
        let sandbox = Arc::from(backend.create(wanted).unwrap());
        Self { sandbox, program, _backend: backend }
    }
}

impl Workbench for OneSandbox {
    fn ask<'a>(
        &'a self,
        _: &'a Caller,
        _: Category,
        request: Request,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        async move {
            let (sandbox, program) = (Arc::clone(&self.sandbox), self.program.clone());
            let begin = move || {
                let (theirs, ours) = PipedStreams::make().unwrap();
                SandboxCall::new(sandbox.exec(&program, theirs).unwrap(), ours)
            };
            let call = tokio::task::spawn_blocking(begin).await.unwrap();
            let document = serde_json::to_vec(&request).unwrap();
            match call.carry_out(&document, time_for(&request)).await? {
                Answer::Refused(refused) => Err(failure(refused)),
                answer => Ok(answer),
            }
        }
        .boxed()
    }
}
