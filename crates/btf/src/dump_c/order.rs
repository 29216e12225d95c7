//! Topological order of definitions.
//!
//! A structure requires the definition of its members, but only a declaration behind a
//! pointer; an anonymous structure is written in place, so it requires the definitions of
//! its members even behind a pointer. A link is strong if it requires the definition,
//! else weak.

use super::{CDump, DumpError, Progress};
use crate::{Shape, TypeId};

/// Strength of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Weak,
    Strong,
}

impl CDump<'_> {
    /// Queues the definitions that a type requires, then its own.
    pub(super) fn order(&mut self, id: TypeId, by_pointer: bool) -> Result<Link, DumpError> {
        self.enter(id)?;
        let link = self.order_inside(id, by_pointer);
        self.leave();
        link
    }

    fn order_inside(&mut self, id: TypeId, by_pointer: bool) -> Result<Link, DumpError> {
        let ty = self.btf.at(id);
        let is_named = ty.name_offset().0 != 0;
        match self.state(id).order {
            Progress::Done => return Ok(Link::Strong),
            Progress::Begun if ty.kind().is_composite() && by_pointer && is_named => {
                return Ok(Link::Weak);
            }
            Progress::Begun => return Err(DumpError::Cycle { id }),
            Progress::No => {}
        }
        match ty.shape() {
            Shape::Ptr(to) => {
                let link = self.order(to, true);
                self.state(id).order = Progress::Done;
                link
            }
            Shape::Array(array) => {
                let link = self.order(array.element, false)?;
                self.finish_reference(id, array.element);
                Ok(link)
            }
            Shape::Struct(_) | Shape::Union(_) if by_pointer && is_named => Ok(Link::Weak),
            Shape::Struct(composite) | Shape::Union(composite) => {
                self.state(id).order = Progress::Begun;
                for member in composite.members() {
                    self.order(member.ty, false)?;
                }
                if is_named {
                    self.queue.push(id);
                }
                self.state(id).order = Progress::Done;
                Ok(Link::Strong)
            }
            Shape::Enum(_) | Shape::Fwd(_) => {
                if is_named || !self.state(id).is_referred_to {
                    self.queue.push(id);
                }
                self.state(id).order = Progress::Done;
                Ok(Link::Strong)
            }
            Shape::Typedef(to) => {
                let link = self.order(to, by_pointer)?;
                if by_pointer && link == Link::Weak {
                    return Ok(Link::Weak);
                }
                self.queue.push(id);
                self.state(id).order = Progress::Done;
                Ok(Link::Strong)
            }
            Shape::Volatile(to) | Shape::Const(to) | Shape::Restrict(to) | Shape::TypeTag(to) => {
                let link = self.order(to, by_pointer)?;
                self.finish_reference(id, to);
                Ok(link)
            }
            Shape::Proto(proto) => {
                let mut strongest = self.order(proto.returns, by_pointer)?;
                for param in proto.params() {
                    if self.order(param.ty, by_pointer)? == Link::Strong {
                        strongest = Link::Strong;
                    }
                }
                let mut params = proto.params();
                if params.all(|param| self.state(param.ty).order == Progress::Done) {
                    self.finish_reference(id, proto.returns);
                }
                Ok(strongest)
            }
            Shape::Void
            | Shape::Int(_)
            | Shape::Float(_)
            | Shape::Func(_)
            | Shape::Var(_)
            | Shape::Datasec(_)
            | Shape::DeclTag(_) => {
                self.state(id).order = Progress::Done;
                Ok(Link::Weak)
            }
        }
    }
    /// Marks a type as ordered if the type that it refers to is: its order has no more
    /// effect, so that chains are followed once.
    fn finish_reference(&mut self, id: TypeId, to: TypeId) {
        if self.state(to).order == Progress::Done {
            self.state(id).order = Progress::Done;
        }
    }
}
