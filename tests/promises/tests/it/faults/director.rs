//! Whoever is told of each place that a node comes by, and has somebody killed while the node is held at one.

use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Such a one. Its thread goes with the test's process.
pub(super) struct Director {
    socket: PathBuf,
    order: Arc<Mutex<Option<Order>>>,
}

/// What is to be done at the next time that a place is come by. Whether it was: there may be nobody to kill.
struct Order {
    place: String,
    kill: Box<dyn FnMut() -> bool + Send>,
}

// === impl Director ===

impl Director {
    pub(super) fn start(folder: &Path) -> Self {
        let socket = folder.join("director");
        let listener = UnixListener::bind(&socket).unwrap();
        let order = Arc::<Mutex<Option<Order>>>::default();
        let theirs = Arc::clone(&order);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let order = Arc::clone(&theirs);
                std::thread::spawn(move || heard(&stream, &order));
            }
        });
        Self { socket, order }
    }

    /// What a node that it directs is started with.
    pub(super) fn environment(&self) -> (String, String) {
        (belljar_failpoint::SOCKET.to_owned(), self.socket.display().to_string())
    }

    /// Has somebody killed at a place, once.
    pub(super) fn order(&self, place: &str, kill: impl FnMut() -> bool + Send + 'static) {
        *self.order.lock().unwrap() = Some(Order { place: place.to_owned(), kill: Box::new(kill) });
    }

    /// Whether the latest order is carried out.
    pub(super) fn is_done(&self) -> bool {
        self.order.lock().unwrap().is_none()
    }
}

fn heard(stream: &UnixStream, order: &Mutex<Option<Order>>) {
    let mut place = String::new();
    if BufReader::new(stream).read_line(&mut place).is_err() {
        return;
    }
    let mut order = order.lock().unwrap();
    if order.as_mut().is_some_and(|order| order.place == place.trim_end() && (order.kill)()) {
        *order = None;
    }
    // The connection is closed with this, and the node goes on.
}
