//! The `belljar` command.
#![forbid(unsafe_code)]
fn main() {}
