//! The web: pages for agents whose jobs may reach it, by the policy and in the record of the job's own web, and what is in pages that
//! somebody already has.

mod failure;
mod fetch;
mod html;
pub mod reach;
mod reader;
mod request;
mod search;

use super::Tools;
use crate::definition::{Definition, Effect};
use crate::typed::{schema_of, tool};
use belljar_contract::action::{ActionType, Leaf};
use belljar_contract::category::Category;
use belljar_contract::tool::CostTier;
use belljar_egress::api::ApiCaller;
use reach::Reaches;
use reader::Reader;
use std::sync::Arc;

/// The tools, for these runs.
///
/// # Errors
/// None in truth: their names are names.
pub fn tools(reaches: &Reaches, calls: &Arc<ApiCaller>) -> Tools {
    let reader = Reader::new();
    let define = |name, summary, input| {
        let definition = Definition::named(name, Category::Web, summary, input)?;
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
    let request = Definition {
        description: request::DESCRIPTION.to_owned(),
        action: ActionType::from(Leaf::CommsExternal),
        // What a server makes of a request is its own affair, also where it is said to be read only.
        effect: Effect::Destructive,
        within: request::WITHIN,
        ..define("http_request", "Makes a request of a server.", schema_of::<request::Arguments>())?
    };
    Ok(vec![
        tool(request, request::Ask::new(reaches.clone())),
        tool(fetch, fetch::Fetch::new(reaches.clone(), reader)),
        tool(search, search::Search::new(reaches.clone(), Arc::clone(calls))),
    ])
}

/// What goes nowhere, and is there for whoever has a page already.
///
/// # Errors
/// None in truth: its name is one.
pub fn offline() -> Tools {
    let summary = "Reads HTML: its text, its links, or what it says of itself.";
    let definition =
        Definition::named("html_parser", Category::Web, summary, schema_of::<html::Arguments>())?;
    let definition = Definition {
        description: html::DESCRIPTION.to_owned(),
        action: ActionType::from(Leaf::CodeRead),
        ..definition
    };
    Ok(vec![tool(definition, html::Parser::new(Reader::new()))])
}
