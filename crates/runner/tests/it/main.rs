//! Promises of `cynode-sba`, tested on the real binary; and of the patch engine, tested against the real git.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod allowed_paths;
#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod files;
#[cfg(test)]
mod foreign_roots;
#[cfg(test)]
mod full_disks;
#[cfg(test)]
mod hostile_patches;
#[cfg(test)]
mod malformed_jobs;
#[cfg(test)]
mod nothing_is_left_running;
#[cfg(test)]
mod other_nodes;
#[cfg(test)]
mod patch_against_git;
#[cfg(test)]
mod patches;
#[cfg(test)]
mod result_and_exit_code;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod scene;
