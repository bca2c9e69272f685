//! The verdict on a case, made outside of the sandbox.

use crate::case::{Case, ControlPlacement, InsideExpectation, OutsideExpectation};
use crate::containers::exempt::is_exempt;
use crate::holding::HoldingProbe;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::{AttemptPlace, BatchResult, StartMethod};
use belljar_promises::attempt::{AttemptResult, Step};
use belljar_testkit::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Returns some cases of a group, for the paths of one place.
pub(crate) type CaseSource = fn(&PreparedHost<'_>, &AttemptPlace) -> Vec<Case>;

/// The controls of one group's cases, made once for all ways.
struct Controls {
    batches: Vec<(ControlPlacement, Option<BatchResult>, BTreeMap<String, usize>)>,
}

/// The results of a group's cases inside, for one way.
struct InsideResults<'b> {
    way: StartMethod,
    batch: &'b BatchResult,
    arrived: BTreeMap<String, usize>,
}

/// Processes that hold resources while the attempts of a group are made, outside for the controls and inside for the
/// rest.
#[derive(Clone, Copy)]
pub(crate) struct HelperProcesses {
    pub(crate) outside: fn(&PreparedHost<'_>) -> Option<HoldingProbe>,
    pub(crate) inside: fn(&PreparedHost<'_>) -> Option<HoldingProbe>,
}

/// Makes every attempt of a group on every way into a sandbox and where it must succeed, as every user, and judges.
pub(crate) fn every_case_holds(group: &str, cases: &[CaseSource]) {
    every_case_holds_beside(group, cases, HelperProcesses::NONE);
}

/// Like [`every_case_holds`], with a process beside the attempts.
pub(crate) fn every_case_holds_beside(group: &str, cases: &[CaseSource], beside: HelperProcesses) {
    let tally = Tally::new(group);
    World::as_everyone(crate::belljar::belljar(), |world| {
        judge_all(&mut PreparedHost::lay(world), cases, beside, &tally);
    });
    tally.close();
}

/// Makes every attempt of a group on every way into a sandbox of a scene and where it must succeed, and judges.
pub(crate) fn judge_all(
    scene: &mut PreparedHost<'_>,
    cases: &[CaseSource],
    beside: HelperProcesses,
    tally: &Tally,
) {
    let held = (beside.outside)(scene);
    let controls = Controls::make(scene, cases);
    drop(held);
    for way in scene.ways {
        let _held = (beside.inside)(scene);
        judge_way(scene, *way, cases, (&controls, tally));
    }
}

fn judge_way(
    scene: &mut PreparedHost<'_>,
    way: StartMethod,
    cases: &[CaseSource],
    (controls, tally): (&Controls, &Tally),
) {
    let mut cases = all(cases, scene, &AttemptPlace::inside());
    cases.retain(|case| case.ways.contains(&way) || case.ways.contains(&way.without_hatch()));
    if cases.is_empty() {
        return;
    }
    let before = untouchable(scene, way);
    let _ = scene.listeners.arrivals();
    let batch = way.attempt(scene, &cases.iter().map(Case::attempt).collect::<Vec<_>>());
    let inner = InsideResults { way, batch: &batch, arrived: scene.listeners.arrivals() };
    let place = format!("{way:?} {:?}", scene.world.user());
    for case in &cases {
        let answer = batch.answers.get(&case.name());
        if let (Some(answer), InsideExpectation::Fails(_), Some(Step::Call(_))) =
            (answer, case.inside, case.steps.last())
        {
            tally.took(case, answer.ms);
        }
        let verdict = judge(scene, case, answer, &inner, controls);
        tally.count(case.row, &case.name(), &place, verdict);
    }
    let seen = seen_by_the_host(scene, &inner, &before);
    for what in seen {
        tally.count("host", &what, &place, Verdict::Escaped(what.clone()));
    }
}

/// Returns all cases of a group, and checks that their names are unique.
fn all(groups: &[CaseSource], scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases: Vec<Case> = groups.iter().flat_map(|cases| cases(scene, place)).collect();
    if scene.engine.is_some() {
        cases.retain(|case| !is_exempt(case));
    }
    let mut names = BTreeSet::new();
    for case in &cases {
        assert!(names.insert(case.name()), "two cases are called {}", case.name());
    }
    cases
}

fn judge(
    scene: &PreparedHost<'_>,
    case: &Case,
    answer: Option<&AttemptResult>,
    inner: &InsideResults<'_>,
    controls: &Controls,
) -> Verdict {
    let Some(answer) = answer else { return Verdict::Invalid("there is no answer".to_owned()) };
    if answer.bytes.contains(&scene.canary) {
        return Verdict::Escaped("it has read the canary".to_owned());
    }
    if let Some(witness) = case.witness.as_ref().filter(|witness| inner.arrived.contains_key(*witness)) {
        return Verdict::Escaped(format!("{witness} on the host observed the access"));
    }
    let told =
        format!("ret {} errno {} signal {}: {:.200}", answer.ret, answer.errno, answer.signal, answer.bytes);
    let is_tried = answer.step >= case.prepared;
    let verdict = match case.inside {
        InsideExpectation::Fails(_) | InsideExpectation::Killed(_) if answer.succeeded() => {
            Verdict::Escaped(told.clone())
        }
        InsideExpectation::Fails(errnos) if is_tried && errnos.contains(&answer.errno) => Verdict::Held,
        InsideExpectation::Killed(signal) if answer.signal == signal => Verdict::Held,
        InsideExpectation::Harmless | InsideExpectation::Works if answer.succeeded() => Verdict::Held,
        InsideExpectation::Learns(is_harmless) if is_harmless(answer) => Verdict::Held,
        InsideExpectation::OtherThan(text) if !answer.bytes.starts_with(text) => Verdict::Held,
        InsideExpectation::Learns(_) | InsideExpectation::OtherThan(_) => Verdict::Escaped(told.clone()),
        InsideExpectation::Works => Verdict::Blocked(format!("step {}: {told}", answer.step)),
        _ => Verdict::Invalid(format!(
            "it fails with another error than required, at step {}: {told}",
            answer.step
        )),
    };
    // An attempt that got through needs no control; a refused one proves nothing without one.
    match (verdict, controls.why_invalid(case)) {
        (Verdict::Held | Verdict::Blocked(_), Some(why)) => match (&why, case.needs) {
            (InvalidControl::NotRoot, _) => Verdict::NotShown("its control needs root".to_owned()),
            (InvalidControl::Failed(_), Some(needs)) => {
                Verdict::NotShown(format!("this machine is without {needs}"))
            }
            (InvalidControl::Failed(why), None) => Verdict::Invalid(format!("its control failed: {why}")),
        },
        (verdict, _) => verdict,
    }
}

/// Returns the current state of everything that a sandbox may not change.
fn untouchable(scene: &PreparedHost<'_>, way: StartMethod) -> Vec<(PathBuf, String)> {
    let mut picture = crate::scene::CHANGES
        .iter()
        .flat_map(|change| scene.world.picture(&format!("lent/{change}")))
        .collect::<Vec<_>>();
    if let Some(folder) = way.folder().filter(|_| way != StartMethod::Direct) {
        picture.extend(scene.world.picture(&format!("{folder}/kept")));
    }
    for secret in &scene.secrets {
        picture.push((secret.clone(), std::fs::read_to_string(secret).unwrap_or_default()));
    }
    picture
}

/// Returns the effects of a batch that the host sees and that must not exist.
fn seen_by_the_host(
    scene: &mut PreparedHost<'_>,
    inner: &InsideResults<'_>,
    before: &[(PathBuf, String)],
) -> Vec<String> {
    let mut seen: Vec<String> = inner.arrived.keys().map(|name| format!("{name} was reached")).collect();
    let after = untouchable(scene, inner.way);
    seen.extend(
        before
            .iter()
            .filter(|was| !after.contains(was))
            .map(|(path, _)| format!("{} changed", path.display())),
    );
    if inner.batch.output.contains(&scene.canary) {
        seen.push("the canary came out".to_owned());
    }
    seen.extend(crate::host::traces_of(&scene.mark));
    if !scene.victim_lives() {
        seen.push("a process of the host was ended".to_owned());
    }
    seen
}

// === impl HelperProcesses ===

impl HelperProcesses {
    pub(crate) const NONE: Self = Self { outside: |_| None, inside: |_| None };
}

/// The reason why a control proves nothing.
enum InvalidControl {
    NotRoot,
    Failed(String),
}

// === impl Controls ===

impl Controls {
    fn make(scene: &PreparedHost<'_>, cases: &[CaseSource]) -> Self {
        let cases = all(cases, scene, &scene.outside());
        let mut batches = Vec::new();
        for control in [ControlPlacement::User, ControlPlacement::Root, ControlPlacement::Free] {
            let attempts: Vec<_> =
                cases.iter().filter(|case| case.control == control).map(Case::attempt).collect();
            if attempts.is_empty() {
                continue;
            }
            let _ = scene.listeners.arrivals();
            let batch = control.attempt(scene, &attempts);
            batches.push((control, batch, scene.listeners.arrivals()));
        }
        Self { batches }
    }

    /// Returns the reason why a case's control proves nothing; `None` if it proves that the attempt gets through.
    fn why_invalid(&self, case: &Case) -> Option<InvalidControl> {
        if case.control == ControlPlacement::None {
            return Some(InvalidControl::Failed("no process makes the attempt".to_owned()));
        }
        let (_, batch, arrived) = self.batches.iter().find(|(control, ..)| *control == case.control)?;
        let Some(batch) = batch else { return Some(InvalidControl::NotRoot) };
        let Some(answer) = batch.answers.get(&case.name()) else {
            return Some(InvalidControl::Failed("there is no answer".to_owned()));
        };
        let is_tried = answer.step >= case.prepared;
        let proves = match case.outside {
            OutsideExpectation::Works => answer.succeeded(),
            OutsideExpectation::Reaches(errnos) => {
                is_tried && (answer.succeeded() || errnos.contains(&answer.errno))
            }
            OutsideExpectation::Survives => answer.signal == 0,
            OutsideExpectation::Learns(is_so) => is_so(answer),
            OutsideExpectation::Tells(text) => answer.succeeded() && answer.bytes.starts_with(text),
        };
        let is_seen = case.witness.as_ref().is_none_or(|witness| arrived.contains_key(witness));
        match (proves, is_seen) {
            (true, true) => None,
            (true, false) => Some(InvalidControl::Failed("no process received it".to_owned())),
            (false, _) => Some(InvalidControl::Failed(format!(
                "step {} ret {} errno {} signal {}: {:.200}",
                answer.step, answer.ret, answer.errno, answer.signal, answer.bytes
            ))),
        }
    }
}
