//! The gateway by which agents call tools, whatever they speak to it.
//!
//! ```text
//! caller, name, arguments ─► found? ─► policy::tool::decide ─► bounds ─► access ─► guards ─► schema ─► a yes, where it takes one
//!                                            ▲                      ▲                                    │
//!                  list ─────────────────────┴──────────────────────┘                 recorded, if it changes anything
//!                                       Envelope ◄─ recorded ◄─ looked through ◄─ call ◄──┘
//! ```
//! Who calls is known by the socket or the token by which the call came ([`seat::Seat`]), never by anything it says. What lists tools
//! and what calls one asks the same function.

#![forbid(unsafe_code)]

pub mod access;
mod admission;
mod arguments;
mod asking;
pub mod bearer;
pub mod call;
mod half_closed;
mod http;
mod long;
mod mcp;
mod recording;
mod scan;
pub mod seat;
mod serving;
mod stdio;
mod strict;

pub use admission::{ConnectionLimits, Place};
pub use http::{Door, routes};
pub use long::{LARGEST_SHORT_BYTES, LONG_MESSAGES, apart};
pub use serving::{Room, hatch_connection, serve};
pub use stdio::{StdioError, stdio};

use access::{Access, Approver, ScopeSource};
use asking::Asking;
use belljar_contract::tool::{ToolName, ToolScope};
use belljar_policy::secret::{KnownSecrets, NoSecrets};
use belljar_policy::tool::{self, Denied, Facts, Permitted};
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
    /// What is left out of records, answers and messages of failures besides `secrets`: precise forms of tokens.
    token_forms: Redactor,
    /// The host's own secrets.
    secrets: Arc<dyn KnownSecrets>,
    disabled: RwLock<BTreeSet<ToolName>>,
    /// For whose agents tools are, in the place of what they say themselves.
    tool_scopes: RwLock<BTreeMap<ToolName, ToolScope>>,
    /// What is there to be said to whoever begins.
    instructions: Cow<'static, str>,
    /// By whose rules agents are judged; nothing where there are none.
    access: Option<Arc<dyn Access>>,
    /// What all calls act on besides their arguments.
    scopes: Option<Arc<dyn ScopeSource>>,
    /// Who is asked where a person has to say yes; nobody, where there is none.
    asking: Option<Arc<Asking>>,
}

/// Under which its own tool is among those of others.
const OF_GATEWAY: &str = "gateway";

const INSTRUCTIONS: &str = "Tools of the host. Each answers with an envelope: {\"status\":\"ok\",\"data\":…} or \
    {\"status\":\"error\",\"domain_code\":…,\"message\":…}.";

// === impl Gateway ===

impl Gateway {
    /// One for these tools, which records into that audit.
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

    /// The same, which judges agents by these rules.
    pub fn judging_by(self, access: Arc<dyn Access>) -> Self {
        Self { access: Some(access), ..self }
    }

    /// Returns the gateway with the host's own secrets: they are left out of records, and calls whose arguments contain one can't be
    /// approved.
    pub fn knowing(self, secrets: Arc<dyn KnownSecrets>) -> Self {
        Self { secrets, ..self }
    }

    /// Returns the gateway with what all calls act on besides their arguments. It comes before [`Gateway::asking`].
    pub fn scoped_by(self, scopes: Arc<dyn ScopeSource>) -> Self {
        Self { scopes: Some(scopes), ..self }
    }

    /// The same, which asks there where a person has to say yes; it comes after [`Gateway::judging_by`]. Agents with rules of their own are shown a tool that asks, too.
    ///
    /// # Errors
    /// [`RegisterError`] when another tool has its name.
    pub fn asking(self, approver: Arc<dyn Approver>) -> Result<Self, RegisterError> {
        let asking = Asking::new(approver, Arc::clone(&self.secrets), self.scopes.clone());
        let asking = Arc::new(asking.judged_by(self.access.clone()));
        let tool = asking::tool(&asking);
        match self.registry.install(OF_GATEWAY, tool).into_iter().next() {
            None => Ok(Self { asking: Some(asking), ..self }),
            Some(error) => Err(error),
        }
    }

    /// The same, which says this to whoever begins, after what holds for every gateway.
    pub fn instructing(self, instructions: &str) -> Self {
        Self { instructions: format!("{INSTRUCTIONS} {instructions}").into(), ..self }
    }

    /// What is said to whoever begins.
    pub(crate) fn instructions(&self) -> &str {
        &self.instructions
    }

    /// The tools that it has.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Has these tools be switched off, and all others on. Whoever lists or calls from now on is told so.
    pub fn disable(&self, names: impl IntoIterator<Item = ToolName>) {
        *self.disabled.write().unwrap_or_else(PoisonError::into_inner) = names.into_iter().collect();
    }

    /// Has these tools be for the agents of these scopes, and all others for those of their own.
    pub fn rescope(&self, scopes: impl IntoIterator<Item = (ToolName, ToolScope)>) {
        *self.tool_scopes.write().unwrap_or_else(PoisonError::into_inner) = scopes.into_iter().collect();
    }

    /// The tools that this caller may call, by name: those, and no others.
    pub fn listed(&self, caller: &Caller) -> Vec<Arc<Entry>> {
        let is_shown = |entry: &Arc<Entry>| {
            let access = self.access.as_deref();
            self.decide(caller, entry).is_ok()
                && match asking::is_asking(entry.name()) {
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
    /// [`Denied`] with the first reason there is.
    pub fn decide(&self, caller: &Caller, entry: &Entry) -> Result<Permitted, Denied> {
        let definition = entry.tool.definition();
        let is_disabled =
            self.disabled.read().unwrap_or_else(PoisonError::into_inner).contains(&definition.name);
        let scopes = self.tool_scopes.read().unwrap_or_else(PoisonError::into_inner);
        let facts = Facts {
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
