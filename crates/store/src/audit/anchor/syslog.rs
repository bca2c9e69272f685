//! The system's log as an anchor: one datagram for each checkpoint (RFC 5424), to the daemon's local socket.
//!
//! This anchor only knows that the daemon's socket has accepted a datagram. The log is an anchor only if the daemon
//! forwards it to another host.

use super::AnchorError;
use belljar_trusted::trusted_file;
use jiff::Timestamp;
use serde_json::json;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// Stands in front of the JSON object with the note, so that it is found in any daemon's file.
pub(super) const MARK: &str = "belljar-audit-checkpoint ";

/// Facility 10 (security), severity 5 (notice).
const PRIORITY: u8 = 10 * 8 + 5;

/// Timeout while the socket is full.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sends a note.
pub(super) fn send(socket: &Path, note: &str) -> Result<(), AnchorError> {
    let failed = |action| move |error| AnchorError::io(action, socket, error);
    // A socket that a sandbox or another user controls is not an anchor.
    trusted_file::check_socket(socket).map_err(|error| AnchorError::io("use", socket, error.into()))?;
    let datagram = UnixDatagram::unbound().map_err(failed("make a socket for"))?;
    datagram.set_write_timeout(Some(TIMEOUT)).map_err(failed("make a socket for"))?;
    datagram.connect(socket).map_err(failed("connect to"))?;
    let message = message(note);
    let sent = loop {
        match datagram.send(message.as_bytes()) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            sent => break sent,
        }
    };
    sent.map(drop).map_err(failed("send to"))
}

fn message(note: &str) -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_str().ok().filter(|name| is_printable(name)).unwrap_or("-");
    let process = std::process::id();
    // Some daemons rewrite bytes above ASCII.
    let note = json!({ "note": note }).to_string().replace('\u{2014}', "\\u2014");
    format!("<{PRIORITY}>1 {:.6} {host} belljar {process} audit-checkpoint - {MARK}{note}", Timestamp::now())
}

/// RFC 5424 allows printable ASCII without blanks in a host's name.
fn is_printable(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic())
}
