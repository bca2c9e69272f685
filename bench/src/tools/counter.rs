//! The gateway in a process of its own, with one tool that echoes its argument.

use crate::models::part::{say, wait_for_end};
use belljar_contract::category::Category;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::tool::ToolName;
use belljar_gateway::caller_slot::CallerSlot;
use belljar_gateway::{ConnectionLimits, EndpointKind, Gateway, ServerLimits, routes, serve};
use belljar_policy::tool::ToolGrants;
use belljar_store::audit::{AuditLog, folder_in};
use belljar_tools::answer::{Answer, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::Definition;
use belljar_tools::registry::Registry;
use belljar_tools::typed::{TypedTool, schema_of, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The part. It prints its port.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counter {
    /// State directory whose audit log records the calls.
    pub(super) state: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct EchoMessage {
    message: String,
}

struct Echo;

/// The id of every caller.
const ID: &str = "01a20073-e9f5-7598-b496-5102b8186da2";

impl TypedTool for Echo {
    type Arguments = EchoMessage;

    async fn call(&self, _: &Caller, said: EchoMessage) -> Answer {
        Ok(Success::of(json!(said.message)))
    }
}

// === impl Counter ===

impl Counter {
    pub(crate) fn play(&self) {
        let audit = Arc::new(AuditLog::open(&folder_in(&self.state)).expect("an audit"));
        let name = ToolName::parse("echo").expect("a name");
        let definition =
            Definition::new(name, Category::Other, "Echoes the message.", schema_of::<EchoMessage>());
        let definition = Definition { is_installed: true, ..definition };
        let registry = Registry::new([tool(definition, Echo)]).expect("one tool");
        let gateway = Arc::new(Gateway::new(Arc::new(registry), audit));
        let caller = Caller::in_sandbox(
            TaskId::parse(ID).expect("an id"),
            JobId::parse(ID).expect("an id"),
            RunId::parse(ID).expect("an id"),
            ToolGrants::default(),
        );
        let stopped = CancellationToken::new();
        let routes =
            routes(gateway, EndpointKind::Hatch(CallerSlot::new(caller, stopped.clone())), stopped.clone());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let connections = ConnectionLimits {
            authenticated: 16,
            unauthenticated: 16,
            unauthenticated_per_peer: 16,
            authenticate_within: Duration::from_secs(3_600),
        };
        let room = ServerLimits { connections, grace: Duration::ZERO };
        runtime.spawn(serve(routes, listener, room, stopped));
        say(&address);
        wait_for_end();
    }
}
