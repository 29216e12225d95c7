//! Equality of types without their references.

use super::graph::Graph;
use crate::TypeId;
use crate::kind::Kind;

impl Graph {
    /// True if name, kind, count, flag and size or reference are equal.
    pub(super) fn same_record(&self, a: TypeId, b: TypeId) -> bool {
        self.record(a) == self.record(b)
    }

    /// True if all words are equal, references included.
    pub(super) fn same_words(&self, a: TypeId, b: TypeId) -> bool {
        self.words(a) == self.words(b)
    }

    /// True if name, kind, count and flag are equal.
    pub(super) fn same_info(&self, a: TypeId, b: TypeId) -> bool {
        let (a, b) = (self.record(a), self.record(b));
        (a.name, a.info) == (b.name, b.info)
    }

    fn is_enum(&self, id: TypeId) -> bool {
        matches!(self.kind(id), Kind::Enum | Kind::Enum64)
    }

    /// True for a forward declaration of an enumeration.
    pub(super) fn is_enum_forward(&self, id: TypeId) -> bool {
        self.is_enum(id) && self.record(id).count() == 0
    }

    /// True for equal enumerations, and for one and a forward declaration of its name.
    pub(super) fn compatible_enums(&self, a: TypeId, b: TypeId) -> bool {
        if !self.is_enum_forward(a) && !self.is_enum_forward(b) {
            return self.same_words(a, b);
        }
        self.record(a).name == self.record(b).name && self.is_enum(a) && self.is_enum(b)
    }

    /// True if the members have equal names and offsets.
    pub(super) fn same_members(&self, a: TypeId, b: TypeId) -> bool {
        let outline = |[name, _, place]: [u32; 3]| (name, place);
        self.same_record(a, b)
            && self
                .members(a)
                .map(outline)
                .eq(self.members(b).map(outline))
    }

    /// True if the arrays have equal lengths.
    pub(super) fn same_length(&self, a: TypeId, b: TypeId) -> bool {
        self.same_record(a, b) && self.tail(a).get(2) == self.tail(b).get(2)
    }

    /// True if the parameters have equal names.
    pub(super) fn same_params(&self, a: TypeId, b: TypeId) -> bool {
        let name = |[name, _]: [u32; 2]| name;
        self.same_info(a, b) && self.members(a).map(name).eq(self.members(b).map(name))
    }

    /// True if two types are equal with their references, to a maximum depth; for
    /// compilers that emit one type twice. `budget` is the remaining number of types to
    /// visit.
    pub(super) fn identical(&self, a: TypeId, b: TypeId, depth: usize, budget: &mut u32) -> bool {
        let (mut a, mut b) = (a, b);
        loop {
            if depth == 0 || *budget == 0 || self.kind(a) != self.kind(b) {
                return false;
            }
            *budget -= 1;
            return match self.kind(a) {
                Kind::Void => true,
                Kind::Int => self.same_words(a, b),
                Kind::Enum | Kind::Enum64 => self.compatible_enums(a, b),
                Kind::Fwd | Kind::Float => self.same_record(a, b),
                Kind::Const
                | Kind::Volatile
                | Kind::Restrict
                | Kind::Ptr
                | Kind::Typedef
                | Kind::Func
                | Kind::TypeTag => {
                    if !self.same_info(a, b) {
                        return false;
                    }
                    // A chain is one step.
                    (a, b) = (self.reference(a, 2), self.reference(b, 2));
                    continue;
                }
                // Element types are not compared.
                Kind::Array => self.same_length(a, b),
                Kind::Struct | Kind::Union => {
                    self.same_members(a, b) && self.identical_parts(a, b, depth, budget)
                }
                Kind::FuncProto => {
                    self.same_params(a, b) && self.identical_parts(a, b, depth, budget)
                }
                Kind::Var | Kind::Datasec | Kind::DeclTag => false,
            };
        }
    }

    fn identical_parts(&self, a: TypeId, b: TypeId, depth: usize, budget: &mut u32) -> bool {
        self.references(a).all(|at| {
            let (a, b) = (self.reference(a, at), self.reference(b, at));
            a == b || self.identical(a, b, depth - 1, budget)
        })
    }
}
