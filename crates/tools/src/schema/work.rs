//! Worst-case work for validating the values of one call: each evaluation of a subschema counts.
//!
//! A schema that is cheap for one value may still double at each level of nesting. So the work of a call is computed from its
//! values before validation, and the computation itself stops at the limit.

use super::graph::{Graph, Node};
use super::patterns;
use super::subschemas::{Target, values};
use serde_json::Value;

/// Maximum work per call.
pub(super) const MOST_WORK: u64 = 250_000;

/// Maximum nesting of subschemas that fits on the stack of any thread.
const DEEPEST: u32 = 512;

/// Bytes of text that count as one evaluation.
const BYTES_A_LOOK: usize = 64;

/// Number of comparisons per item in small lists, and in longer lists of values with distinct hashes.
const COMPARISONS: u64 = 16;

/// Number of values compared in the time of one evaluation.
const COMPARED_A_LOOK: u64 = 4;

/// Integers up to this one are distinct as floating-point numbers, too.
const EXACT: u64 = 1 << 53;

/// The work exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkLimitExceeded;

/// Remaining part of the limit.
struct ValidationBudget<'g> {
    graph: &'g Graph,
    left: u64,
}

/// Context in which a subschema is reached.
#[derive(Clone, Copy)]
struct EvaluationContext {
    depth: u32,
    /// Additional evaluations to report mistakes.
    again: u64,
    /// Number of repetitions of all that.
    times: u64,
}

/// Work of validating a value.
///
/// # Errors
/// [`WorkLimitExceeded`] when it exceeds [`MOST_WORK`].
pub(super) fn of(graph: &Graph, value: &Value) -> Result<u64, WorkLimitExceeded> {
    let mut count = ValidationBudget { graph, left: MOST_WORK };
    count.node(0, value, EvaluationContext { depth: 0, again: 1, times: 1 })?;
    Ok(MOST_WORK - count.left)
}

// === impl ValidationBudget ===

impl ValidationBudget<'_> {
    fn node(
        &mut self,
        index: usize,
        value: &Value,
        reached: EvaluationContext,
    ) -> Result<(), WorkLimitExceeded> {
        let graph = self.graph;
        let node = graph.nodes.get(index).ok_or(WorkLimitExceeded)?;
        if reached.depth > DEEPEST {
            return Err(WorkLimitExceeded);
        }
        self.take(own_work(node, value), reached)?;
        for (target, next) in &node.applied {
            self.applied(node, (target, *next), value, reached)?;
        }
        Ok(())
    }

    fn applied(
        &mut self,
        node: &Node,
        (target, next): (&Target, usize),
        value: &Value,
        reached: EvaluationContext,
    ) -> Result<(), WorkLimitExceeded> {
        let once = EvaluationContext { depth: reached.depth + 1, ..reached };
        let again = EvaluationContext { again: reached.again.saturating_add(2), ..once };
        let looked_for = EvaluationContext { times: reached.times.saturating_mul(node.again), ..again };
        let mut members = value.as_object().into_iter().flatten();
        let mut items = value.as_array().into_iter().flatten();
        match target {
            Target::Value => self.node(next, value, EvaluationContext { times: looked_for.times, ..once }),
            Target::ValueAgain => self.node(next, value, looked_for),
            Target::Member(name) => value.get(name).map_or(Ok(()), |member| self.node(next, member, once)),
            Target::AnyMember => members.try_for_each(|(_, member)| self.node(next, member, once)),
            Target::OtherMembers => {
                let mut others = members.filter(|(name, _)| !node.named.contains(*name));
                others.try_for_each(|(_, member)| self.node(next, member, once))
            }
            Target::UnevaluatedMembers => {
                members.try_for_each(|(_, member)| self.node(next, member, looked_for))
            }
            Target::Names => {
                members.try_for_each(|(name, _)| self.node(next, &Value::String(name.clone()), again))
            }
            Target::Item(index) => value.get(index).map_or(Ok(()), |item| self.node(next, item, once)),
            Target::ItemsFrom(first) => items.skip(*first).try_for_each(|item| self.node(next, item, once)),
            Target::AnyItem => items.try_for_each(|item| self.node(next, item, again)),
            Target::UnevaluatedItems => items.try_for_each(|item| self.node(next, item, looked_for)),
        }
    }

    fn take(&mut self, work: u64, reached: EvaluationContext) -> Result<(), WorkLimitExceeded> {
        let work = work.saturating_mul(reached.times).saturating_mul(reached.again);
        self.left = self.left.checked_sub(work).ok_or(WorkLimitExceeded)?;
        Ok(())
    }
}

/// Work of one subschema for a value.
fn own_work(node: &Node, value: &Value) -> u64 {
    let of_value = match value {
        Value::String(text) => {
            patterns::work(node.pattern_work, text.len()) + (text.len() / BYTES_A_LOOK) as u64
        }
        Value::Object(members) => {
            let bytes: usize = members.keys().map(|name| name.len() + 1).sum();
            patterns::work(node.name_work, bytes)
        }
        Value::Array(_) if node.is_unique => {
            let items = value.as_array().map_or(0, Vec::len) as u64;
            let size = values(value) + bytes(value) / BYTES_A_LOOK as u64;
            match value.as_array().into_iter().flatten().all(hashes_apart) {
                true => COMPARISONS * size,
                // Each pair of items in the worst case.
                false => (COMPARISONS * size).max(items.saturating_mul(size) / (2 * COMPARED_A_LOOK)),
            }
        }
        _ => 0,
    };
    node.own_work + of_value
}

/// Returns true if hashes of distinct values collide only by chance in the library. Numbers are hashed by their approximation,
/// nested lists as one flat list, and members of objects with fixed keys, so collisions can be provoked.
fn hashes_apart(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => {
            number.is_f64() || number.as_i64().is_some_and(|number| number.unsigned_abs() <= EXACT)
        }
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Bytes of all texts in a value.
fn bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(all) => all.iter().map(bytes).sum(),
        Value::Object(all) => all.iter().map(|(name, one)| name.len() as u64 + bytes(one)).sum(),
        _ => 0,
    }
}
