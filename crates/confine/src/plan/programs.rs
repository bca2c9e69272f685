//! The only programs that can be started, where not all can.

use serde::{Deserialize, Serialize};

/// Programs, by what they are called and by where they are. Paths are relative to the sandbox's root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// Names of files in those directories. One that isn't there is no mistake.
    pub names: Vec<String>,
    /// Directories in which programs are looked up.
    pub directories: Vec<String>,
    /// Further directories that hold programs: as of those, nothing in them can be read but what can be started.
    pub closed: Vec<String>,
    /// Directories in which everything can be started, as far as they are there.
    pub parts: Vec<String>,
    /// Further files that can be started.
    pub besides: Vec<String>,
}
