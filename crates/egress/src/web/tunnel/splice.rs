//! Moves bytes from one socket to another within the kernel (splice), for as long as many bytes come.

use super::TunnelEnd;
use super::socket::Socket;
use crate::time_limit::within;
use crate::web::limits::ROOM;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::Interest;

/// Reason why splicing has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpliceEnd {
    /// The sender has closed its side.
    All,
    /// Too few bytes come for splicing to be worthwhile.
    Ebb,
    /// The kernel can't splice these sockets.
    NotHere,
}

/// Pipe between two sockets.
struct Pipe {
    into: OwnedFd,
    from: OwnedFd,
    _place: PipePermit,
}

/// Permit for one pipe. Bytes in a pipe take up host memory, and a reader that stops reading keeps them there. Without a permit
/// the caller copies bytes instead.
struct PipePermit;

/// Number of permits in use by all runs.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
const PLACES: usize = 128;

/// Maximum silence of a sender before its pipe is given up.
const LULL: Duration = Duration::from_millis(500);
/// Bytes per splice; the default size of a pipe.
const AT_ONCE: usize = 64 << 10;

/// Calls `note` for each piece before it is forwarded.
pub(super) async fn run<R: Socket, W: Socket>(
    from: &R,
    to: &W,
    mut note: impl FnMut(usize) -> Result<(), TunnelEnd>,
) -> Result<SpliceEnd, TunnelEnd> {
    let pipe = match Pipe::new() {
        Ok(Some(pipe)) => pipe,
        Ok(None) => return Ok(SpliceEnd::Ebb),
        Err(_) => return Ok(SpliceEnd::NotHere),
    };
    loop {
        let count = match within(LULL, pipe.fill(from)).await {
            Ok(Ok(0)) => return Ok(SpliceEnd::All),
            Ok(Ok(count)) => count,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidInput => return Ok(SpliceEnd::NotHere),
            Ok(Err(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(SpliceEnd::NotHere),
            Ok(Err(_)) => return Err(TunnelEnd::Broken),
            Err(_) => return Ok(SpliceEnd::Ebb),
        };
        note(count)?;
        pipe.empty(to, count).await.map_err(|_| TunnelEnd::Broken)?;
        if count < ROOM {
            return Ok(SpliceEnd::Ebb);
        }
    }
}

// === impl PipePermit ===

impl PipePermit {
    fn take() -> Option<Self> {
        let one_more = |taken: usize| (taken < PLACES).then_some(taken + 1);
        TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self)
    }
}

impl Drop for PipePermit {
    fn drop(&mut self) {
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Pipe ===

impl Pipe {
    /// Returns `None` if all permits are in use.
    fn new() -> io::Result<Option<Self>> {
        let Some(place) = PipePermit::take() else { return Ok(None) };
        let (from, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Some(Self { into, from, _place: place }))
    }

    /// Fills the empty pipe with what has come. Returns 0 at the end of the stream.
    async fn fill<R: Socket>(&self, from: &R) -> io::Result<usize> {
        let take = || Ok(splice(from, None, &self.into, None, AT_ONCE, SpliceFlags::NONBLOCK)?);
        from.when(Interest::READABLE, take).await
    }

    /// Moves the given number of bytes out of the pipe.
    async fn empty<W: Socket>(&self, to: &W, mut held: usize) -> io::Result<()> {
        while held > 0 {
            let give = || Ok(splice(&self.from, None, to, None, held, SpliceFlags::NONBLOCK)?);
            match to.when(Interest::WRITABLE, give).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => held -= count,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream, UnixStream};

    async fn tcp_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    /// Checks that bytes written to `speaker` arrive at `hearer`, each noted once.
    async fn moves<A: Socket, R: Socket, W: Socket, B: Socket>(
        (mut speaker, from): (A, R),
        (to, mut hearer): (W, B),
    ) {
        let said: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let (mut noted, mut heard) = (0, Vec::new());
        let speak = async {
            speaker.write_all(&said).await.unwrap();
            drop(speaker);
        };
        let lane = async {
            let moved = loop {
                match run(&from, &to, |count| {
                    noted += count;
                    Ok(())
                })
                .await
                {
                    Ok(SpliceEnd::Ebb) => {}
                    ended => break ended,
                }
            };
            drop(to);
            moved
        };
        let ((), moved, _) = tokio::join!(speak, lane, hearer.read_to_end(&mut heard));
        assert_eq!(moved.map_err(TunnelEnd::code), Ok(SpliceEnd::All));
        assert!(heard == said && noted == said.len(), "{} heard, {noted} noted", heard.len());
    }

    #[tokio::test]
    async fn splice_forwards_all_bytes_between_tcp_and_unix_sockets() {
        moves(tcp_pair().await, tcp_pair().await).await;
        moves(UnixStream::pair().unwrap(), tcp_pair().await).await;
        moves(tcp_pair().await, UnixStream::pair().unwrap()).await;
    }

    #[tokio::test]
    async fn spliced_bytes_that_exceed_the_limit_are_not_forwarded() {
        let (mut speaker, from) = tcp_pair().await;
        let (to, mut hearer) = tcp_pair().await;
        speaker.write_all(&[b'x'; 40_000]).await.unwrap();
        assert_eq!(run(&from, &to, |_| Err(TunnelEnd::Spent)).await, Err(TunnelEnd::Spent));
        drop(to);
        assert_eq!(hearer.read(&mut [0]).await.unwrap(), 0);
    }

    #[test]
    fn number_of_splice_pipes_is_limited() {
        let taken: Vec<_> = (0..=PLACES).map_while(|_| Pipe::new().unwrap()).collect();
        assert!(taken.len() <= PLACES);
        assert!(PipePermit::take().is_none() || taken.len() < PLACES);
        drop(taken);
        assert!(Pipe::new().unwrap().is_some());
    }

    #[tokio::test]
    async fn idle_sender_releases_its_splice_pipe() {
        let (_speaker, from) = tcp_pair().await;
        let (to, _hearer) = tcp_pair().await;
        assert_eq!(run(&from, &to, |_| Ok(())).await, Ok(SpliceEnd::Ebb));
    }
}
