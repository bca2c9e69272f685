//! `web.*`: pages for agents whose jobs may reach the web, by the policy and in the record of the job's own web.

mod fetch;
pub mod reach;

use crate::Tool;
use crate::definition::Definition;
use crate::typed::{schema_of, tool};
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, InvalidToolNameError, ToolName};
use reach::Reaches;
use std::sync::Arc;

/// The tools, for these runs.
///
/// # Errors
/// None in truth: their names are names.
pub fn tools(reaches: &Reaches) -> Result<Vec<Arc<dyn Tool>>, InvalidToolNameError> {
    let define = |name, summary, input| {
        let definition = Definition::new(ToolName::parse(name)?, Category::Web, summary, input);
        Ok(Definition { cost: CostTier::Moderate, reaches_out: true, ..definition })
    };
    let fetch = Definition {
        description: fetch::DESCRIPTION.to_owned(),
        ..define("web.fetch", "Gives a page of the web as text.", schema_of::<fetch::Arguments>())?
    };
    Ok(vec![tool(fetch, fetch::Fetch::new(reaches.clone()))])
}
