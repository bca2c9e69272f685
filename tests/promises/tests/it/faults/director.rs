//! A director that is notified of each place that a node passes, and can kill a process while the node is held there.

use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The director. Its thread ends with the test's process.
pub(super) struct Director {
    socket: PathBuf,
    order: Arc<Mutex<Option<PlaceAction>>>,
}

/// The action for the next time that a node passes a place. It returns true if it killed a process: there may be none
/// to kill.
struct PlaceAction {
    place: String,
    kill: Box<dyn FnMut() -> bool + Send>,
}

// === impl Director ===

impl Director {
    pub(super) fn start(folder: &Path) -> Self {
        let socket = folder.join("director");
        let listener = UnixListener::bind(&socket).unwrap();
        let order = Arc::<Mutex<Option<PlaceAction>>>::default();
        let theirs = Arc::clone(&order);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let order = Arc::clone(&theirs);
                std::thread::spawn(move || heard(&stream, &order));
            }
        });
        Self { socket, order }
    }

    /// Returns the environment variable for a node that it directs.
    pub(super) fn environment(&self) -> (String, String) {
        (belljar_failpoint::SOCKET.to_owned(), self.socket.display().to_string())
    }

    /// Runs a kill once, at the next pass of a place.
    pub(super) fn order(&self, place: &str, kill: impl FnMut() -> bool + Send + 'static) {
        *self.order.lock().unwrap() = Some(PlaceAction { place: place.to_owned(), kill: Box::new(kill) });
    }

    /// Returns true if the latest order is carried out.
    pub(super) fn is_done(&self) -> bool {
        self.order.lock().unwrap().is_none()
    }
}

fn heard(stream: &UnixStream, order: &Mutex<Option<PlaceAction>>) {
    let mut place = String::new();
    if BufReader::new(stream).read_line(&mut place).is_err() {
        return;
    }
    let mut order = order.lock().unwrap();
    if order.as_mut().is_some_and(|order| order.place == place.trim_end() && (order.kill)()) {
        *order = None;
    }
    // Dropping the connection lets the node continue.
}
