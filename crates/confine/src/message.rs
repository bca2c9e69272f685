//! Messages with descriptors beside them, over a socket that keeps their bounds.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, fstat, memfd_create};
use rustix::io::{Errno, pread};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};

/// The longest message.
const LARGEST: usize = 128 << 10;
/// Marks a message that was too long and is in a file. No other message has this content.
const IN_FILE: &[u8] = &[u8::MAX];
/// No file is larger.
const LARGEST_FILE: u64 = 64 << 20;
const MOST_DESCRIPTORS: usize = 64;
/// Maximum number of descriptors sent: one more for the file of a message that was too long.
const MOST_SENT: usize = MOST_DESCRIPTORS + 1;

/// Bytes, and the descriptors that came with them; `None` when the other end is gone.
pub type ReceivedMessage = Option<(Vec<u8>, Vec<OwnedFd>)>;

/// Makes the two ends of a channel.
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
    send_with(socket, bytes, descriptors, SendFlags::NOSIGNAL)
}

/// Sends without waiting for room.
///
/// # Errors
/// The errors of [`send`]; `EAGAIN` when the other end has not received enough of the earlier messages.
pub fn send_now(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    send_with(socket, bytes, descriptors, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_with(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<(), Errno> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SENT))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)).map(drop)
}

/// Receives the next message with its descriptors; `None` when the other end is gone.
///
/// # Errors
/// The kernel's.
pub fn receive(socket: BorrowedFd<'_>) -> Result<ReceivedMessage, Errno> {
    receive_with(socket, RecvFlags::CMSG_CLOEXEC)
}

/// Receives a message without waiting.
///
/// # Errors
/// The kernel's; `EAGAIN` when there is no message yet.
pub fn receive_now(socket: BorrowedFd<'_>) -> Result<ReceivedMessage, Errno> {
    receive_with(socket, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
}

fn receive_with(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<ReceivedMessage, Errno> {
    // Most messages are short, and a buffer for the longest costs a call to get and one to give back.
    let peek = flags.difference(RecvFlags::CMSG_CLOEXEC) | RecvFlags::PEEK | RecvFlags::TRUNC;
    let (_, length) = rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut [0_u8; 1][..], peek))?;
    let mut bytes = vec![0; length.clamp(1, LARGEST)];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SENT))];
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

/// Sends bytes however long they are: what is too long for a message goes in a file in memory, as the first of the descriptors.
///
/// # Errors
/// The errors of [`send`].
pub fn send_whole(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    if bytes.len() <= LARGEST {
        return send(socket, bytes, descriptors);
    }
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(Errno::MSGSIZE);
    }
    // For hosts that refuse files that could be executed, and for kernels that don't know the flag for files that can't be.
    let flags = MemfdFlags::CLOEXEC;
    let file = memfd_create(c"belljar-message", flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| memfd_create(c"belljar-message", flags))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = &rest[written..];
    }
    let all: Vec<_> = std::iter::once(file.as_fd()).chain(descriptors.iter().copied()).collect();
    send(socket, IN_FILE, &all)
}

/// Receives the next message of [`send_whole`].
///
/// # Errors
/// The errors of [`receive`].
pub fn receive_whole(socket: BorrowedFd<'_>) -> Result<ReceivedMessage, Errno> {
    let Some((bytes, mut descriptors)) = receive(socket)? else { return Ok(None) };
    if bytes != IN_FILE {
        return Ok(Some((bytes, descriptors)));
    }
    let file = if descriptors.is_empty() { return Err(Errno::BADMSG) } else { descriptors.remove(0) };
    let length = fstat(&file)?.st_size.unsigned_abs();
    let length = usize::try_from(length).ok().filter(|_| length <= LARGEST_FILE).ok_or(Errno::BADMSG)?;
    let (mut bytes, mut read) = (vec![0; length], 0);
    while read < length {
        match rustix::io::retry_on_intr(|| pread(&file, &mut bytes[read..], read as u64))? {
            0 => return Err(Errno::BADMSG),
            more => read += more,
        }
    }
    Ok(Some((bytes, descriptors)))
}

/// Borrows a whole list.
pub fn borrowed(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_longer_than_one_message_arrives_complete() {
        for length in [1, LARGEST, LARGEST + 1, 5 << 20] {
            let (ours, theirs) = pair().unwrap();
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let beside = [ours.as_fd(), theirs.as_fd()];
            send_whole(ours.as_fd(), &sent, &beside).unwrap();
            let (bytes, descriptors) = receive_whole(theirs.as_fd()).unwrap().unwrap();
            assert!(bytes == sent && descriptors.len() == 2, "{length}");
            drop(ours);
            drop(descriptors);
            assert!(receive_whole(theirs.as_fd()).unwrap().is_none());
        }
    }
}
