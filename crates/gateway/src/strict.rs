//! Messages are read strictly before the library of MCP reads them: a member that is twice is read otherwise by others, who judge or
//! record the call.

use belljar_contract::json::{self, Bounds, MAX_DEPTH, MAX_MESSAGE_VALUES, Node};
use belljar_contract::problem::Problem;
use rmcp::model::ErrorData;

/// How much of a name is repeated.
const LONGEST_REPEATED: usize = 128;

/// Reads a message as JSON.
///
/// # Errors
/// The error to answer with, when it is no JSON, has too many values or has a member twice.
pub(crate) fn read(message: &[u8]) -> Result<Node, ErrorData> {
    let node = json::parse_within(message, &Bounds { values: MAX_MESSAGE_VALUES, depth: MAX_DEPTH })
        .map_err(|Problem { found, expected, .. }| {
            ErrorData::parse_error(format!("not a message of JSON: found {found}, expected {expected}"), None)
        })?;
    match node.repeated_member() {
        None => Ok(node),
        Some(name) => {
            let name = &name[..name.floor_char_boundary(LONGEST_REPEATED)];
            Err(ErrorData::invalid_request(format!("the member {name:?} is there twice"), None))
        }
    }
}
