//! Checks for every server that belljar starts. Refused are addresses that other machines reach without encryption, and token files
//! that other users of this machine can read.

use crate::error::CliError;
use crate::trusted_files;
use belljar_trusted::trusted_file;
use std::net::SocketAddr;
use std::path::Path;

/// Refuses an address that other machines reach, unless the operator allows it.
pub(crate) fn check_address(address: SocketAddr, allows_remote: bool) -> Result<(), CliError> {
    match address.ip().to_canonical().is_loopback() || allows_remote {
        true => Ok(()),
        false => Err(CliError::usage(format!(
            "other machines can reach {address}, and connections to it are not encrypted; --allow-remote allows this"
        ))),
    }
}

/// Refuses a file with a token that other users of this machine can read or write.
pub(crate) fn check_token_file(path: &Path) -> Result<(), CliError> {
    trusted_files::check(path)?;
    match trusted_file::is_readable_by_others(path) {
        true => Err(CliError::usage(format!(
            "other users of this machine can read the token in {}; chmod 600 it",
            crate::output::path(path)
        ))),
        false => Ok(()),
    }
}
