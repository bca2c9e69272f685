//! The part of a sandbox request that access rules apply to, with the JSON paths of its members.

use crate::images::Image;
use belljar_contract::job::step::Action;
use belljar_contract::worker::assignment::SandboxRequest;
use belljar_contract::worker::session::OpenSessionRequest;

/// A sandbox request.
pub(crate) struct AccessRequest<'a> {
    /// Its kind, for error messages.
    pub(super) what: &'static str,
    pub(super) image: (&'static str, &'a Image),
    /// JSON path of the network request, and the value that would disable it; `None` if no network is requested.
    pub(super) web: Option<(&'static str, &'static str)>,
    /// Programs that it starts itself, with their JSON paths.
    pub(super) programs: Vec<(String, &'a str)>,
}

const NO_NETWORK: &str = "expected `none`";

// === impl AccessRequest ===

impl<'a> AccessRequest<'a> {
    /// Returns the request of a job.
    pub(crate) fn of_job(sandbox: &'a SandboxRequest, image: &'a Image) -> Self {
        let web = match sandbox.job_spec {
            Some(_) => ("$.sandbox.job_spec.constraints.ext_net_allowed", "expected false"),
            None => ("$.sandbox.network_policy", NO_NETWORK),
        };
        Self {
            what: "a job",
            image: ("$.sandbox.image", image),
            web: sandbox.wants_web().then_some(web),
            programs: programs(sandbox).collect(),
        }
    }

    /// Returns the request of a session. Programs are started in it later.
    pub(crate) fn of_session(request: &OpenSessionRequest, image: &'a Image) -> Self {
        Self {
            what: "a session",
            image: ("$.image", image),
            web: request.wants_web().then_some(("$.network_policy", NO_NETWORK)),
            programs: Vec::new(),
        }
    }
}

/// Returns the programs that a job starts itself, with their JSON paths.
fn programs(sandbox: &SandboxRequest) -> impl Iterator<Item = (String, &str)> {
    let command =
        sandbox.command.first().map(|program| ("$.sandbox.command[0]".to_owned(), program.as_str()));
    let steps = sandbox.job_spec.iter().flat_map(|spec| spec.job.steps.iter().enumerate());
    let of_steps = steps.filter_map(|(index, step)| match &step.action {
        Action::RunCommand(run) => {
            Some((format!("$.sandbox.job_spec.steps[{index}]"), run.argv.first()?.as_str()))
        }
        _ => None,
    });
    command.into_iter().chain(of_steps)
}
