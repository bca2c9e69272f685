//! Cases in which we once differed from git, shrunken.
