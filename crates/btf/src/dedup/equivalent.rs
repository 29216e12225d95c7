//! Equivalence of two type graphs (`btf_dedup_is_equiv`).
//!
//! Both graphs are walked in parallel, depth first. The hypothesis maps types of the
//! canonical graph to types of the candidate's; a contradiction or a difference ends the
//! walk. A forward declaration is equivalent to a definition of its name, and is resolved
//! to it if the graphs are equivalent.

use super::{Dedup, DedupError, Verdict};
use crate::TypeId;
use crate::kind::Kind;

/// Maximum depth of the comparison of types that a compiler emitted twice.
const SAME_DEPTH: usize = 16;
/// Maximum number of types visited for that.
const SAME_BUDGET: u32 = 1 << 20;

/// Hypothesis: candidate type of each canonical type, in the order of discovery.
pub(super) struct Hypothesis {
    is: Vec<Option<TypeId>>,
    order: Vec<TypeId>,
    /// Stack of pairs to compare.
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
    /// Kind that a forward declaration declares.
    pub(super) fn declared_kind(&self, id: TypeId) -> Kind {
        match self.record(id).flag() {
            true => Kind::Union,
            false => Kind::Struct,
        }
    }
}

impl Dedup {
    /// True if the candidate is equivalent to the canonical type.
    pub(super) fn is_equivalent(
        &mut self,
        candidate: TypeId,
        canonical: TypeId,
    ) -> Result<bool, DedupError> {
        self.hypothesis.clear();
        self.hypothesis.pairs.push((candidate, canonical));
        while let Some((candidate, canonical)) = self.hypothesis.pairs.pop() {
            self.step(candidate)?;
            if !self.look_at(candidate, canonical)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares one pair; pushes the pairs that it refers to.
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
            // The index type is compared before the element type.
            pairs.extend(references.map(pair));
        } else {
            pairs.extend(references.rev().map(pair));
        }
        Ok(true)
    }

    /// Definition that a forward declaration is resolved to.
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

    /// Accepts the hypothesis: resolves forward declarations and merges the structures on
    /// the way.
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
