//! Environment variables that point programs to the node's own endpoints: a request must not set those that the node sets
//! (`docs/contracts/job.md#j6.5`).

use super::answer::Refusal;
use belljar_contract::job::step::Action;
use belljar_contract::worker::assignment::SandboxRequest;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::session::OpenSessionRequest;
use belljar_sandbox::hatch::Hatch;
use std::collections::BTreeMap;

/// Variable with the URL that a job reports its status to.
const STATUS_URL: &str = "SBA_JOB_STATUS_URL";

/// Variables that point the runner to reports and tools, here and at other nodes. A job that is a command has no runner.
const OF_RUNNER: [&str; 5] = [
    "MCP_GATEWAY_URL",
    "MCP_GATEWAY_TOKEN",
    "SBA_MCP_GATEWAY_URL",
    "SBA_MCP_GATEWAY_TOKEN",
    "SBA_CALLBACK_URL",
];

/// Checks the variables of a job and of its steps.
pub(super) fn check_job(sandbox: &SandboxRequest, has_models: bool) -> Result<(), Refusal> {
    let mut reserved = reserved(has_models, sandbox.wants_web(), true);
    reserved.extend(sandbox.job_spec.iter().flat_map(|_| OF_RUNNER));
    check("$.sandbox.env", &sandbox.env, &reserved)?;
    let steps = sandbox.job_spec.iter().flat_map(|spec| spec.job.steps.iter().enumerate());
    steps.into_iter().try_for_each(|(index, step)| match &step.action {
        Action::RunCommand(run) => {
            check(&format!("$.sandbox.job_spec.steps[{index}]: env"), &run.env, &reserved)
        }
        _ => Ok(()),
    })
}

/// Checks the variables of a session.
pub(super) fn check_session(request: &OpenSessionRequest) -> Result<(), Refusal> {
    check("$.env", &request.env, &reserved(request.use_inference, request.wants_web(), false))
}

/// The variables that the node sets in a sandbox with these hatches.
fn reserved(has_models: bool, has_web: bool, has_status: bool) -> Vec<&'static str> {
    let hatches = [(Hatch::Inference, has_models), (Hatch::Web, has_web), (Hatch::Status, has_status)];
    let of_hatches =
        hatches.into_iter().filter(|(_, is_there)| *is_there).flat_map(|(hatch, _)| hatch.environment());
    of_hatches.map(|(name, _)| name).chain(has_status.then_some(STATUS_URL)).collect()
}

fn check(place: &str, env: &BTreeMap<String, String>, reserved: &[&str]) -> Result<(), Refusal> {
    let Some(name) = env.keys().find(|name| reserved.contains(&name.as_str())) else { return Ok(()) };
    let detail = format!(
        "{place}.{name}: the node sets this variable in the sandbox, by which programs find the node's own endpoint; expected another name"
    );
    Err(Refusal::new(ProblemKind::Validation, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_variables_are_reserved_only_if_the_node_serves_them() {
        let env = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        for (name, served) in [
            ("OLLAMA_BASE_URL", reserved(true, false, false)),
            ("HTTP_PROXY", reserved(false, true, false)),
            ("BELLJAR_STATUS_SOCKET", reserved(false, false, true)),
            ("SBA_JOB_STATUS_URL", reserved(false, false, true)),
        ] {
            assert!(check("$.env", &env(name), &served).is_err(), "{name}");
            assert!(check("$.env", &env(name), &reserved(false, false, false)).is_ok(), "{name}");
            assert!(check("$.env", &env("OTHER"), &served).is_ok());
        }
    }
}
