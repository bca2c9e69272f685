//! MCP by standard input and output: one client, which is whoever has started this process. Standard output carries messages and
//! nothing else.

mod lines;

use self::lines::Lines;
use crate::Gateway;
use crate::mcp::Server;
use crate::seat::Seat;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::io::stdio_pipes;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// A client can't be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// What it says first is not how MCP begins.
    #[error("what came by standard input is not how MCP begins")]
    Beginning {
        /// Why.
        #[source]
        source: Box<ServerInitializeError>,
    },
    /// The task that serves it has failed.
    #[error("the connection broke off")]
    Broken {
        /// How.
        #[source]
        source: tokio::task::JoinError,
    },
}

/// Serves whoever is at the other end of standard input and output, until it closes the one or everything stops. What it has asked for
/// by then is answered, if that doesn't take long.
///
/// # Errors
/// [`StdioError`] when what is said there is no MCP.
pub async fn stdio(gateway: Arc<Gateway>, seat: Seat, stopped: CancellationToken) -> Result<(), StdioError> {
    serve(Server { gateway, seat: Some(seat) }, stdio_pipes(), stopped).await
}

async fn serve(
    server: Server,
    (input, output): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stopped: CancellationToken,
) -> Result<(), StdioError> {
    let running = match serve_server_with_ct(server, Lines::new(input, output), stopped).await {
        Ok(running) => running,
        // It has gone before it wanted anything.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(source) => return Err(StdioError::Beginning { source: Box::new(source) }),
    };
    running.waiting().await.map(drop).map_err(|source| StdioError::Broken { source })
}
