//! Carries out the steps of one attempt.

use super::acts;
use super::kernel::{self, Errno};
use belljar_promises::attempt::{Argument, Attempt, AttemptResult, Call, Step};
use std::time::Instant;

/// The state of one attempt: the return values of its steps, and the memory that they were given.
#[derive(Default)]
struct AttemptState {
    returned: Vec<i64>,
    /// Memory by step and argument; `None` for an argument without memory of its own.
    memory: Vec<Vec<Option<Memory>>>,
    /// Memory that other memory points to.
    nested: Vec<Memory>,
    shown: Vec<(usize, usize)>,
    said: String,
}

/// Memory in 64-bit words, so that it is aligned for every structure of the kernel.
struct Memory {
    words: Vec<u64>,
    length: usize,
}

/// The reason why a step ended early.
#[derive(Debug)]
pub(super) enum StepStop {
    /// A system call failed.
    Errno(Errno),
    /// Another failure, with its message.
    Said(String),
}

/// Maximum number of bytes that are shown of one piece of memory.
const MOST_SHOWN: usize = 4096;

/// Carries out an attempt in this process.
pub(super) fn carry_out(attempt: &Attempt) -> AttemptResult {
    let mut machine = AttemptState::default();
    let mut answer = AttemptResult {
        case: attempt.case.clone(),
        ret: 0,
        errno: 0,
        signal: 0,
        step: 0,
        ms: 0.0,
        bytes: String::new(),
    };
    for (index, step) in attempt.steps.iter().enumerate() {
        let begun = Instant::now();
        let outcome = machine.take(step);
        answer.ms = begun.elapsed().as_secs_f64() * 1000.0;
        answer.step = index;
        match outcome {
            Ok(returned) => {
                machine.returned.push(returned);
                answer.ret = returned;
            }
            Err(stop) => {
                answer.ret = -1;
                match stop {
                    StepStop::Errno(Errno(errno)) => answer.errno = errno,
                    StepStop::Said(said) => machine.said.push_str(&said),
                }
                break;
            }
        }
    }
    answer.bytes = machine.shown();
    answer
}

// === impl AttemptState ===

impl AttemptState {
    fn take(&mut self, step: &Step) -> Result<i64, StepStop> {
        match step {
            Step::Call(call) => self.call(call).map_err(StepStop::Errno),
            Step::Act(act) => {
                self.memory.push(Vec::new());
                let (returned, said) = acts::act(act)?;
                self.said.push_str(&said);
                Ok(returned)
            }
        }
    }

    fn call(&mut self, call: &Call) -> Result<i64, Errno> {
        let step = self.memory.len();
        self.memory.push(Vec::new());
        let mut arguments = [0; 6];
        for (index, argument) in call.arguments.iter().enumerate().take(6) {
            let (value, memory) = self.evaluate(argument);
            if matches!(argument, Argument::Room(_)) {
                self.shown.push((step, index));
            }
            self.memory[step].push(memory);
            arguments[index] = value;
        }
        match kernel::call(call.number, arguments) {
            Err(Errno(errno)) if call.or.contains(&errno) => Ok(0),
            returned => returned,
        }
    }

    /// Returns the argument's value, and the memory that it points to if the argument owns that.
    fn evaluate(&mut self, argument: &Argument) -> (u64, Option<Memory>) {
        let own = |memory: Memory| (memory.address(), Some(memory));
        match argument {
            Argument::Number(number) => (*number, None),
            Argument::Text(text) => own(Memory::of(&[text.as_bytes(), b"\0"].concat())),
            Argument::Bytes(bytes) => own(Memory::of(bytes)),
            Argument::Room(length) => own(Memory::of(&vec![0; *length])),
            Argument::Words(words) => {
                let words: Vec<u64> = words
                    .iter()
                    .map(|word| {
                        let (value, memory) = self.evaluate(word);
                        self.nested.extend(memory);
                        value
                    })
                    .collect();
                own(Memory { length: words.len() * 8, words })
            }
            Argument::Returned(step) => {
                (self.returned.get(*step).copied().unwrap_or(-1).cast_unsigned(), None)
            }
            Argument::Stored { step, argument, offset } => {
                let bytes = self.at(*step, *argument).map(Memory::bytes).unwrap_or_default();
                let stored = bytes.get(*offset..*offset + 4).and_then(|four| four.try_into().ok());
                (u32::from_ne_bytes(stored.unwrap_or_default()).into(), None)
            }
            Argument::Same { step, argument } => {
                (self.at(*step, *argument).map(Memory::address).unwrap_or_default(), None)
            }
        }
    }

    fn at(&self, step: usize, argument: usize) -> Option<&Memory> {
        self.memory.get(step)?.get(argument)?.as_ref()
    }

    /// Returns the content of the memory that the attempt provided, without trailing zeros; then the output of acts.
    fn shown(&self) -> String {
        let pieces = self.shown.iter().filter_map(|(step, argument)| self.at(*step, *argument));
        let mut shown = String::new();
        for memory in pieces {
            let bytes = memory.bytes();
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            shown.extend(bytes[..end.min(MOST_SHOWN)].iter().map(|byte| char::from(*byte)));
        }
        shown + &self.said
    }
}

// === impl Memory ===

impl Memory {
    fn of(bytes: &[u8]) -> Self {
        let mut words = vec![0; bytes.len().div_ceil(8).max(1)];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(eight);
        }
        Self { words, length: bytes.len() }
    }

    fn address(&self) -> u64 {
        self.words.as_ptr().expose_provenance() as u64
    }

    /// Returns a copy: the kernel may have written to the memory, so the original isn't borrowed.
    fn bytes(&self) -> Vec<u8> {
        let from = kernel::look(self.address(), self.length);
        from.to_vec()
    }
}

impl From<Errno> for StepStop {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}
