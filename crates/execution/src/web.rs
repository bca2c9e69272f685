//! Web usage of a run, and whether a job failed for lack of the web.

mod begun_requests;
mod failure;
mod summing_ledger;

pub use begun_requests::{RequestsInProgress, Verdict};
pub use failure::{judge, judged};
pub use summing_ledger::{SummingLedger, WebTotals};
