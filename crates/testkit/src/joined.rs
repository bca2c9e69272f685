//! A server that one process starts and others join through a folder: it holds the server's address, or the reason why
//! there is none.

use std::path::Path;
use std::time::{Duration, Instant};

const PLACE: &str = "address";
const FAILURE: &str = "failure";

/// Publishes the address of a server, or the reason why there is none, to the waiting processes.
pub(crate) fn tell(folder: &Path, place: Result<&str, &str>) -> Result<(), String> {
    let (name, text) = match place {
        Ok(place) => (PLACE, place),
        Err(why) => (FAILURE, why),
    };
    // The file appears as a whole, because another process is waiting for it.
    let partial = folder.join("partial");
    let told = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, folder.join(name)));
    told.map_err(|error| error.to_string())
}

/// Waits for a server that another process starts, and returns its address.
pub(crate) fn place(folder: &Path, patience: Duration) -> Result<String, String> {
    let given_up = Instant::now() + patience;
    loop {
        if let Ok(why) = std::fs::read_to_string(folder.join(FAILURE)) {
            return Err(why);
        }
        if let Ok(place) = std::fs::read_to_string(folder.join(PLACE)) {
            return Ok(place);
        }
        if Instant::now() > given_up {
            return Err("no process has started the server".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
