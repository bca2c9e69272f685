//! A name server at an address of this machine's loopback, at the port where every program asks: it says what a test wants,
//! and something else to whoever asks again.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Such a server.
#[derive(Debug)]
pub struct NameServer {
    address: Ipv4Addr,
    asked: Arc<Mutex<Vec<(String, Kind)>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Addresses of version 4.
    Old,
    /// Addresses of version 6.
    New,
    /// Something else.
    Other,
}

/// What it says of one name: the first answer for the first question of a kind, and so on; the last one for ever.
pub type Answers = Vec<Vec<IpAddr>>;

// === impl NameServer ===

impl NameServer {
    /// Starts one that knows these names.
    ///
    /// # Errors
    /// The system's, when the port can't be had: that takes root.
    pub fn start(names: &[(&str, Answers)]) -> io::Result<Self> {
        let [_, second, third, fourth] = octets();
        let address = Ipv4Addr::new(127, second, third, fourth.clamp(2, 254));
        let socket = UdpSocket::bind((address, 53))?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        let names: HashMap<String, Answers> =
            names.iter().map(|(name, answers)| ((*name).to_owned(), answers.clone())).collect();
        let (asked, is_over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let theirs = (Arc::clone(&asked), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let (asked, is_over) = theirs;
            let mut buffer = [0; 1024];
            while !is_over.load(Ordering::SeqCst) {
                let Ok((count, from)) = socket.recv_from(&mut buffer) else { continue };
                let Some((name, kind, end)) = question(&buffer[..count]) else { continue };
                let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                let before = asked.iter().filter(|one| **one == (name.clone(), kind)).count();
                asked.push((name.clone(), kind));
                let answers = names.get(&name).map(|answers| &answers[before.min(answers.len() - 1)]);
                let _ = socket.send_to(&answer(&buffer[..end], kind, answers), from);
            }
        });
        Ok(Self { address, asked, is_over, thread: Some(thread) })
    }

    /// Where it is.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<(String, Kind)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// By chance: tests run beside each other, and each has a server.
fn octets() -> [u8; 4] {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

/// The name that is asked for, what of it, and where the question ends.
fn question(message: &[u8]) -> Option<(String, Kind, usize)> {
    let (mut at, mut parts) = (12, Vec::new());
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        parts.push(str::from_utf8(message.get(at..at + length)?).ok()?.to_ascii_lowercase());
        at += length;
    }
    let kind = match message.get(at..at + 2)? {
        [0, 1] => Kind::Old,
        [0, 28] => Kind::New,
        _ => Kind::Other,
    };
    Some((parts.join("."), kind, at + 4))
}

/// The question again, and what there is of that kind; that there is no such name where it isn't known.
fn answer(question: &[u8], kind: Kind, answers: Option<&Vec<IpAddr>>) -> Vec<u8> {
    let of_kind = |ip: &&IpAddr| match kind {
        Kind::Old => ip.is_ipv4(),
        Kind::New => ip.is_ipv6(),
        Kind::Other => false,
    };
    let found: Vec<&IpAddr> = answers.into_iter().flatten().filter(of_kind).collect();
    let mut message = question.to_vec();
    message[2] = 0x85;
    message[3] = if answers.is_some() { 0x80 } else { 0x83 };
    message[6..12].copy_from_slice(&[0, u8::try_from(found.len()).unwrap_or(u8::MAX), 0, 0, 0, 0]);
    for ip in found {
        let bytes = match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let kind = if ip.is_ipv4() { 1 } else { 28 };
        // Its name is the one that was asked for; nobody is to keep the answer.
        message.extend_from_slice(&[
            0xc0,
            12,
            0,
            kind,
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            u8::try_from(bytes.len()).unwrap_or(0),
        ]);
        message.extend_from_slice(&bytes);
    }
    message
}
