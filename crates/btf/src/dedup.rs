//! Deduplication of BTF (`btf__dedup`): equal types of several compilation units are
//! merged, and forward declarations are resolved to definitions. The result equals that
//! of libbpf's linker, type for type.
//!
//! The algorithm is libbpf's: strings; types without references; structures, unions and
//! typedefs, by equivalence of type graphs ([`equivalent`]); forward declarations with a
//! unique definition; reference types, innermost first. Variables and DATASECs are
//! unchanged. Remaining types are renumbered in their order.

mod equivalent;
mod graph;
mod same;
mod table;

use std::collections::HashMap;
use std::fmt;

use crate::ext::BtfExt;
use crate::kind::Kind;
use crate::wire::Record;
use crate::write::Builder;
use crate::{Btf, StrOffset, TypeId};
use graph::Graph;
use table::{Candidates, hash};

/// Result of deduplication.
#[derive(Clone, Debug)]
pub struct Deduplicated {
    /// BTF blob.
    pub btf: Vec<u8>,
    /// `.BTF.ext` blob with translated names and type ids.
    pub ext: Option<Vec<u8>>,
    /// New type id of each old type.
    pub map: Vec<TypeId>,
}

/// Error of deduplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DedupError {
    /// A type refers to itself without a named type between.
    Cycle {
        /// Type id.
        id: TypeId,
    },
    /// The chain of references is too long.
    TooDeep {
        /// Type id at which the limit was reached.
        id: TypeId,
    },
    /// The comparisons of types that look alike exceed a number of steps.
    TooComplex {
        /// Type id at which the limit was reached.
        id: TypeId,
    },
    /// A reference to a type that may not be referred to, such as a tag.
    NotReferable {
        /// Type id.
        id: TypeId,
    },
}

impl fmt::Display for DedupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DedupError::Cycle { id } => write!(f, "type {id} refers to itself"),
            DedupError::TooDeep { id } => write!(f, "type {id} is nested too deeply"),
            DedupError::TooComplex { id } => write!(
                f,
                "comparisons up to type {id} exceed the limit of {STEPS_PER_TYPE} steps for each type"
            ),
            DedupError::NotReferable { id } => write!(f, "nothing may refer to type {id}"),
        }
    }
}

impl std::error::Error for DedupError {}

/// Number of steps of comparisons for each type, beside [`STEPS`]: kernels and programs take
/// a few.
const STEPS_PER_TYPE: u64 = 256;
/// Number of steps that any blob may take.
const STEPS: u64 = 1 << 24;

/// Maximum length of a chain of references.
const MAX_DEPTH: usize = 1024;

/// Deduplicates types and strings. The strings are those that types and `ext` use, in the
/// order of use.
pub fn dedup(btf: &Btf<'_>, ext: Option<&BtfExt<'_>>) -> Result<Deduplicated, DedupError> {
    dedup_into(Builder::new(), btf, ext)
}

/// Deduplicates types. All strings remain at their offsets; of equal ones the first is
/// used.
pub fn dedup_types(btf: &Btf<'_>, ext: Option<&BtfExt<'_>>) -> Result<Deduplicated, DedupError> {
    dedup_into(Builder::with_strings_of(btf), btf, ext)
}

/// Deduplicates with the strings of a builder, to which the names of types and `ext` are
/// added.
fn dedup_into(
    mut strings: Builder,
    btf: &Btf<'_>,
    ext: Option<&BtfExt<'_>>,
) -> Result<Deduplicated, DedupError> {
    // Names are shared, so the text of each offset is interned once.
    let mut names: Vec<Option<StrOffset>> = vec![None; btf.strings_end()];
    let mut rename = |name: StrOffset| match names.get_mut(name.0 as usize) {
        Some(new) => *new.get_or_insert_with(|| strings.string(btf.string(name).as_bytes())),
        None => StrOffset::EMPTY,
    };
    let graph = Graph::new(btf, &mut rename);
    // Names of `ext` follow those of the types; its type ids are translated later.
    let renamed = ext.map(|ext| ext.mapped(rename, |id| id));
    let mut dedup = Dedup::new(graph);
    dedup.merge_plain_types();
    dedup.merge_composites()?;
    dedup.resolve_forwards();
    dedup.merge_references()?;
    let map = dedup.compact();
    let btf = dedup.write(strings, &map);
    let ext = renamed
        .and_then(|bytes| BtfExt::parse(bytes).ok())
        .map(|ext| ext.mapped(|name| name, |id| map[id.index().min(map.len() - 1)]));
    Ok(Deduplicated { btf, ext, map })
}

/// Canonical type of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Unknown.
    Open,
    /// Being computed.
    Begun,
    /// This type, possibly itself.
    Is(TypeId),
}

struct Dedup {
    graph: Graph,
    verdicts: Vec<Verdict>,
    candidates: Candidates,
    hypothesis: equivalent::Hypothesis,
    /// Remaining number of steps of comparisons.
    work: u64,
}

impl Dedup {
    fn new(graph: Graph) -> Dedup {
        let verdict = |id: TypeId| match graph.kind(id) {
            // These are never merged.
            Kind::Void | Kind::Var | Kind::Datasec => Verdict::Is(id),
            _ => Verdict::Open,
        };
        let verdicts: Vec<Verdict> = (0..graph.len() as u32)
            .map(|id| verdict(TypeId(id)))
            .collect();
        let work = STEPS + STEPS_PER_TYPE * verdicts.len() as u64;
        Dedup {
            hypothesis: equivalent::Hypothesis::new(verdicts.len()),
            graph,
            verdicts,
            candidates: Candidates::default(),
            work,
        }
    }

    /// Counts a step of a comparison.
    fn step(&mut self, id: TypeId) -> Result<(), DedupError> {
        let work = self.work.checked_sub(1);
        self.work = work.ok_or(DedupError::TooComplex { id })?;
        Ok(())
    }

    fn verdict(&self, id: TypeId) -> Verdict {
        self.verdicts[id.index()]
    }

    fn is_decided(&self, id: TypeId) -> bool {
        matches!(self.verdict(id), Verdict::Is(_))
    }

    /// Canonical type of a type, as far as it is known.
    fn resolve(&self, id: TypeId) -> TypeId {
        let mut id = id;
        for _ in 0..self.verdicts.len() {
            match self.verdict(id) {
                Verdict::Is(next) if next != id => id = next,
                _ => break,
            }
        }
        id
    }

    /// Sets the canonical type; a type that is canonical itself becomes a candidate for
    /// others.
    fn decide(&mut self, id: TypeId, hash: u64, is: TypeId) {
        self.verdicts[id.index()] = Verdict::Is(is);
        if is == id {
            self.candidates.add(hash, id);
        }
    }

    /// Merges integers, enumerations, forward declarations and floating-point numbers.
    fn merge_plain_types(&mut self) {
        for id in self.graph.ids() {
            let Record {
                name,
                info,
                payload,
            } = self.graph.record(id);
            let (hash, is) = match self.graph.kind(id) {
                Kind::Int => {
                    let hash = hash(self.graph.words(id).iter().copied());
                    (
                        hash,
                        self.candidates
                            .find(hash, |other| self.graph.same_words(id, other)),
                    )
                }
                Kind::Fwd | Kind::Float => {
                    let hash = hash([name, info, payload]);
                    (
                        hash,
                        self.candidates
                            .find(hash, |other| self.graph.same_record(id, other)),
                    )
                }
                Kind::Enum | Kind::Enum64 => {
                    // Forward declarations and definitions of one name must have one
                    // hash.
                    let hash = hash([Kind::Enum as u32, name]);
                    (hash, self.merge_enum(id, hash))
                }
                _ => continue,
            };
            self.decide(id, hash, is.unwrap_or(id));
        }
    }

    fn merge_enum(&mut self, id: TypeId, hash: u64) -> Option<TypeId> {
        let is_enum = |kind| matches!(kind, Kind::Enum | Kind::Enum64);
        let mut candidate = self.candidates.first(hash);
        while let Some(found) = candidate {
            candidate = self.candidates.after(found);
            let other = found.id;
            if !is_enum(self.graph.kind(other)) {
                continue;
            }
            if self.graph.same_words(id, other) {
                return Some(other);
            }
            if self.graph.compatible_enums(id, other) {
                if self.graph.is_enum_forward(id) {
                    return Some(other);
                }
                self.verdicts[other.index()] = Verdict::Is(id);
            }
        }
        None
    }

    /// Merges structures, unions and typedefs.
    fn merge_composites(&mut self) -> Result<(), DedupError> {
        for id in self.graph.ids() {
            let kind = self.graph.kind(id);
            if self.is_decided(id) || !(kind.is_composite() || kind == Kind::Typedef) {
                continue;
            }
            let hash = self.outline_hash(id, kind);
            let mut is = id;
            let mut candidate = self.candidates.first(hash);
            while let Some(found) = candidate {
                self.step(id)?;
                candidate = self.candidates.after(found);
                let other = found.id;
                let looks_alike = match kind {
                    Kind::Typedef => self.graph.same_info(id, other),
                    _ => self.graph.same_members(id, other),
                };
                if looks_alike && self.is_equivalent(id, other)? {
                    self.adopt_hypothesis();
                    is = other;
                    break;
                }
            }
            self.decide(id, hash, is);
        }
        Ok(())
    }

    /// Hash of a type without its references.
    fn outline_hash(&self, id: TypeId, kind: Kind) -> u64 {
        let record = self.graph.record(id);
        if kind == Kind::Typedef {
            return hash([record.name, record.info]);
        }
        let members = self.graph.members(id);
        let outline = members.flat_map(|[name, _, place]: [u32; 3]| [name, place]);
        let own = [record.name, record.info, record.payload];
        hash(own.into_iter().chain(outline))
    }

    /// Resolves forward declarations to the only structure or union of their name.
    fn resolve_forwards(&mut self) {
        let mut by_name: HashMap<u32, Option<TypeId>> = HashMap::new();
        for id in self.graph.ids() {
            if self.graph.kind(id).is_composite() && self.verdict(id) == Verdict::Is(id) {
                by_name
                    .entry(self.graph.record(id).name)
                    .and_modify(|only| *only = None)
                    .or_insert(Some(id));
            }
        }
        for id in self.graph.ids() {
            let record = self.graph.record(id);
            if self.graph.kind(id) != Kind::Fwd || self.verdict(id) != Verdict::Is(id) {
                continue;
            }
            let Some(&Some(definition)) = by_name.get(&record.name) else {
                continue;
            };
            if self.graph.kind(definition) == self.graph.declared_kind(id) {
                self.verdicts[id.index()] = Verdict::Is(definition);
            }
        }
    }

    /// Merges reference types, innermost first.
    fn merge_references(&mut self) -> Result<(), DedupError> {
        for id in self.graph.ids() {
            self.merge_reference(id, MAX_DEPTH)?;
        }
        Ok(())
    }

    fn merge_reference(&mut self, id: TypeId, depth: usize) -> Result<TypeId, DedupError> {
        match self.verdict(id) {
            Verdict::Begun => return Err(DedupError::Cycle { id }),
            Verdict::Is(_) => return Ok(self.resolve(id)),
            Verdict::Open => {}
        }
        let depth = depth.checked_sub(1).ok_or(DedupError::TooDeep { id })?;
        self.verdicts[id.index()] = Verdict::Begun;
        for at in self.graph.references(id) {
            let to = self.graph.reference(id, at);
            let to = self.merge_reference(to, depth)?;
            self.graph.set_reference(id, at, to);
        }
        let hash = hash(self.graph.words(id).iter().copied());
        let is = self
            .candidates
            .find(hash, |other| self.graph.same_words(id, other));
        let is = is.unwrap_or(id);
        self.decide(id, hash, is);
        Ok(is)
    }

    /// New type id of every type.
    fn compact(&self) -> Vec<TypeId> {
        let mut next = 1;
        let mut numbers = vec![TypeId::VOID; self.graph.len()];
        for id in self.graph.ids() {
            if self.verdict(id) == Verdict::Is(id) {
                numbers[id.index()] = TypeId(next);
                next += 1;
            }
        }
        (0..self.graph.len() as u32)
            .map(|id| numbers[self.resolve(TypeId(id)).index()])
            .collect()
    }

    fn write(&self, mut strings: Builder, map: &[TypeId]) -> Vec<u8> {
        for id in self.graph.ids() {
            if self.verdict(id) == Verdict::Is(id) {
                let mut words = self.graph.words(id).to_vec();
                for at in self.graph.references(id) {
                    words[at] = map[words[at] as usize].0;
                }
                strings.add_words(&words);
            }
        }
        strings.finish()
    }
}
