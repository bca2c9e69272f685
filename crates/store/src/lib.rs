//! What is kept for good. So far that is the audit: what was done on whose behalf, in a form that shows every change.
//!
//! No async runtime: who calls from one hands over a function to be called back.

#![forbid(unsafe_code)]

pub mod audit;
