//! A client that receives a number of bytes through tunnels, or without any.

use super::far_end::SEND;
use super::knock::ask;
use crate::models::part::end_with_parent;
use crate::models::socket::ListenerAddress;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::time::Instant;

/// The part: a thread for each tunnel.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TunnelDownloads {
    pub(super) target: ListenerAddress,
    /// The tunnels' destination; with `None` the target is the far end.
    pub(super) authority: Option<String>,
    pub(super) tunnels: usize,
    /// Bytes through each tunnel.
    pub(super) bytes: u64,
}

const ROOM: usize = 256 << 10;

// === impl TunnelDownloads ===

impl TunnelDownloads {
    /// Returns the total throughput in MiB per second.
    pub(crate) fn play(&self) -> f64 {
        end_with_parent();
        let sockets: Vec<_> = (0..self.tunnels)
            .map(|_| {
                let mut socket = self.target.connect().expect("a connection");
                if let Some(authority) = &self.authority {
                    assert!(ask(&mut socket, authority).contains(" 200 "), "no tunnel");
                }
                socket
            })
            .collect();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for mut socket in sockets {
                scope.spawn(move || {
                    let asked = [&[SEND][..], &self.bytes.to_be_bytes()].concat();
                    socket.write_all(&asked).expect("a tunnel");
                    let (mut left, mut bytes) = (self.bytes, vec![0; ROOM]);
                    while left > 0 {
                        let count = socket.read(&mut bytes).expect("a tunnel") as u64;
                        assert!(count > 0 && count <= left, "{left} bytes are missing");
                        left -= count;
                    }
                });
            }
        });
        (self.bytes * self.tunnels as u64) as f64 / begun.elapsed().as_secs_f64() / f64::from(1 << 20)
    }
}
