//! MCP over standard input and output: the only client is the process that started this one. Standard output carries only
//! messages.

mod lines;

use self::lines::LineTransport;
use crate::Gateway;
use crate::caller_slot::CallerSlot;
use crate::mcp::Server;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::io::stdio_pipes;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Reasons why the client can't be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The first message is not how MCP begins.
    #[error("standard input does not begin with a valid MCP initialization")]
    Beginning {
        /// The cause.
        #[source]
        source: Box<ServerInitializeError>,
    },
    /// The serving task has failed.
    #[error("the connection ended unexpectedly")]
    Broken {
        /// The cause.
        #[source]
        source: tokio::task::JoinError,
    },
}

/// Serves the client on standard input and output, until it closes the input or the server is stopped. Requests that are under
/// way then are answered, if that doesn't take long.
///
/// # Errors
/// [`StdioError`] when the client doesn't speak MCP.
pub async fn stdio(
    gateway: Arc<Gateway>,
    seat: CallerSlot,
    stopped: CancellationToken,
) -> Result<(), StdioError> {
    serve(Server { gateway, seat: Some(seat) }, stdio_pipes(), stopped).await
}

async fn serve(
    server: Server,
    (input, output): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stopped: CancellationToken,
) -> Result<(), StdioError> {
    let running = match serve_server_with_ct(server, LineTransport::new(input, output), stopped).await {
        Ok(running) => running,
        // The client has closed the connection before its first request.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(source) => return Err(StdioError::Beginning { source: Box::new(source) }),
    };
    running.waiting().await.map(drop).map_err(|source| StdioError::Broken { source })
}
