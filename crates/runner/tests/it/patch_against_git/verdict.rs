//! Comparison of our plan with git's result.

use belljar_runner::patch::{ParseError, PlanError, parse, plan};

use super::case::Case;
use super::oracle::Git;
use super::policy;
use super::world::World;

pub(super) enum Verdict {
    BothAccept,
    BothRefuse,
    /// We refuse by policy what git accepts, and the diff's text shows why.
    PolicyRefuses,
    Differ(String),
}

/// Our refusal.
struct PatchRefusal {
    is_policy: bool,
    message: String,
}

pub(super) fn compare(case: &Case, git: &Git) -> Verdict {
    let theirs = git.apply(&case.before, &case.diff);
    let ours = apply(&case.before, &case.diff);
    match (ours, theirs.is_accepted) {
        (Err(_), false) => Verdict::BothRefuse,
        (Ok(ours), true) if ours.files == theirs.after.files => Verdict::BothAccept,
        (Ok(ours), true) => {
            Verdict::Differ(format!("both accept\nours: {ours:#?}\ngit's: {:#?}", theirs.after))
        }
        (Ok(_), false) => Verdict::Differ(format!("only git refuses: {}", theirs.message)),
        (Err(ours), true) if may_refuse(case, &ours) => Verdict::PolicyRefuses,
        (Err(ours), true) => Verdict::Differ(format!("only we refuse: {}", ours.message)),
    }
}

fn may_refuse(case: &Case, ours: &PatchRefusal) -> bool {
    match policy::reason_to_refuse(&case.before, &case.diff) {
        // Git stops reading at a broken binary patch, and applies what came before it.
        Some(policy::BINARY) => true,
        Some(_) => ours.is_policy,
        None => false,
    }
}

fn apply(world: &World, diff: &[u8]) -> Result<World, PatchRefusal> {
    let patch = parse(diff)?;
    let mut tree = world;
    let plan = plan(&patch, &mut tree)?;
    Ok(world.carry_out(&plan))
}

impl From<ParseError> for PatchRefusal {
    fn from(error: ParseError) -> Self {
        Self { is_policy: error.is_policy(), message: error.to_string() }
    }
}

impl From<PlanError> for PatchRefusal {
    fn from(error: PlanError) -> Self {
        Self { is_policy: error.is_policy(), message: error.to_string() }
    }
}
