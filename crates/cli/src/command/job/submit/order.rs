//! Requests to a node: read from a file, or built around a job for the runner or around a command.

use super::context_files;
use crate::command::run::read_document;
use crate::error::CliError;
use crate::sandbox_args::{parse_duration, parse_variable};
use crate::trust::parse_category;
use belljar_contract::category::Category;
use belljar_contract::id::{AgentId, GroupId, JobId, ProjectId, TaskId, UserId};
use belljar_contract::job::Job;
use belljar_contract::problem::Problems;
use belljar_contract::worker::assignment::RunJobRequest;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub(super) struct JobRequestArguments {
    /// A request for a node, or a job for the runner as `belljar run` takes it; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "command", conflicts_with = "command")]
    document: Option<PathBuf>,
    /// The image that it runs in; `native` is the node's own programs
    #[arg(long)]
    image: Option<String>,
    /// Set a variable inside; without a value, the one of this environment
    #[arg(long = "env", short = 'e', value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    env: Vec<(String, String)>,
    /// Time limit of the job, such as 90, 90s, 5m, 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// The task that the command belongs to [default: one of its own]
    #[arg(long, value_name = "ID", value_parser = TaskId::parse, conflicts_with = "document")]
    task_id: Option<TaskId>,
    /// Id of the job [default: a new id]
    #[arg(long, value_name = "ID", value_parser = JobId::parse, conflicts_with = "document")]
    job_id: Option<JobId>,
    /// Project whose preferences and skills apply to the agent
    #[arg(long, value_name = "ID", value_parser = ProjectId::parse)]
    project_id: Option<ProjectId>,
    /// User whose preferences and skills apply to the agent
    #[arg(long, value_name = "ID", value_parser = UserId::parse)]
    user_id: Option<UserId>,
    /// Group of that user, whose preferences and skills apply too; can be given more than once
    #[arg(long = "group-id", value_name = "ID", value_parser = GroupId::parse)]
    group_ids: Vec<GroupId>,
    /// A directory with files for its agent, seen at /job/context: task.md, requirements.md, skills/NAME.md and others
    #[arg(long, value_name = "DIR")]
    context: Option<PathBuf>,
    /// Agent that the job works as, if the node has access rules
    #[arg(long, value_name = "NAME", value_parser = AgentId::parse)]
    agent: Option<AgentId>,
    /// Category in which the job's outcome counts for the agent's trust level
    #[arg(long, value_name = "CATEGORY", value_parser = parse_category)]
    task_category: Option<Category>,
    /// Maximum number of attempts, if the node fails while the job runs
    #[arg(long, value_name = "N")]
    max_attempts: Option<u32>,
    /// Let it call the models that the node has; a job for the runner says so itself
    #[arg(long)]
    use_inference: bool,
    /// Network access of the job: none, or what the node's policy allows; a job for the runner states this itself
    #[arg(long, value_name = "POLICY", value_parser = ["none", "restricted"])]
    network_policy: Option<String>,
    /// A program and its arguments; no shell reads them
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A request that is sound, as far as can be told here.
#[derive(Debug)]
pub(super) struct CheckedJobRequest {
    pub(super) id: JobId,
    pub(super) document: Vec<u8>,
}

// === impl JobRequestArguments ===

impl JobRequestArguments {
    pub(super) fn order(&self) -> Result<CheckedJobRequest, CliError> {
        let mut request = match &self.document {
            Some(path) => {
                let bytes = read_document(path)?;
                of_document(&bytes).map_err(|problems| self.invalid(problems))?
            }
            None => self.of_command(),
        };
        self.say(&mut request);
        if let Some(directory) = &self.context {
            for (path, text) in context_files::read(directory)? {
                request["sandbox"]["context_files"][path] = json!(text);
            }
        }
        let document = request.to_string().into_bytes();
        let read = RunJobRequest::parse(&document).map_err(|problems| self.invalid(problems))?;
        Ok(CheckedJobRequest { id: read.assignment.job_id, document })
    }

    fn of_command(&self) -> Value {
        let new = || Uuid::new_v4().as_hyphenated().to_string();
        json!({
            "version": 1,
            "task_id": self.task_id.as_ref().map_or_else(new, TaskId::to_string),
            "job_id": self.job_id.as_ref().map_or_else(new, JobId::to_string),
            "sandbox": { "command": self.command },
        })
    }

    /// Adds what the options say. Whether the job is waited for is nothing that the node is asked for.
    fn say(&self, request: &mut Value) {
        request["wait"] = json!(false);
        if let Some(number) = self.max_attempts {
            request["max_attempts"] = json!(number);
        }
        let ids = [
            ("project_id", self.project_id.as_ref().map(ProjectId::as_str)),
            ("user_id", self.user_id.as_ref().map(UserId::as_str)),
            ("agent_id", self.agent.as_ref().map(AgentId::as_str)),
        ];
        for (name, id) in ids.into_iter().filter_map(|(name, id)| Some((name, id?))) {
            request[name] = json!(id);
        }
        if !self.group_ids.is_empty() {
            request["group_ids"] = json!(self.group_ids);
        }
        if let Some(category) = self.task_category {
            request["task_category"] = json!(category.as_str());
        }
        let sandbox = &mut request["sandbox"];
        if let Some(image) = &self.image {
            sandbox["image"] = json!(image);
        }
        for (name, value) in &self.env {
            sandbox["env"][name] = json!(value);
        }
        if let Some(timeout) = self.timeout {
            sandbox["timeout_seconds"] = json!(timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0));
        }
        if let Some(policy) = &self.network_policy {
            sandbox["network_policy"] = json!(policy);
        }
        if self.use_inference {
            sandbox["use_inference"] = json!(true);
        }
    }

    fn invalid(&self, problems: Problems) -> CliError {
        let name = self
            .document
            .as_ref()
            .map_or_else(|| "the command".to_owned(), |path| belljar_policy::untrusted::name(path));
        CliError::Invalid { name, problems }
    }
}

/// The request that a file holds, or the one for the job in it. It is read strictly first: what comes of it later has lost
/// members that were written twice.
fn of_document(bytes: &[u8]) -> Result<Value, Problems> {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    if value.get("protocol_version").is_none() {
        RunJobRequest::parse(bytes)?;
        return Ok(value);
    }
    let job = Job::parse(bytes).map_err(|invalid| invalid.problems)?;
    Ok(json!({
        "version": 1,
        "task_id": job.task_id.as_str(),
        "job_id": job.job_id.as_str(),
        "sandbox": { "job_spec": value },
    }))
}
