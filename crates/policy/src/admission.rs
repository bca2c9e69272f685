//! Decides whether a job may start: its paths stay in the workspace, and its own allowlists hold
//! (`docs/contracts/draft.md#d8.1`).
//!
//! The host decides before it builds a sandbox, and the runner decides again inside by the same function. So a job that reaches
//! the runner by another route meets the same rules. Paths inside a diff are known only when the diff is read;
//! [`AdmittedJob::permit_path`] decides about those.

use belljar_contract::job::Job;
use belljar_contract::job::step::run_command::RunCommand;
use belljar_contract::job::step::{Action, Step};
use belljar_contract::path::{PathEscapes, StepPath, WorkspacePath};
use std::fmt;

/// Job that may start.
#[derive(Debug, Clone)]
pub struct AdmittedJob {
    job: Job,
    artifacts: Vec<WorkspacePath>,
    allowed_paths: Option<Vec<JobPath>>,
    workspace: String,
}

/// Directory or file that a job names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobPath {
    /// Path in the workspace.
    Workspace(WorkspacePath),
    /// Absolute path outside of the workspace, without `.` or `..`. Only commands work there.
    Outside(String),
}

/// Job that may not start, with all reasons.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.summary())]
pub struct RefusedJob {
    /// Steps that may not run, with their index in the job.
    pub steps: Vec<(usize, AdmissionDenial)>,
    /// Reasons that belong to no step.
    pub others: Vec<AdmissionDenial>,
}

/// Reason why a job may not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionDenial {
    /// A path leads out of the workspace.
    #[error(transparent)]
    Path(#[from] PathEscapes),
    /// `allowed_paths` of the job doesn't cover a path.
    #[error("path not allowed: {path} is not within constraints.allowed_paths")]
    PathNotAllowed {
        /// Path in the workspace, or absolute path.
        path: String,
    },
    /// A file exists, and the job doesn't enable overwriting.
    #[error("overwrite not allowed: {path} exists, and constraints.overwrite_allowed is not true")]
    OverwriteNotAllowed {
        /// Path in the workspace.
        path: WorkspacePath,
    },
    /// `allowed_commands` of the job doesn't name a program.
    #[error("command not allowed: {command} is not in constraints.allowed_commands")]
    CommandNotAllowed {
        /// The program.
        command: String,
    },
    /// A variable decides which program or library really runs, although the job has an allowlist of commands.
    #[error("variable not allowed: {name} would change what an allowed command runs")]
    VariableNotAllowed {
        /// Name of the variable.
        name: String,
    },
}

// === impl AdmittedJob ===

/// Decides whether `job` may start with its workspace at `workspace`.
///
/// # Errors
/// [`RefusedJob`], with all reasons.
pub fn admit(job: Job, workspace: &str) -> Result<AdmittedJob, RefusedJob> {
    let mut refused = RefusedJob { steps: Vec::new(), others: Vec::new() };
    let allowed_paths = job.constraints.allowed_paths.as_ref().map(|paths| {
        paths.iter().filter_map(|path| refused.or_note(JobPath::of(path, workspace))).collect::<Vec<_>>()
    });
    let artifacts =
        job.artifacts.iter().filter_map(|path| refused.or_note(path.beneath(workspace))).collect::<Vec<_>>();
    let admitted = AdmittedJob { job, artifacts, allowed_paths, workspace: workspace.to_owned() };
    for (index, step) in admitted.job.steps.iter().enumerate() {
        refused.steps.extend(admitted.denials(step).into_iter().map(|denied| (index, denied)));
    }
    let criteria = admitted.job.context.iter().flat_map(|context| &context.acceptance_criteria);
    let checks = criteria.filter_map(|criterion| criterion.check.clone());
    let checks = checks.map(|check| Step { id: None, action: Action::RunCommand(check) });
    refused.others.extend(checks.flat_map(|check| admitted.denials(&check)));
    match refused.steps.is_empty() && refused.others.is_empty() {
        true => Ok(admitted),
        false => Err(refused),
    }
}

impl AdmittedJob {
    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the files that the job wants to be kept.
    pub fn artifacts(&self) -> &[WorkspacePath] {
        &self.artifacts
    }

    /// Returns the path of a step in the workspace.
    ///
    /// # Errors
    /// [`AdmissionDenial`], if it leads out of the workspace or isn't allowed.
    pub fn resolve(&self, path: &StepPath) -> Result<WorkspacePath, AdmissionDenial> {
        let path = path.beneath(&self.workspace)?;
        self.permit_path(&path)?;
        Ok(path)
    }

    /// Checks that a step may touch that path, such as one inside a diff.
    ///
    /// # Errors
    /// [`AdmissionDenial::PathNotAllowed`], if the job lists allowed paths and none covers it.
    pub fn permit_path(&self, path: &WorkspacePath) -> Result<(), AdmissionDenial> {
        self.permit(&JobPath::Workspace(path.clone()))
    }

    /// Returns the working directory of a command: the workspace's root unless the step names another, which may lie outside of
    /// the workspace (`docs/contracts/job.md#j10.2`).
    ///
    /// # Errors
    /// [`AdmissionDenial`], if its path has a `..` or isn't allowed.
    pub fn working_directory(&self, path: Option<&StepPath>) -> Result<JobPath, AdmissionDenial> {
        let place = match path {
            Some(path) => JobPath::of(path, &self.workspace)?,
            None => JobPath::Workspace(WorkspacePath::root()),
        };
        self.permit(&place)?;
        Ok(place)
    }

    /// Returns the only places that steps may touch; `None` if the job lists none.
    pub fn allowed_paths(&self) -> Option<&[JobPath]> {
        self.allowed_paths.as_deref()
    }

    /// Returns true if `write_file` may replace an existing file (`docs/contracts/draft.md#d5.2`). By default it may, unless
    /// the job restricts paths.
    pub fn may_overwrite(&self) -> bool {
        self.job.constraints.overwrite_allowed.unwrap_or(self.allowed_paths.is_none())
    }

    fn permit(&self, place: &JobPath) -> Result<(), AdmissionDenial> {
        let allowed = self.allowed_paths.as_ref();
        match allowed.is_none_or(|allowed| allowed.iter().any(|entry| place.is_within(entry))) {
            true => Ok(()),
            false => Err(AdmissionDenial::PathNotAllowed { path: place.to_string() }),
        }
    }

    /// Returns the reasons why a step may not run. The step may also be one that an agent requests.
    pub fn denials(&self, step: &Step) -> Vec<AdmissionDenial> {
        let mut denials = match &step.action {
            Action::RunCommand(command) => self.command_denials(command),
            _ => Vec::new(),
        };
        let path = match (&step.action, step.action.path()) {
            (Action::RunCommand(command), _) => self.working_directory(command.cwd.as_ref()).map(drop),
            (_, Some(path)) => self.resolve(path).map(drop),
            // The paths are in the diff.
            (Action::ApplyUnifiedDiff(_), None) => Ok(()),
            // Without a path the step works at the workspace's root.
            (_, None) => self.permit_path(&WorkspacePath::root()),
        };
        denials.extend(path.err());
        denials
    }

    fn command_denials(&self, command: &RunCommand) -> Vec<AdmissionDenial> {
        let Some(allowed) = &self.job.constraints.allowed_commands else { return Vec::new() };
        let mut denials = Vec::new();
        if let Some(program) = command.argv.first().filter(|program| !allowed.contains(program)) {
            denials.push(AdmissionDenial::CommandNotAllowed { command: program.clone() });
        }
        denials.extend(
            command
                .env
                .keys()
                .filter(|name| redirects_programs(name))
                .map(|name| AdmissionDenial::VariableNotAllowed { name: name.clone() }),
        );
        denials
    }
}

// === impl JobPath ===

impl JobPath {
    fn of(path: &StepPath, workspace: &str) -> Result<Self, PathEscapes> {
        let escapes = match path.beneath(workspace) {
            Ok(inside) => return Ok(Self::Workspace(inside)),
            Err(escapes) => escapes,
        };
        let components = path.as_str().split('/').filter(|name| !matches!(*name, "" | "."));
        let components: Vec<&str> = components.collect();
        match path.as_str().starts_with('/') && !components.contains(&"..") {
            true => Ok(Self::Outside(format!("/{}", components.join("/")))),
            false => Err(escapes),
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Workspace(path), Self::Workspace(directory)) => path.is_within(directory),
            (Self::Outside(path), Self::Outside(directory)) => {
                let rest = path.strip_prefix(directory.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            _ => false,
        }
    }
}

impl fmt::Display for JobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace(path) => path.fmt(f),
            Self::Outside(path) => f.write_str(path),
        }
    }
}

/// Returns true if the variable changes which programs or libraries are found.
fn redirects_programs(name: &str) -> bool {
    name == "PATH" || name.starts_with("LD_")
}

// === impl RefusedJob ===

impl RefusedJob {
    fn or_note<T>(&mut self, decision: Result<T, PathEscapes>) -> Option<T> {
        decision.map_err(|escapes| self.others.push(escapes.into())).ok()
    }

    fn summary(&self) -> String {
        let steps = self.steps.iter().map(|(index, denied)| format!("step {}: {denied}", index + 1));
        steps.chain(self.others.iter().map(AdmissionDenial::to_string)).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::path::WORKSPACE;

    fn admitted(constraints: &str, steps: &str) -> Result<AdmittedJob, RefusedJob> {
        let job = format!(
            r#"{{"protocol_version": "1.0",
                "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
                "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
                "constraints": {{"max_runtime_seconds": 10, "max_output_bytes": 1000 {constraints}}},
                "steps": [{steps}]}}"#
        );
        admit(Job::parse(job.as_bytes()).unwrap(), WORKSPACE)
    }

    fn denials(constraints: &str, steps: &str) -> Vec<String> {
        let refused = admitted(constraints, steps).unwrap_err();
        refused.steps.iter().map(|(index, denied)| format!("{index} {denied}")).collect()
    }

    const RUN_GIT: &str = r#"{"type": "run_command", "args": {"argv": ["git", "status"]}}"#;
    const RUN_SH: &str =
        r#"{"type": "run_command", "args": {"argv": ["/bin/sh"], "env": {"PATH": "/workspace"}}}"#;

    #[test]
    fn path_outside_the_workspace_refuses_the_job_and_names_each_step() {
        let read = |path: &str| format!(r#"{{"type": "read_file", "args": {{"path": "{path}"}}}}"#);
        let steps = [read("../etc/passwd"), read("fine"), read("/etc/passwd")].join(",");
        assert_eq!(
            denials("", &steps),
            ["0 path escapes workspace: ../etc/passwd", "2 path escapes workspace: /etc/passwd"]
        );
    }

    #[test]
    fn job_without_allowlists_may_use_the_whole_workspace() {
        assert!(admitted("", &[RUN_GIT, RUN_SH].join(",")).is_ok());
    }

    #[test]
    fn command_allowlist_covers_programs_and_loader_variables() {
        let allowed = r#", "allowed_commands": ["git"]"#;
        assert!(admitted(allowed, RUN_GIT).is_ok());
        assert_eq!(
            denials(allowed, &[RUN_GIT, RUN_SH].join(",")),
            [
                "1 command not allowed: /bin/sh is not in constraints.allowed_commands",
                "1 variable not allowed: PATH would change what an allowed command runs"
            ]
        );
    }

    #[test]
    fn command_allowlist_leaves_unrelated_variables_alone() {
        let allowed = r#", "allowed_commands": ["git"]"#;
        let run = |name: &str| {
            RUN_GIT.replace(r#"["git", "status"]"#, &format!(r#"["git"], "env": {{"{name}": "x"}}"#))
        };
        for name in ["HOME", "MY_PATH", "PATHS", "OLD_PATH"] {
            assert!(admitted(allowed, &run(name)).is_ok(), "{name}");
        }
        for name in ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH"] {
            assert_eq!(denials(allowed, &run(name)).len(), 1, "{name}");
        }
    }

    #[test]
    fn artifact_paths_are_relative_to_the_workspace() {
        let wanting = |paths: &str| format!(r#"}}, "artifacts": {paths}, "context": {{"#);
        let kept = admitted(&wanting(r#"["out/a.txt", "/workspace/b"]"#), RUN_GIT).unwrap();
        let told: Vec<String> = kept.artifacts().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["out/a.txt", "b"]);
        assert!(admitted(&wanting(r#"["../a"]"#), RUN_GIT).is_err());
    }

    #[test]
    fn refused_job_lists_every_denial() {
        let read = r#"{"type": "read_file", "args": {"path": "/etc/passwd"}}"#;
        let refused = admitted(r#", "allowed_paths": ["../x"]"#, &[RUN_GIT, read].join(",")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "step 1: path not allowed: . is not within constraints.allowed_paths\n\
             step 2: path escapes workspace: /etc/passwd\n\
             path escapes workspace: ../x"
        );
    }

    #[test]
    fn an_empty_allowlist_allows_nothing() {
        assert_eq!(denials(r#", "allowed_commands": []"#, RUN_GIT).len(), 1);
        assert_eq!(denials(r#", "allowed_paths": []"#, r#"{"type": "list_tree"}"#).len(), 1);
    }

    #[test]
    fn command_may_run_outside_the_workspace_unless_paths_are_restricted() {
        let run = |cwd: &str| RUN_GIT.replace("]}}", &format!(r#"], "cwd": "{cwd}"}}}}"#));
        for cwd in ["/tmp", "/", "/usr/./share"] {
            assert!(admitted("", &run(cwd)).is_ok(), "{cwd}");
        }
        assert_eq!(denials("", &run("/tmp/../etc")), ["0 path escapes workspace: /tmp/../etc"]);
        assert_eq!(denials("", &run("../x")).len(), 1);
        let allowed = |paths: &str| format!(r#", "allowed_paths": {paths}"#);
        assert_eq!(
            denials(&allowed(r#"["/workspace"]"#), &run("/tmp")),
            ["0 path not allowed: /tmp is not within constraints.allowed_paths"]
        );
        assert!(admitted(&allowed(r#"["/workspace", "/tmp"]"#), &run("/tmp/x")).is_ok());
        assert_eq!(denials(&allowed(r#"["/tmp"]"#), &run("/tmpx")).len(), 1);
        // The other steps work in the workspace alone, even if other paths are listed.
        let write = r#"{"type": "write_file", "args": {"path": "/tmp/x", "content": ""}}"#;
        assert_eq!(denials(&allowed(r#"["/tmp"]"#), write), ["0 path escapes workspace: /tmp/x"]);
    }

    #[test]
    fn job_with_restricted_paths_overwrites_only_if_allowed() {
        for (constraints, may) in [
            ("", true),
            (r#", "overwrite_allowed": false"#, false),
            (r#", "allowed_paths": ["/workspace"]"#, false),
            (r#", "allowed_paths": ["/workspace"], "overwrite_allowed": true"#, true),
        ] {
            assert_eq!(admitted(constraints, RUN_GIT).unwrap().may_overwrite(), may, "{constraints}");
        }
    }

    #[test]
    fn path_allowlist_covers_the_default_working_directory() {
        let allowed = r#", "allowed_paths": ["/workspace/src"]"#;
        assert_eq!(
            denials(allowed, RUN_GIT),
            ["0 path not allowed: . is not within constraints.allowed_paths"]
        );
        let inside =
            r#"{"type": "run_command", "arguments": {"command": "git", "working_dir": "/workspace/src"}}"#;
        assert!(admitted(allowed, inside).is_ok());
    }
}
