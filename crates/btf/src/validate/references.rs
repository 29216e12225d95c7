//! Second pass of the kernel over the types (`btf_check_all_types`): references. A
//! depth-first walk with a stack of 32 types that stops at types whose size is known;
//! which ones depends on whether the walk passed through a pointer or a structure (the
//! resolve mode). The order decides which fault is found first, so it follows the kernel
//! exactly.

use super::blob::Blob;
use super::members::check_member;
use super::reason::{BlobPlace, Pass, Reason, Refusal};
use crate::TypeId;
use crate::kind::Kind;
use crate::wire::{PARAM_SIZE, PLACED_SIZE, word};

/// Maximum depth of the stack.
const MAX_DEPTH: usize = 32;

/// Checks all types (`btf_check_all_types`).
#[doc(alias = "btf_check_all_types")]
pub(super) fn check_references(blob: &Blob<'_>) -> Result<(), Refusal> {
    let count = blob.starts.len();
    let mut walk = Walk {
        blob,
        states: vec![State::New; count],
        targets: vec![TypeId::VOID; count],
        sizes: vec![0; count],
        stack: Vec::with_capacity(MAX_DEPTH),
        mode: Mode::Open,
    };
    for id in (1..count as u32).map(TypeId) {
        walk.check(id).map_err(|(place, reason)| Refusal {
            pass: Pass::References,
            place,
            reason,
        })?;
    }
    Ok(())
}

pub(super) type Fault = (BlobPlace, Reason);

/// Reason why a step ends the walk.
enum Stop {
    Fault(Fault),
    TooDeep,
    Loop,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

type Step = Result<(), Stop>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// Resolve mode: the first pointer or structure of the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    Pointer,
    Composite,
}

/// Type on the stack, with its next member.
#[derive(Clone, Copy)]
struct Vertex {
    id: TypeId,
    next: usize,
}

pub(super) struct Walk<'b> {
    pub(super) blob: &'b Blob<'b>,
    states: Vec<State>,
    /// Resolved type of each finished type, below its modifiers.
    targets: Vec<TypeId>,
    /// Size of each finished array.
    sizes: Vec<u32>,
    stack: Vec<Vertex>,
    mode: Mode,
}

impl Walk<'_> {
    fn check(&mut self, id: TypeId) -> Result<(), Fault> {
        let kind = self.kind(id);
        if must_resolve(kind) && !self.is_done(id) {
            self.resolve(id)?;
        }
        if kind == Kind::FuncProto {
            self.check_prototype(id)?;
        }
        Ok(())
    }

    pub(super) fn kind(&self, id: TypeId) -> Kind {
        self.blob.record_or_void(id).kind_or_void()
    }

    fn payload(&self, id: TypeId) -> TypeId {
        TypeId(self.blob.record_or_void(id).payload)
    }

    fn exists(&self, id: TypeId) -> bool {
        id.index() < self.states.len()
    }

    /// True if the type is resolved (`env_type_is_resolved`).
    #[doc(alias = "env_type_is_resolved")]
    fn is_done(&self, id: TypeId) -> bool {
        self.states.get(id.index()) == Some(&State::Done)
    }

    /// The type that a resolved one resolves to (`btf_resolved_type_id`).
    #[doc(alias = "btf_resolved_type_id")]
    fn target(&self, id: TypeId) -> TypeId {
        self.targets.get(id.index()).copied().unwrap_or_default()
    }

    /// Type below the modifiers and its size, if it has one (`btf_type_id_size`).
    #[doc(alias = "btf_type_id_size")]
    pub(super) fn sized(&self, id: TypeId) -> Option<(TypeId, u32)> {
        let kind = self.kind(id);
        self.own_size(id).or_else(|| {
            let leads_on = kind.is_modifier() || kind == Kind::Var;
            leads_on.then(|| self.own_size(self.target(id)))?
        })
    }

    /// The type and its size, if it has one of its own (`btf_resolved_type_size`).
    #[doc(alias = "btf_resolved_type_size")]
    fn own_size(&self, id: TypeId) -> Option<(TypeId, u32)> {
        let size = match self.kind(id) {
            kind if kind.has_size() => self.payload(id).0,
            Kind::Array => self.sizes[id.index()],
            Kind::Ptr => 8,
            _ => return None,
        };
        Some((id, size))
    }

    /// Resolves a type and all that it must resolve before (`btf_resolve`).
    #[doc(alias = "btf_resolve")]
    fn resolve(&mut self, root: TypeId) -> Result<(), Fault> {
        self.mode = Mode::Open;
        let at_root = |reason| (BlobPlace::Type(root), reason);
        let walked = self.push(root).and_then(|()| {
            while let Some(&vertex) = self.stack.last() {
                self.step(vertex)?;
            }
            Ok(())
        });
        match walked {
            Ok(()) if self.is_well_resolved(root) => Ok(()),
            Ok(()) => Err(at_root(Reason::ResolveState)),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::TooDeep) => Err(at_root(Reason::TooDeep)),
            Err(Stop::Loop) => Err(at_root(Reason::Loop)),
        }
    }

    /// Puts a type on the stack (`env_stack_push`).
    #[doc(alias = "env_stack_push")]
    fn push(&mut self, id: TypeId) -> Step {
        if self.stack.len() == MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        if self.states[id.index()] != State::New {
            return Err(Stop::Loop);
        }
        self.states[id.index()] = State::Open;
        self.stack.push(Vertex { id, next: 0 });
        if self.mode == Mode::Open {
            match self.kind(id) {
                Kind::Ptr => self.mode = Mode::Pointer,
                Kind::Struct | Kind::Union | Kind::Array => self.mode = Mode::Composite,
                _ => {}
            }
        }
        Ok(())
    }

    /// Finishes the type on top of the stack (`env_stack_pop_resolved`).
    #[doc(alias = "env_stack_pop_resolved")]
    fn pop(&mut self, target: TypeId, size: u32) {
        if let Some(vertex) = self.stack.pop() {
            let index = vertex.id.index();
            self.sizes[index] = size;
            self.targets[index] = target;
            self.states[index] = State::Done;
        }
    }

    /// True if the walk must resolve this type before the one that refers to it
    /// (`env_type_is_resolve_sink`).
    #[doc(alias = "env_type_is_resolve_sink")]
    fn must_visit(&self, id: TypeId) -> bool {
        let kind = self.kind(id);
        let is_sink = match self.mode {
            Mode::Open => !must_resolve(kind),
            Mode::Pointer => !kind.is_modifier() && kind != Kind::Ptr,
            Mode::Composite => !kind.is_modifier() && kind != Kind::Array && !kind.is_composite(),
        };
        !is_sink && !self.is_done(id)
    }

    fn step(&mut self, vertex: Vertex) -> Step {
        match self.kind(vertex.id) {
            Kind::Ptr => self.step_pointer(vertex.id),
            Kind::Var => self.step_variable(vertex.id),
            Kind::Array => self.step_array(vertex.id),
            Kind::Struct | Kind::Union => self.step_composite(vertex),
            Kind::Datasec => self.step_section(vertex),
            Kind::Func => self.step_function(vertex.id),
            Kind::DeclTag => self.step_declaration_tag(vertex.id),
            _ => self.step_modifier(vertex.id),
        }
    }

    fn expect(&self, id: TypeId, holds: bool, reason: Reason) -> Result<(), Fault> {
        if holds {
            Ok(())
        } else {
            Err((BlobPlace::Type(id), reason))
        }
    }

    fn may_be_referred_to(&self, id: TypeId) -> bool {
        self.exists(id) && !only_refers(self.kind(id))
    }

    /// Linux's `btf_modifier_resolve`.
    #[doc(alias = "btf_modifier_resolve")]
    fn step_modifier(&mut self, id: TypeId) -> Step {
        let next = self.payload(id);
        self.expect(id, self.may_be_referred_to(next), Reason::TypeId)?;
        if self.must_visit(next) {
            return self.push(next);
        }
        let target = self.target_or_sizeless(id, next)?;
        self.pop(target, 0);
        Ok(())
    }

    /// Linux's `btf_ptr_resolve`.
    #[doc(alias = "btf_ptr_resolve")]
    fn step_pointer(&mut self, id: TypeId) -> Step {
        let next = self.payload(id);
        self.expect(id, self.may_be_referred_to(next), Reason::TypeId)?;
        if self.must_visit(next) {
            return self.push(next);
        }
        if let Some(pointer) = self.pointer_below(next) {
            return self.push(pointer);
        }
        let target = self.target_or_sizeless(id, next)?;
        self.pop(target, 0);
        Ok(())
    }

    /// Modifiers finished on the way to a structure stop at a pointer, which may lead
    /// back to a type on the stack.
    fn pointer_below(&self, modifier: TypeId) -> Option<TypeId> {
        let below = self.target(modifier);
        let stops = self.kind(modifier).is_modifier()
            && self.kind(below) == Kind::Ptr
            && self.must_visit(below);
        stops.then_some(below)
    }

    /// Type that `next` resolves to: a type with a size, or one without that pointers and typedefs
    /// may refer to (`btf_type_nosize_or_null`).
    #[doc(alias = "btf_type_nosize_or_null")]
    fn target_or_sizeless(&self, id: TypeId, next: TypeId) -> Result<TypeId, Fault> {
        if let Some((target, _)) = self.sized(next) {
            return Ok(target);
        }
        let target = if self.is_done(next) {
            self.target(next)
        } else {
            next
        };
        let may_be = matches!(self.kind(target), Kind::Void | Kind::Fwd | Kind::FuncProto);
        self.expect(id, may_be, Reason::TypeId)?;
        Ok(target)
    }

    /// Linux's `btf_var_resolve`.
    #[doc(alias = "btf_var_resolve")]
    fn step_variable(&mut self, id: TypeId) -> Step {
        let next = self.payload(id);
        self.expect(id, self.may_be_referred_to(next), Reason::TypeId)?;
        if self.must_visit(next) {
            return self.push(next);
        }
        if let Some(pointer) = self.pointer_below(next) {
            return self.push(pointer);
        }
        let sized = self
            .sized(next)
            .ok_or((BlobPlace::Type(id), Reason::TypeId))?;
        self.pop(sized.0, 0);
        Ok(())
    }

    /// Linux's `btf_array_resolve`.
    #[doc(alias = "btf_array_resolve")]
    fn step_array(&mut self, id: TypeId) -> Step {
        let tail = self.blob.tail(id);
        let [element, index] = [0, 4].map(|at| TypeId(word(tail, at)));
        let count = word(tail, 8);

        self.expect(id, self.may_be_inside(index), Reason::Index)?;
        if self.must_visit(index) {
            return self.push(index);
        }
        let is_index = |(ty, _): (TypeId, u32)| self.blob.is_regular_int(ty);
        self.expect(id, self.sized(index).is_some_and(is_index), Reason::Index)?;

        self.expect(id, self.may_be_inside(element), Reason::Element)?;
        if self.must_visit(element) {
            return self.push(element);
        }
        let (element, size) = self
            .sized(element)
            .ok_or((BlobPlace::Type(id), Reason::Element))?;
        let is_whole = self.kind(element) != Kind::Int || self.blob.is_regular_int(element);
        self.expect(id, is_whole, Reason::ArrayOfInt)?;
        let total = size.checked_mul(count);
        let total = total.ok_or((BlobPlace::Type(id), Reason::ArrayTooLarge))?;
        self.pop(element, total);
        Ok(())
    }

    /// True if the kind may be an element or a member (`btf_type_nosize`).
    #[doc(alias = "btf_type_nosize")]
    fn may_be_inside(&self, id: TypeId) -> bool {
        let is_sizeless = matches!(
            self.kind(id),
            Kind::Void | Kind::Fwd | Kind::Func | Kind::FuncProto
        );
        self.may_be_referred_to(id) && !is_sizeless
    }

    /// Linux's `btf_struct_resolve`.
    #[doc(alias = "btf_struct_resolve")]
    fn step_composite(&mut self, vertex: Vertex) -> Step {
        let of = vertex.id;
        // The member because of which the walk went on has not been checked yet.
        let mut index = vertex.next.saturating_sub(1);
        let mut was_visited = vertex.next > 0;
        while index < self.blob.record_or_void(of).count() {
            let member = self.blob.member(of, index);
            if !was_visited {
                let place = BlobPlace::Member {
                    of,
                    index,
                    ty: member.ty,
                };
                if !self.may_be_inside(member.ty) {
                    return Err(Stop::Fault((place, Reason::Member)));
                }
                if self.must_visit(member.ty) {
                    self.come_back_after(index);
                    return self.push(member.ty);
                }
            }
            check_member(self, of, member).map_err(|(ty, reason)| {
                let place = BlobPlace::Member { of, index, ty };
                (place, reason)
            })?;
            was_visited = false;
            index += 1;
        }
        self.pop(TypeId::VOID, 0);
        Ok(())
    }

    /// Goes on behind that member or variable when the type on top of the stack is reached again
    /// (`env_stack_set_next_member`).
    #[doc(alias = "env_stack_set_next_member")]
    fn come_back_after(&mut self, index: usize) {
        if let Some(top) = self.stack.last_mut() {
            top.next = index + 1;
        }
    }

    /// Linux's `btf_datasec_resolve`.
    #[doc(alias = "btf_datasec_resolve")]
    fn step_section(&mut self, vertex: Vertex) -> Step {
        let of = vertex.id;
        self.mode = Mode::Open;
        for index in vertex.next..self.blob.record_or_void(of).count() {
            let raw = &self.blob.tail(of)[index * PLACED_SIZE..];
            let (var, len) = (TypeId(word(raw, 0)), word(raw, 8));
            let place = BlobPlace::VarSecinfo { of, index };
            if self.kind(var) != Kind::Var {
                return Err(Stop::Fault((place, Reason::PlacedKind)));
            }
            if self.must_visit(var) {
                self.come_back_after(index);
                return self.push(var);
            }
            let sized = self.sized(self.payload(var));
            let (_, size) = sized.ok_or((place, Reason::PlacedType))?;
            if len < size {
                return Err(Stop::Fault((place, Reason::PlacedSize)));
            }
        }
        self.pop(TypeId::VOID, 0);
        Ok(())
    }

    /// Linux's `btf_func_resolve` and `btf_func_check`.
    #[doc(alias = "btf_func_resolve")]
    #[doc(alias = "btf_func_check")]
    fn step_function(&mut self, id: TypeId) -> Step {
        let proto = self.payload(id);
        let is_proto = self.kind(proto) == Kind::FuncProto;
        self.expect(id, is_proto, Reason::TypeId)?;
        for (index, (name, ty)) in self.parameters(proto).enumerate() {
            let number = index + 1;
            let is_named = name != 0 || ty.is_void();
            self.expect(id, is_named, Reason::Parameter { number })?;
        }
        self.pop(proto, 0);
        Ok(())
    }

    /// Linux's `btf_decl_tag_resolve` and `btf_type_is_decl_tag_target`.
    #[doc(alias = "btf_decl_tag_resolve")]
    #[doc(alias = "btf_type_is_decl_tag_target")]
    fn step_declaration_tag(&mut self, id: TypeId) -> Step {
        let next = self.payload(id);
        let kind = self.kind(next);
        let can_be_tagged =
            kind.is_composite() || matches!(kind, Kind::Func | Kind::Var | Kind::Typedef);
        self.expect(id, can_be_tagged, Reason::TypeId)?;
        if self.must_visit(next) {
            return self.push(next);
        }
        let component = word(self.blob.tail(id), 0);
        if component != u32::MAX {
            let with_parts = match kind {
                Kind::Var | Kind::Typedef => {
                    return Err((BlobPlace::Type(id), Reason::Component).into());
                }
                Kind::Func => self.payload(next),
                _ => next,
            };
            let count = self.blob.record_or_void(with_parts).count();
            self.expect(id, (component as usize) < count, Reason::Component)?;
        }
        self.pop(next, 0);
        Ok(())
    }

    fn parameters(&self, proto: TypeId) -> impl Iterator<Item = (u32, TypeId)> {
        let count = self.blob.record_or_void(proto).count();
        self.blob.tail(proto)[..count * PARAM_SIZE]
            .chunks_exact(PARAM_SIZE)
            .map(|raw| (word(raw, 0), TypeId(word(raw, 4))))
    }

    /// Linux's `btf_func_proto_check`.
    #[doc(alias = "btf_func_proto_check")]
    fn check_prototype(&mut self, id: TypeId) -> Result<(), Fault> {
        let returns = self.payload(id);
        if !returns.is_void() {
            self.check_value(id, returns, Reason::ReturnType)?;
        }
        let mut params: Vec<_> = self.parameters(id).collect();
        // "And any others" stands last, without a name.
        if let Some(&(name, TypeId::VOID)) = params.last() {
            let number = params.len();
            self.expect(id, name == 0, Reason::Parameter { number })?;
            params.pop();
        }
        for (index, (name, ty)) in params.into_iter().enumerate() {
            let number = index + 1;
            let reason = Reason::Parameter { number };
            self.expect(id, self.may_be_referred_to(ty), reason)?;
            let is_name = name == 0 || self.blob.is_identifier(name);
            self.expect(id, is_name, reason)?;
            self.check_value(id, ty, reason)?;
        }
        Ok(())
    }

    /// True if a function may take or return the type.
    fn check_value(&mut self, proto: TypeId, ty: TypeId, reason: Reason) -> Result<(), Fault> {
        self.expect(proto, self.may_be_referred_to(ty), reason)?;
        if must_resolve(self.kind(ty)) && !self.is_done(ty) {
            self.resolve(ty)?;
        }
        self.expect(proto, self.sized(ty).is_some(), reason)
    }

    /// Final checks of the kernel on the resolved types (`btf_resolve_valid`).
    #[doc(alias = "btf_resolve_valid")]
    fn is_well_resolved(&self, id: TypeId) -> bool {
        if !self.is_done(id) {
            return false;
        }
        let (target, size) = (self.target(id), self.sizes[id.index()]);
        match self.kind(id) {
            Kind::Struct | Kind::Union | Kind::Datasec => target.is_void() && size == 0,
            Kind::DeclTag | Kind::Func => !target.is_void() && size == 0,
            Kind::Array => {
                let tail = self.blob.tail(id);
                let element = self.sized(TypeId(word(tail, 0)));
                element.is_some_and(|(element, each)| {
                    !self.kind(element).is_modifier() && each.wrapping_mul(word(tail, 8)) == size
                })
            }
            _ => {
                let kind = self.kind(target);
                !kind.is_modifier() && !matches!(kind, Kind::Var | Kind::Datasec)
            }
        }
    }
}

/// True if the target must be resolved before the size is known (`btf_type_needs_resolve`).
#[doc(alias = "btf_type_needs_resolve")]
fn must_resolve(kind: Kind) -> bool {
    kind.is_modifier()
        || kind.is_composite()
        || matches!(
            kind,
            Kind::Ptr | Kind::Array | Kind::Var | Kind::Func | Kind::DeclTag | Kind::Datasec
        )
}

/// True if only a specific kind may refer to the type (`btf_type_is_resolve_source_only`).
#[doc(alias = "btf_type_is_resolve_source_only")]
fn only_refers(kind: Kind) -> bool {
    matches!(kind, Kind::Var | Kind::DeclTag | Kind::Datasec)
}
