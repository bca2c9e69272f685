//! The host's end of the stream that leads to the relay.

use super::engine::{AttachedStreams, Engine};
use super::frame::{self, Decoder, HostMessage, InvalidFrame, RelayMessage};
use super::inbox::{Inbox, NextFrame};
use super::measured::MeasuredIsolation;
use crate::backend::BackendError;
use futures_util::StreamExt;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The stream.
#[derive(Debug)]
pub(super) struct Channel {
    /// Frames to send. They are few: neither side sends more of a stream than the other has room for.
    outgoing: Mutex<Option<UnboundedSender<Vec<u8>>>>,
    routes: Mutex<InboxTable>,
}

#[derive(Debug)]
struct InboxTable {
    next: u32,
    /// Inboxes by the number in the frames.
    inboxes: HashMap<u32, Arc<Inbox>>,
    is_gone: bool,
}

/// Number of the frames with which the relay reports its start.
const BEGINNING: u32 = 0;

/// Longer than anything takes that is asked of the relay.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Channel ===

impl Channel {
    /// Takes over an attached stream.
    pub(super) fn open(engine: &Engine, attached: AttachedStreams) -> Result<Arc<Self>, Errno> {
        let (outgoing, to_send) = unbounded_channel();
        let inboxes = HashMap::from([(BEGINNING, Arc::new(Inbox::new()?))]);
        let routes = Mutex::new(InboxTable { next: BEGINNING + 1, inboxes, is_gone: false });
        let channel = Arc::new(Self { outgoing: Mutex::new(Some(outgoing)), routes });
        engine.spawn(speak(attached.input, to_send));
        engine.spawn(listen(attached.output, Arc::clone(&channel)));
        Ok(channel)
    }

    fn routes(&self) -> MutexGuard<'_, InboxTable> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a program or a question: returns a new number, and the inbox for the frames about it.
    pub(super) fn register(&self) -> Result<(u32, Arc<Inbox>), BackendError> {
        let inbox = Arc::new(Inbox::new().map_err(|errno| BackendError::Reach(errno.into()))?);
        let mut routes = self.routes();
        if routes.is_gone {
            return Err(BackendError::Gone);
        }
        let id = routes.next;
        routes.next = routes.next.checked_add(1).ok_or(BackendError::Gone)?;
        routes.inboxes.insert(id, Arc::clone(&inbox));
        Ok((id, inbox))
    }

    /// Drops the frames about a program or question that has no receiver any more.
    pub(super) fn forget(&self, id: u32) {
        self.routes().inboxes.remove(&id);
    }

    pub(super) fn send(&self, order: &HostMessage, body: &[u8]) -> Result<(), BackendError> {
        let bytes = frame::encode(order, body).map_err(|error| BackendError::Reach(error.into()))?;
        let outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = outgoing.as_ref().map(|outgoing| outgoing.send(bytes));
        sent.and_then(Result::ok).ok_or(BackendError::Gone)
    }

    /// Closes the stream to PID 1. It then ends, and with it everything inside.
    pub(super) fn hang_up(&self) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits until PID 1 has put up its walls.
    pub(super) fn begin(&self) -> Result<MeasuredIsolation, BackendError> {
        let inbox = self.routes().inboxes.get(&BEGINNING).cloned().ok_or(BackendError::Gone)?;
        match inbox.wait(Instant::now() + PATIENCE) {
            NextFrame::Frame(RelayMessage::Ready(measured), _) => Ok(*measured),
            NextFrame::Frame(RelayMessage::Failed(why), _) => Err(BackendError::Create(why.into())),
            NextFrame::Frame(..) => Err(BackendError::Create(InvalidFrame.into())),
            NextFrame::Nothing => {
                Err(BackendError::Create("process 1 of the container does not respond".into()))
            }
            NextFrame::Closed => {
                Err(BackendError::Create("process 1 of the container exited at startup".into()))
            }
        }
    }

    /// Asks something and waits for the answer.
    pub(super) fn ask(
        &self,
        question: impl FnOnce(u32) -> HostMessage,
    ) -> Result<RelayMessage, BackendError> {
        let (id, inbox) = self.register()?;
        let answer = self.send(&question(id), &[]).map(|()| inbox.wait(Instant::now() + PATIENCE));
        self.forget(id);
        match answer? {
            NextFrame::Frame(answer, _) => Ok(answer),
            NextFrame::Nothing => Err(BackendError::Reach("the sandbox doesn't answer".into())),
            NextFrame::Closed => Err(BackendError::Gone),
        }
    }

    /// Ends the channel, because the sandbox is over: waiting receivers are woken with that result.
    pub(super) fn close(&self) {
        self.hang_up();
        let mut routes = self.routes();
        routes.is_gone = true;
        for (_, inbox) in routes.inboxes.drain() {
            inbox.close();
        }
    }

    /// Returns true if the sandbox is over.
    pub(super) fn is_gone(&self) -> bool {
        self.routes().is_gone
    }

    /// Hands a frame to its receiver. A frame without a receiver is late, and is dropped. Returns false if it is more than
    /// was ever asked for.
    fn deliver(&self, told: RelayMessage, body: Vec<u8>) -> bool {
        let id = told.about();
        let inbox = self.routes().inboxes.get(&id).cloned();
        inbox.is_none_or(|inbox| inbox.put(told, body))
    }
}

async fn speak(mut input: super::engine::InitInput, mut to_send: UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = to_send.recv().await {
        // A peer that has gone is noticed by the reading side.
        if input.write_all(&bytes).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
    let _ = input.shutdown().await;
}

async fn listen(mut output: super::engine::InitOutput, channel: Arc<Channel>) {
    let mut decoder = Decoder::default();
    'listening: while let Some(Ok(bytes)) = output.next().await {
        decoder.push(&bytes);
        loop {
            match decoder.next::<RelayMessage>() {
                Ok(Some((told, body))) => match channel.deliver(told, body) {
                    true => {}
                    // Whatever that is, it is not our relay any more.
                    false => break 'listening,
                },
                Ok(None) => break,
                Err(InvalidFrame) => break 'listening,
            }
        }
    }
    channel.close();
}
