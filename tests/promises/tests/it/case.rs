//! One case: what is attempted, what must come of it inside, and where the same must succeed.

use crate::scene::Scene;
use crate::way::Way;
use belljar_confine::seccomp::policy::{Audience, rules};
use belljar_promises::attempt::{Act, Answer, Argument, Attempt, Call, Step};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A case, as data.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The row of the matrix.
    pub(crate) row: &'static str,
    /// What is attempted. With the row it is the case's name, and unique.
    pub(crate) what: String,
    /// How.
    pub(crate) steps: Vec<Step>,
    /// The first step that may fail: those before it only prepare.
    pub(crate) prepared: usize,
    /// What must come of it inside.
    pub(crate) inside: Inside,
    /// Where the same must succeed.
    pub(crate) control: Control,
    /// How it looks there.
    pub(crate) outside: Outside,
    /// Who on the host sees it if it gets through.
    pub(crate) witness: Option<String>,
    /// The ways into a sandbox that it is for.
    pub(crate) ways: &'static [Way],
    /// What a machine must have for the control to succeed, if not every machine has it.
    pub(crate) needs: Option<&'static str>,
}

/// What must come of an attempt inside.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Inside {
    /// It fails, for one of these reasons.
    Fails(&'static [i32]),
    /// Its process is killed by this signal.
    Killed(i32),
    /// It succeeds: what is judged is what others see of it.
    Harmless,
    /// It succeeds, and what it learns is this.
    Learns(fn(&Answer) -> bool),
    /// Whatever comes of it, it doesn't learn this.
    OtherThan(&'static str),
    /// It succeeds, because sandboxes must not forbid it.
    Works,
}

/// Where the control is made, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// On the host, by the user who starts the sandbox.
    User,
    /// On the host, by root.
    Root,
    /// In namespaces of its own with every capability.
    Free,
    /// Nowhere: it would change the machine. The case is attempted, and proves nothing.
    None,
}

/// How a control succeeds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outside {
    /// Every step does.
    Works,
    /// It reaches the kernel, which finds its arguments senseless and says so in one of these ways.
    Reaches(&'static [i32]),
    /// Its process lives.
    Survives,
    /// It succeeds, and what it learns is this.
    Learns(fn(&Answer) -> bool),
    /// It succeeds, and what it learns begins with this.
    Tells(&'static str),
}

/// The steps of a case, under construction.
#[derive(Debug, Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    prepared: usize,
}

/// A step that others can refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handle(usize);

/// A pointer that leads nowhere.
pub(crate) const BAD: u64 = 1;
/// Paths begin in the working directory.
pub(crate) const HERE: i32 = libc::AT_FDCWD;

/// Arguments of a call, of whatever types.
macro_rules! args {
    ($($argument:expr),* $(,)?) => {
        vec![$(belljar_promises::attempt::Argument::from($argument)),*]
    };
}
pub(crate) use args;

// === impl Case ===

impl Case {
    /// A case that must be refused inside, and that succeeds for whoever starts the sandbox.
    pub(crate) fn denied(row: &'static str, what: impl Into<String>, script: Script) -> Self {
        Self {
            row,
            what: what.into(),
            steps: script.steps,
            prepared: script.prepared,
            inside: Inside::Fails(&[libc::EPERM]),
            control: Control::User,
            outside: Outside::Works,
            witness: None,
            ways: Way::ALL,
            needs: None,
        }
    }

    /// The same with a single call.
    pub(crate) fn call(row: &'static str, what: &str, name: &str, arguments: Vec<Argument>) -> Self {
        let what = if what.is_empty() { name.to_owned() } else { format!("{name}: {what}") };
        Self::denied(row, what, Script::one(name, arguments))
    }

    /// A call that must be refused, and that with senseless arguments reaches the kernel elsewhere.
    pub(crate) fn sentinel(
        row: &'static str,
        name: &str,
        arguments: Vec<Argument>,
        reaches: &'static [i32],
    ) -> Self {
        let mut case = Self::call(row, "", name, arguments);
        case.outside = Outside::Reaches(reaches);
        case
    }

    /// Something that must work inside.
    pub(crate) fn twin(what: &str, write: impl FnOnce(&mut Script)) -> Self {
        let mut script = Script::default();
        write(&mut script);
        let mut case = Self::denied("twins", what, script);
        case.inside = Inside::Works;
        case
    }

    /// The same, after a call that prepares it.
    pub(crate) fn after(mut self, name: &str, arguments: Vec<Argument>) -> Self {
        let before = Script::one(name, arguments);
        self.steps.splice(0..0, before.steps);
        self.prepared += 1;
        self
    }

    /// The same, told apart from another one.
    pub(crate) fn named(mut self, more: &str) -> Self {
        self.what = format!("{}, {more}", self.what);
        self
    }

    pub(crate) fn fails(mut self, errnos: &'static [i32]) -> Self {
        self.inside = Inside::Fails(errnos);
        self
    }

    pub(crate) fn inside(mut self, inside: Inside) -> Self {
        self.inside = inside;
        self
    }

    pub(crate) fn by(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    pub(crate) fn outside(mut self, outside: Outside) -> Self {
        self.outside = outside;
        self
    }

    pub(crate) fn seen_by(mut self, witness: impl Into<String>) -> Self {
        self.witness = Some(witness.into());
        self
    }

    pub(crate) fn only(mut self, ways: &'static [Way]) -> Self {
        self.ways = ways;
        self
    }

    pub(crate) fn needs(mut self, what: &'static str) -> Self {
        self.needs = Some(what);
        self
    }

    /// Whether what it tries must fail inside.
    pub(crate) fn must_fail(&self) -> bool {
        matches!(self.inside, Inside::Fails(_) | Inside::Killed(_))
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.row, self.what)
    }

    /// What the probe is told.
    pub(crate) fn attempt(&self) -> Attempt {
        Attempt { case: self.name(), steps: self.steps.clone() }
    }

    /// The calls that the case is about, with their arguments as far as they are numbers.
    pub(crate) fn tried_calls(&self) -> Vec<(u32, [u64; 6])> {
        self.steps.iter().skip(self.prepared).flat_map(calls_of).collect()
    }

    /// Every call that it makes, with its arguments as far as they are numbers.
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

// === impl Inside ===

impl Inside {
    /// What must come of a call by the entry of another architecture. An engine's own filter kills its process.
    pub(crate) fn of_foreign_call(scene: &Scene<'_>) -> Self {
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

    pub(crate) fn of(act: Act) -> Self {
        Self { steps: vec![Step::Act(act)], prepared: 0 }
    }

    /// The first step.
    #[expect(clippy::unused_self, reason = "a handle is good for its own script only")]
    pub(crate) fn first(&self) -> Handle {
        Handle(0)
    }

    /// A call that must succeed for the next step to be made.
    pub(crate) fn call(&mut self, name: &str, arguments: Vec<Argument>) -> Handle {
        self.call_or(name, arguments, &[])
    }

    /// The same, with errnos that are as good as success.
    pub(crate) fn call_or(&mut self, name: &str, arguments: Vec<Argument>, or: &[i32]) -> Handle {
        assert!(arguments.len() <= 6, "{name} has too many arguments");
        let call = Call { name: name.to_owned(), number: number_of(name), arguments, or: or.to_vec() };
        self.steps.push(Step::Call(call));
        Handle(self.steps.len() - 1)
    }

    pub(crate) fn act(&mut self, act: Act) {
        self.steps.push(Step::Act(act));
    }

    /// The steps alone.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// What was to be prepared is: from here on it is the attempt.
    pub(crate) fn prepared(&mut self) {
        self.prepared = self.steps.len();
    }
}

// === impl Handle ===

impl Handle {
    /// A 32-bit number that the step has left in memory.
    pub(crate) fn stored(self, argument: usize, offset: usize) -> Argument {
        Argument::Stored { step: self.0, argument, offset }
    }

    /// The memory of one of the step's arguments.
    pub(crate) fn memory(self, argument: usize) -> Argument {
        Argument::Same { step: self.0, argument }
    }
}

/// What a handle is as an argument: what its step returned.
impl From<Handle> for Argument {
    fn from(handle: Handle) -> Self {
        Self::Returned(handle.0)
    }
}

/// Memory to be filled.
pub(crate) fn room(bytes: usize) -> Argument {
    Argument::Room(bytes)
}

/// Memory with words in it.
pub(crate) fn words(words: Vec<Argument>) -> Argument {
    Argument::Words(words)
}

/// Memory with 32-bit numbers in it.
pub(crate) fn numbers(numbers: &[u32]) -> Argument {
    Argument::Bytes(numbers.iter().flat_map(|number| number.to_ne_bytes()).collect())
}

/// The address of a local socket; an abstract one begins with `@`.
pub(crate) fn local(path: &str) -> Argument {
    let path = path.strip_prefix('@').map_or_else(|| format!("{path}\0"), |name| format!("\0{name}"));
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(path.as_bytes());
    Argument::Bytes(address)
}

/// How long that address is.
pub(crate) fn local_length(path: &str) -> usize {
    2 + path.len() + usize::from(!path.starts_with('@'))
}

/// The address of an IP socket, and its length.
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

/// Calls that the policy doesn't know, and that are attempted all the same.
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

/// The number of a system call.
pub(crate) fn number_of(name: &str) -> u32 {
    *NUMBERS.get(name).unwrap_or_else(|| panic!("no call {name}"))
}
