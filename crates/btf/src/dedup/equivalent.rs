//! Are two structures the same, with everything that they refer to?
//!
//! Both graphs are walked side by side, depth first. The hypothesis says which
//! type of the candidate's graph each type of the other graph is; a contradiction
//! in it, or a difference, ends the walk. A declaration counts as equal to a
//! definition of its name, and if the graphs turn out to be equal it becomes that
//! definition.

use super::{Dedup, DedupError, Verdict};
use crate::TypeId;
use crate::kind::Kind;

/// How deep two types that a compiler described twice are compared.
const SAME_DEPTH: usize = 16;
/// How many types are looked at for that.
const SAME_BUDGET: u32 = 1 << 20;

/// Which type each type of the canonical graph is, in the order in which it was
/// found.
pub(super) struct Hypothesis {
    is: Vec<Option<TypeId>>,
    order: Vec<TypeId>,
    /// Pairs still to be looked at, the next one last.
    pairs: Vec<(TypeId, TypeId)>,
}

impl Hypothesis {
    pub(super) fn new(count: usize) -> Hypothesis {
        Hypothesis {
            is: vec![None; count],
            order: Vec::new(),
            pairs: Vec::new(),
        }
    }

    fn clear(&mut self) {
        for id in self.order.drain(..) {
            self.is[id.index()] = None;
        }
        self.pairs.clear();
    }
}

impl super::graph::Graph {
    /// What a declaration says that it declares.
    pub(super) fn declared_kind(&self, id: TypeId) -> Kind {
        match self.record(id).flag() {
            true => Kind::Union,
            false => Kind::Struct,
        }
    }
}

impl Dedup {
    /// Is the candidate the same as what was found before?
    pub(super) fn is_equivalent(
        &mut self,
        candidate: TypeId,
        canonical: TypeId,
    ) -> Result<bool, DedupError> {
        self.hypothesis.clear();
        self.hypothesis.pairs.push((candidate, canonical));
        while let Some((candidate, canonical)) = self.hypothesis.pairs.pop() {
            if !self.look_at(candidate, canonical)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// One pair; what it refers to goes on the pile.
    fn look_at(&mut self, candidate: TypeId, canonical: TypeId) -> Result<bool, DedupError> {
        if self.resolve(candidate) == self.resolve(canonical) {
            return Ok(true);
        }
        let canonical = self.resolve_forward(canonical);
        if let Some(is) = self.hypothesis.is[canonical.index()] {
            let mut budget = SAME_BUDGET;
            let graph = &self.graph;
            return Ok(is == candidate || graph.identical(is, candidate, SAME_DEPTH, &mut budget));
        }
        self.hypothesis.is[canonical.index()] = Some(candidate);
        self.hypothesis.order.push(canonical);

        let graph = &self.graph;
        let (kind, other) = (graph.kind(candidate), graph.kind(canonical));
        if graph.record(candidate).name != graph.record(canonical).name {
            return Ok(false);
        }
        if kind != other {
            return Ok(match (kind, other) {
                (Kind::Fwd, defined) => graph.declared_kind(candidate) == defined,
                (defined, Kind::Fwd) => graph.declared_kind(canonical) == defined,
                _ => false,
            });
        }
        let is_same = match kind {
            Kind::Int => graph.same_words(candidate, canonical),
            Kind::Enum | Kind::Enum64 => graph.compatible_enums(candidate, canonical),
            Kind::Fwd | Kind::Float => graph.same_record(candidate, canonical),
            Kind::Const
            | Kind::Volatile
            | Kind::Restrict
            | Kind::Ptr
            | Kind::Typedef
            | Kind::Func
            | Kind::TypeTag => graph.same_info(candidate, canonical),
            Kind::Array => graph.same_length(candidate, canonical),
            Kind::Struct | Kind::Union => graph.same_members(candidate, canonical),
            Kind::FuncProto => graph.same_params(candidate, canonical),
            Kind::Void | Kind::Var | Kind::Datasec | Kind::DeclTag => {
                return Err(DedupError::NotReferable { id: candidate });
            }
        };
        if !is_same {
            return Ok(false);
        }
        let pair = |at| {
            (
                graph.reference(candidate, at),
                graph.reference(canonical, at),
            )
        };
        let references = graph.references(candidate);
        let pairs = &mut self.hypothesis.pairs;
        if kind == Kind::Array {
            // The index is looked at before the elements.
            pairs.extend(references.map(pair));
        } else {
            pairs.extend(references.rev().map(pair));
        }
        Ok(true)
    }

    /// The definition that a declaration is known to be.
    fn resolve_forward(&self, id: TypeId) -> TypeId {
        if self.graph.kind(id) != Kind::Fwd {
            return id;
        }
        let is = self.resolve(id);
        match self.graph.kind(is) {
            Kind::Fwd => id,
            _ => is,
        }
    }

    /// The graphs are the same: declarations become what they were found to be,
    /// and structures on the way those that are known.
    pub(super) fn adopt_hypothesis(&mut self) {
        for at in 0..self.hypothesis.order.len() {
            let canonical = self.hypothesis.order[at];
            let Some(candidate) = self.hypothesis.is[canonical.index()] else {
                continue;
            };
            let candidate = self.resolve(candidate);
            let canonical = self.resolve(canonical);
            let is_forward = |kind| kind == Kind::Fwd;
            let (kind, other) = (self.graph.kind(candidate), self.graph.kind(canonical));
            match (is_forward(kind), is_forward(other)) {
                (false, true) => self.verdicts[canonical.index()] = Verdict::Is(candidate),
                (true, false) => self.verdicts[candidate.index()] = Verdict::Is(canonical),
                (false, false)
                    if kind.is_composite()
                        && self.is_decided(canonical)
                        && !self.is_decided(candidate) =>
                {
                    self.verdicts[candidate.index()] = Verdict::Is(canonical);
                }
                _ => {}
            }
        }
    }
}
