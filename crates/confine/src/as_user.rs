//! Acting as another user for a moment.

use rustix::io::Errno;
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

/// While it lives, the calling thread, and only that thread, is another user: files that it makes belong to that user. Only
/// root can become another user; for any other caller, the user must be the caller itself.
#[derive(Debug)]
pub struct AsUser {
    back: Option<(Uid, Gid, Vec<Gid>)>,
}

// === impl AsUser ===

impl AsUser {
    /// Becomes that user.
    ///
    /// # Errors
    /// The kernel's; the thread is then who it was.
    pub fn become_user(uid: u32, gid: u32) -> Result<Self, Errno> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let (own_uid, own_gid) = (geteuid(), getegid());
        if (uid, gid) == (own_uid, own_gid) {
            return Ok(Self { back: None });
        }
        let groups = getgroups()?;
        crate::wall!(Groups: set_thread_groups(&[])?, else ());
        let became = Self { back: Some((own_uid, own_gid, groups)) };
        set_thread_res_gid(None, gid, None)?;
        set_thread_res_uid(None, uid, None)?;
        Ok(became)
    }

    /// Lets it reach root's files all the same.
    ///
    /// # Errors
    /// The kernel's.
    pub fn keep_access(&self) -> Result<(), Errno> {
        if self.back.is_none() {
            return Ok(());
        }
        let held = capabilities(None)?;
        set_capabilities(None, CapabilitySets { effective: CapabilitySet::DAC_OVERRIDE, ..held })
    }
}

impl Drop for AsUser {
    fn drop(&mut self) {
        let Some((uid, gid, groups)) = self.back.take() else { return };
        // The real and saved ids were left as they were, so the thread can change back. Going on as the other user is not
        // an option.
        let back = set_thread_res_uid(None, uid, None)
            .and_then(|()| set_thread_res_gid(None, gid, None))
            .and_then(|()| set_thread_groups(&groups));
        if back.is_err() {
            std::process::abort();
        }
    }
}
