//! The OpenAPI document of the Worker API (OpenAPI 3.1), made from its operations and types.

use super::acknowledgement::AcknowledgeRequest;
use super::approval::{ApprovalListResponse, ApprovalResponse, ApproveRequest, DenyRequest};
use super::assignment::RunJobRequest;
use super::event::JobEvent;
use super::grant::{
    GrantListResponse, IssueGrantRequest, IssueGrantResponse, RevokeGrantResponse, ValidateGrantRequest,
    ValidateGrantResponse,
};
use super::job::{JobListResponse, JobResponse};
use super::managed::{ProxyHttpRequest, ProxyHttpResponse};
use super::operation::{Method, Operation};
use super::problem::{ProblemDetails, ProblemKind};
use super::pty::{
    ClosePtyRequest, OpenPtyRequest, PtyResponse, ReceivePtyResponse, ResizePtyRequest, SendPtyRequest,
};
use super::session::{
    EndSessionRequest, OpenSessionRequest, SessionExecRequest, SessionExecResponse, SessionListResponse,
    SessionResponse,
};
use super::state::JobState;
use super::stop::{StopAllRequest, StopAllResponse, StopJobRequest, StopJobResponse};
use super::telemetry::{
    ContainerResponse, ContainerStatus, ContainersResponse, LogsResponse, NodeInfoResponse, NodeStatsResponse,
};
use super::token::{IssueTokenRequest, IssueTokenResponse, RevokeTokenRequest, RevokeTokenResponse};
use super::tool_call::{CallToolRequest, CallToolResponse};
use super::trust::{
    RecordEventRequest, SetLevelRequest, TrustDecisionRequest, TrustEventResponse, TrustListResponse,
    TrustResponse,
};
use crate::approval::ApprovalStatus;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The document.
pub fn document() -> Value {
    let mut types = SchemaTypes::default();
    let mut paths = Map::new();
    for operation in Operation::ALL {
        let (method, path) = operation.route();
        let of_path = paths.entry(path).or_insert_with(|| json!({}));
        let name = method.as_str().to_ascii_lowercase();
        of_path[name.as_str()] = described(operation, &mut types);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Belljar Worker API",
            "version": "1",
            "description": "HTTP API between an orchestrator and a node.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:12090" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": types.finish(),
        },
    })
}

/// Types of requests and types of responses. A type that is in both may have two different schemas.
struct SchemaTypes {
    sent: SchemaGenerator,
    answered: SchemaGenerator,
}

/// Request body of an operation.
enum RequestBody {
    None,
    Json(Value),
    /// The body is optional.
    Maybe(Value),
}

/// Successful response of an operation: status, description, content type and schema.
type SuccessResponse = (u16, &'static str, &'static str, Value);

const JSON: &str = "application/json";

fn described(operation: Operation, types: &mut SchemaTypes) -> Value {
    let answers = answers(operation, types);
    let mut responses = Map::new();
    for (status, description, kind, schema) in answers {
        responses.insert(
            status.to_string(),
            json!({ "description": description, "content": { kind: { "schema": schema } } }),
        );
    }
    let problem = types.answered::<ProblemDetails>();
    for kind in problems(operation) {
        let content = json!({ "application/problem+json": { "schema": problem } });
        let described = json!({ "description": kind.title(), "content": content });
        responses.entry(kind.status().to_string()).or_insert(described);
    }
    if operation == Operation::AttachPty {
        responses.insert("101".to_owned(), json!({ "description": "The WebSocket" }));
    }
    let mut described = json!({
        "operationId": format!("{operation:?}"),
        "summary": operation.summary(),
        "parameters": parameters(operation),
        "responses": responses,
    });
    let body = |schema: Value, required: bool| json!({ "required": required, "content": { JSON: { "schema": schema } } });
    match body_of(operation, types) {
        RequestBody::None => {}
        RequestBody::Json(schema) => described["requestBody"] = body(schema, true),
        RequestBody::Maybe(schema) => described["requestBody"] = body(schema, false),
    }
    if operation.is_open() {
        described["security"] = json!([]);
    }
    described
}

fn body_of(operation: Operation, types: &mut SchemaTypes) -> RequestBody {
    match operation {
        Operation::RunJob => RequestBody::Json(types.sent::<RunJobRequest>()),
        Operation::StopJob => RequestBody::Json(types.sent::<StopJobRequest>()),
        Operation::StopAll => RequestBody::Maybe(types.sent::<StopAllRequest>()),
        Operation::AcknowledgeJob => RequestBody::Json(types.sent::<AcknowledgeRequest>()),
        Operation::OpenSession => RequestBody::Json(types.sent::<OpenSessionRequest>()),
        Operation::ExecInSession => RequestBody::Json(types.sent::<SessionExecRequest>()),
        Operation::EndSession => RequestBody::Maybe(types.sent::<EndSessionRequest>()),
        Operation::OpenPty => RequestBody::Json(types.sent::<OpenPtyRequest>()),
        Operation::SendPty => RequestBody::Json(types.sent::<SendPtyRequest>()),
        Operation::ResizePty => RequestBody::Json(types.sent::<ResizePtyRequest>()),
        Operation::ClosePty => RequestBody::Json(types.sent::<ClosePtyRequest>()),
        Operation::ProxyHttp => RequestBody::Json(types.sent::<ProxyHttpRequest>()),
        Operation::IssueToken => RequestBody::Json(types.sent::<IssueTokenRequest>()),
        Operation::RevokeToken => RequestBody::Json(types.sent::<RevokeTokenRequest>()),
        Operation::CallTool => RequestBody::Json(types.sent::<CallToolRequest>()),
        Operation::IssueGrant => RequestBody::Json(types.sent::<IssueGrantRequest>()),
        Operation::ValidateGrant => RequestBody::Json(types.sent::<ValidateGrantRequest>()),
        Operation::ApproveCall => RequestBody::Maybe(types.sent::<ApproveRequest>()),
        Operation::DenyCall => RequestBody::Json(types.sent::<DenyRequest>()),
        Operation::RecordTrustEvent => RequestBody::Json(types.sent::<RecordEventRequest>()),
        Operation::SetTrustLevel => RequestBody::Json(types.sent::<SetLevelRequest>()),
        Operation::ApprovePromotion | Operation::DenyPromotion | Operation::VerifyAgent => {
            RequestBody::Maybe(types.sent::<TrustDecisionRequest>())
        }
        _ => RequestBody::None,
    }
}

fn answers(operation: Operation, types: &mut SchemaTypes) -> Vec<SuccessResponse> {
    let text = json!({ "type": "string" });
    let one = |schema: Value| vec![(200, "The requested object", JSON, schema)];
    match operation {
        Operation::Alive => vec![(200, "The node is alive", "text/plain", text)],
        Operation::Ready => {
            let not = (503, "The node is not ready", "text/plain", text.clone());
            vec![(200, "The node is ready", "text/plain", text), not]
        }
        Operation::Metrics => vec![(200, "The metrics", "application/openmetrics-text", text)],
        Operation::Describe => one(json!({ "type": "object" })),
        Operation::RunJob => {
            let job = types.answered::<JobResponse>();
            vec![(200, "The job has ended", JSON, job.clone()), (202, "The job was accepted", JSON, job)]
        }
        Operation::StopJob => one(types.answered::<StopJobResponse>()),
        Operation::StopAll => one(types.answered::<StopAllResponse>()),
        Operation::ListJobs => one(types.answered::<JobListResponse>()),
        Operation::ShowJob | Operation::CancelJob | Operation::AcknowledgeJob => {
            one(types.answered::<JobResponse>())
        }
        Operation::FollowJob => {
            let event = types.answered::<JobEvent>();
            let data = json!({ "type": "string", "contentMediaType": JSON, "contentSchema": event });
            let id = json!({ "type": "string", "pattern": "^[0-9]+$" });
            let properties = json!({ "id": id, "event": { "type": "string" }, "data": data });
            let event =
                json!({ "type": "object", "properties": properties, "required": ["id", "event", "data"] });
            vec![(200, "Event stream; ends when the job ends", "text/event-stream", event)]
        }
        Operation::FetchArtifact => {
            let bytes = json!({ "type": "string", "contentMediaType": "application/octet-stream" });
            vec![(200, "Its content", "application/octet-stream", bytes)]
        }
        Operation::OpenSession => {
            let session = types.answered::<SessionResponse>();
            vec![(201, "Created", JSON, session.clone()), (200, "Already open", JSON, session)]
        }
        Operation::ListSessions => one(types.answered::<SessionListResponse>()),
        Operation::ShowSession | Operation::EndSession => one(types.answered::<SessionResponse>()),
        Operation::ExecInSession => one(types.answered::<SessionExecResponse>()),
        Operation::OpenPty => vec![(201, "Created", JSON, types.answered::<PtyResponse>())],
        Operation::SendPty | Operation::ResizePty | Operation::ClosePty => {
            one(types.answered::<PtyResponse>())
        }
        Operation::ReceivePty => one(types.answered::<ReceivePtyResponse>()),
        Operation::AttachPty => Vec::new(),
        Operation::ProxyHttp => one(types.answered::<ProxyHttpResponse>()),
        Operation::IssueToken => {
            vec![(201, "The token was issued", JSON, types.answered::<IssueTokenResponse>())]
        }
        Operation::RevokeToken => one(types.answered::<RevokeTokenResponse>()),
        Operation::CallTool => one(types.answered::<CallToolResponse>()),
        Operation::IssueGrant => {
            vec![(201, "The grant was issued", JSON, types.answered::<IssueGrantResponse>())]
        }
        Operation::ListGrants => one(types.answered::<GrantListResponse>()),
        Operation::RevokeGrant => one(types.answered::<RevokeGrantResponse>()),
        Operation::ValidateGrant => one(types.answered::<ValidateGrantResponse>()),
        Operation::ListApprovals => one(types.answered::<ApprovalListResponse>()),
        Operation::ShowApproval | Operation::ApproveCall | Operation::DenyCall => {
            one(types.answered::<ApprovalResponse>())
        }
        Operation::ListTrust => one(types.answered::<TrustListResponse>()),
        Operation::ShowTrust => one(types.answered::<TrustResponse>()),
        Operation::RecordTrustEvent => {
            let event = types.answered::<TrustEventResponse>();
            vec![(201, "The event was recorded", JSON, event.clone()), (200, "Recorded earlier", JSON, event)]
        }
        Operation::ApprovePromotion
        | Operation::DenyPromotion
        | Operation::SetTrustLevel
        | Operation::VerifyAgent => one(types.answered::<TrustEventResponse>()),
        Operation::NodeInfo => one(types.answered::<NodeInfoResponse>()),
        Operation::NodeStats => one(types.answered::<NodeStatsResponse>()),
        Operation::ListContainers => one(types.answered::<ContainersResponse>()),
        Operation::ShowContainer => one(types.answered::<ContainerResponse>()),
        Operation::ReadLogs => one(types.answered::<LogsResponse>()),
    }
}

/// Returns the problems that an operation can answer with.
fn problems(operation: Operation) -> Vec<ProblemKind> {
    use ProblemKind::{
        Authentication, Authorization, Conflict, Internal, MediaType, NotFound, TooLarge, Unavailable,
        Validation,
    };
    if operation.is_open() {
        return Vec::new();
    }
    let (_, path) = operation.route();
    let mut problems = vec![Authentication, Internal, Unavailable];
    let has_body = !matches!(
        operation,
        Operation::CancelJob
            | Operation::RevokeGrant
            | Operation::Describe
            | Operation::NodeInfo
            | Operation::NodeStats
    ) && operation.route().0 == Method::Post;
    if has_body {
        problems.extend([Validation, MediaType, TooLarge]);
    }
    if !query_of(operation).is_empty() || operation == Operation::AttachPty {
        problems.push(Validation);
    }
    if path.contains('{') || operation == Operation::ReadLogs {
        problems.push(NotFound);
    }
    if has_body {
        problems.push(Conflict);
    }
    if path.contains("{session_id}/") {
        problems.push(ProblemKind::Limit);
    }
    if path.starts_with("/v1/worker/trust/{agent_id}/") {
        problems.push(ProblemKind::Limit);
    }
    if operation == Operation::IssueToken {
        problems.extend([NotFound, ProblemKind::Limit]);
    }
    if operation == Operation::CallTool {
        problems.extend([NotFound, Authorization, ProblemKind::Limit]);
    }
    if operation == Operation::IssueGrant {
        problems.push(ProblemKind::Limit);
    }
    if operation == Operation::ValidateGrant {
        problems.push(Authorization);
    }
    if operation == Operation::ProxyHttp {
        problems.push(ProblemKind::Upstream);
    }
    if operation == Operation::RunJob || operation == Operation::OpenSession {
        problems.push(Authorization);
    }
    if path.contains("{session_id}/") && operation != Operation::EndSession {
        problems.push(Authorization);
    }
    problems
}

/// A parameter after the path: its name, whether it is required, its schema, and its description.
type Parameter = (&'static str, bool, Value, &'static str);

fn parameters(operation: Operation) -> Vec<Value> {
    let (_, path) = operation.route();
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let mut all: Vec<_> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": in_path(name) }))
        .collect();
    for (name, required, schema, description) in query_of(operation) {
        all.push(json!({
            "name": name, "in": "query", "required": required, "schema": schema, "description": description,
        }));
    }
    let header = |name: &str, schema: Value, description: &str| json!({ "name": name, "in": "header", "required": false, "schema": schema, "description": description });
    match operation {
        Operation::RunJob => all.push(header(
            "Idempotency-Key",
            json!({ "type": "string", "pattern": "^[!-~]{1,255}$" }),
            "Idempotency key: a repeated request with the same key returns the same job",
        )),
        Operation::FollowJob => all.push(header(
            "Last-Event-ID",
            json!({ "type": "string", "pattern": "^[0-9]{1,18}$" }),
            "Return events after this event id",
        )),
        _ => {}
    }
    all
}

fn in_path(name: &str) -> Value {
    match name {
        "sha256" => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        "container_id" => json!({ "type": "string", "minLength": 1 }),
        "service_id" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        "agent_id" => json!({ "type": "string", "pattern": "^[!-~]{1,128}$" }),
        _ => uuid(),
    }
}

fn query_of(operation: Operation) -> Vec<Parameter> {
    let limit = |usual: u32, most: u32| {
        let schema = json!({ "type": "integer", "minimum": 1, "maximum": most, "default": usual });
        ("limit", false, schema, "Maximum number of entries")
    };
    let page = || {
        let schema = json!({ "type": "string", "pattern": "^[0-9]{1,18}$" });
        ("page_token", false, schema, "`next_page_token` of the previous page")
    };
    let one_of = |names: Vec<&str>| json!({ "type": "string", "enum": names });
    let time = || json!({ "type": "string", "format": "date-time" });
    let number = || json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let text = || json!({ "type": "string" });
    match operation {
        Operation::ListJobs => {
            let states = JobState::ALL.iter().map(|state| state.as_str()).collect();
            vec![
                ("task_id", false, uuid(), "Only those of this task"),
                ("status", false, one_of(states), "Only jobs in this state"),
                limit(100, 1_000),
                page(),
            ]
        }
        Operation::ListGrants => {
            vec![limit(100, 500), ("page_token", false, uuid(), "`next_page_token` of the previous page")]
        }
        Operation::ListApprovals => {
            let all = ApprovalStatus::ALL.iter().map(|status| status.as_str()).collect();
            vec![("status", false, one_of(all), "Only approvals with this status"), limit(100, 500), page()]
        }
        Operation::ListTrust => {
            // The token is the last agent of the previous page.
            let token = in_path("agent_id");
            vec![limit(100, 500), ("page_token", false, token, "`next_page_token` of the previous page")]
        }
        Operation::FollowJob => vec![("after", false, number(), "Return events after this event id")],
        Operation::ReceivePty => vec![
            ("pty_id", true, uuid(), "The terminal"),
            ("after", false, number(), "Resume after this offset: `next` of an earlier response"),
            (
                "wait_ms",
                false,
                json!({ "type": "integer", "minimum": 0, "maximum": 30_000, "default": 1_000 }),
                "Maximum wait for output, in milliseconds",
            ),
        ],
        Operation::AttachPty => vec![
            ("pty_id", true, uuid(), "The terminal"),
            ("after", false, number(), "Number of output bytes that the client already has"),
        ],
        Operation::ListContainers => {
            let statuses = ContainerStatus::ALL.iter().map(|status| status.as_str()).collect();
            vec![
                ("kind", false, one_of(vec!["managed", "sandbox"]), "Only sandboxes of this kind"),
                ("status", false, one_of(statuses), "Only sandboxes with this status"),
                ("task_id", false, uuid(), "Only those of this task"),
                ("job_id", false, uuid(), "Only those of this job"),
                limit(100, 1_000),
                page(),
            ]
        }
        Operation::ReadLogs => vec![
            ("source_kind", true, one_of(vec!["service", "container"]), "Kind of log source"),
            ("source_name", false, text(), "Name of the service, for services"),
            ("container_id", false, text(), "Id of the sandbox, for containers"),
            ("stream", false, one_of(vec!["stdout", "stderr"]), "Stream of the program"),
            ("since", false, time(), "Only events at or after this time"),
            ("until", false, time(), "Only events before this time"),
            limit(1_000, 5_000),
            page(),
        ],
        _ => Vec::new(),
    }
}

fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

// === impl SchemaTypes ===

impl Default for SchemaTypes {
    fn default() -> Self {
        let generator = |settings: SchemaSettings| {
            let settings = settings.with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            });
            settings.into_generator()
        };
        Self {
            sent: generator(SchemaSettings::draft2020_12().for_deserialize()),
            answered: generator(SchemaSettings::draft2020_12().for_serialize()),
        }
    }
}

impl SchemaTypes {
    fn sent<T: JsonSchema>(&mut self) -> Value {
        self.sent.subschema_for::<T>().to_value()
    }

    fn answered<T: JsonSchema>(&mut self) -> Value {
        self.answered.subschema_for::<T>().to_value()
    }

    fn finish(mut self) -> Map<String, Value> {
        let mut all = self.sent.take_definitions(true);
        for (name, schema) in self.answered.take_definitions(true) {
            // Most types are in one of the two; a type that is in both gets the schema for reading.
            all.entry(name).or_insert(schema);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_references_resolve_and_list_each_operation_once() {
        let document = document();
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for rest in text.split("\"#/components/schemas/").skip(1) {
            let name = rest.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name}");
        }
        let count: usize =
            document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(count, Operation::ALL.len());
    }

    #[test]
    fn openapi_request_and_response_schemas_of_a_type_are_equal() {
        let mut types = SchemaTypes::default();
        for operation in Operation::ALL {
            let _ = described(operation, &mut types);
        }
        let (sent, answered) = (types.sent.take_definitions(true), types.answered.take_definitions(true));
        for (name, schema) in &sent {
            assert!(answered.get(name).is_none_or(|other| other == schema), "{name}");
        }
    }
}
