//! The far end of tunnels: echoes a byte, sends a number of bytes, or receives them.

use crate::models::part::{end_with_parent, say};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The part, which prints its address. Each connection has a thread.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FarEnd;

/// The operations, as the first byte of a connection; the last two are followed by a number of bytes.
pub(super) const ECHO: u8 = b'e';
pub(super) const SEND: u8 = b's';

const STACK_BYTES: usize = 64 << 10;
const PIECE_BYTES: usize = 256 << 10;

// === impl FarEnd ===

impl FarEnd {
    pub(crate) fn play(&self) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        say(&listener.local_addr().expect("an address"));
        end_with_parent();
        let piece: &'static [u8] = vec![b'x'; PIECE_BYTES].leak();
        for stream in listener.incoming().flatten() {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            // A client that disconnects early ends the thread.
            thread.spawn(move || drop(serve(stream, piece))).expect("a thread");
        }
    }
}

fn serve(mut stream: TcpStream, piece: &[u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut asked = [0];
    loop {
        stream.read_exact(&mut asked)?;
        match asked[0] {
            SEND => {
                let mut length = [0; 8];
                stream.read_exact(&mut length)?;
                let mut left = u64::from_be_bytes(length);
                while left > 0 {
                    let now = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    stream.write_all(&piece[..now])?;
                    left -= now as u64;
                }
            }
            _ => stream.write_all(&asked)?,
        }
    }
}
