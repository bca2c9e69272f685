//! The gateway by which agents call tools, over any protocol.
//!
//! ```text
//! caller, name, arguments ─► found? ─► policy::tool::decide ─► bounds ─► access ─► guards ─► schema ─► an approval, if required
//!                                            ▲                      ▲                                    │
//!                  list ─────────────────────┴──────────────────────┘                 recorded, if it changes anything
//!                                       Envelope ◄─ recorded ◄─ scanned ◄──────── call ◄──┘
//! ```
//! The socket or the token of a call identifies the caller ([`caller_slot::CallerSlot`]), never the call's content. Listing tools and calling
//! them use the same decision.

#![forbid(unsafe_code)]

pub mod access;
mod admission;
mod approval_calls;
mod arguments;
pub mod bearer;
pub mod call;
pub mod caller_slot;
mod half_closed;
mod http;
mod long_messages;
mod mcp;
mod recording;
mod scan;
mod serving;
mod stdio;
mod strict_messages;

pub use admission::{ConnectionLimits, ConnectionSlot};
pub use http::{EndpointKind, routes};
pub use long_messages::{LARGEST_SHORT_BYTES, LONG_MESSAGES, apart};
pub use serving::{ServerLimits, hatch_connection, serve};
pub use stdio::{StdioError, stdio};

use access::{Access, Approver, ScopeSource};
use approval_calls::ApprovalRequests;
use belljar_contract::tool::{ToolName, ToolScope};
use belljar_policy::secret::{KnownSecrets, NoSecrets};
use belljar_policy::tool::{self, DeniedCall, PermittedCall, ToolTraits};
use belljar_sandbox::shipping::Redactor;
use belljar_store::audit::AuditLog;
use belljar_tools::caller::Caller;
use belljar_tools::registry::{Entry, RegisterError, Registry};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    registry: Arc<Registry>,
    audit: Arc<AuditLog>,
    /// Redactor of texts with the precise form of a token, for records, answers and failure messages, besides `secrets`.
    token_forms: Redactor,
    /// The host's own secrets.
    secrets: Arc<dyn KnownSecrets>,
    disabled: RwLock<BTreeSet<ToolName>>,
    /// Scopes of tools that replace their own.
    tool_scopes: RwLock<BTreeMap<ToolName, ToolScope>>,
    /// Instructions for a client at the begin of a session.
    instructions: Cow<'static, str>,
    /// Access rules of agents, if there are any.
    access: Option<Arc<dyn Access>>,
    /// Scope of all calls.
    scopes: Option<Arc<dyn ScopeSource>>,
    /// Approvals, if there is an approver.
    asking: Option<Arc<ApprovalRequests>>,
}

/// Source name of the gateway's own tool.
const OF_GATEWAY: &str = "gateway";

const INSTRUCTIONS: &str = "Tools of the host. Each answers with an envelope: {\"status\":\"ok\",\"data\":…} or \
    {\"status\":\"error\",\"domain_code\":…,\"message\":…}.";

// === impl Gateway ===

impl Gateway {
    /// Returns a gateway for these tools, which records into that audit log.
    pub fn new(registry: Arc<Registry>, audit: Arc<AuditLog>) -> Self {
        let instructions = INSTRUCTIONS.into();
        Self {
            registry,
            audit,
            token_forms: Redactor::of_token_forms(),
            secrets: Arc::new(NoSecrets),
            disabled: RwLock::default(),
            tool_scopes: RwLock::default(),
            instructions,
            access: None,
            scopes: None,
            asking: None,
        }
    }

    /// Sets the access rules of agents.
    pub fn judging_by(self, access: Arc<dyn Access>) -> Self {
        Self { access: Some(access), ..self }
    }

    /// Sets the host's secrets: they are redacted in records, and calls with one in their arguments can't be approved.
    pub fn knowing(self, secrets: Arc<dyn KnownSecrets>) -> Self {
        Self { secrets, ..self }
    }

    /// Sets the scope of all calls. Must precede [`Gateway::asking`].
    pub fn scoped_by(self, scopes: Arc<dyn ScopeSource>) -> Self {
        Self { scopes: Some(scopes), ..self }
    }

    /// Sets the approver; must follow [`Gateway::judging_by`]. Agents with access rules get a tool that requests approvals.
    ///
    /// # Errors
    /// [`RegisterError`] when another tool has its name.
    pub fn asking(self, approver: Arc<dyn Approver>) -> Result<Self, RegisterError> {
        let asking = ApprovalRequests::new(approver, Arc::clone(&self.secrets), self.scopes.clone());
        let asking = Arc::new(asking.judged_by(self.access.clone()));
        let tool = approval_calls::tool(&asking);
        match self.registry.install(OF_GATEWAY, tool).into_iter().next() {
            None => Ok(Self { asking: Some(asking), ..self }),
            Some(error) => Err(error),
        }
    }

    /// Adds instructions for clients, after the general ones.
    pub fn instructing(self, instructions: &str) -> Self {
        Self { instructions: format!("{INSTRUCTIONS} {instructions}").into(), ..self }
    }

    /// Returns the instructions for clients.
    pub(crate) fn instructions(&self) -> &str {
        &self.instructions
    }

    /// Returns the registry of its tools.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Disables these tools, and enables all others. Takes effect for the next list or call.
    pub fn disable(&self, names: impl IntoIterator<Item = ToolName>) {
        *self.disabled.write().unwrap_or_else(PoisonError::into_inner) = names.into_iter().collect();
    }

    /// Sets the scopes of these tools; all others have their own.
    pub fn rescope(&self, scopes: impl IntoIterator<Item = (ToolName, ToolScope)>) {
        *self.tool_scopes.write().unwrap_or_else(PoisonError::into_inner) = scopes.into_iter().collect();
    }

    /// Returns the tools that this caller may call, by name.
    pub fn listed(&self, caller: &Caller) -> Vec<Arc<Entry>> {
        let is_shown = |entry: &Arc<Entry>| {
            let access = self.access.as_deref();
            self.decide(caller, entry).is_ok()
                && match approval_calls::is_asking(entry.name()) {
                    true => caller.identity.is_some(),
                    false => {
                        access.is_none_or(|access| access::shows(access, caller, entry.tool.definition()))
                    }
                }
        };
        self.registry.all().into_iter().filter(is_shown).collect()
    }

    /// Decides whether this caller may call that tool.
    ///
    /// # Errors
    /// [`DeniedCall`] with the first reason.
    pub fn decide(&self, caller: &Caller, entry: &Entry) -> Result<PermittedCall, DeniedCall> {
        let definition = entry.tool.definition();
        let is_disabled =
            self.disabled.read().unwrap_or_else(PoisonError::into_inner).contains(&definition.name);
        let scopes = self.tool_scopes.read().unwrap_or_else(PoisonError::into_inner);
        let facts = ToolTraits {
            name: &definition.name,
            scope: scopes.get(&definition.name).copied().unwrap_or(definition.scope),
            is_enabled: !is_disabled,
            is_installed: definition.is_installed,
            reaches_out: definition.reaches_out,
            is_read_only: !definition.effect.is_change(),
        };
        tool::decide(caller.kind, &facts, &caller.grants)
    }
}
