//! MCP, by the library of its authors; this is the only module that uses it. It serves both families of revisions: the stateless
//! one (2026-07-28), and those with a handshake, for which it keeps no state either.

use crate::Gateway;
use crate::arguments;
use crate::call::{CallOutcome, Refusal, ToolAnswer};
use crate::caller_slot::CallerSlot;
use crate::long_messages;
use axum::http::request::Parts;
use belljar_contract::tool::{DomainCode, Envelope};
use belljar_tools::answer::{Attachment, Failure, envelope};
use belljar_tools::definition::{Content, Definition, Effect, Resource};
use belljar_tools::turn_queue::Turn;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    Implementation, JsonObject, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource as McpResource,
    ResourceContents, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A server for one caller, or for the authenticated caller of each request.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) gateway: Arc<Gateway>,
    /// `None` if each request is authenticated by its token.
    pub(crate) seat: Option<CallerSlot>,
}

/// Maximum number of tools per page.
const TOOLS_AT_ONCE: usize = 100;

/// Error code of a call that is not permitted.
const DENIED: ErrorCode = ErrorCode(-32_001);

/// Error code of a call that can't be recorded.
const UNAVAILABLE: ErrorCode = ErrorCode(-32_002);

// === impl Server ===

impl Server {
    /// Returns the caller slot of a request.
    fn seat<'a>(&'a self, context: &'a RequestContext<RoleServer>) -> Result<&'a CallerSlot, ErrorData> {
        let of_request = || context.extensions.get::<Parts>()?.extensions.get::<CallerSlot>();
        let seat = self.seat.as_ref().or_else(of_request);
        // Authentication rejects requests without a slot; should one get here, it is refused.
        seat.filter(|seat| !seat.is_over()).ok_or_else(|| refused(&Refusal::Over))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("belljar", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.gateway.instructions())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let seat = self.seat(&context)?;
        let listed = self.gateway.listed(seat.caller());
        let from = cursor(request)?;
        let tools = listed.iter().skip(from).take(TOOLS_AT_ONCE);
        let tools = tools.map(|entry| told(seat, entry.tool.definition())).collect();
        let next = from.saturating_add(TOOLS_AT_ONCE);
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = (next < listed.len()).then(|| next.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = call(Arc::clone(&self.gateway), self.seat(&context)?.clone(), request, context.ct.clone());
        match context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Turn>()) {
            None => call.await,
            Some(turn) => {
                let turn = turn.clone();
                let called = long_messages::apart(async move {
                    let _turn = turn;
                    call.await
                });
                let broken = |_| ErrorData::internal_error("the call ended unexpectedly", None);
                called.await.map_err(broken)?
            }
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let seat = self.seat(&context)?;
        let from = cursor(request)?;
        let listed = self.gateway.listed(seat.caller());
        let all: Vec<_> = listed
            .iter()
            .flat_map(|entry| {
                let definition = entry.tool.definition();
                definition.resources.iter().map(|resource| told_resource(definition, resource))
            })
            .collect();
        let next = from.saturating_add(TOOLS_AT_ONCE);
        let is_last = next >= all.len();
        let mut result =
            ListResourcesResult::with_all_items(all.into_iter().skip(from).take(TOOLS_AT_ONCE).collect());
        result.next_cursor = (!is_last).then(|| next.to_string());
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let seat = self.seat(&context)?;
        let listed = self.gateway.listed(seat.caller());
        let found = listed.iter().find_map(|entry| {
            let definition = entry.tool.definition();
            definition.resources.iter().find(|resource| resource.uri(&definition.name) == request.uri)
        });
        let Some(resource) = found else {
            return Err(ErrorData::resource_not_found("there is no such resource", None));
        };
        let contents = match &resource.content {
            Content::Text(text) => ResourceContents::text(text.clone(), request.uri),
            Content::Base64(bytes) => ResourceContents::blob(bytes.clone(), request.uri),
        };
        let contents = contents.with_mime_type(resource.content_type.clone());
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// Makes a call; it ends if the client cancels it.
async fn call(
    gateway: Arc<Gateway>,
    seat: CallerSlot,
    CallToolRequestParams { name, arguments, .. }: CallToolRequestParams,
    given_up: CancellationToken,
) -> Result<CallToolResponse, ErrorData> {
    let called = tokio::select! {
        biased;
        called = gateway.call(&seat, &name, arguments.unwrap_or_default()) => called,
        () = given_up.cancelled() => return Err(ErrorData::invalid_request("cancelled", None)),
    };
    match called {
        CallOutcome::Answered(answered) => Ok(result(answered).into()),
        // The answer lists the existing names, so that a model can correct a misread one.
        CallOutcome::Refused(refusal @ Refusal::Unknown { .. }) => {
            let failure = Failure::new(DomainCode::NotFound, refusal.to_string());
            Ok(result(ToolAnswer { envelope: envelope(Err(failure)), attachments: Vec::new() }).into())
        }
        CallOutcome::Refused(refusal) => Err(refused(&refusal)),
    }
}

/// Parses the cursor of a list.
fn cursor(request: Option<PaginatedRequestParams>) -> Result<usize, ErrorData> {
    let Some(cursor) = request.and_then(|request| request.cursor) else { return Ok(0) };
    cursor.parse().map_err(|_| ErrorData::invalid_params("not a cursor of this server", None))
}

/// Returns a tool's description for this caller.
fn told(seat: &CallerSlot, definition: &Definition) -> Tool {
    let schema: JsonObject = arguments::told_schema(seat.caller(), &definition.input);
    let effect = definition.effect;
    let annotations = ToolAnnotations::new()
        .read_only(effect == Effect::ReadOnly)
        .destructive(effect == Effect::Destructive)
        .idempotent(matches!(effect, Effect::ReadOnly | Effect::Idempotent))
        .open_world(definition.reaches_out || definition.is_installed);
    let resources = definition.resources.iter().map(|resource| resource.uri(&definition.name));
    let resources: Vec<_> = resources.collect();
    let meta = json!({
        "belljar/category": definition.category,
        "belljar/cost_tier": definition.cost,
        "belljar/summary": definition.summary,
        "belljar/resources": resources,
    });
    let mut tool = Tool::new(definition.name.to_string(), definition.described(), Arc::new(schema))
        .with_annotations(annotations);
    tool.meta = serde_json::from_value::<MetaObject>(meta).ok();
    tool
}

fn told_resource(definition: &Definition, resource: &Resource) -> McpResource {
    let mut told =
        McpResource::new(resource.uri(&definition.name), format!("{}: {}", definition.name, resource.id));
    told.mime_type = Some(resource.content_type.clone());
    told
}

/// Converts an answer to MCP: the envelope as a value, and as text for clients that don't read values.
fn result(ToolAnswer { envelope, attachments }: ToolAnswer) -> CallToolResult {
    let is_error = matches!(envelope, Envelope::Error { .. });
    let value = serde_json::to_value(&envelope).unwrap_or(Value::Null);
    let mut content = vec![ContentBlock::text(value.to_string())];
    content.extend(attachments.into_iter().map(attached));
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(value);
    result
}

fn attached(Attachment { mime_type, uri, base64 }: Attachment) -> ContentBlock {
    match uri {
        Some(uri) => ContentBlock::resource(ResourceContents::blob(base64, uri).with_mime_type(mime_type)),
        None if mime_type.starts_with("audio/") => ContentBlock::audio(base64, mime_type),
        None => ContentBlock::image(base64, mime_type),
    }
}

fn refused(refusal: &Refusal) -> ErrorData {
    let code = match refusal {
        Refusal::Unknown { .. } => ErrorCode::INVALID_PARAMS,
        Refusal::Denied { .. } | Refusal::OutOfBounds { .. } | Refusal::AuditQuota | Refusal::Over => DENIED,
        Refusal::Unrecorded => UNAVAILABLE,
    };
    let reason = match refusal {
        Refusal::Unknown { .. } => "unknown",
        Refusal::Denied { denied } => denied.reason.as_str(),
        Refusal::OutOfBounds { .. } => "out_of_bounds",
        Refusal::AuditQuota => "audit_quota",
        Refusal::Over => "over",
        Refusal::Unrecorded => "unrecorded",
    };
    ErrorData::new(code, refusal.to_string(), Some(json!({ "reason": reason })))
}
