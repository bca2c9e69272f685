//! Graph of the subschemas of a schema, checked before anything is compiled.
//!
//! A few lines of schema can cause an excessive amount of work: `$ref`s that double at each level, or chains of them that apply
//! to each value again. The work per value is computed from the graph alone; [`super::work`] computes the work per call.

use super::InvalidSchemaError as Invalid;
use super::patterns::Patterns;
use super::subschemas::{Target, each, own_work};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// All reachable subschemas. The first one is the schema itself.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Upper bound for the size of the compiled patterns, in bytes.
    pub(super) pattern_bytes: usize,
}

/// A subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The subschemas it applies, by index.
    pub(super) applied: Vec<(Target, usize)>,
    /// Members named in `properties`.
    pub(super) named: BTreeSet<String>,
    /// Work per value, without applied subschemas.
    pub(super) own_work: u64,
    /// Work of its pattern per portion of text.
    pub(super) pattern_work: u64,
    /// Work of its name patterns per portion of member names.
    pub(super) name_work: u64,
    /// True if all items must be compared with each other.
    pub(super) is_unique: bool,
    /// Number of times that subschemas applied in place are evaluated again to find unevaluated members or items.
    pub(super) again: u64,
}

/// Maximum work of a schema per value.
const MOST_WORK: u64 = 10_000;

/// Maximum length of a chain of subschemas applied to one value.
const LONGEST_CHAIN: u64 = 64;

/// Keywords that change the meaning of a reference or of other keywords.
const RENAMING: [&str; 8] = [
    "$id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
];

// === impl Graph ===

impl Graph {
    /// Parses and checks a schema.
    ///
    /// # Errors
    /// [`Invalid`] for references out of the schema, or too much work.
    pub(super) fn of(schema: &Value) -> Result<Self, Invalid> {
        renames_nothing(schema)?;
        let mut reader = Reader {
            root: schema,
            found: HashMap::new(),
            waiting: Vec::new(),
            patterns: Patterns::default(),
        };
        let mut graph = Self { nodes: Vec::new(), pattern_bytes: 0 };
        reader.number(schema);
        while let Some(value) = reader.waiting.get(graph.nodes.len()).copied() {
            graph.nodes.push(match value.as_object() {
                None => Node { own_work: 1, ..Node::default() },
                Some(members) => reader.node(members)?,
            });
        }
        graph.pattern_bytes = reader.patterns.bytes();
        graph.judge()?;
        Ok(graph)
    }

    /// Computes the work of each subschema per value.
    fn judge(&mut self) -> Result<(), Invalid> {
        let mut judged = vec![WeightState::Not; self.nodes.len()];
        let mut of_unevaluated = 0_u64;
        for index in 0..self.nodes.len() {
            let weight = self.weigh(index, &mut judged, 0)?;
            let node = &mut self.nodes[index];
            let has_unevaluated = node
                .applied
                .iter()
                .any(|(target, _)| matches!(target, Target::UnevaluatedMembers | Target::UnevaluatedItems));
            if has_unevaluated {
                // Each one has a compiled copy of its subschemas applied in place.
                of_unevaluated += weight.work;
                if of_unevaluated > MOST_WORK {
                    return Err(Invalid::Work { most: MOST_WORK });
                }
            }
        }
        Ok(())
    }

    /// Work and longest chain in place, each subschema computed once. `depth` is the number of subschemas on the path to this
    /// one.
    fn weigh(&mut self, index: usize, judged: &mut [WeightState], depth: u64) -> Result<Weight, Invalid> {
        match judged[index] {
            WeightState::Done(weight) => return Ok(weight),
            WeightState::UnderWay => return Err(Invalid::Endless),
            WeightState::Not if depth > LONGEST_CHAIN => return Err(Invalid::Chain { most: LONGEST_CHAIN }),
            WeightState::Not => {}
        }
        judged[index] = WeightState::UnderWay;
        let mut weight = Weight { work: 0, chain: 1 };
        let mut again = 1;
        for at in 0..self.nodes[index].applied.len() {
            let (target, next) = &self.nodes[index].applied[at];
            match target {
                Target::UnevaluatedMembers | Target::UnevaluatedItems => again = 2,
                target if target.is_in_place() => {
                    let next = self.weigh(*next, judged, depth + 1)?;
                    weight.work = weight.work.saturating_add(next.work);
                    weight.chain = weight.chain.max(next.chain + 1);
                }
                _ => {}
            }
        }
        if again > 1 {
            // Unevaluated members are found by evaluating again, at each level applied in place.
            again += weight.chain;
        }
        let node = &mut self.nodes[index];
        node.again = again;
        weight.work = weight.work.saturating_mul(again).saturating_add(node.own_work);
        if weight.chain > LONGEST_CHAIN {
            return Err(Invalid::Chain { most: LONGEST_CHAIN });
        }
        if weight.work > MOST_WORK {
            return Err(Invalid::Work { most: MOST_WORK });
        }
        judged[index] = WeightState::Done(weight);
        Ok(weight)
    }
}

/// State of a subschema during the computation.
#[derive(Clone, Copy)]
enum WeightState {
    Not,
    UnderWay,
    Done(Weight),
}

/// Work of a subschema per value.
#[derive(Clone, Copy)]
struct Weight {
    work: u64,
    chain: u64,
}

/// Finds and numbers subschemas.
struct Reader<'v> {
    root: &'v Value,
    found: HashMap<*const Value, usize>,
    waiting: Vec<&'v Value>,
    patterns: Patterns<'v>,
}

// === impl Reader ===

impl<'v> Reader<'v> {
    /// Index of a subschema.
    fn number(&mut self, schema: &'v Value) -> usize {
        let next = self.waiting.len();
        *self.found.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.waiting.push(schema);
            next
        })
    }

    fn node(&mut self, schema: &'v Map<String, Value>) -> Result<Node, Invalid> {
        let mut applied = Vec::new();
        each(schema, |target, one| applied.push((target, self.number(one))));
        if let Some(reference) = schema.get("$ref") {
            let target = self.find(reference)?;
            applied.push((Target::Value, self.number(target)));
        }
        let pattern_work = match schema.get("pattern").and_then(Value::as_str) {
            None => 0,
            Some(pattern) => self.patterns.work_of(pattern)?,
        };
        let mut name_work = 0;
        let of_names = schema.get("patternProperties").and_then(Value::as_object);
        for name in of_names.into_iter().flat_map(Map::keys) {
            name_work += self.patterns.work_of(name)?;
        }
        let named = schema.get("properties").and_then(Value::as_object);
        Ok(Node {
            applied,
            named: named.into_iter().flat_map(Map::keys).cloned().collect(),
            own_work: own_work(schema),
            pattern_work,
            name_work,
            is_unique: schema.get("uniqueItems") == Some(&Value::Bool(true)),
            again: 1,
        })
    }

    /// Target of a `$ref`: `#`, optionally followed by a JSON pointer. Nothing is decoded, so that the library can't read it
    /// differently.
    fn find(&self, reference: &Value) -> Result<&'v Value, Invalid> {
        let text = reference.as_str().unwrap_or_default();
        let pointer = text.strip_prefix('#').filter(|rest| !rest.contains('%'));
        let found = pointer.and_then(|pointer| self.root.pointer(pointer));
        found.ok_or_else(|| Invalid::Reference { reference: super::told(text) })
    }
}

/// Rejects a schema in which the target of `$ref` could be changed by other keywords.
fn renames_nothing(schema: &Value) -> Result<(), Invalid> {
    match schema {
        Value::Object(members) => {
            let renaming = RENAMING.iter().find(|keyword| {
                // An object is the schema of a property with that name.
                members.get(**keyword).is_some_and(|value| !value.is_object() || **keyword == "$vocabulary")
            });
            match renaming {
                Some(keyword) => Err(Invalid::Renaming { keyword }),
                None => members.values().try_for_each(renames_nothing),
            }
        }
        Value::Array(all) => all.iter().try_for_each(renames_nothing),
        _ => Ok(()),
    }
}
