//! Serves the connections that come through the sockets of one run.

use super::fetch::{self, Order};
use super::proxied_request::Passage;
use super::run::WebRun;
use super::tunnel::socket::Socket;
use crate::client::{Client, Stop};
use crate::http1::Target;
use crate::memory_quota::Room;
use crate::proxy::{Answering, Service};
use crate::rate_limit::Pace;
use crate::upstream::Trust;
use crate::upstream::names::Names;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;

/// State that all connections of a run share.
pub(crate) struct Gate {
    pub(super) run: Arc<WebRun>,
    pub(super) names: Rc<Names>,
    pub(super) trust: Rc<Trust>,
    /// Rate limit for refusals.
    pub(super) pace: Pace,
    /// Rate limit for allowed requests and tunnels.
    pub(super) passages: Pace,
    /// Memory quota for bodies that are held.
    pub(super) room: Room,
    /// Limit on concurrent fetches by the host.
    pub(super) fetching: Semaphore,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(run: Arc<WebRun>, names: Rc<Names>, trust: Rc<Trust>) -> Self {
        let passages = Pace::of(run.limits.passages);
        Self {
            run,
            names,
            trust,
            pace: Pace::new(),
            passages,
            room: Room::new(),
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
                    return Passage::begin(self).connect(client, &head, &target).await;
                }
                Ok((head, target)) => Passage::begin(self).forward(&mut client, &head, &target).await,
                // The client closed the connection without a request.
                Err(Stop::Gone) => break,
                Err(Stop::Faulty(fault)) => {
                    Passage::begin(self).refuse(&mut client, fault.into(), (false, true)).await
                }
            };
            if !keeps_alive || !client.can_go_on() {
                break;
            }
        }
        client.close().await;
    }
}

impl Service for Gate {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> Answering {
        Box::pin(async move { self.serve(stream).await })
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> Answering {
        Box::pin(async move { self.serve(stream).await })
    }

    fn fetch(self: Rc<Self>, order: Order) -> Answering {
        Box::pin(async move { fetch::serve(&self, order).await })
    }
}
