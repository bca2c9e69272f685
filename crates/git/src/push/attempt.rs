//! A single attempt at a push, from the check of approvals to the branch.

use super::server::{RemoteRefs, look, send};
use super::{PreparedPush, PushError, PushParams, RefOrigin};
use crate::journal::Journal;
use crate::pull_request::PullRequestPlan;
use belljar_contract::git::PushStartRecord;
use belljar_contract::inference::Excerpt;
use belljar_egress::git::PinnedRemote;
use belljar_policy::git::is_branch_name;
use belljar_policy::handoff::ApprovedPaths;
use jiff::Timestamp;

/// Maximum number of approved paths that are recorded by name.
const MOST_NAMED: usize = 100;

// === impl PreparedPush ===

impl PreparedPush<'_> {
    /// Returns whether the branch existed before, and the target branch of the pull request, if one is requested.
    pub(super) fn attempt(&self, trust: &ApprovedPaths) -> Result<(RefOrigin, Option<String>), PushError> {
        let findings = self.asks(trust);
        if !findings.is_empty() {
            return Err(PushError::Handoff { findings });
        }
        let PushParams { remote, rules, names, branch, env, state, is_canceled, .. } = &self.order;
        let pinned = PinnedRemote::pin(remote.clone(), rules, names.clone())?;
        belljar_failpoint::before("git_push_begun");
        Journal::of(state).push_begun(&self.begun(&pinned))?;
        belljar_failpoint::after("git_push_begun");
        let git = self.quarantine.git(env, *is_canceled);
        let look = || look(&git, &pinned, &self.references());
        let found = look()?;
        if found.default.as_deref() == Some(branch.reference().as_str()) {
            return Err(PushError::Default { branch: branch.clone(), remote: remote.clone() });
        }
        let base = self.order.pull_request.map(|wanted| self.base(wanted, &found)).transpose()?;
        if let Some(standing) = self.compared(&found)? {
            return Ok((standing, base));
        }
        belljar_failpoint::before("git_push");
        let sent = send(&git, &pinned, (branch, &self.made.commit));
        belljar_failpoint::after("git_push");
        if let Err(error) = sent {
            // Another push may have come first, or only the response was lost.
            return match look().map_err(PushError::from).and_then(|found| self.compared(&found)) {
                Ok(Some(_)) => Ok((RefOrigin::New, base)),
                Err(taken @ PushError::Taken { .. }) => Err(taken),
                _ => Err(error.into()),
            };
        }
        Ok((RefOrigin::New, base))
    }

    /// Returns the references to look up: the branch, and the target of a pull request.
    fn references(&self) -> Vec<String> {
        let base = self.order.pull_request.and_then(|wanted| self.named_base(wanted));
        let base = base.map(|base| format!("refs/heads/{base}"));
        [self.order.branch.reference()].into_iter().chain(base).collect()
    }

    /// Returns the pull request's target branch: the requested one, or the one that was cloned; `None` for the server's
    /// default.
    fn named_base<'a>(&'a self, wanted: &'a PullRequestPlan) -> Option<&'a str> {
        let cloned = self.order.base.record().reference.as_str();
        let named = wanted.base().unwrap_or(cloned);
        (named != "HEAD").then(|| named.strip_prefix("refs/heads/").unwrap_or(named))
    }

    /// Returns the pull request's target branch, after checking that it exists.
    fn base(&self, wanted: &PullRequestPlan, found: &RemoteRefs) -> Result<String, PushError> {
        let default = || found.default.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
        let base = match self.named_base(wanted) {
            None => default(),
            Some(base) => Some(base).filter(|base| {
                let reference = format!("refs/heads/{base}");
                found.branches.contains_key(&reference) && reference != self.order.branch.reference()
            }),
        };
        let unknown =
            || PushError::NoBase { base: self.named_base(wanted).unwrap_or("by default").to_owned() };
        base.filter(|base| is_branch_name(base)).map(str::to_owned).ok_or_else(unknown)
    }

    /// Compares the existing branch with the commit; `None` if the branch doesn't exist.
    fn compared(&self, found: &RemoteRefs) -> Result<Option<RefOrigin>, PushError> {
        match found.branches.get(&self.order.branch.reference()) {
            None => Ok(None),
            Some(commit) if *commit == self.made.commit => Ok(Some(RefOrigin::AlreadyThere)),
            Some(found) => Err(PushError::Taken { branch: self.order.branch.clone(), found: found.clone() }),
        }
    }

    fn begun(&self, pinned: &PinnedRemote) -> PushStartRecord {
        let trusted = self.made.findings.iter().take(MOST_NAMED);
        PushStartRecord {
            run_id: self.run_id(),
            remote: Excerpt::of(&self.order.remote.to_string()),
            branch: Excerpt::of(self.order.branch.as_str()),
            commit: Excerpt::of(&self.made.commit),
            base: Excerpt::of(&self.order.base.record().commit),
            addresses: pinned.addresses().to_vec(),
            files: self.made.files.len() as u64,
            trusted: trusted.map(|finding| Excerpt::of(&finding.path)).collect(),
            started_at: Timestamp::now(),
        }
    }
}
