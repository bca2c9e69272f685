//! `web.*`: pages for agents whose jobs may reach the web, by the policy and in the record of the job's own web.

mod fetch;
pub mod reach;
mod search;

use crate::Tool;
use crate::definition::Definition;
use crate::typed::{schema_of, tool};
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, InvalidToolNameError, ToolName};
use belljar_egress::api::ApiCaller;
use reach::Reaches;
use std::sync::Arc;

/// The tools, for these runs.
///
/// # Errors
/// None in truth: their names are names.
pub fn tools(reaches: &Reaches, calls: &Arc<ApiCaller>) -> Result<Vec<Arc<dyn Tool>>, InvalidToolNameError> {
    let define = |name, summary, input| {
        let definition = Definition::new(ToolName::parse(name)?, Category::Web, summary, input);
        Ok(Definition { cost: CostTier::Moderate, reaches_out: true, ..definition })
    };
    let fetch = Definition {
        description: fetch::DESCRIPTION.to_owned(),
        ..define("web.fetch", "Gives a page of the web as text.", schema_of::<fetch::Arguments>())?
    };
    let search = Definition {
        description: search::DESCRIPTION.to_owned(),
        ..define("web.search", "Searches the web.", schema_of::<search::Arguments>())?
    };
    Ok(vec![
        tool(fetch, fetch::Fetch::new(reaches.clone())),
        tool(search, search::Search::new(reaches.clone(), Arc::clone(calls))),
    ])
}
