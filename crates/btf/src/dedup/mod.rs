//! One of each: types that several objects (or several files of one) describe
//! become one type, and what is only declared in one and defined in another
//! becomes the definition. The result is that of libbpf's linker, type for type.
//!
//! The algorithm, published with libbpf: strings first, then what refers to
//! nothing, then structures, unions and typedefs, for which two graphs are walked
//! side by side with the hypothesis that they are the same ([`equivalent`]); then
//! declarations whose name only one definition has, and at last what refers to
//! others, from the inside out. Variables and sections stay as they are. What is
//! left is numbered anew in its old order.

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

/// What became of the types.
#[derive(Clone, Debug)]
pub struct Deduplicated {
    /// The blob.
    pub btf: Vec<u8>,
    /// The `.BTF.ext` that was given, with the new names and numbers.
    pub ext: Option<Vec<u8>>,
    /// Which type each of the old types is now.
    pub map: Vec<TypeId>,
}

/// Why types can't be deduplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DedupError {
    /// A type refers to itself with nothing between that could have a name.
    Cycle {
        /// Which.
        id: TypeId,
    },
    /// Types refer to each other in too long a chain.
    TooDeep {
        /// Where it was given up.
        id: TypeId,
    },
    /// Something refers to a type that only refers, such as a tag.
    NotReferable {
        /// Which.
        id: TypeId,
    },
}

impl fmt::Display for DedupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DedupError::Cycle { id } => write!(f, "type {id} refers to itself"),
            DedupError::TooDeep { id } => write!(f, "type {id} is nested too deep"),
            DedupError::NotReferable { id } => write!(f, "nothing may refer to type {id}"),
        }
    }
}

impl std::error::Error for DedupError {}

/// The longest chain of references that is followed.
const MAX_DEPTH: usize = 1024;

/// Makes one type of those that are the same. The strings that are left are those
/// that types and `ext` use, in the order in which they do.
pub fn dedup(btf: &Btf<'_>, ext: Option<&BtfExt<'_>>) -> Result<Deduplicated, DedupError> {
    dedup_into(Builder::new(), btf, ext)
}

/// Makes one type of those that are the same. The strings stay, all of them, where
/// they are; of equal ones the first is used.
pub fn dedup_types(btf: &Btf<'_>, ext: Option<&BtfExt<'_>>) -> Result<Deduplicated, DedupError> {
    dedup_into(Builder::with_strings_of(btf), btf, ext)
}

/// The names of types and `ext` are added to those that `strings` has.
fn dedup_into(
    mut strings: Builder,
    btf: &Btf<'_>,
    ext: Option<&BtfExt<'_>>,
) -> Result<Deduplicated, DedupError> {
    // Many names stand for many things; the text of each is looked at once.
    let mut names: Vec<Option<StrOffset>> = vec![None; btf.strings_end()];
    let mut rename = |name: StrOffset| match names.get_mut(name.0 as usize) {
        Some(new) => *new.get_or_insert_with(|| strings.string(btf.string(name).as_bytes())),
        None => StrOffset::EMPTY,
    };
    let graph = Graph::new(btf, &mut rename);
    // The names in it come after those of the types; the types are known later.
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

/// What is known of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing yet.
    Open,
    /// It is being looked at.
    Begun,
    /// It is this type, maybe itself.
    Is(TypeId),
}

struct Dedup {
    graph: Graph,
    verdicts: Vec<Verdict>,
    candidates: Candidates,
    hypothesis: equivalent::Hypothesis,
}

impl Dedup {
    fn new(graph: Graph) -> Dedup {
        let verdict = |id: TypeId| match graph.kind(id) {
            // These are never the same as another one.
            Kind::Void | Kind::Var | Kind::Datasec => Verdict::Is(id),
            _ => Verdict::Open,
        };
        let verdicts: Vec<Verdict> = (0..graph.len() as u32)
            .map(|id| verdict(TypeId(id)))
            .collect();
        Dedup {
            hypothesis: equivalent::Hypothesis::new(verdicts.len()),
            graph,
            verdicts,
            candidates: Candidates::default(),
        }
    }

    fn verdict(&self, id: TypeId) -> Verdict {
        self.verdicts[id.index()]
    }

    fn is_decided(&self, id: TypeId) -> bool {
        matches!(self.verdict(id), Verdict::Is(_))
    }

    /// The type that stands for this one, as far as is known.
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

    /// Notes what a type is; if it is itself, others may be it.
    fn decide(&mut self, id: TypeId, hash: u64, is: TypeId) {
        self.verdicts[id.index()] = Verdict::Is(is);
        if is == id {
            self.candidates.add(hash, id);
        }
    }

    /// Integers, enumerations, declarations and floating-point numbers.
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
                    // What is only declared has to meet what is defined.
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

    /// Structures, unions and typedefs.
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

    /// A hash of all but what a type refers to.
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

    /// A declaration becomes the structure or union of its name, if there is but
    /// one of that name.
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

    /// All that refers to others, from the inside out.
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

    /// The new number of every type.
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
