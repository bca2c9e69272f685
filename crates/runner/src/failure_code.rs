//! Mapping of errors to failure codes.

use belljar_contract::failure::FailureCode;
use belljar_contract::result::Failure;
use belljar_contract::text::with_causes;
use rustix::io::Errno;
use std::error::Error;
use std::io;

/// An error that ends a step, and with it the job.
pub(crate) trait Fault: Error {
    /// Returns its failure code.
    fn code(&self) -> FailureCode;

    /// Returns a failure whose message includes the error and all its sources.
    fn failure(&self) -> Failure
    where
        Self: Sized,
    {
        Failure::new(self.code(), with_causes(self))
    }
}

/// The code of an error that the operating system reported to a step.
pub(crate) fn code_of_io(error: &io::Error) -> FailureCode {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => FailureCode::ConstraintViolation,
        _ => FailureCode::StepFailed,
    }
}
