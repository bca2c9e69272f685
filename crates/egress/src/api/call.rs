//! Calls that are asked for, each on the one thread that makes them all.

use super::config::ApiConnection;
use super::error::ApiError;
use super::under_way::{Outside, UnderWay};
use crate::upstream::Trust;
use crate::upstream::names::{NameSource, Names};
use crate::web::ledger::WebLedger;
use belljar_contract::id::RunId;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::LocalOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// What somebody wants to have called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiCall {
    /// The method, in upper case.
    pub method: String,
    /// The path below the connection's, which begins with a slash; as it is sent.
    pub path: String,
    /// What stands behind the question mark, as it is sent.
    pub query: Option<String>,
    /// Headers, of which only some are the caller's to say; their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether somebody has said yes to it.
    pub is_approved: bool,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The status.
    pub status: u16,
    /// Headers that are the caller's business, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// For whom.
pub struct Caller {
    /// The run.
    pub run_id: RunId,
    /// Where it is written down.
    pub ledger: Arc<dyn WebLedger>,
}

/// Makes calls. Dropping it ends what is under way.
#[derive(Debug)]
pub struct ApiCaller {
    orders: mpsc::UnboundedSender<Order>,
}

struct Order {
    connection: Arc<ApiConnection>,
    call: ApiCall,
    caller: Caller,
    answer: oneshot::Sender<Result<ApiAnswer, ApiError>>,
}

/// So long one takes at most.
pub(super) const CALL: Duration = Duration::from_secs(60);

// === impl ApiCaller ===

impl ApiCaller {
    /// Starts the thread; names are resolved there.
    ///
    /// # Errors
    /// [`io::Error`] when there can't be one.
    pub fn start_with(names: NameSource) -> io::Result<Self> {
        let (orders, taken) = mpsc::unbounded_channel();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        std::thread::Builder::new().name("belljar-calls".to_owned()).spawn(move || {
            // Without it nothing is taken, and everybody is told so.
            if let Ok(runtime) = builder.enable_all().build_local(LocalOptions::default()) {
                runtime.block_on(take_orders(taken, names));
            }
        })?;
        Ok(Self { orders })
    }

    /// Makes a call, if it may be made, and waits for the answer. When this is dropped, it is given up.
    ///
    /// # Errors
    /// [`ApiError`]; if it [is no refusal](ApiError::is_refusal), the call may have arrived all the same.
    pub async fn call(
        &self,
        connection: &Arc<ApiConnection>,
        call: ApiCall,
        caller: Caller,
    ) -> Result<ApiAnswer, ApiError> {
        let (answer, answered) = oneshot::channel();
        let order = Order { connection: Arc::clone(connection), call, caller, answer };
        self.orders.send(order).map_err(|_| ApiError::Over)?;
        answered.await.map_err(|_| ApiError::Over)?
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<Order>, names: NameSource) {
    let outside = Rc::new(Outside { names: Names::new(names), trust: Trust::default() });
    while let Some(Order { connection, call, caller, mut answer }) = orders.recv().await {
        let outside = Rc::clone(&outside);
        tokio::task::spawn_local(async move {
            let mut under_way = UnderWay::begin(&connection, &call, &caller);
            tokio::select! {
                answered = timeout(CALL, under_way.make(&outside)) => {
                    let answered = answered.unwrap_or(Err(ApiError::OutOfTime));
                    under_way.end(&answered);
                    drop(under_way);
                    let _ = answer.send(answered);
                }
                () = answer.closed() => {}
            }
        });
    }
}
