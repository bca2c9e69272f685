//! Scripted name server on the loopback interface.

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::CNAME;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Answer for a name.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// These addresses.
    Leads(Vec<IpAddr>),
    /// An alias for a name with this address.
    IsAnother(&'static str, IpAddr),
    /// IPv4 addresses; no answer for other types.
    LeadsAndIsSilent(Vec<IpAddr>),
    /// No answer at all.
    IsSilent,
    /// Only this code.
    Refuses(ResponseCode),
    /// The first address for the first question of a type, the second from then on.
    Flips(IpAddr, IpAddr),
    /// An alias for itself.
    IsItself,
    /// The answer after this function has changed it.
    Garbled(fn(Vec<u8>) -> Vec<u8>),
}

/// Scripted name server.
pub(crate) struct NameServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    entries: Arc<Mutex<Vec<(&'static str, Entry)>>>,
    thread: Option<JoinHandle<()>>,
}

// === impl NameServer ===

impl NameServer {
    pub(crate) fn start(entries: Vec<(&'static str, Entry)>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let address = socket.local_addr().unwrap();
        let (asked, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let entries = Arc::new(Mutex::new(entries));
        let shared = (Arc::clone(&asked), Arc::clone(&is_over), Arc::clone(&entries));
        let thread = std::thread::spawn(move || {
            let (asked, is_over, entries) = shared;
            let mut buffer = [0; 4096];
            while !is_over.load(Ordering::SeqCst) {
                let Ok((count, from)) = socket.recv_from(&mut buffer) else { continue };
                asked.fetch_add(1, Ordering::SeqCst);
                let request = Message::from_vec(&buffer[..count]).unwrap();
                let mut entries = entries.lock().unwrap();
                if let Some(answer) = answer(&request, &entries) {
                    let answer = garbled(&request, answer.to_vec().unwrap(), &mut entries);
                    socket.send_to(&answer, from).unwrap();
                }
                flip(&request, &mut entries);
            }
        });
        Self { address, asked, is_over, entries, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of questions so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Replaces the answers.
    pub(crate) fn set(&self, entries: Vec<(&'static str, Entry)>) {
        *self.entries.lock().unwrap() = entries;
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().unwrap().join();
    }
}

fn answer(request: &Message, entries: &[(&'static str, Entry)]) -> Option<Message> {
    let query = request.queries.first()?.clone();
    let (name, kind) = (query.name().clone(), query.query_type());
    let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
    answer.metadata.recursion_desired = true;
    answer.metadata.recursion_available = true;
    answer.add_query(query);
    let asked = name.to_string().to_ascii_lowercase();
    let known = entries.iter().find(|(known, _)| is_called(&asked, known)).map(|(_, entry)| entry);
    let garbled = [IpAddr::from([93, 184, 216, 34])];
    let of_kind = |ip: &&IpAddr| (kind == RecordType::A) == ip.is_ipv4();
    // With a TTL of 0, because a test may change the answers.
    let record = |name: &Name, ip: &IpAddr| Record::from_rdata(name.clone(), 0, RData::from(*ip));
    match known {
        None => answer.metadata.response_code = ResponseCode::NXDomain,
        Some(Entry::IsSilent) => return None,
        Some(Entry::Refuses(code)) => answer.metadata.response_code = *code,
        Some(Entry::Flips(first, _)) => {
            answer.add_answers(Some(first).filter(of_kind).map(|ip| record(&name, ip)));
        }
        Some(Entry::IsItself) => {
            answer.add_answer(Record::from_rdata(name.clone(), 0, RData::CNAME(CNAME(name))));
        }
        Some(Entry::Garbled(_)) => {
            answer.add_answers(garbled.iter().filter(of_kind).map(|ip| record(&name, ip)));
        }
        Some(Entry::LeadsAndIsSilent(_)) if kind != RecordType::A => return None,
        Some(Entry::Leads(ips) | Entry::LeadsAndIsSilent(ips)) => {
            answer.add_answers(ips.iter().filter(of_kind).map(|ip| record(&name, ip)));
        }
        Some(Entry::IsAnother(other, ip)) => {
            let other = Name::from_ascii(format!("{other}.")).unwrap();
            answer.add_answer(Record::from_rdata(name, 0, RData::CNAME(CNAME(other.clone()))));
            answer.add_answers([ip].into_iter().filter(of_kind).map(|ip| record(&other, ip)));
        }
    }
    Some(answer)
}

/// Returns true if the names match; `*.NAME` matches all names below one.
fn is_called(asked: &str, known: &str) -> bool {
    let asked = asked.trim_end_matches('.');
    known.strip_prefix('*').map_or(asked == known, |suffix| asked.ends_with(suffix))
}

fn entry_of<'e>(request: &Message, entries: &'e mut [(&'static str, Entry)]) -> Option<&'e mut Entry> {
    let asked = request.queries.first()?.name().to_string().to_ascii_lowercase();
    entries.iter_mut().find(|(known, _)| is_called(&asked, known)).map(|(_, entry)| entry)
}

fn garbled(request: &Message, answer: Vec<u8>, entries: &mut [(&'static str, Entry)]) -> Vec<u8> {
    match entry_of(request, entries) {
        Some(Entry::Garbled(garble)) => garble(answer),
        _ => answer,
    }
}

/// Changes a `Flips` entry after the first question for an address that it has.
fn flip(request: &Message, entries: &mut [(&'static str, Entry)]) {
    let kind = request.queries.first().map(hickory_resolver::proto::op::Query::query_type);
    if let Some(Entry::Flips(first, then)) = entry_of(request, entries)
        && (kind == Some(RecordType::A)) == first.is_ipv4()
    {
        *first = *then;
    }
}
