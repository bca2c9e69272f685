//! `belljar git push`, also at the end of an agent's run.

use super::outcome::PushReport;
use super::{CommonArguments, remote_of};
use crate::error::CliError;
use crate::git::{GitHostAccess, PullRequestArguments, author_of};
use crate::state;
use crate::trust_review::{TrustArguments, is_trusted};
use belljar_contract::id::RunId;
use belljar_egress::upstream::names::NameSource;
use belljar_files::tree::TreeLimits;
use belljar_git::{Attribution, HostClone, HostEnv, PushParams};
use belljar_policy::git::{BranchName, Remote};
use belljar_policy::handoff::ApprovedPaths;
use belljar_sandbox::kept::{self, KeptChangeSet};
use belljar_sandbox::session::PathApproval;
use belljar_trusted::trusted_file;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Git never runs in DIR: what is there is read as files, and committed on top of the clone that this host has kept. The branch \
must not be there yet; nothing is ever forced. Doing it again makes the same commit, and finds it there.")]
pub(crate) struct PushArguments {
    /// A directory that `belljar git clone` has made, or the id of a run of an agent on a clone that was kept
    #[arg(value_name = "DIR|RUN")]
    place: PathBuf,
    /// Repository to push to [default: the one that was cloned]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    #[command(flatten)]
    words: PushCommitArguments,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    common: CommonArguments,
}

/// Name of the branch, and content of its commit.
#[derive(Debug, clap::Args)]
pub(crate) struct PushCommitArguments {
    /// The new branch [default: belljar/ and the run's id, or that of the commit that was cloned]
    #[arg(long, value_name = "NAME", help_heading = "Git")]
    branch: Option<String>,
    /// Commit message
    #[arg(
        long = "commit-message",
        visible_alias = "message",
        value_name = "TEXT",
        default_value = "Work of a sandbox",
        help_heading = "Git"
    )]
    message: String,
    /// Author of the commit [default: the user of your git settings]
    #[arg(long, value_name = "NAME <EMAIL>", help_heading = "Git")]
    author: Option<String>,
    /// Also push files that the cloned commit ignores (`.gitignore`)
    #[arg(long, help_heading = "Git")]
    include_ignored: bool,
    #[command(flatten)]
    pull_request: PullRequestArguments,
}

/// Changes that exist nowhere else after a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnpushedChanges {
    /// All of them are pushed.
    Nothing,
    /// Those that were not to be pushed: ignored files, repositories, and what is no file.
    Others,
    /// They could not be pushed.
    Everything,
}

/// All that a push takes besides words.
pub(crate) struct PushContext<'p> {
    pub(crate) base: &'p HostClone,
    pub(crate) remote: Remote,
    pub(crate) reach: &'p GitHostAccess,
    pub(crate) trust: ApprovedPaths,
    /// Whether a person may be asked.
    pub(crate) asks: bool,
}

// === impl PushArguments ===

impl PushArguments {
    /// Returns the pushed directory, or the id of the pushed run.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    pub(crate) fn run(&self) -> Result<ExitCode, CliError> {
        self.push_from(&self.base()?).map(|(code, _)| code)
    }

    /// Pushes the kept changes with that id.
    pub(crate) fn run_for(&self, id: &str) -> Result<(ExitCode, UnpushedChanges), CliError> {
        let mut kept = kept::find(&state::open(), id)?;
        kept.lay_out()?;
        self.push_from(&base_of(&kept)?)
    }

    fn push_from(&self, base: &HostClone) -> Result<(ExitCode, UnpushedChanges), CliError> {
        let remote = self.to.as_deref().unwrap_or(&base.record().remote);
        let remote = remote_of(remote, self.common.allow_file)?;
        let reach = self.common.reach()?;
        let (trust, asks) = (self.trust.trust(), !self.common.json);
        let push = PushContext { base, remote, reach: &reach, trust, asks };
        let outcome = self.words.push(push)?;
        match self.common.json {
            true => outcome.print_json()?,
            false => outcome.tell(),
        }
        let left = match (outcome.is_done(), outcome.has_left_out()) {
            (false, _) => UnpushedChanges::Everything,
            (true, true) => UnpushedChanges::Others,
            (true, false) => UnpushedChanges::Nothing,
        };
        Ok((ExitCode::from(outcome.exit_code()), left))
    }

    fn base(&self) -> Result<HostClone, CliError> {
        let state = state::open();
        HostClone::clear_away(state.path(), None);
        match self.place.to_str().and_then(|text| RunId::parse(text).ok()) {
            Some(run_id) if state.run_folder(&run_id).exists() => {
                Ok(HostClone::open(&HostClone::folder_in_run(&state.run_folder(&run_id)))?)
            }
            Some(run_id) => {
                let _ = state.reconcile();
                let mut kept = kept::find(&state, run_id.as_str())?;
                kept.lay_out()?;
                base_of(&kept)
            }
            None => Ok(HostClone::of_directory(state.path(), &self.place)?),
        }
    }
}

/// The host's clone that kept changes are based on. The changes must be laid out.
pub(crate) fn base_of(kept: &KeptChangeSet) -> Result<HostClone, CliError> {
    let mut base = HostClone::open(&HostClone::folder_in_run(kept.path()))?;
    // It was laid out where the run's folder was.
    if let Some(source) = kept.own_source() {
        base.laid_out_at(&source)?;
    }
    Ok(base)
}

// === impl PushCommitArguments ===

impl PushCommitArguments {
    /// Pushes, if what takes a yes has one.
    pub(crate) fn push(&self, push: PushContext<'_>) -> Result<PushReport, CliError> {
        let PushContext { base, remote, reach, mut trust, asks } = push;
        let wanted = self.pull_request.plan(&remote, reach)?;
        let record = base.record();
        let (state, env) = (state::open(), HostEnv::of_process());
        let branch = self.branch(base)?;
        let missing = || CliError::usage("the clone was never laid out".to_owned());
        let (path, directory) = base.open_directory()?.ok_or_else(missing)?;
        // An agent has worked there: no program of the host's is looked for in it, whatever the search path says.
        trusted_file::distrust(&path, &directory).map_err(|error| CliError::read(&path, error.into()))?;
        let attribution = Attribution {
            author: author_of(self.author.as_deref(), &env)?,
            run_id: record.run_id.clone(),
            agent: record.agent.clone(),
            model: record.model.clone(),
        };
        let mut outcome = PushReport::begin(remote.to_string(), branch.to_string(), record.commit.clone());
        let order = PushParams {
            base,
            directory: &directory,
            remote,
            rules: &reach.rules,
            names: NameSource::of_system(),
            branch,
            message: &self.message,
            attribution,
            limits: TreeLimits::default(),
            includes_ignored: self.include_ignored,
            pull_request: wanted.as_ref(),
            env: &env,
            state: state.path(),
            is_canceled: &|| false,
        };
        let pushed = order.prepare().and_then(|prepared| {
            outcome.note(&prepared);
            let asking: Vec<_> = prepared.asks(&trust).iter().map(PathApproval::of).collect();
            if asks && is_trusted(&asking) {
                trust = trust.and_in(asking.into_iter().map(|asking| asking.path));
            }
            prepared.push(&trust)
        });
        outcome.end(&pushed);
        Ok(outcome)
    }

    /// Whether the branch could be one, and what is wanted for it; to be asked before anything runs.
    pub(crate) fn check(&self, pushed: Option<(&Remote, &GitHostAccess)>) -> Result<(), CliError> {
        self.branch.as_deref().map_or(Ok(()), |name| branch_of(name).map(|_| ()))?;
        match pushed {
            Some((remote, reach)) => self.pull_request.plan(remote, reach).map(|_| ()),
            None if self.pull_request.pr => {
                Err(CliError::usage("--pr needs a push: --push, or --push-to URL".to_owned()))
            }
            None => Ok(()),
        }
    }

    fn branch(&self, base: &HostClone) -> Result<BranchName, CliError> {
        let record = base.record();
        let usual = || match &record.run_id {
            Some(run_id) => format!("belljar/{run_id}"),
            None => format!("belljar/{}-{}", &record.commit[..12], record.fetched_at.as_second()),
        };
        branch_of(&self.branch.clone().unwrap_or_else(usual))
    }
}

fn branch_of(name: &str) -> Result<BranchName, CliError> {
    BranchName::parse(name).map_err(|source| CliError::Branch { source })
}
