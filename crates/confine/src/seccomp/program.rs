//! Compiles the policy to classic BPF: a binary search over ranges of call numbers.
//!
//! ```text
//! architecture is ours?  no → kill the process (i386 calls have other numbers, and socketcall hides its arguments)
//! x32 bit set?           yes → kill the process
//! number >= middle?      … down to a leaf: allow, refuse, or look at arguments
//! ```

use super::policy::{Comparison, Condition, Rule, UNLISTED, Verdict};

/// One instruction, in the kernel's layout (`struct sock_filter`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    operand: u32,
}

/// A compiled filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

/// What a filter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The call reaches the kernel.
    Allow,
    /// It fails with that errno.
    Errno(u16),
    /// The whole process is killed.
    KillProcess,
}

/// A system call as a filter sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The architecture's audit number.
    pub architecture: u32,
    /// The call's number.
    pub number: u32,
    /// The arguments.
    pub arguments: [u64; 6],
}

/// The audit number of the architecture this is built for.
#[cfg(target_arch = "x86_64")]
pub const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(not(target_arch = "x86_64"))]
compile_error!("the system call policy is written for x86_64; another architecture needs its own table");

/// Calls of the x32 ABI carry this bit and otherwise look like ours.
const X32_BIT: u32 = 0x4000_0000;

const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_ARGUMENTS: u32 = 16;

const RETURN_ALLOW: u32 = 0x7fff_0000;
const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_KILL_PROCESS: u32 = 0x8000_0000;

/// A run of call numbers, from `first` to the next range, with one verdict.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u32,
    verdict: Verdict,
}

// === impl Program ===

impl Program {
    /// Compiles rules, which must be sorted by number.
    pub fn compile(rules: &[Rule]) -> Self {
        let ranges = ranges(rules);
        let mut program = vec![
            load(OFFSET_ARCHITECTURE),
            jump_if(JUMP_IF_EQUAL, ARCHITECTURE, 1, 0),
            give(RETURN_KILL_PROCESS),
            load(OFFSET_NUMBER),
            jump_if(JUMP_IF_AT_LEAST, X32_BIT, 0, 1),
            give(RETURN_KILL_PROCESS),
        ];
        program.extend(search(&ranges));
        Self(program)
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// What the kernel would answer, worked out by a small interpreter of our own. `None` for a program that the
    /// kernel would not take.
    pub fn evaluate(&self, call: &Call) -> Option<Answer> {
        self.walk(call, |_| ())
    }

    fn walk(&self, call: &Call, mut visit: impl FnMut(usize)) -> Option<Answer> {
        let mut accumulator = 0_u32;
        let mut at = 0_usize;
        loop {
            let instruction = self.0.get(at)?;
            let operand = instruction.operand;
            let taken = |condition: bool| {
                usize::from(if condition { instruction.jump_true } else { instruction.jump_false })
            };
            visit(at);
            at += 1;
            match instruction.code {
                LOAD_WORD => accumulator = call.word(operand)?,
                AND => accumulator &= operand,
                JUMP => at += usize::try_from(operand).ok()?,
                JUMP_IF_EQUAL => at += taken(accumulator == operand),
                JUMP_IF_AT_LEAST => at += taken(accumulator >= operand),
                RETURN => return Answer::from_return(operand),
                _ => return None,
            }
        }
    }
}

/// Neighbouring numbers with one verdict become one range; gaps are ranges of [`UNLISTED`].
fn ranges(rules: &[Rule]) -> Vec<Range> {
    let mut ranges: Vec<Range> = vec![Range { first: 0, verdict: UNLISTED }];
    let mut push = |first: u32, verdict: Verdict| match ranges.last_mut() {
        Some(last) if last.verdict == verdict => {}
        Some(last) if last.first == first => last.verdict = verdict,
        _ => ranges.push(Range { first, verdict }),
    };
    for (index, rule) in rules.iter().enumerate() {
        push(rule.number, rule.verdict);
        let next = rules.get(index + 1).map(|next| next.number);
        if next != Some(rule.number + 1) {
            push(rule.number + 1, UNLISTED);
        }
    }
    ranges
}

fn search(ranges: &[Range]) -> Vec<Instruction> {
    let [below @ .., _] = ranges else { return decide(UNLISTED) };
    if below.is_empty() {
        return decide(ranges[0].verdict);
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let (lower_code, upper_code) = (search(lower), search(upper));
    let mut code = match u8::try_from(lower_code.len()) {
        Ok(distance) => vec![jump_if(JUMP_IF_AT_LEAST, upper[0].first, distance, 0)],
        // A conditional jump reaches 255 instructions; further needs an unconditional one.
        Err(_) => vec![
            jump_if(JUMP_IF_AT_LEAST, upper[0].first, 0, 1),
            Instruction { code: JUMP, jump_true: 0, jump_false: 0, operand: length(&lower_code) },
        ],
    };
    code.extend(lower_code);
    code.extend(upper_code);
    code
}

fn decide(verdict: Verdict) -> Vec<Instruction> {
    match verdict {
        Verdict::Allow => vec![give(RETURN_ALLOW)],
        Verdict::Refuse(errno) => vec![give(RETURN_ERRNO | u32::from(errno))],
        Verdict::AllowIf { any_of, otherwise } => {
            let mut code: Vec<Instruction> = any_of.iter().flat_map(|group| allow_if_all(group)).collect();
            code.push(give(RETURN_ERRNO | u32::from(otherwise)));
            code
        }
    }
}

/// Allows when every condition holds; otherwise goes on behind.
fn allow_if_all(group: &[Condition]) -> Vec<Instruction> {
    let mut code = vec![give(RETURN_ALLOW)];
    for condition in group.iter().rev() {
        // The conditions of a group are few, so the jump over the rest of it always fits.
        let over = u8::try_from(code.len()).unwrap_or(u8::MAX);
        let mut test = vec![load(OFFSET_ARGUMENTS + 8 * u32::from(condition.argument))];
        if condition.mask != u32::MAX {
            test.push(Instruction { code: AND, jump_true: 0, jump_false: 0, operand: condition.mask });
        }
        test.push(match condition.comparison {
            Comparison::Is(value) => jump_if(JUMP_IF_EQUAL, value, 0, over),
            Comparison::IsNot(value) => jump_if(JUMP_IF_EQUAL, value, over, 0),
        });
        test.extend(code);
        code = test;
    }
    code
}

const fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD_WORD, jump_true: 0, jump_false: 0, operand: offset }
}

const fn jump_if(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code, jump_true, jump_false, operand }
}

const fn give(answer: u32) -> Instruction {
    Instruction { code: RETURN, jump_true: 0, jump_false: 0, operand: answer }
}

fn length(code: &[Instruction]) -> u32 {
    u32::try_from(code.len()).unwrap_or(u32::MAX)
}

// === impl Answer ===

impl Answer {
    fn from_return(value: u32) -> Option<Self> {
        match value & 0xffff_0000 {
            RETURN_ALLOW => Some(Self::Allow),
            RETURN_ERRNO => Some(Self::Errno((value & 0xffff) as u16)),
            RETURN_KILL_PROCESS => Some(Self::KillProcess),
            _ => None,
        }
    }
}

// === impl Call ===

impl Call {
    fn word(&self, offset: u32) -> Option<u32> {
        match offset {
            OFFSET_NUMBER => Some(self.number),
            OFFSET_ARCHITECTURE => Some(self.architecture),
            _ => {
                let index = usize::try_from(offset.checked_sub(OFFSET_ARGUMENTS)?).ok()?;
                let argument = self.arguments.get(index / 8)?;
                Some((argument >> (8 * (index % 8))) as u32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::policy::rules;

    fn call(number: u32, arguments: [u64; 6]) -> Call {
        Call { architecture: ARCHITECTURE, number, arguments }
    }

    fn reference(rules: &[Rule], call: &Call) -> Answer {
        if call.architecture != ARCHITECTURE || call.number >= X32_BIT {
            return Answer::KillProcess;
        }
        let verdict =
            rules.iter().find(|rule| rule.number == call.number).map_or(UNLISTED, |rule| rule.verdict);
        let holds = |condition: &Condition| {
            let masked = call.arguments[usize::from(condition.argument)] as u32 & condition.mask;
            match condition.comparison {
                Comparison::Is(value) => masked == value,
                Comparison::IsNot(value) => masked != value,
            }
        };
        match verdict {
            Verdict::Allow => Answer::Allow,
            Verdict::Refuse(errno) => Answer::Errno(errno),
            Verdict::AllowIf { any_of, .. } if any_of.iter().any(|group| group.iter().all(holds)) => {
                Answer::Allow
            }
            Verdict::AllowIf { otherwise, .. } => Answer::Errno(otherwise),
        }
    }

    /// Every value that some condition compares with, and its neighbours.
    fn interesting_values() -> Vec<u64> {
        let mut values = vec![0, u64::MAX, 0x1_0000_5412];
        for rule in rules() {
            let Verdict::AllowIf { any_of, .. } = rule.verdict else { continue };
            for condition in any_of.concat() {
                let (Comparison::Is(value) | Comparison::IsNot(value)) = condition.comparison;
                values.extend([value.into(), u64::from(value) + 1, u64::from(condition.mask & 0x1000_0000)]);
            }
        }
        values
    }

    /// A small deterministic generator: the same cases on every machine.
    fn random_calls(count: usize) -> impl Iterator<Item = Call> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let interesting = interesting_values();
        let rules = rules();
        let conditional: Vec<u32> = rules
            .iter()
            .filter(|rule| matches!(rule.verdict, Verdict::AllowIf { .. }))
            .map(|rule| rule.number)
            .collect();
        (0..count).map(move |_| {
            let number = match next() % 8 {
                0 => next() as u32,
                1 => X32_BIT | (next() % 600) as u32,
                2 | 3 => conditional[(next() % conditional.len() as u64) as usize],
                _ => (next() % 600) as u32,
            };
            let architecture = if next() % 16 == 0 { 0x4000_0003 } else { ARCHITECTURE };
            let mut arguments = std::array::from_fn(|_| match next() % 3 {
                0 => next(),
                _ => interesting[(next() % interesting.len() as u64) as usize],
            });
            // Half of the calls with conditions meet those of some group, as far as they say what must be.
            let groups = rules.iter().find(|rule| rule.number == number).map(|rule| rule.verdict);
            if let (Some(Verdict::AllowIf { any_of, .. }), 0) = (groups, next() % 2) {
                for condition in any_of[(next() % any_of.len() as u64) as usize] {
                    if let Comparison::Is(value) = condition.comparison {
                        arguments[usize::from(condition.argument)] = value.into();
                    }
                }
            }
            Call { architecture, number, arguments }
        })
    }

    #[test]
    fn the_tree_answers_like_the_list_for_a_million_calls() {
        let rules = rules();
        let program = Program::compile(&rules);
        for call in random_calls(1_000_000) {
            assert_eq!(program.evaluate(&call), Some(reference(&rules, &call)), "{call:?}");
        }
    }

    #[test]
    fn every_instruction_is_reached_by_some_call() {
        // An unreachable instruction would be a rule that does not hold.
        let program = Program::compile(&rules());
        let mut reached = vec![false; program.0.len()];
        for call in random_calls(1_000_000) {
            program.walk(&call, |index| reached[index] = true);
        }
        assert_eq!(reached.iter().position(|reached| !reached), None);
    }

    #[test]
    fn terminal_input_is_refused_with_high_bits_set_too() {
        let program = Program::compile(&rules());
        let ioctl = u32::try_from(libc::SYS_ioctl).unwrap();
        for request in [0x5412, 0x541c, 0x1_0000_5412, 0xffff_ffff_0000_541c] {
            let answer = program.evaluate(&call(ioctl, [0, request, 0, 0, 0, 0]));
            assert_eq!(answer, Some(Answer::Errno(libc::EPERM as u16)), "{request:#x}");
        }
        assert_eq!(program.evaluate(&call(ioctl, [0, 0x5401, 0, 0, 0, 0])), Some(Answer::Allow));
    }
}
