//! The walls of a sandbox, one a file, put up by [`crate::init`] from inside the new namespaces.

pub(crate) mod devices;
pub(crate) mod group;
pub(crate) mod hatches;
pub(crate) mod identity;
pub(crate) mod landlock;
pub(crate) mod privileges;
pub(crate) mod programs;
pub(crate) mod root;
pub(crate) mod sources;
pub(crate) mod worker;

use rustix::io::Errno;

/// Why a wall could not be put up.
#[derive(Debug)]
pub(crate) struct WallError {
    /// Subject of the failed operation, such as a path.
    pub(crate) subject: String,
    pub(crate) errno: Errno,
}

/// Names what a system call was about.
pub(crate) trait ErrorContext<T> {
    fn about(self, subject: &str) -> Result<T, WallError>;
}

impl<T> ErrorContext<T> for Result<T, Errno> {
    fn about(self, subject: &str) -> Result<T, WallError> {
        self.map_err(|errno| WallError { subject: subject.to_owned(), errno })
    }
}
