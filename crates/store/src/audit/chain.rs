//! The hash chain: checks that a line is the one that follows.

use super::checkpoint;
use super::error::Fault;
use super::hash::Hash;
use super::key::PublicKey;
use super::record::{ChainLinks, LineFault, Record};

/// A place in the chain: the last record before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) sequence: u64,
    pub(super) hash: Hash,
}

/// Follows a chain record by record.
#[derive(Debug)]
pub(super) struct Chain {
    key: PublicKey,
    at: Position,
    is_signed: bool,
}

// === impl Position ===

impl Position {
    /// Before the first record.
    pub(super) const BEGIN: Self = Self { sequence: 0, hash: Hash::NONE };
}

// === impl Chain ===

impl Chain {
    /// A chain that goes on from there, where all is signed.
    pub(super) fn from(at: Position, key: PublicKey) -> Self {
        Self { key, at, is_signed: true }
    }

    pub(super) fn position(&self) -> Position {
        self.at
    }

    /// Returns true if the last record was a checkpoint.
    pub(super) fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Advances by a line, or returns why it is not the one that follows.
    pub(super) fn follow<'l>(&mut self, line: &'l [u8]) -> Result<Record<'l>, Fault> {
        let record = Record::parse(line)?;
        if record.sequence != self.at.sequence + 1 {
            return Err(Fault::Displaced { found: record.sequence });
        }
        let is_checkpoint = record.kind == checkpoint::KIND;
        self.link(record.previous, record.hash)?;
        if is_checkpoint && !checkpoint::is_genuine(&record, &self.key) {
            return Err(Fault::Forged);
        }
        self.is_signed = is_checkpoint;
        Ok(record)
    }

    /// Advances by a record of which only the links are available.
    pub(super) fn skip(&mut self, links: &ChainLinks) -> Result<(), Fault> {
        self.is_signed = false;
        self.link(links.previous, links.hash)
    }

    fn link(&mut self, previous: Hash, hash: Hash) -> Result<(), Fault> {
        if previous != self.at.hash {
            return Err(Fault::Unlinked);
        }
        self.at = Position { sequence: self.at.sequence + 1, hash };
        Ok(())
    }
}

impl From<LineFault> for Fault {
    fn from(fault: LineFault) -> Self {
        match fault {
            LineFault::Malformed => Self::Malformed,
            LineFault::Changed => Self::Changed,
        }
    }
}
