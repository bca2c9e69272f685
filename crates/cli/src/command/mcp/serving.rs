//! The server: its gateway and audit, its door, and its end.

use super::HttpArguments;
use super::desk::Desk;
use super::{tell, token_file, tools};
use crate::access;
use crate::approvals;
use crate::error::CliError;
use belljar_contract::category::Category;
use belljar_contract::tool::AgentKind;
use belljar_gateway::access::HouseAccess;
use belljar_gateway::seat::Seat;
use belljar_gateway::{Door, Gateway, Room, bearer};
use belljar_policy::constraint::WorksIn;
use belljar_policy::tool::ToolGrants;
use belljar_tools::caller::{Caller, Identity};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

const INSTRUCTIONS: &str = "These are sealed sandboxes on this machine. `run` does one command; `open` makes a session, in which \
    `exec`, `read`, `write` and `list` work at /workspace on a copy of a directory, `diff` tells what was changed, and `approve` has it \
    written into the directory itself, if whoever runs this server lets it. Paths are those inside of the sandbox.";

/// What is being done when the server ends has so long to be given up.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// How much is served at once.
const ROOM: Room = Room { connections: 256, grace: Duration::from_secs(2) };

/// Under this name clients act in the audit.
const ACTOR: &str = "belljar mcp";

/// Serves until the client or somebody else ends it.
pub(super) fn run(
    http: &HttpArguments,
    identity: Option<Identity>,
    desk: &Arc<Desk>,
) -> Result<ExitCode, CliError> {
    let audit = approvals::audit()?;
    let runtime = approvals::runtime()?;
    let registry = Arc::new(tools::registry(desk)?);
    let gateway = Gateway::new(registry, Arc::clone(&audit)).instructing(INSTRUCTIONS);
    let gateway = match &identity {
        Some(_) => {
            let configuration = access::configuration(None)?;
            let approver = approvals::approver(&audit, configuration.as_ref());
            let approver = Arc::new(runtime.block_on(approver)?);
            let rules = configuration.map(|configuration| configuration.access).unwrap_or_default();
            let access = Arc::new(HouseAccess::new(rules, all_in_sandboxes()));
            gateway.judging_by(access).asking(approver)?
        }
        None => gateway,
    };
    let gateway = Arc::new(gateway);
    let served = runtime.block_on(serve((http, identity), desk, gateway));
    // Whoever still holds standard input open must not hold this up.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(
    (http, identity): (&HttpArguments, Option<Identity>),
    desk: &Arc<Desk>,
    gateway: Arc<Gateway>,
) -> Result<(), CliError> {
    let stopped = CancellationToken::new();
    stop_when_asked(&stopped)?;
    let seat = Seat::new(Caller { identity, ..operator() }, stopped.clone());
    let served = match http.address {
        Some(address) => serve_http(http, address, (gateway, seat), &stopped).await,
        None => belljar_gateway::stdio(gateway, seat, stopped.clone()).await.map_err(Into::into),
    };
    // What is still being called is given up.
    stopped.cancel();
    let ending = Arc::clone(desk);
    let kept = tokio::task::spawn_blocking(move || ending.end()).await.unwrap_or_default();
    desk.settled(SETTLED_WITHIN).await;
    if kept > 0 {
        tell(&format!("{kept} sessions go on; `belljar session list` tells which"));
    }
    served
}

/// Whatever is done here is done in a sandbox.
fn all_in_sandboxes() -> BTreeMap<Category, WorksIn> {
    Category::ALL.into_iter().map(|category| (category, WorksIn::Container)).collect()
}

/// Has the token tell when this process is asked to end.
fn stop_when_asked(stopped: &CancellationToken) -> Result<(), CliError> {
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

/// Whoever owns this machine. What their sandboxes may reach was said when the server was started.
fn operator() -> Caller {
    Caller {
        actor: Some(ACTOR.to_owned()),
        user_id: Some(rustix::process::getuid().as_raw().to_string()),
        grants: ToolGrants { may_reach_out: true, ..ToolGrants::default() },
        ..Caller::of(AgentKind::Operator)
    }
}

async fn serve_http(
    http: &HttpArguments,
    address: SocketAddr,
    (gateway, seat): (Arc<Gateway>, Seat),
    stopped: &CancellationToken,
) -> Result<(), CliError> {
    if !address.ip().to_canonical().is_loopback() && !http.allow_remote {
        return Err(CliError::usage(format!(
            "{address} is reached by other machines, and nothing is encrypted on the way; --allow-remote serves there all the same"
        )));
    }
    let Some(path) = &http.token_file else {
        return Err(CliError::usage("--http needs a --token-file".to_owned()));
    };
    let token = Arc::new(token_file::token(path, seat)?);
    let listen = TcpListener::bind(address).await;
    let listener = listen.map_err(|source| CliError::Listen { address, source })?;
    let bound = listener.local_addr().map_err(|source| CliError::Listen { address, source })?;
    let door = Door::Remote(names(bound, &http.hosts));
    let routes = bearer::guarded(belljar_gateway::routes(gateway, door, stopped.clone()), token);
    tell(&format!("serving at http://{bound}/mcp"));
    belljar_gateway::serve(routes, listener, ROOM, stopped.clone()).await;
    Ok(())
}

/// The names by which it is reached.
fn names(bound: SocketAddr, further: &[String]) -> Vec<String> {
    let local = bound.ip().to_canonical().is_loopback().then(|| format!("localhost:{}", bound.port()));
    std::iter::once(bound.to_string()).chain(local).chain(further.iter().cloned()).collect()
}
