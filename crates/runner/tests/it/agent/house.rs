//! A scene with a model beside it.

use crate::scene::{JOB_ID, RunOutcome, Scene, TASK_ID};
use belljar_testkit::models::{Answer, ModelServer, Request, Script, ServerBehaviour, ToolCall};
use serde_json::{Value, json};
use std::process::Command;

/// A workspace, and a server of models.
pub(crate) struct AgentFixture {
    pub(crate) scene: Scene,
    pub(crate) server: ModelServer,
}

/// The model that the server lists.
pub(crate) const MODEL: &str = "scripted";

// === impl AgentFixture ===

impl AgentFixture {
    pub(crate) fn with(answers: Vec<Answer>) -> Self {
        Self::of(Script::queue(answers))
    }

    pub(crate) fn of(script: Script) -> Self {
        Self { scene: Scene::new(), server: ModelServer::start(script) }
    }

    pub(crate) fn listing(models: &[&str], script: Script) -> Self {
        let models = models.iter().map(|&model| model.to_owned()).collect();
        let conduct =
            ServerBehaviour { closes_first: 0, reads_per_second: None, models, keeps_requests: true };
        Self { scene: Scene::new(), server: ModelServer::start_with(conduct, script) }
    }

    /// The command that runs a job with the models within reach.
    pub(crate) fn command(&self, job: &Value) -> Command {
        std::fs::write(self.scene.beside("job.json"), job.to_string()).unwrap();
        let mut command = self.scene.command();
        command.env("OPENAI_BASE_URL", format!("{}/v1", self.server.url()));
        command
    }

    pub(crate) fn run(&self, job: &Value) -> RunOutcome {
        self.scene.ran(&self.command(job).output().unwrap())
    }

    /// Returns the requests that generate text.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.server.requests().into_iter().filter(|request| request.operation().generates()).collect()
    }
}

/// A job for the agent with these parts of its context.
pub(crate) fn job(context: Value) -> Value {
    let mut job = json!({
        "protocol_version": "1.0", "job_id": JOB_ID, "task_id": TASK_ID,
        "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 100_000 },
        "inference": { "allowed_models": [MODEL] },
        "steps": [],
    });
    job["context"] = context;
    job
}

/// Returns a job with one requirement.
pub(crate) fn small_job() -> Value {
    job(json!({ "requirements": ["there is a file"] }))
}

pub(crate) fn call(tool: &str, arguments: Value) -> Answer {
    Answer::tool(ToolCall::new(tool, arguments))
}

pub(crate) fn done(id: u32) -> Answer {
    call("todo_update", json!({ "id": id, "status": "done" }))
}

pub(crate) fn finish() -> Answer {
    call("finish", json!({ "summary": "all is done" }))
}

/// Report that the first criterion is met, or the requirement that replaces it in a job without criteria.
pub(crate) fn report() -> Answer {
    let found = json!({ "criterion": 1, "met": true, "evidence": "I have looked at it" });
    call("report_criteria", json!({ "results": [found] }))
}

/// Everything that a request says, in its order.
pub(crate) fn text_of(request: &Request) -> String {
    let messages = request.json()["messages"].as_array().unwrap().clone();
    let texts = messages.iter().map(|message| message["content"].as_str().unwrap_or_default().to_owned());
    texts.collect::<Vec<_>>().join("\n")
}
