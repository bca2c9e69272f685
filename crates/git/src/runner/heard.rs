//! Output of git, and the part of it that errors contain.

use belljar_policy::git::redact;

/// Output of git.
pub(super) struct GitOutput {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

// === impl GitOutput ===

impl GitOutput {
    /// Returns ssh's message that it could not connect, which is the first line. A server could send the same text later.
    pub(super) fn unreached(&self) -> Option<String> {
        let said = String::from_utf8_lossy(&self.stderr);
        let first = said.lines().map(str::trim).find(|line| !line.is_empty())?;
        first.starts_with("ssh: connect to host ").then(|| redact(first))
    }

    /// Returns true if git, or a helper of it, could not allocate memory.
    pub(super) fn is_out_of_memory(&self) -> bool {
        let said = String::from_utf8_lossy(&self.stderr);
        let mut lines = said.lines().filter(|line| !line.starts_with("remote:"));
        lines.any(|line| line.contains("ut of memory") || line.contains("Cannot allocate memory"))
    }

    /// Returns the error message. A server's messages (`remote:`) are not repeated, as their content is untrusted.
    pub(super) fn why(&self) -> String {
        let (said, answered) = (String::from_utf8_lossy(&self.stderr), String::from_utf8_lossy(&self.stdout));
        let lines =
            || said.lines().map(str::trim).filter(|line| !(line.is_empty() || line.starts_with("remote:")));
        // `--porcelain` prints a line for each rejected reference: a mark, the reference, the reason.
        let refused = answered.lines().find_map(|line| line.strip_prefix("!\t")?.split('\t').nth(1));
        let why = lines().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        redact(refused.or(why).or_else(|| lines().next_back()).unwrap_or("nothing was said"))
    }
}
