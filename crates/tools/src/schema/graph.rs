//! A schema as the graph of its subschemas, judged before anything is compiled from it.
//!
//! A few lines of schema can ask for more work than there is time: `$ref`s that double at each level, chains of them that are applied
//! anew to each value. What one value takes is known from the graph alone; what the values of one call take, [`super::work`] counts.

use super::InvalidSchemaError as Invalid;
use super::patterns::Patterns;
use super::subschemas::{Target, each, own_work};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// The subschemas that a schema can come to apply. The first is the schema itself.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// What its patterns compile to at most, in bytes.
    pub(super) pattern_bytes: usize,
}

/// A subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The subschemas that it applies, by index.
    pub(super) applied: Vec<(Target, usize)>,
    /// The members that it names in `properties`.
    pub(super) named: BTreeSet<String>,
    /// What a look at one value takes, without that of what it applies.
    pub(super) own_work: u64,
    /// What its pattern takes for each portion of a text.
    pub(super) pattern_work: u64,
    /// What its patterns of names take for each portion of the names.
    pub(super) name_work: u64,
    /// Whether all items have to be compared with each other.
    pub(super) is_unique: bool,
    /// How often what it applies in place is looked at again for what has not been looked at.
    pub(super) again: u64,
}

/// The most work that a schema may ask for per value.
const MOST_WORK: u64 = 10_000;

/// The longest chain of subschemas that are applied to one value.
const LONGEST_CHAIN: u64 = 64;

/// Keywords by which a name comes to mean another place, or a word of a schema something else.
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
    /// Reads a schema and judges it.
    ///
    /// # Errors
    /// [`Invalid`] when it names what is not in it, or asks for more work than is done.
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

    /// Finds out what each subschema takes per value.
    fn judge(&mut self) -> Result<(), Invalid> {
        let mut judged = vec![Judged::Not; self.nodes.len()];
        let mut of_unevaluated = 0_u64;
        for index in 0..self.nodes.len() {
            let weight = self.weigh(index, &mut judged, 0)?;
            let node = &mut self.nodes[index];
            let has_unevaluated = node
                .applied
                .iter()
                .any(|(target, _)| matches!(target, Target::UnevaluatedMembers | Target::UnevaluatedItems));
            if has_unevaluated {
                // Each has a compiled copy of what it applies in place.
                of_unevaluated += weight.work;
                if of_unevaluated > MOST_WORK {
                    return Err(Invalid::Work { most: MOST_WORK });
                }
            }
        }
        Ok(())
    }

    /// The work and the longest chain in place, each subschema weighed once. `depth` subschemas led here.
    fn weigh(&mut self, index: usize, judged: &mut [Judged], depth: u64) -> Result<Weight, Invalid> {
        match judged[index] {
            Judged::Done(weight) => return Ok(weight),
            Judged::UnderWay => return Err(Invalid::Endless),
            Judged::Not if depth > LONGEST_CHAIN => return Err(Invalid::Chain { most: LONGEST_CHAIN }),
            Judged::Not => {}
        }
        judged[index] = Judged::UnderWay;
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
            // What has been looked at is found out by looking again, at each level of what is in place.
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
        judged[index] = Judged::Done(weight);
        Ok(weight)
    }
}

/// How far a subschema has been judged.
#[derive(Clone, Copy)]
enum Judged {
    Not,
    UnderWay,
    Done(Weight),
}

/// What a subschema takes per value.
#[derive(Clone, Copy)]
struct Weight {
    work: u64,
    chain: u64,
}

/// Finds subschemas and numbers them.
struct Reader<'v> {
    root: &'v Value,
    found: HashMap<*const Value, usize>,
    waiting: Vec<&'v Value>,
    patterns: Patterns<'v>,
}

// === impl Reader ===

impl<'v> Reader<'v> {
    /// The number of a subschema.
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

    /// What a `$ref` names: `#`, or a JSON pointer after it. Nothing is decoded, so that no other reader understands it otherwise.
    fn find(&self, reference: &Value) -> Result<&'v Value, Invalid> {
        let text = reference.as_str().unwrap_or_default();
        let pointer = text.strip_prefix('#').filter(|rest| !rest.contains('%'));
        let found = pointer.and_then(|pointer| self.root.pointer(pointer));
        found.ok_or_else(|| Invalid::Reference { reference: super::told(text) })
    }
}

/// Refuses a schema in which `$ref` could mean another place than it says.
fn renames_nothing(schema: &Value) -> Result<(), Invalid> {
    match schema {
        Value::Object(members) => {
            let renaming = RENAMING.iter().find(|keyword| {
                // An object is the schema of a property of that name.
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
