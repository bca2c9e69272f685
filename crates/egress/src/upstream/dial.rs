//! The one place where a connection to the outside is opened.

use super::address::may_be_named;
use super::names::Names;
use super::place::Place;
use super::stream::Stream;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// Why nothing was opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("no connection")]
    Failed {
        #[source]
        source: io::Error,
    },
    #[error("the name leads only where no name may lead")]
    Forbidden,
}

/// How long an address is waited for when there is another. The last has all of the time that is left.
const ATTEMPT_TIME: Duration = Duration::from_secs(2);

/// So many addresses of a name are tried.
const MOST_ATTEMPTS: usize = 6;

/// Opens a connection. A name is resolved once, and what is dialed are the addresses that were looked at.
pub(super) async fn dial(place: &Place, names: &Names) -> Result<Stream, DialError> {
    let opened = match place {
        Place::Local { path } => UnixStream::connect(path).await.map(Stream::Local),
        Place::Address { address } => first_of(&[*address]).await,
        Place::Name { name, port } => {
            let found = names.resolve(name).await.map_err(|source| DialError::Failed { source })?;
            let vetted: Vec<_> = found.iter().filter(|address| may_be_named(**address)).collect();
            if vetted.is_empty() && !found.is_empty() {
                return Err(DialError::Forbidden);
            }
            let addresses = vetted.into_iter().take(MOST_ATTEMPTS);
            let addresses: Vec<_> = addresses.map(|address| SocketAddr::new(*address, *port)).collect();
            first_of(&addresses).await
        }
    };
    opened.map_err(|source| DialError::Failed { source })
}

/// A connection to the first that answers.
async fn first_of(addresses: &[SocketAddr]) -> io::Result<Stream> {
    let (last, others) = addresses.split_last().ok_or(io::ErrorKind::NotFound)?;
    for address in others {
        if let Ok(Ok(stream)) = timeout(ATTEMPT_TIME, TcpStream::connect(address)).await {
            return tcp(stream);
        }
    }
    tcp(TcpStream::connect(last).await?)
}

fn tcp(stream: TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    Ok(Stream::Tcp(stream))
}
