//! Serves the connections that come through the sockets of one run.

use super::fetch::{self, PendingFetch};
use super::proxied_request::ProxiedRequest;
use super::run::WebRun;
use super::tunnel::socket::Socket;
use crate::client::{Client, ClientStop};
use crate::http1::Target;
use crate::memory_quota::MemoryQuota;
use crate::proxy::{ConnectionFuture, Service};
use crate::rate_limit::RateLimit;
use crate::upstream::TrustStore;
use crate::upstream::names::NameResolver;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;

/// State that all connections of a run share.
pub(crate) struct WebProxy {
    pub(super) run: Arc<WebRun>,
    pub(super) names: Rc<NameResolver>,
    pub(super) trust: Rc<TrustStore>,
    /// Rate limit for refusals.
    pub(super) pace: RateLimit,
    /// Rate limit for allowed requests and tunnels.
    pub(super) passages: RateLimit,
    /// Memory quota for bodies that are held.
    pub(super) room: MemoryQuota,
    /// Limit on concurrent fetches by the host.
    pub(super) fetching: Semaphore,
}

// === impl WebProxy ===

impl WebProxy {
    pub(crate) fn new(run: Arc<WebRun>, names: Rc<NameResolver>, trust: Rc<TrustStore>) -> Self {
        let passages = RateLimit::of(run.limits.passages);
        Self {
            run,
            names,
            trust,
            pace: RateLimit::new(),
            passages,
            room: MemoryQuota::new(),
            fetching: Semaphore::new(fetch::AT_ONCE),
        }
    }

    /// Answers all requests of one connection until it is closed.
    async fn serve<S: Socket>(&self, stream: S) {
        let mut client = Client::new(stream, self.run.limits.times);
        loop {
            let keeps_alive = match client.head_for_proxy().await {
                Ok((head, Target::Authority { authority })) => {
                    let target = Target::Authority { authority };
                    return ProxiedRequest::begin(self).connect(client, &head, &target).await;
                }
                Ok((head, target)) => ProxiedRequest::begin(self).forward(&mut client, &head, &target).await,
                // The client closed the connection without a request.
                Err(ClientStop::Gone) => break,
                Err(ClientStop::Faulty(fault)) => {
                    ProxiedRequest::begin(self).refuse(&mut client, fault.into(), (false, true)).await
                }
            };
            if !keeps_alive || !client.can_go_on() {
                break;
            }
        }
        client.close().await;
    }
}

impl Service for WebProxy {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> ConnectionFuture {
        Box::pin(async move { self.serve(stream).await })
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> ConnectionFuture {
        Box::pin(async move { self.serve(stream).await })
    }

    fn fetch(self: Rc<Self>, order: PendingFetch) -> ConnectionFuture {
        Box::pin(async move { fetch::serve(&self, order).await })
    }
}
