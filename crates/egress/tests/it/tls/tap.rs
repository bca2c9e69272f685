//! Relay that records every byte on the wire.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Recording relay.
pub(crate) struct Tap {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

// === impl Tap ===

impl Tap {
    /// Forwards bytes in both directions. Its threads end with the test.
    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&heard);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                for (from, to) in [(client, server), back] {
                    let heard = Arc::clone(&shared);
                    std::thread::spawn(move || pass(from, to, &heard));
                }
            }
        });
        Self { address, heard }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn has_heard(&self, text: &str) -> bool {
        memchr::memmem::find(&self.heard.lock().unwrap(), text.as_bytes()).is_some()
    }

    pub(crate) fn heard_bytes(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, heard: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        heard.lock().unwrap().extend_from_slice(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
