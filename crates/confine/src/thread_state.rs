//! State of a thread, as the kernel reports it in `/proc/<pid>/stat`.

/// The letter of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState(u8);

// === impl ThreadState ===

impl ThreadState {
    /// Parses the whole text. The letter stands behind the name, which is in parentheses and may hold anything.
    pub fn of(stat: &[u8]) -> Option<Self> {
        let after_name = stat.iter().rposition(|byte| *byte == b')')?;
        stat.get(after_name + 2).copied().map(Self)
    }

    /// Returns true if it has ended. For a process, the state is that of its first thread; others may live on.
    pub fn is_over(self) -> bool {
        matches!(self.0, b'Z' | b'X')
    }

    /// Returns true if it has ended and has not been reaped yet.
    pub fn is_uncollected(self) -> bool {
        self.0 == b'Z'
    }

    /// Returns true if it sleeps in the kernel and receives no signals.
    pub fn waits_deaf(self) -> bool {
        self.0 == b'D'
    }

    /// Returns true if it is neither stopped nor has ended.
    pub fn runs(self) -> bool {
        !self.is_over() && !matches!(self.0, b'T' | b't')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_is_never_parsed_as_thread_state() {
        let of = |stat: &str| ThreadState::of(stat.as_bytes());
        for (stat, runs, is_over) in [
            ("7 (sh) S 1 7", true, false),
            ("7 (a) Z (b) T 1", false, false),
            ("7 () Z) D 1", true, false),
            ("7 (sh) Z 1", false, true),
            ("7 (sh) X 1", false, true),
            ("7 (sh) t 1", false, false),
        ] {
            let state = of(stat).unwrap();
            assert_eq!((state.runs(), state.is_over()), (runs, is_over), "{stat}");
        }
        assert_eq!((of(""), of("7 (sh)")), (None, None));
    }
}
