//! What git has said, as far as anybody is told of it.

use belljar_policy::git::redact;

/// What came of it.
pub(super) struct Heard {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

// === impl Heard ===

impl Heard {
    /// What ssh says where nobody takes its connection: before anything else, as whoever has taken it may say the same later.
    pub(super) fn unreached(&self) -> Option<String> {
        let said = String::from_utf8_lossy(&self.stderr);
        let first = said.lines().map(str::trim).find(|line| !line.is_empty())?;
        first.starts_with("ssh: connect to host ").then(|| redact(first))
    }

    /// Returns true if git, or a helper of it, could not allocate memory.
    pub(super) fn is_out_of_memory(&self) -> bool {
        let said = String::from_utf8_lossy(&self.stderr);
        let is_of_host = |line: &&str| !line.starts_with("remote:");
        let mut lines = said.lines().filter(is_of_host);
        lines.any(|line| line.contains("ut of memory") || line.contains("Cannot allocate memory"))
    }

    /// What says why. What a server says through git is not repeated: nobody knows what is in it.
    pub(super) fn why(&self) -> String {
        let (said, answered) = (String::from_utf8_lossy(&self.stderr), String::from_utf8_lossy(&self.stdout));
        let lines =
            || said.lines().map(str::trim).filter(|line| !(line.is_empty() || line.starts_with("remote:")));
        // A line for each ref that isn't taken: a mark, the ref, why.
        let refused = answered.lines().find_map(|line| line.strip_prefix("!\t")?.split('\t').nth(1));
        let why = lines().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        redact(refused.or(why).or_else(|| lines().next_back()).unwrap_or("nothing was said"))
    }
}
