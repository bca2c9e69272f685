//! Integration tests of the runner, in one binary.

#[cfg(test)]
mod hostile_patches;
#[cfg(test)]
mod patch_against_git;
