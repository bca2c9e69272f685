//! The two modes a file in a patch may have.

use super::Refusal;

/// A plain file's mode, as far as a patch can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FileMode {
    /// 100644.
    #[default]
    Plain,
    /// 100755.
    Executable,
}

// === impl FileMode ===

impl FileMode {
    const TYPE_BITS: u64 = 0o170_000;
    const REGULAR: u64 = 0o100_000;
    const OWNER_EXECUTES: u64 = 0o100;

    /// Takes a mode from a diff. Like git, only the owner's execute bit is kept; unlike git, which drops them
    /// in silence, special bits are refused.
    pub(super) fn from_diff(bits: u64) -> Result<Self, Refusal> {
        let known = Self::TYPE_BITS | 0o777;
        if bits & Self::TYPE_BITS != Self::REGULAR || bits & !known != 0 {
            return Err(Refusal::Mode { mode: u32::try_from(bits).unwrap_or(u32::MAX) });
        }
        Ok(if bits & Self::OWNER_EXECUTES == 0 { Self::Plain } else { Self::Executable })
    }

    /// Returns true if the owner may execute the file.
    pub fn is_executable(self) -> bool {
        self == Self::Executable
    }

    /// 0o100644 or 0o100755.
    pub fn bits(self) -> u32 {
        match self {
            Self::Plain => 0o100_644,
            Self::Executable => 0o100_755,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_have_a_mode() {
        assert_eq!(FileMode::from_diff(0o100_664), Ok(FileMode::Plain));
        assert_eq!(FileMode::from_diff(0o100_700), Ok(FileMode::Executable));
        for forbidden in
            [0o120_000, 0o160_000, 0o104_755, 0o102_644, 0o101_777, 0o040_000, 0o755, 0, u64::MAX]
        {
            let refused = FileMode::from_diff(forbidden);
            assert!(matches!(refused, Err(Refusal::Mode { .. })), "{forbidden:o}: {refused:?}");
        }
    }
}
