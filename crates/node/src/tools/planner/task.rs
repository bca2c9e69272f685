//! `task.*`: tasks of this node, with the states of their jobs.

use super::endpoint_client::{EndpointClient, text};
use super::{define, id, list_of, object};
use crate::tools::projects;
use belljar_contract::id::TaskId;
use belljar_contract::tool::{DomainCode, InvalidToolNameError};
use belljar_store::jobs::{JobListFilter, JobRecord};
use belljar_tools::answer::{Answer, Failure, Page, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::Definition;
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of jobs that are considered, the latest first.
const MOST_JOBS: u32 = 1_000;

/// Lists the tasks of the node's latest jobs.
struct ListTasksTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

/// Shows a task.
struct GetTaskTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

pub(super) fn tools(desk: &Arc<EndpointClient>) -> Result<[Arc<dyn Tool>; 2], InvalidToolNameError> {
    let of_task = object(&["task_id"], &json!({ "task_id": id("The task.") }));
    const LISTS: &str = "Lists the tasks of the node's last jobs, and how those stand.";
    let list = define("task.list", LISTS, list_of(json!({})))?;
    let get = define("task.get", "Tells of a task: its jobs, and how they stand.", of_task)?;
    Ok([
        Arc::new(ListTasksTool { definition: list, desk: Arc::clone(desk) }),
        Arc::new(GetTaskTool { definition: get, desk: Arc::clone(desk) }),
    ])
}

/// Counts jobs by state.
fn by_state<'a>(jobs: impl Iterator<Item = &'a JobRecord>) -> Value {
    let mut counts = BTreeMap::<&str, u64>::new();
    jobs.for_each(|job| *counts.entry(job.life.state.as_str()).or_default() += 1);
    json!(counts)
}

async fn jobs(
    desk: &EndpointClient,
    caller: &Caller,
    task_id: Option<TaskId>,
) -> Result<Vec<JobRecord>, Failure> {
    let filter = JobListFilter { task_id, project_id: projects::of(caller), ..JobListFilter::default() };
    let page = desk.api()?.workplace.jobs.page(&filter, MOST_JOBS).await;
    Ok(page.map_err(|error| Failure::unreachable(&error))?.jobs)
}

impl Tool for ListTasksTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let jobs = jobs(&self.desk, caller, caller.task_id.clone()).await?;
            let mut tasks: Vec<(String, Vec<&JobRecord>)> = Vec::new();
            for job in &jobs {
                let key = job.task_id.key();
                match tasks.iter_mut().find(|(task, _)| *task == key) {
                    Some((_, of_task)) => of_task.push(job),
                    None => tasks.push((key, vec![job])),
                }
            }
            let told = tasks.iter().map(|(_, jobs)| {
                json!({ "task_id": jobs[0].task_id, "jobs": jobs.len(), "by_status": by_state(jobs.iter().copied()) })
            });
            Ok(Success::page(told.collect(), Page::asked(&arguments)))
        }
        .boxed()
    }
}

impl Tool for GetTaskTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let unknown = || Failure::new(DomainCode::NotFound, "this node has no job of that task");
            let task_id = TaskId::parse(text(&arguments, "task_id")).map_err(|_| unknown())?;
            let jobs = jobs(&self.desk, caller, Some(task_id.clone())).await?;
            if jobs.is_empty() {
                return Err(unknown());
            }
            let told: Vec<_> = jobs.iter().map(JobRecord::summary).collect();
            Ok(Success::of(json!({ "task_id": task_id, "by_status": by_state(jobs.iter()), "jobs": told })))
        }
        .boxed()
    }
}
