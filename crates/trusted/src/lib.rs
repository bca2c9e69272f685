//! Files that the host obeys, such as configurations, policies and credentials, and what sandboxes can write: a file of the first
//! kind must never be one of the second.
//!
//! [`trusted_file`] checks and opens one file. [`in_use`] knows what the processes of a state directory obey and lend. [`input`] opens
//! what is read and not obeyed, and waits for none of it. [`given_path`] resolves the path of what is lent. [`accounts`] knows the
//! users of the host and their home directories. [`named_files`] finds the files that a document names, and [`command`] runs a program of the host's that a
//! document names. [`socket`] and [`tcp_server`] check who serves a connection within this machine.

#![forbid(unsafe_code)]

pub mod accounts;
pub mod command;
pub mod given_path;
pub mod in_use;
pub mod input;
mod mentioned_paths;
mod mounts;
pub mod named_files;
pub mod processes;
pub mod rights;
pub mod socket;
pub mod tcp_server;
pub mod trusted_file;
mod workspaces;
mod written_directories;
