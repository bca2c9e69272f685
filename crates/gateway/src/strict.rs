//! Messages are read strictly before the library of MCP reads them: a member that is twice is read otherwise by others, who judge or
//! record the call.

use belljar_contract::json::{self, Node};
use rmcp::model::ErrorData;

/// How much of a name is repeated.
const LONGEST_REPEATED: usize = 128;

/// Reads a message as JSON.
///
/// # Errors
/// The error to answer with, when it is no JSON or has a member twice.
pub(crate) fn read(message: &[u8]) -> Result<Node, ErrorData> {
    let node = json::parse(message).map_err(|problem| {
        ErrorData::parse_error(format!("not a message of JSON: found {}", problem.found), None)
    })?;
    match node.repeated_member() {
        None => Ok(node),
        Some(name) => {
            let name = &name[..name.floor_char_boundary(LONGEST_REPEATED)];
            Err(ErrorData::invalid_request(format!("the member {name:?} is there twice"), None))
        }
    }
}
