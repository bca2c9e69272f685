//! Compiles the policy to classic BPF: a binary search over ranges of call numbers.
//!
//! ```text
//! architecture is ours?  no → refuse (i386 calls have other numbers, and socketcall hides its arguments)
//! x32 bit set?           yes → refuse
//! number >= middle?      … down to a leaf, which neighbours share: allow, refuse, or look at arguments
//! ```
//!
//! No call is answered by killing its process: the kernel writes each such kill to its log and to the machine's audit, as often
//! as a program likes. An errno keeps a call from the kernel as surely.

use super::policy::{Comparison, Condition, Rule, Verdict};
use std::fmt;

/// One BPF instruction, in the kernel's layout (`struct sock_filter`).
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

/// The source text of constants that hold programs, by name: what [`super::compiled`] is.
#[derive(Debug)]
pub struct ConstantsSource<'a>(pub &'a [(&'a str, Program)]);

/// Return value of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterAction {
    /// The call reaches the kernel.
    Allow,
    /// The call fails with that errno.
    Errno(u16),
    /// Another process is asked.
    Ask,
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
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

pub(super) const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
pub(super) const OFFSET_ARGUMENTS: u32 = 16;

pub(super) const RETURN_ALLOW: u32 = 0x7fff_0000;
pub(super) const RETURN_ERRNO: u32 = 0x0005_0000;
const RETURN_ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
/// The answer to a call of another architecture. Not `ENOSYS`, which a kernel without that entry answers: tests distinguish
/// the two.
const RETURN_FOREIGN: u32 = RETURN_ERRNO | libc::EPERM.cast_unsigned();

/// A run of call numbers, from `first` to the next range, with one verdict.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: u32,
    verdict: Verdict,
}

// === impl Program ===

impl Program {
    /// Compiles rules, which must be sorted by number; `unlisted` is for calls that none of them names.
    pub fn compile(rules: &[Rule], unlisted: Verdict) -> Self {
        // The search below needs them in this order, whatever order reads best.
        let mut sorted = rules.to_vec();
        sorted.sort_by_key(|rule| rule.number);
        let ranges = ranges(&sorted, unlisted);
        let mut program = vec![
            load(OFFSET_ARCHITECTURE),
            jump_if(JUMP_IF_EQUAL, ARCHITECTURE, 1, 0),
            give(RETURN_FOREIGN),
            load(OFFSET_NUMBER),
            jump_if(JUMP_IF_AT_LEAST, X32_BIT, 0, 1),
            give(RETURN_FOREIGN),
        ];
        program.extend(search(&ranges));
        Self(program)
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// Returns the kernel's answer, computed by a small interpreter of our own. `None` for a program that the kernel would
    /// not accept.
    pub fn evaluate(&self, call: &Call) -> Option<FilterAction> {
        self.walk(call, |_| ())
    }

    fn walk(&self, call: &Call, mut visit: impl FnMut(usize)) -> Option<FilterAction> {
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
                RETURN => return FilterAction::from_return(operand),
                _ => return None,
            }
        }
    }
}

impl From<Vec<Instruction>> for Program {
    fn from(instructions: Vec<Instruction>) -> Self {
        Self(instructions)
    }
}

// === impl Instruction ===

impl Instruction {
    pub(super) const fn new(code: u16, jump_true: u8, jump_false: u8, operand: u32) -> Self {
        Self { code, jump_true, jump_false, operand }
    }
}

#[cfg(feature = "removable-walls")]
impl Instruction {
    /// Room for a program on the stack: where it is put up, nothing may be allocated.
    pub(crate) fn room() -> [Self; 1024] {
        [give(RETURN_FOREIGN); 1024]
    }

    /// Returns the program, with a jump over each check at its beginning that is to be left out.
    pub(crate) fn without_removed_checks<'r>(program: &'r [Self], room: &'r mut [Self; 1024]) -> &'r [Self] {
        const OVER_THE_NEXT: Instruction = Instruction::new(JUMP, 0, 0, 1);
        let Some(copy) = room.get_mut(..program.len()) else { return program };
        copy.copy_from_slice(program);
        crate::wall!(I386Entry: (), else copy[1] = OVER_THE_NEXT);
        crate::wall!(X32Entry: (), else copy[4] = OVER_THE_NEXT);
        copy
    }
}

// === impl ConstantsSource ===

impl fmt::Display for ConstantsSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "//! The policy's filters, compiled beforehand: made by `cargo xtask generate`, and kept here because a"
        )?;
        writeln!(f, "//! change in them is a change in what a sandbox may do.\n")?;
        writeln!(f, "use super::program::Instruction;")?;
        for (name, Program(instructions)) in self.0 {
            writeln!(f, "\npub(super) const {name}: [Instruction; {}] = [", instructions.len())?;
            for Instruction { code, jump_true, jump_false, operand } in instructions {
                let (high, low) = (operand >> 16, operand & 0xffff);
                writeln!(
                    f,
                    "    Instruction::new({code:#04x}, {jump_true}, {jump_false}, 0x{high:04x}_{low:04x}),"
                )?;
            }
            writeln!(f, "];")?;
        }
        Ok(())
    }
}

/// Neighbouring numbers with one verdict become one range; gaps are ranges of `unlisted`.
fn ranges(rules: &[Rule], unlisted: Verdict) -> Vec<Range> {
    let mut ranges: Vec<Range> = vec![Range { first: 0, verdict: unlisted }];
    let mut push = |first: u32, verdict: Verdict| match ranges.last_mut() {
        Some(last) if last.verdict == verdict => {}
        Some(last) if last.first == first => last.verdict = verdict,
        _ => ranges.push(Range { first, verdict }),
    };
    for (index, rule) in rules.iter().enumerate() {
        push(rule.number, rule.verdict);
        let next = rules.get(index + 1).map(|next| next.number);
        if next != Some(rule.number + 1) {
            push(rule.number + 1, unlisted);
        }
    }
    ranges
}

fn search(ranges: &[Range]) -> Vec<Instruction> {
    block(ranges).unwrap_or_else(|| {
        // Too long for conditional jumps, which reach 255 instructions: two blocks, and a jump that reaches any.
        let (lower, upper) = ranges.split_at(ranges.len() / 2);
        let lower_code = search(lower);
        let mut code = vec![
            jump_if(JUMP_IF_AT_LEAST, upper[0].first, 0, 1),
            Instruction { code: JUMP, jump_true: 0, jump_false: 0, operand: length(&lower_code) },
        ];
        code.extend(lower_code);
        code.extend(search(upper));
        code
    })
}

/// A whole search whose leaves share their code: comparisons first, then each verdict once. `None` if a jump would be
/// too far.
fn block(ranges: &[Range]) -> Option<Vec<Instruction>> {
    let mut tree = Tree::default();
    tree.plant(ranges);
    let mut leaves_at = Vec::with_capacity(tree.leaves.len());
    let mut code = Vec::new();
    for verdict in &tree.leaves {
        leaves_at.push(tree.nodes.len() + code.len());
        code.extend(decide(*verdict));
    }
    let place = |target: JumpTarget| match target {
        JumpTarget::Node(node) => Some(node),
        JumpTarget::Leaf(leaf) => leaves_at.get(leaf).copied(),
    };
    let distance = |from: usize, to: JumpTarget| u8::try_from(place(to)?.checked_sub(from + 1)?).ok();
    let nodes = tree.nodes.iter().enumerate().map(|(index, node)| {
        let (yes, no) = (distance(index, node.at_least)?, distance(index, node.below)?);
        Some(jump_if(JUMP_IF_AT_LEAST, node.number, yes, no))
    });
    let mut whole = nodes.collect::<Option<Vec<_>>>()?;
    whole.extend(code);
    Some(whole)
}

/// A binary search, before its jumps are laid out. A node comes before those that it leads to.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    leaves: Vec<Verdict>,
}

struct Node {
    number: u32,
    at_least: JumpTarget,
    below: JumpTarget,
}

#[derive(Clone, Copy)]
enum JumpTarget {
    Node(usize),
    Leaf(usize),
}

impl Tree {
    fn plant(&mut self, ranges: &[Range]) -> JumpTarget {
        if let [range] = ranges {
            return self.leaf(range.verdict);
        }
        let (lower, upper) = ranges.split_at(ranges.len() / 2);
        let node = self.nodes.len();
        self.nodes.push(Node {
            number: upper[0].first,
            at_least: JumpTarget::Leaf(0),
            below: JumpTarget::Leaf(0),
        });
        self.nodes[node].below = self.plant(lower);
        self.nodes[node].at_least = self.plant(upper);
        JumpTarget::Node(node)
    }

    fn leaf(&mut self, verdict: Verdict) -> JumpTarget {
        let known = self.leaves.iter().position(|leaf| *leaf == verdict);
        JumpTarget::Leaf(known.unwrap_or_else(|| {
            self.leaves.push(verdict);
            self.leaves.len() - 1
        }))
    }
}

fn decide(verdict: Verdict) -> Vec<Instruction> {
    match verdict {
        Verdict::Allow => vec![give(RETURN_ALLOW)],
        Verdict::Refuse(errno) => vec![give(RETURN_ERRNO | u32::from(errno))],
        Verdict::Ask => vec![give(RETURN_ASK)],
        Verdict::AllowIf { any_of, otherwise } => {
            allow_if_any(any_of, give(RETURN_ERRNO | u32::from(otherwise)))
        }
        Verdict::AskUnless { any_of } => allow_if_any(any_of, give(RETURN_ASK)),
    }
}

/// Allows when every condition of any one group holds; otherwise gives that answer.
fn allow_if_any(any_of: &[&[Condition]], otherwise: Instruction) -> Vec<Instruction> {
    any_of.iter().flat_map(|group| allow_if_all(group)).chain([otherwise]).collect()
}

/// Allows when every condition holds; otherwise goes on behind.
fn allow_if_all(group: &[Condition]) -> Vec<Instruction> {
    let mut code = vec![give(RETURN_ALLOW)];
    for condition in group.iter().rev() {
        let mut test = vec![load(OFFSET_ARGUMENTS + 8 * u32::from(condition.argument))];
        if condition.mask != u32::MAX {
            test.push(Instruction { code: AND, jump_true: 0, jump_false: 0, operand: condition.mask });
        }
        test.extend(compare(condition.comparison, code.len()));
        test.extend(code);
        code = test;
    }
    code
}

/// Goes on with the next instruction if the comparison holds, and otherwise jumps over the `rest` of the group. Groups are
/// short enough for every jump.
fn compare(comparison: Comparison, rest: usize) -> Vec<Instruction> {
    let reach = |instructions: usize| u8::try_from(instructions).unwrap_or(u8::MAX);
    match comparison {
        Comparison::Is(value) => vec![jump_if(JUMP_IF_EQUAL, value, 0, reach(rest))],
        Comparison::IsNot(value) => vec![jump_if(JUMP_IF_EQUAL, value, reach(rest), 0)],
        Comparison::OneOf(values) => {
            let test = |(index, value): (usize, &u32)| {
                let left = values.len() - 1 - index;
                jump_if(JUMP_IF_EQUAL, *value, reach(left), if left == 0 { reach(rest) } else { 0 })
            };
            values.iter().enumerate().map(test).collect()
        }
    }
}

pub(super) const fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD_WORD, jump_true: 0, jump_false: 0, operand: offset }
}

pub(super) const fn jump_if(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code, jump_true, jump_false, operand }
}

pub(super) const fn give(answer: u32) -> Instruction {
    Instruction { code: RETURN, jump_true: 0, jump_false: 0, operand: answer }
}

fn length(code: &[Instruction]) -> u32 {
    u32::try_from(code.len()).unwrap_or(u32::MAX)
}

// === impl FilterAction ===

impl FilterAction {
    fn from_return(value: u32) -> Option<Self> {
        match value & 0xffff_0000 {
            RETURN_ALLOW => Some(Self::Allow),
            RETURN_ASK => Some(Self::Ask),
            RETURN_ERRNO => Some(Self::Errno((value & 0xffff) as u16)),
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
mod tests;
