//! Terminals in sessions: `/v1/worker/sessions/{session_id}/pty:…` (`docs/contracts/job.md#j4.8`).
//!
//! Input and output are bytes, in base64. Output is kept until the reader acknowledges it by reading on after it. While
//! no client reads, a program that prints more than is kept blocks.

use super::sandbox_order::argv_schema;
use super::session::{AbsoluteDirectory, DIRECTORY_PATTERN, TerminalDimension};
use super::{ApiVersion, base64};
use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::id::{PtyId, SessionId, TaskId};
use crate::job::step::run_command::Argv;
use crate::json::{self, Node};
use crate::problem::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request for a terminal: `…/pty:open`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OpenPtyRequest {
    /// Session of the terminal.
    #[schemars(flatten)]
    pub of: PtyRequestContext,
    /// The program that runs in it, and its arguments; a shell if absent.
    #[schemars(default, schema_with = "argv_schema")]
    pub command: Option<Vec<String>>,
    /// Absolute working directory. Default: the workspace.
    #[schemars(default, with = "String", regex(pattern = DIRECTORY_PATTERN))]
    pub cwd: Option<String>,
    /// Characters in a line.
    #[schemars(default = "usual_cols", range(min = 1, max = 1_000))]
    pub cols: u16,
    /// Lines.
    #[schemars(default = "usual_rows", range(min = 1, max = 1_000))]
    pub rows: u16,
}

/// A request to send input to a terminal: `…/pty:send`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SendPtyRequest {
    /// Session of the terminal.
    #[schemars(flatten)]
    pub of: PtyRequestContext,
    /// The terminal.
    pub pty_id: PtyId,
    /// Input: at most 65,536 bytes, in base64.
    #[schemars(rename = "data_b64", with = "String", length(max = 87_384), regex(pattern = base64::PATTERN))]
    pub data: Vec<u8>,
}

/// A request to resize a terminal: `…/pty:resize`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResizePtyRequest {
    /// Session of the terminal.
    #[schemars(flatten)]
    pub of: PtyRequestContext,
    /// The terminal.
    pub pty_id: PtyId,
    /// Characters in a line.
    #[schemars(range(min = 1, max = 1_000))]
    pub cols: u16,
    /// Lines.
    #[schemars(range(min = 1, max = 1_000))]
    pub rows: u16,
}

/// A request to close a terminal and kill its program: `…/pty:close`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClosePtyRequest {
    /// Session of the terminal.
    #[schemars(flatten)]
    pub of: PtyRequestContext,
    /// The terminal.
    pub pty_id: PtyId,
}

/// Members that all requests about a terminal have.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct PtyRequestContext {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Task of the session, if it is to be checked.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// Session, as in the path, if it is to be checked.
    #[schemars(default, with = "SessionId")]
    pub session_id: Option<SessionId>,
}

/// A terminal: the answer to opening, sending, resizing and closing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PtyResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that the session is for.
    pub task_id: TaskId,
    /// The session.
    pub session_id: SessionId,
    /// The terminal.
    pub pty_id: PtyId,
}

/// Output of a terminal: `…/pty:recv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivePtyResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that the session is for.
    pub task_id: TaskId,
    /// The session.
    pub session_id: SessionId,
    /// The terminal.
    pub pty_id: PtyId,
    /// Output from `after` on, in base64.
    pub data_b64: String,
    /// Value of `after` for the next request: the number of bytes printed so far.
    pub next: u64,
    /// True if no more output will come.
    pub closed: bool,
    /// Exit code of its program, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// Maximum length of one input, in bytes.
pub const LARGEST_INPUT_BYTES: usize = 65_536;

const USUAL: (u16, u16) = (80, 24);

fn usual_cols() -> u16 {
    USUAL.0
}

fn usual_rows() -> u16 {
    USUAL.1
}

fn named(fields: &mut Fields<'_, '_>) -> impl FnOnce() -> Option<PtyRequestContext> + use<> {
    let version = fields.required("version");
    let task_id = fields.optional("task_id");
    let session_id = fields.optional("session_id");
    move || Some(PtyRequestContext { version: version?, task_id: task_id?, session_id: session_id? })
}

macro_rules! parsed {
    ($name:ident) => {
        impl $name {
            /// Parses a request.
            ///
            /// # Errors
            /// [`Problems`]: all that are found.
            pub fn parse(document: &[u8]) -> Result<Self, Problems> {
                decode_document(&json::parse(document)?)
            }
        }
    };
}

parsed!(OpenPtyRequest);
parsed!(SendPtyRequest);
parsed!(ResizePtyRequest);
parsed!(ClosePtyRequest);

impl Decode for OpenPtyRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let command = fields.optional("command");
        let cwd = fields.optional("cwd");
        let (cols, rows) =
            (fields.or("cols", TerminalDimension(USUAL.0)), fields.or("rows", TerminalDimension(USUAL.1)));
        fields.finish()?;
        let (TerminalDimension(cols), TerminalDimension(rows)) = (cols?, rows?);
        let command = command?.map(|Argv(argv)| argv);
        Some(Self { of: of()?, command, cwd: cwd?.map(|AbsoluteDirectory(path)| path), cols, rows })
    }
}

impl Decode for SendPtyRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let pty_id = fields.required("pty_id");
        let data = fields.required("data_b64");
        fields.finish()?;
        Some(Self { of: of()?, pty_id: pty_id?, data: data.map(|Input(data)| data)? })
    }
}

impl Decode for ResizePtyRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let pty_id = fields.required("pty_id");
        let (cols, rows) = (fields.required("cols"), fields.required("rows"));
        fields.finish()?;
        let (TerminalDimension(cols), TerminalDimension(rows)) = (cols?, rows?);
        Some(Self { of: of()?, pty_id: pty_id?, cols, rows })
    }
}

impl Decode for ClosePtyRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let pty_id = fields.required("pty_id");
        fields.finish()?;
        Some(Self { of: of()?, pty_id: pty_id? })
    }
}

struct Input(Vec<u8>);

impl Decode for Input {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        base64::decode(node, at, LARGEST_INPUT_BYTES).map(Self)
    }
}
