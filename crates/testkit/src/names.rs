//! A DNS server at an address of this machine's loopback interface, at the standard port. It gives the answers that a
//! test sets, and different ones to repeated questions.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A DNS server.
#[derive(Debug)]
pub struct NameServer {
    address: Ipv4Addr,
    asked: Arc<Mutex<Vec<(String, QuestionType)>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Type of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuestionType {
    /// IPv4 addresses.
    Old,
    /// IPv6 addresses.
    New,
    /// Another type.
    Other,
}

/// Answers for one name: the first for the first question of a type, and so on; the last one repeats.
pub type Answers = Vec<Vec<IpAddr>>;

// === impl NameServer ===

impl NameServer {
    /// Starts a server that knows these names.
    ///
    /// # Errors
    /// The system's, when the port can't be bound: that requires root.
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

    /// Returns the address that it listens at.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns all questions so far.
    pub fn asked(&self) -> Vec<(String, QuestionType)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Random octets of the address: tests run concurrently, and each has a server.
fn octets() -> [u8; 4] {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

/// Returns the name and type of the question, and its end.
fn question(message: &[u8]) -> Option<(String, QuestionType, usize)> {
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
        [0, 1] => QuestionType::Old,
        [0, 28] => QuestionType::New,
        _ => QuestionType::Other,
    };
    Some((parts.join("."), kind, at + 4))
}

/// Returns the answer to a question; NXDOMAIN if the name is unknown.
fn answer(question: &[u8], kind: QuestionType, answers: Option<&Vec<IpAddr>>) -> Vec<u8> {
    let of_kind = |ip: &&IpAddr| match kind {
        QuestionType::Old => ip.is_ipv4(),
        QuestionType::New => ip.is_ipv6(),
        QuestionType::Other => false,
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
        // The answer's name refers to the question; its TTL is 0, so no client may cache it.
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
