//! Terminals in sessions: `/v1/worker/sessions/{session_id}/pty:…` (`REQ-WORKER-0153`).
//!
//! What goes either way is bytes, in base64. What a program has printed is kept until the reader has said, by where it reads
//! on, that it has it; while nobody reads, a program that prints more than is kept waits.

use super::sandbox_order::argv_schema;
use super::session::{Absolute, DIRECTORY_PATTERN, Lines};
use super::{ApiVersion, base64};
use crate::decode::{At, Decode, Fields, decode_document};
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
    /// Whose it is.
    #[schemars(flatten)]
    pub of: Named,
    /// The program that runs in it, and its arguments; a shell if absent.
    #[schemars(default, schema_with = "argv_schema")]
    pub command: Option<Vec<String>>,
    /// Where it starts, absolute; the workspace if absent.
    #[schemars(default, with = "String", regex(pattern = DIRECTORY_PATTERN))]
    pub cwd: Option<String>,
    /// Characters in a line.
    #[schemars(default = "usual_cols", range(min = 1, max = 1_000))]
    pub cols: u16,
    /// Lines.
    #[schemars(default = "usual_rows", range(min = 1, max = 1_000))]
    pub rows: u16,
}

/// Something for a terminal: `…/pty:send`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SendPtyRequest {
    /// Whose it is.
    #[schemars(flatten)]
    pub of: Named,
    /// The terminal.
    pub pty_id: PtyId,
    /// What is typed: at most 65,536 bytes, in base64.
    #[schemars(rename = "data_b64", with = "String", length(max = 87_384), regex(pattern = base64::PATTERN))]
    pub data: Vec<u8>,
}

/// How large a terminal is from now on: `…/pty:resize`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResizePtyRequest {
    /// Whose it is.
    #[schemars(flatten)]
    pub of: Named,
    /// The terminal.
    pub pty_id: PtyId,
    /// Characters in a line.
    #[schemars(range(min = 1, max = 1_000))]
    pub cols: u16,
    /// Lines.
    #[schemars(range(min = 1, max = 1_000))]
    pub rows: u16,
}

/// A terminal that is to be closed, and its program killed: `…/pty:close`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClosePtyRequest {
    /// Whose it is.
    #[schemars(flatten)]
    pub of: Named,
    /// The terminal.
    pub pty_id: PtyId,
}

/// What every request about a terminal says besides.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct Named {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that the session is for, if that is to be checked.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// The session, as in the path, if that is to be checked.
    #[schemars(default, with = "SessionId")]
    pub session_id: Option<SessionId>,
}

/// A terminal: the answer to what opens, sends, resizes and closes.
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

/// What a terminal has printed: `…/pty:recv`.
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
    /// What it has printed from `after` on, in base64.
    pub data_b64: String,
    /// What `after` is for what comes next: how many bytes it has printed up to there.
    pub next: u64,
    /// Whether nothing more will come.
    pub closed: bool,
    /// What its program ended with, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// As much goes to a terminal at once, in bytes.
pub const LARGEST_INPUT_BYTES: usize = 65_536;

const USUAL: (u16, u16) = (80, 24);

fn usual_cols() -> u16 {
    USUAL.0
}

fn usual_rows() -> u16 {
    USUAL.1
}

fn named(fields: &mut Fields<'_, '_>) -> impl FnOnce() -> Option<Named> + use<> {
    let version = fields.required("version");
    let task_id = fields.optional("task_id");
    let session_id = fields.optional("session_id");
    move || Some(Named { version: version?, task_id: task_id?, session_id: session_id? })
}

macro_rules! parsed {
    ($name:ident) => {
        impl $name {
            /// Reads a request.
            ///
            /// # Errors
            /// [`Problems`]: every one that is found.
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
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let command = fields.optional("command");
        let cwd = fields.optional("cwd");
        let (cols, rows) = (fields.or("cols", Lines(USUAL.0)), fields.or("rows", Lines(USUAL.1)));
        fields.finish()?;
        let (Lines(cols), Lines(rows)) = (cols?, rows?);
        let command = command?.map(|Argv(argv)| argv);
        Some(Self { of: of()?, command, cwd: cwd?.map(|Absolute(path)| path), cols, rows })
    }
}

impl Decode for SendPtyRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let pty_id = fields.required("pty_id");
        let data = fields.required("data_b64");
        fields.finish()?;
        Some(Self { of: of()?, pty_id: pty_id?, data: data.map(|Input(data)| data)? })
    }
}

impl Decode for ResizePtyRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let pty_id = fields.required("pty_id");
        let (cols, rows) = (fields.required("cols"), fields.required("rows"));
        fields.finish()?;
        let (Lines(cols), Lines(rows)) = (cols?, rows?);
        Some(Self { of: of()?, pty_id: pty_id?, cols, rows })
    }
}

impl Decode for ClosePtyRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let of = named(&mut fields);
        let pty_id = fields.required("pty_id");
        fields.finish()?;
        Some(Self { of: of()?, pty_id: pty_id? })
    }
}

struct Input(Vec<u8>);

impl Decode for Input {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        base64::decode(node, at, LARGEST_INPUT_BYTES).map(Self)
    }
}
