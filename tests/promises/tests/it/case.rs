//! One case: the attempt, the required result inside, and the control outside.

use crate::scene::PreparedHost;
use crate::way::StartMethod;
use belljar_confine::seccomp::policy::{Audience, rules};
use belljar_promises::attempt::{Argument, Attempt, AttemptResult, Call, SpecialAct, Step};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A case, as data.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Row of the matrix.
    pub(crate) row: &'static str,
    /// Description of the attempt. With the row it is the case's name, and unique.
    pub(crate) what: String,
    /// The attempt's steps.
    pub(crate) steps: Vec<Step>,
    /// Index of the first step that may fail: those before it only prepare.
    pub(crate) prepared: usize,
    /// Required result inside.
    pub(crate) inside: InsideExpectation,
    /// Place where the same attempt must succeed.
    pub(crate) control: ControlPlacement,
    /// Required result of the control.
    pub(crate) outside: OutsideExpectation,
    /// The witness on the host that notices the attempt if it gets through.
    pub(crate) witness: Option<String>,
    /// The ways into a sandbox that the case applies to.
    pub(crate) ways: &'static [StartMethod],
    /// Requirement on the machine for the control to succeed, if not every machine meets it.
    pub(crate) needs: Option<&'static str>,
}

/// Required result of an attempt inside.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InsideExpectation {
    /// It fails with one of these errnos.
    Fails(&'static [i32]),
    /// Its process is killed by this signal.
    Killed(i32),
    /// It succeeds, and the verdict depends on what the host's witnesses saw of it.
    Harmless,
    /// It succeeds, and its answer passes this check.
    Learns(fn(&AttemptResult) -> bool),
    /// Its answer doesn't contain this, whether it succeeds or not.
    OtherThan(&'static str),
    /// It succeeds, because sandboxes must not forbid it.
    Works,
}

/// The place and the user of the control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlPlacement {
    /// On the host, as the user who starts the sandbox.
    User,
    /// On the host, as root.
    Root,
    /// In namespaces of its own with every capability.
    Free,
    /// Nowhere: it would change the machine. The case is attempted, and proves nothing.
    None,
}

/// Required result of a control.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutsideExpectation {
    /// Every step succeeds.
    Works,
    /// It reaches the kernel, which rejects its invalid arguments with one of these errnos.
    Reaches(&'static [i32]),
    /// Its process isn't killed.
    Survives,
    /// It succeeds, and its answer passes this check.
    Learns(fn(&AttemptResult) -> bool),
    /// It succeeds, and its answer begins with this.
    Tells(&'static str),
}

/// The steps of a case, under construction.
#[derive(Debug, Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    prepared: usize,
}

/// A step that later steps can refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handle(usize);

/// An invalid pointer.
pub(crate) const BAD: u64 = 1;
/// The descriptor that makes paths relative to the working directory.
pub(crate) const HERE: i32 = libc::AT_FDCWD;

/// Converts the arguments of a call, of any supported types.
macro_rules! args {
    ($($argument:expr),* $(,)?) => {
        vec![$(belljar_promises::attempt::Argument::from($argument)),*]
    };
}
pub(crate) use args;

// === impl Case ===

impl Case {
    /// Returns a case that must be refused inside, and that succeeds for the user who starts the sandbox.
    pub(crate) fn denied(row: &'static str, what: impl Into<String>, script: Script) -> Self {
        Self {
            row,
            what: what.into(),
            steps: script.steps,
            prepared: script.prepared,
            inside: InsideExpectation::Fails(&[libc::EPERM]),
            control: ControlPlacement::User,
            outside: OutsideExpectation::Works,
            witness: None,
            ways: StartMethod::ALL,
            needs: None,
        }
    }

    /// Returns a [`Case::denied`] with a single call.
    pub(crate) fn call(row: &'static str, what: &str, name: &str, arguments: Vec<Argument>) -> Self {
        let what = if what.is_empty() { name.to_owned() } else { format!("{name}: {what}") };
        Self::denied(row, what, Script::one(name, arguments))
    }

    /// Returns a case with a call that must be refused inside, and that reaches the kernel elsewhere with invalid
    /// arguments.
    pub(crate) fn sentinel(
        row: &'static str,
        name: &str,
        arguments: Vec<Argument>,
        reaches: &'static [i32],
    ) -> Self {
        let mut case = Self::call(row, "", name, arguments);
        case.outside = OutsideExpectation::Reaches(reaches);
        case
    }

    /// Returns a case that must work inside.
    pub(crate) fn twin(what: &str, write: impl FnOnce(&mut Script)) -> Self {
        let mut script = Script::default();
        write(&mut script);
        let mut case = Self::denied("twins", what, script);
        case.inside = InsideExpectation::Works;
        case
    }

    /// Puts a preparing call before the case's steps.
    pub(crate) fn after(mut self, name: &str, arguments: Vec<Argument>) -> Self {
        let before = Script::one(name, arguments);
        self.steps.splice(0..0, before.steps);
        self.prepared += 1;
        self
    }

    /// Adds a text to the case's name, to tell it from another case.
    pub(crate) fn named(mut self, more: &str) -> Self {
        self.what = format!("{}, {more}", self.what);
        self
    }

    pub(crate) fn fails(mut self, errnos: &'static [i32]) -> Self {
        self.inside = InsideExpectation::Fails(errnos);
        self
    }

    pub(crate) fn inside(mut self, inside: InsideExpectation) -> Self {
        self.inside = inside;
        self
    }

    pub(crate) fn by(mut self, control: ControlPlacement) -> Self {
        self.control = control;
        self
    }

    pub(crate) fn outside(mut self, outside: OutsideExpectation) -> Self {
        self.outside = outside;
        self
    }

    pub(crate) fn seen_by(mut self, witness: impl Into<String>) -> Self {
        self.witness = Some(witness.into());
        self
    }

    pub(crate) fn only(mut self, ways: &'static [StartMethod]) -> Self {
        self.ways = ways;
        self
    }

    pub(crate) fn needs(mut self, what: &'static str) -> Self {
        self.needs = Some(what);
        self
    }

    /// Returns true if the attempt must fail inside.
    pub(crate) fn must_fail(&self) -> bool {
        matches!(self.inside, InsideExpectation::Fails(_) | InsideExpectation::Killed(_))
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.row, self.what)
    }

    /// Returns the attempt for the probe.
    pub(crate) fn attempt(&self) -> Attempt {
        Attempt { case: self.name(), steps: self.steps.clone() }
    }

    /// Returns the calls that the case is about, with those arguments that are numbers.
    pub(crate) fn tried_calls(&self) -> Vec<(u32, [u64; 6])> {
        self.steps.iter().skip(self.prepared).flat_map(calls_of).collect()
    }

    /// Returns every call of the case, with those arguments that are numbers.
    pub(crate) fn calls(&self) -> Vec<(u32, [u64; 6])> {
        self.steps.iter().flat_map(calls_of).collect()
    }
}

fn calls_of(step: &Step) -> Vec<(u32, [u64; 6])> {
    match step {
        Step::Act(act) => act.calls().into_iter().map(|(name, given)| (number_of(name), given)).collect(),
        Step::Call(call) => {
            let mut arguments = [0; 6];
            for (value, argument) in arguments.iter_mut().zip(&call.arguments) {
                *value = if let Argument::Number(number) = argument { *number } else { u64::MAX };
            }
            vec![(call.number, arguments)]
        }
    }
}

// === impl InsideExpectation ===

impl InsideExpectation {
    /// Returns the required result of a call by the entry point of another architecture. An engine's own filter kills
    /// its process.
    pub(crate) fn of_foreign_call(scene: &PreparedHost<'_>) -> Self {
        if scene.engine.is_some() { Self::Killed(libc::SIGSYS) } else { Self::Fails(&[libc::EPERM]) }
    }
}

// === impl Script ===

impl Script {
    pub(crate) fn one(name: &str, arguments: Vec<Argument>) -> Self {
        let mut script = Self::default();
        script.call(name, arguments);
        script
    }

    pub(crate) fn of(act: SpecialAct) -> Self {
        Self { steps: vec![Step::Act(act)], prepared: 0 }
    }

    /// Returns the first step.
    #[expect(clippy::unused_self, reason = "a handle is good for its own script only")]
    pub(crate) fn first(&self) -> Handle {
        Handle(0)
    }

    /// Adds a call that must succeed for the next step to be made.
    pub(crate) fn call(&mut self, name: &str, arguments: Vec<Argument>) -> Handle {
        self.call_or(name, arguments, &[])
    }

    /// Like [`Script::call`], with errnos that count as success.
    pub(crate) fn call_or(&mut self, name: &str, arguments: Vec<Argument>, or: &[i32]) -> Handle {
        assert!(arguments.len() <= 6, "{name} has too many arguments");
        let call = Call { name: name.to_owned(), number: number_of(name), arguments, or: or.to_vec() };
        self.steps.push(Step::Call(call));
        Handle(self.steps.len() - 1)
    }

    pub(crate) fn act(&mut self, act: SpecialAct) {
        self.steps.push(Step::Act(act));
    }

    /// Returns the steps.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Ends the preparation: the steps from here on are the attempt.
    pub(crate) fn prepared(&mut self) {
        self.prepared = self.steps.len();
    }
}

// === impl Handle ===

impl Handle {
    /// Returns a 32-bit number that the step has left in memory, as an argument.
    pub(crate) fn stored(self, argument: usize, offset: usize) -> Argument {
        Argument::Stored { step: self.0, argument, offset }
    }

    /// Returns the memory of one of the step's arguments, as an argument.
    pub(crate) fn memory(self, argument: usize) -> Argument {
        Argument::Same { step: self.0, argument }
    }
}

/// An argument from a handle stands for the return value of its step.
impl From<Handle> for Argument {
    fn from(handle: Handle) -> Self {
        Self::Returned(handle.0)
    }
}

/// Returns zeroed memory of this many bytes.
pub(crate) fn room(bytes: usize) -> Argument {
    Argument::Room(bytes)
}

/// Returns memory with 64-bit words.
pub(crate) fn words(words: Vec<Argument>) -> Argument {
    Argument::Words(words)
}

/// Returns memory with 32-bit numbers.
pub(crate) fn numbers(numbers: &[u32]) -> Argument {
    Argument::Bytes(numbers.iter().flat_map(|number| number.to_ne_bytes()).collect())
}

/// Returns the address of a Unix socket; an abstract one begins with `@`.
pub(crate) fn local(path: &str) -> Argument {
    let path = path.strip_prefix('@').map_or_else(|| format!("{path}\0"), |name| format!("\0{name}"));
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(path.as_bytes());
    Argument::Bytes(address)
}

/// Returns the length of that address in bytes.
pub(crate) fn local_length(path: &str) -> usize {
    2 + path.len() + usize::from(!path.starts_with('@'))
}

/// Returns the address of an IP socket, and its length in bytes.
pub(crate) fn internet(address: std::net::SocketAddr) -> (Argument, usize) {
    let bytes = match address {
        std::net::SocketAddr::V4(v4) => {
            let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
            bytes.extend(v4.port().to_be_bytes());
            bytes.extend(v4.ip().octets());
            bytes.extend([0; 8]);
            bytes
        }
        std::net::SocketAddr::V6(v6) => {
            let mut bytes = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
            bytes.extend(v6.port().to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
            bytes
        }
    };
    let length = bytes.len();
    (Argument::Bytes(bytes), length)
}

/// Calls that the policy doesn't list, and that are attempted as well.
const UNLISTED: [(&str, u32); 12] = [
    ("uselib", 134),
    ("ustat", 136),
    ("sysfs", 139),
    ("_sysctl", 156),
    ("remap_file_pages", 216),
    ("memfd_secret", 447),
    ("setxattrat", 463),
    ("getxattrat", 464),
    ("listxattrat", 465),
    ("removexattrat", 466),
    ("file_getattr", 468),
    ("file_setattr", 469),
];

static NUMBERS: LazyLock<BTreeMap<&str, u32>> = LazyLock::new(|| {
    let listed = rules(Audience::Everyone).into_iter().map(|rule| (rule.name, rule.number));
    listed.chain(UNLISTED).collect()
});

/// Returns the number of a system call.
pub(crate) fn number_of(name: &str) -> u32 {
    *NUMBERS.get(name).unwrap_or_else(|| panic!("no call {name}"))
}
