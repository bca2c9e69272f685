//! What tests share. Never shipped: only tests import it.

#![forbid(unsafe_code)]

pub mod skip;
