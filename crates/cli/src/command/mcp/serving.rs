//! The server: its gateway and audit, its door, and its end.

use super::HttpArguments;
use super::mcp_sessions::McpSessions;
use super::offering::ToolService;
use super::scope::McpScopeSource;
use super::{tell, token_file, tools};
use crate::error::CliError;
use crate::{access, approvals, listen_check, trust};
use belljar_contract::tool::AgentKind;
use belljar_egress::known_secrets::ProcessSecrets;
use belljar_gateway::access::{Access, TrustFollower, TrustRecords};
use belljar_gateway::caller_slot::CallerSlot;
use belljar_gateway::{ConnectionLimits, EndpointKind, Gateway, ServerLimits, bearer};
use belljar_policy::tool::ToolGrants;
use belljar_tools::caller::{Caller, Identity};
use jiff::Timestamp;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

const INSTRUCTIONS: &str = "These are sealed sandboxes on this machine. `run` does one command; `open` makes a session, in which \
    `exec`, `read`, `write` and `list` work at /workspace on a copy of a directory, `diff` returns the changes, and `approve` writes \
    them into the directory itself, if the operator of this server allows it. Paths are those inside of the sandbox.";

/// Time that calls in progress have to finish when the server shuts down.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// Interval of the check for programs that run by outdated rules.
const ENFORCED_EVERY: Duration = Duration::from_millis(500);

/// Connection limits and shutdown grace period of the HTTP transport.
const ROOM: ServerLimits = ServerLimits {
    connections: ConnectionLimits {
        authenticated: 256,
        unauthenticated: 128,
        unauthenticated_per_peer: 64,
        authenticate_within: Duration::from_secs(10),
    },
    grace: Duration::from_secs(2),
};

/// Actor name of clients in the audit log.
const ACTOR: &str = "belljar mcp";

/// Serves until the client disconnects or the process is asked to stop.
pub(super) fn run(http: &HttpArguments, offered: &ToolService) -> Result<ExitCode, CliError> {
    let runtime = approvals::runtime()?;
    let gateway = Arc::new(runtime.block_on(gateway(offered))?.instructing(INSTRUCTIONS));
    let served = runtime.block_on(serve(http, offered, gateway));
    // An open standard input must not delay the shutdown.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

/// Creates the gateway for the offered tools. It records calls in this machine's audit log and enforces the caller's rules.
pub(crate) async fn gateway(offered: &ToolService) -> Result<Gateway, CliError> {
    let audit = approvals::audit()?;
    let configuration = access::configuration(None)?;
    let registry = Arc::new(tools::registry(&offered.desk, offered.set, configuration.as_ref())?);
    let gateway = Gateway::new(registry, Arc::clone(&audit)).knowing(Arc::new(ProcessSecrets));
    let Some(house) = &offered.house else { return Ok(gateway) };
    let approver = approvals::approver(&audit, configuration.as_ref()).await?;
    let gateway = gateway.scoped_by(Arc::new(McpScopeSource(Arc::clone(&offered.desk))));
    Ok(gateway.judging_by(Arc::clone(house) as Arc<dyn Access>).asking(Arc::new(approver))?)
}

/// Follows what an agent with a name has earned, from what it has by now on.
pub(crate) async fn follow_earned(
    offered: &ToolService,
    stopped: &CancellationToken,
) -> Result<(), CliError> {
    let (Some(Identity::Agent(agent)), Some(house)) = (&offered.identity, &offered.house) else {
        return Ok(());
    };
    let book = TrustRecords::new(trust::events().await?, trust::config(None)?);
    let earning = Arc::new(TrustFollower::new(book, Arc::clone(house)));
    earning.hire(agent, Timestamp::now()).await?;
    earning.look(Timestamp::now()).await?;
    tokio::spawn(earning.follow(Timestamp::now, stopped.clone()));
    tokio::spawn(enforce(Arc::clone(&offered.desk), stopped.clone()));
    Ok(())
}

/// Has no program go on by rules that count no more.
async fn enforce(desk: Arc<McpSessions>, stopped: CancellationToken) {
    while tokio::time::timeout(ENFORCED_EVERY, stopped.cancelled()).await.is_err() {
        let desk = Arc::clone(&desk);
        let _ = tokio::task::spawn_blocking(move || desk.enforce()).await;
    }
}

async fn serve(http: &HttpArguments, offered: &ToolService, gateway: Arc<Gateway>) -> Result<(), CliError> {
    let stopped = CancellationToken::new();
    stop_when_asked(&stopped)?;
    follow_earned(offered, &stopped).await?;
    let seat = CallerSlot::new(caller(offered), stopped.clone());
    let served = match http.address {
        Some(address) => serve_http(http, address, (gateway, seat), &stopped).await,
        None => belljar_gateway::stdio(gateway, seat, stopped.clone()).await.map_err(Into::into),
    };
    // Calls that are still in progress are cancelled.
    stopped.cancel();
    end(&offered.desk).await;
    served
}

/// Ends what was opened, unless it is kept.
pub(crate) async fn end(desk: &Arc<McpSessions>) {
    let ending = Arc::clone(desk);
    let kept = tokio::task::spawn_blocking(move || ending.end()).await.unwrap_or_default();
    desk.settled(SETTLED_WITHIN).await;
    if kept > 0 {
        tell(&format!("{kept} sessions go on; `belljar session list` tells which"));
    }
}

/// Has the token tell when this process is asked to end.
pub(crate) fn stop_when_asked(stopped: &CancellationToken) -> Result<(), CliError> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let mut asked = signal(kind).map_err(|source| CliError::Runtime { source })?;
        let stopped = stopped.clone();
        tokio::spawn(async move {
            asked.recv().await;
            stopped.cancel();
        });
    }
    Ok(())
}

/// Returns the caller for the owner of this machine. The network access of sandboxes was set when the server was started.
pub(crate) fn caller(offered: &ToolService) -> Caller {
    Caller {
        identity: offered.identity.clone(),
        actor: Some(ACTOR.to_owned()),
        user_id: Some(rustix::process::getuid().as_raw().to_string()),
        grants: ToolGrants { may_reach_out: true, ..ToolGrants::default() },
        ..Caller::of(AgentKind::Operator)
    }
}

async fn serve_http(
    http: &HttpArguments,
    address: SocketAddr,
    (gateway, seat): (Arc<Gateway>, CallerSlot),
    stopped: &CancellationToken,
) -> Result<(), CliError> {
    listen_check::check_address(address, http.allow_remote)?;
    let Some(path) = &http.token_file else {
        return Err(CliError::usage("--http needs a --token-file".to_owned()));
    };
    let token = Arc::new(token_file::token(path, seat)?);
    let listen = TcpListener::bind(address).await;
    let listener = listen.map_err(|source| CliError::Listen { address, source })?;
    let bound = listener.local_addr().map_err(|source| CliError::Listen { address, source })?;
    let door = EndpointKind::Remote(names(bound, &http.hosts));
    let routes = bearer::guarded(belljar_gateway::routes(gateway, door, stopped.clone()), token);
    tell(&format!("serving at http://{bound}/mcp"));
    belljar_gateway::serve(routes, listener, ROOM, stopped.clone()).await;
    Ok(())
}

/// Returns the host names and addresses at which the server is reached.
fn names(bound: SocketAddr, further: &[String]) -> Vec<String> {
    let local = bound.ip().to_canonical().is_loopback().then(|| format!("localhost:{}", bound.port()));
    std::iter::once(bound.to_string()).chain(local).chain(further.iter().cloned()).collect()
}
