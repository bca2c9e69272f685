//! Messages with descriptors beside them, over a socket that keeps their bounds.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};

/// More than a plan takes; a larger one is refused by the socket.
const LARGEST: usize = 128 << 10;
const MOST_DESCRIPTORS: usize = 64;

/// Bytes, and the descriptors that came with them; nothing when the other end is gone.
pub type Received = Option<(Vec<u8>, Vec<OwnedFd>)>;

/// Two ends.
///
/// # Errors
/// The kernel's, when there are no descriptors left.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends bytes, of which there must be some, and descriptors.
///
/// # Errors
/// The kernel's; `EPIPE` when the other end is gone.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL))
        .map(drop)
}

/// The next message with its descriptors; nothing when the other end is gone.
///
/// # Errors
/// The kernel's.
pub fn receive(socket: BorrowedFd<'_>) -> Result<Received, Errno> {
    receive_with(socket, RecvFlags::CMSG_CLOEXEC)
}

/// The same without waiting.
///
/// # Errors
/// The kernel's; `EAGAIN` when there is no message yet.
pub fn receive_now(socket: BorrowedFd<'_>) -> Result<Received, Errno> {
    receive_with(socket, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
}

fn receive_with(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<Received, Errno> {
    // Most messages are short, and a buffer for the longest costs a call to get and one to give back.
    let peek = flags.difference(RecvFlags::CMSG_CLOEXEC) | RecvFlags::PEEK | RecvFlags::TRUNC;
    let (_, length) = rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut [0_u8; 1][..], peek))?;
    let mut bytes = vec![0; length.clamp(1, LARGEST)];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
    })?;
    bytes.truncate(received.bytes);
    let descriptors = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    let descriptors: Vec<OwnedFd> = descriptors.collect();
    Ok((!bytes.is_empty()).then_some((bytes, descriptors)))
}

/// Borrows a whole list.
pub fn borrowed(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}
