//! Rules about the repository, kept as checks.
fn main() {}
