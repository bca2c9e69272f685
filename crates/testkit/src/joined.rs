//! A server that one process starts and others join, by a folder: in it stands where the server is, or why there is none.

use std::path::Path;
use std::time::{Duration, Instant};

const PLACE: &str = "address";
const FAILURE: &str = "failure";

/// Tells those who wait for it where a server is, or why there is none.
pub(crate) fn tell(folder: &Path, place: Result<&str, &str>) -> Result<(), String> {
    let (name, text) = match place {
        Ok(place) => (PLACE, place),
        Err(why) => (FAILURE, why),
    };
    // In one piece: somebody is looking for it.
    let partial = folder.join("partial");
    let told = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, folder.join(name)));
    told.map_err(|error| error.to_string())
}

/// Where a server is that somebody starts within that time.
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
            return Err("nobody has started it".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
