//! Parses messages strictly before the MCP library does: other programs, which judge or record the call, could interpret a
//! duplicate member differently.

use belljar_contract::json::{self, Bounds, MAX_DEPTH, MAX_MESSAGE_VALUES, Node};
use belljar_contract::problem::Problem;
use rmcp::model::ErrorData;

/// Maximum length of a member's name that is repeated, in bytes.
const LONGEST_REPEATED: usize = 128;

/// Parses a message as JSON.
///
/// # Errors
/// The error to answer with, when it isn't JSON, has too many values or has a duplicate member.
pub(crate) fn read(message: &[u8]) -> Result<Node, ErrorData> {
    let node = json::parse_within(message, &Bounds { values: MAX_MESSAGE_VALUES, depth: MAX_DEPTH })
        .map_err(|Problem { found, expected, .. }| {
            ErrorData::parse_error(format!("not a message of JSON: found {found}, expected {expected}"), None)
        })?;
    match node.repeated_member() {
        None => Ok(node),
        Some(name) => {
            let name = &name[..name.floor_char_boundary(LONGEST_REPEATED)];
            Err(ErrorData::invalid_request(format!("duplicate member {name:?}"), None))
        }
    }
}
