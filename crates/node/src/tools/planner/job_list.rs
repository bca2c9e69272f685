//! `job.list`: the node's jobs, in the common format of lists.

use super::endpoint_client::{EndpointClient, text};
use super::{define, id, list_of};
use crate::tools::projects;
use belljar_contract::id::TaskId;
use belljar_contract::tool::InvalidToolNameError;
use belljar_contract::worker::state::JobState;
use belljar_store::database::DatabaseError;
use belljar_store::jobs::{JobListFilter, JobRecord, Jobs};
use belljar_tools::answer::{Answer, Failure, Page, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::Definition;
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;

struct ListJobsTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

pub(super) fn tool(desk: &Arc<EndpointClient>) -> Result<Arc<dyn Tool>, InvalidToolNameError> {
    let states: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let takes = list_of(json!({
        "task_id": id("Only those of that task."),
        "status": { "type": "string", "enum": states },
    }));
    let definition = define("job.list", "Lists jobs, the last one first.", takes)?;
    Ok(Arc::new(ListJobsTool { definition, desk: Arc::clone(desk) }))
}

impl Tool for ListJobsTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let api = self.desk.api()?;
            let page = Page::asked(&arguments);
            let named = TaskId::parse(text(&arguments, "task_id")).ok();
            if let (Some(named), Some(bound)) = (&named, &caller.task_id)
                && named.key() != bound.key()
            {
                // For a caller that is bound to a task, another task has no jobs.
                return Ok(Success::page(Vec::new(), page));
            }
            let task_id = caller.task_id.clone().or(named);
            let state = JobState::from_name(text(&arguments, "status"));
            let filter = JobListFilter { task_id, project_id: projects::of(caller), state, before: None };
            let jobs = &api.workplace.jobs;
            let found = match &caller.job_id {
                Some(bound) => jobs.find(bound).await.map(|job| one(job, &filter, page)),
                None => part(jobs, &filter, page).await,
            };
            let (found, total) = found.map_err(|error| Failure::unreachable(&error))?;
            let told = found.iter().map(|job| json!(job.summary())).collect();
            Ok(Success::part(told, total, page))
        }
        .boxed()
    }
}

/// Returns a page of the jobs, and their total number.
async fn part(
    jobs: &Jobs,
    filter: &JobListFilter,
    page: Page,
) -> Result<(Vec<JobRecord>, usize), DatabaseError> {
    let total = jobs.count(filter).await?;
    let most = u32::try_from(page.limit()).unwrap_or(u32::MAX);
    let found = jobs.slice(filter, page.offset() as u64, most).await?;
    Ok((found, usize::try_from(total).unwrap_or(usize::MAX)))
}

/// Returns the page for a caller that is bound to one job.
fn one(job: Option<JobRecord>, filter: &JobListFilter, page: Page) -> (Vec<JobRecord>, usize) {
    let is_wanted = |job: &JobRecord| {
        filter.task_id.as_ref().is_none_or(|task| task.key() == job.task_id.key())
            && (filter.project_id.is_none() || filter.project_id == job.project_id)
            && filter.state.is_none_or(|state| state == job.life.state)
    };
    let found: Vec<_> = job.into_iter().filter(is_wanted).collect();
    let total = found.len();
    (found.into_iter().skip(page.offset()).collect(), total)
}
