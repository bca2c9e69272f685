//! API calls. One thread makes all of them.

use super::config::ApiConnection;
use super::error::ApiError;
use super::under_way::{ApiCallContext, CallInProgress};
use crate::upstream::TrustStore;
use crate::upstream::names::{NameResolver, NameSource};
use crate::web::ledger::WebLedger;
use belljar_contract::id::RunId;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::LocalOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// API call that a caller requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiCall {
    /// Method, in upper case.
    pub method: String,
    /// Path below the connection's, as it is sent. It begins with a slash.
    pub path: String,
    /// Query without the question mark, as it is sent.
    pub query: Option<String>,
    /// Headers, by lower-case name. A caller may set only some.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// True if the call has been approved.
    pub is_approved: bool,
}

/// Answer to an API call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// HTTP status.
    pub status: u16,
    /// Headers that are returned to the caller, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Run that a call is made for.
pub struct Caller {
    /// Id of the run.
    pub run_id: RunId,
    /// Ledger for audit records.
    pub ledger: Arc<dyn WebLedger>,
}

/// Makes API calls. Dropping it cancels the calls under way.
#[derive(Debug)]
pub struct ApiCaller {
    orders: mpsc::UnboundedSender<ApiCallOrder>,
}

struct ApiCallOrder {
    connection: Arc<ApiConnection>,
    call: ApiCall,
    caller: Caller,
    answer: oneshot::Sender<Result<ApiAnswer, ApiError>>,
}

/// Time limit of a call: 60 s.
pub(super) const CALL: Duration = Duration::from_secs(60);

// === impl ApiCaller ===

impl ApiCaller {
    /// Starts the thread. It resolves names by `names`.
    ///
    /// # Errors
    /// [`io::Error`], if the thread can't be started.
    pub fn start_with(names: NameSource) -> io::Result<Self> {
        let (orders, taken) = mpsc::unbounded_channel();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        std::thread::Builder::new().name("belljar-calls".to_owned()).spawn(move || {
            // Without a runtime no call is accepted, and each caller gets an error.
            if let Ok(runtime) = builder.enable_all().build_local(LocalOptions::default()) {
                runtime.block_on(take_orders(taken, names));
            }
        })?;
        Ok(Self { orders })
    }

    /// Makes a call, if it is allowed, and waits for the answer. Dropping the future cancels the call.
    ///
    /// # Errors
    /// [`ApiError`]. If it [is no refusal](ApiError::is_refusal), the call may have taken effect all the same.
    pub async fn call(
        &self,
        connection: &Arc<ApiConnection>,
        call: ApiCall,
        caller: Caller,
    ) -> Result<ApiAnswer, ApiError> {
        let (answer, answered) = oneshot::channel();
        let order = ApiCallOrder { connection: Arc::clone(connection), call, caller, answer };
        self.orders.send(order).map_err(|_| ApiError::Over)?;
        answered.await.map_err(|_| ApiError::Over)?
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<ApiCallOrder>, names: NameSource) {
    let outside = Rc::new(ApiCallContext { names: NameResolver::new(names), trust: TrustStore::default() });
    while let Some(ApiCallOrder { connection, call, caller, mut answer }) = orders.recv().await {
        let outside = Rc::clone(&outside);
        tokio::task::spawn_local(async move {
            let mut under_way = CallInProgress::begin(&connection, &call, &caller);
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
