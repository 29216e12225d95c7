//! Lists and trees: heads, roots and nodes as arguments, nodes as results, and objects that a
//! list or tree owns from a call on.

use btf::fields::{FieldKind, SpecialField};
use btf::{Btf, Shape, TypeId};
use spec::behaviour::Behaviour;
use spec::registry::{SpecialKfunc, TypeFlags};

use super::{Callee, alloc};
use crate::call::REGS;
use crate::call::lock::{holds_field, in_rbtree_callback, owner};
use crate::call::meta::CallMeta;
use crate::call::reference;
use crate::env::Check;
use crate::state::{RegKind, RegState, TypeRef};
use crate::{Errno, Result, Stop, refuse, refuse_if, verbose};

/// Offset of a lock in messages about objects without one (`-EINVAL`).
const NO_LOCK: i64 = -(Errno::EINVAL.0 as i64);

/// Checks the head of a list or the root of a tree, whose lock must be held
/// (`__process_kf_arg_ptr_to_graph_root`, `process_kf_arg_ptr_to_list_head`,
/// `process_kf_arg_ptr_to_rbtree_root`).
#[doc(alias = "__process_kf_arg_ptr_to_graph_root")]
#[doc(alias = "process_kf_arg_ptr_to_list_head")]
#[doc(alias = "process_kf_arg_ptr_to_rbtree_root")]
pub(super) fn check_root(
    env: &mut Check<'_>,
    index: usize,
    kind: FieldKind,
    meta: &mut CallMeta,
) -> Result<()> {
    let ptr = REGS[index];
    let reg = *env.reg(ptr);
    refuse_if!(!holds_field(&reg), env => Call::NotRootOwner { index });
    if reg.is_allocated() {
        alloc::check_referenced(env, &reg)?;
    }
    let Some(var_off) = reg.num.as_const() else {
        return Err(refuse!(env => Call::FieldVariable { reg: ptr, name: kind }));
    };
    let off = (reg.off as u32).wrapping_add(var_off as u32);
    let record = env.input.record_of(&reg);
    let Some((record, field)) =
        record.and_then(|record| Some((record, record.field_at(kind, off)?)))
    else {
        return Err(refuse!(env => Call::FieldNotFound { name: kind, off }));
    };
    if !is_locked(env, &reg) {
        let lock = record.offset_of(FieldKind::SpinLock);
        let lock = lock.map_or(NO_LOCK, i64::from);
        return Err(refuse!(env => Call::LockNotHeld { lock, name: kind }));
    }
    meta.root = Some(*field);
    Ok(())
}

/// True if the lock in the object that a register points to is held (`check_reg_allocation_locked`,
/// `find_lock_state`).
#[doc(alias = "check_reg_allocation_locked")]
#[doc(alias = "find_lock_state")]
fn is_locked(env: &mut Check<'_>, reg: &RegState) -> bool {
    if env.state.active_locks == 0 {
        return false;
    }
    let owner = owner(reg);
    let mut held = env.state.refs.iter();
    let is_held = held.any(|held| held.kind.is_lock() && held.id == reg.id && held.owner == owner);
    if !is_held {
        verbose!(
            env.sink,
            "held lock and object are not in the same allocation\n"
        );
    }
    is_held
}

/// Checks the node of a list or tree (`process_kf_arg_ptr_to_list_node`,
/// `process_kf_arg_ptr_to_rbtree_node`).
#[doc(alias = "process_kf_arg_ptr_to_list_node")]
#[doc(alias = "process_kf_arg_ptr_to_rbtree_node")]
pub(super) fn check_node(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    index: usize,
    kind: FieldKind,
    meta: &mut CallMeta,
) -> Result<()> {
    let reg = *env.reg(REGS[index]);
    let may_be_in_list = callee.params[index].1.ends_with(b"__nonown_allowed");
    let is_in_list = may_be_in_list && reg.is_non_owning() && reg.ref_obj_id == 0;
    if kind == FieldKind::ListNode && is_in_list {
        return check_place(env, index, kind, meta);
    }
    if kind == FieldKind::ListNode || callee.is(SpecialKfunc::RbtreeAdd) {
        let is_object = matches!(reg.kind, RegKind::BtfId { .. });
        if !is_object || reg.flags != TypeFlags::MEM_ALLOC {
            return Err(refuse!(env => Call::NotAllocated { index }));
        }
        alloc::check_referenced(env, &reg)?;
    } else {
        let kfunc = &callee.kfunc.name;
        let is_held = reg.ref_obj_id != 0;
        if !env.input.rules.has(Behaviour::NodesOwnedOrNot) {
            refuse_if!(!reg.is_non_owning() || is_held, env => Call::NodeOwned);
        } else if !reg.is_non_owning() && !is_held {
            return Err(refuse!(env => Call::NodeNotOwned { kfunc }));
        }
        refuse_if!(in_rbtree_callback(env.input, &env.state), env => Call::NotInCallback { kfunc });
    }
    check_place(env, index, kind, meta)
}

/// Checks that a node is the one of what the root contains
/// (`__process_kf_arg_ptr_to_graph_node`).
#[doc(alias = "__process_kf_arg_ptr_to_graph_node")]
fn check_place(
    env: &mut Check<'_>,
    index: usize,
    kind: FieldKind,
    meta: &mut CallMeta,
) -> Result<()> {
    let ptr = REGS[index];
    let reg = *env.reg(ptr);
    let Some(var_off) = reg.num.as_const() else {
        return Err(refuse!(env => Call::FieldVariable { reg: ptr, name: kind }));
    };
    let off = (reg.off as u32).wrapping_add(var_off as u32);
    let record = env.input.record_of(&reg);
    let is_node = record.is_some_and(|record| record.field_at(kind, off).is_some());
    let (RegKind::BtfId { ty }, true) = (reg.kind, is_node) else {
        return Err(refuse!(env => Call::FieldNotFound { name: kind, off }));
    };
    let Some(root) = meta.root else {
        return Err(Stop::Bug("a node without a root".into()));
    };
    let contained = TypeRef::program(root.target.0);
    let wanted = env.input.type_name(contained);
    let wanted_off = root.node;
    if !env.input.has_prefix(&mut env.sink, ty, contained, 0, true) {
        let (root, given) = (root.kind, env.input.type_name(ty));
        return Err(refuse!(env => Call::OtherNode {
            root, node: kind, wanted_off, wanted, off, given
        }));
    }
    refuse_if!(off != wanted_off, env => Call::NodeOffset { off, node: kind, wanted_off, wanted });
    meta.object = Some(ty);
    Ok(())
}

/// The object that an argument puts into a list or tree: what the program keeps of it are
/// pointers that the owner's lock protects (`ref_convert_owning_non_owning`). False if the program
/// does not hold it.
#[doc(alias = "ref_convert_owning_non_owning")]
pub(super) fn give_away(env: &mut Check<'_>, id: u32) -> bool {
    if !reference::release_only(&mut env.state, id) {
        return false;
    }
    let input = env.input;
    env.state.for_each_reg_mut(
        |reg| reg.ref_obj_id == id,
        |reg| {
            reg.ref_obj_id = 0;
            reg.flags = reg.flags | non_owning(input, reg);
        },
    );
    true
}

/// Flags of a pointer to an object that a list or tree owns (`ref_set_non_owning`).
#[doc(alias = "ref_set_non_owning")]
pub(in crate::call) fn non_owning(input: &crate::input::Input<'_>, reg: &RegState) -> TypeFlags {
    let record = input.record_of(reg);
    match record.is_some_and(|record| record.has(FieldKind::Refcount)) {
        true => TypeFlags::NON_OWN_REF.with(TypeFlags::MEM_RCU),
        false => TypeFlags::NON_OWN_REF,
    }
}

/// A pointer to the node of what a root contains (`mark_reg_graph_node`).
#[doc(alias = "mark_reg_graph_node")]
pub(in crate::call) fn node(root: &SpecialField) -> RegState {
    let kind = RegKind::BtfId {
        ty: TypeRef::program(root.target.0),
    };
    let mut node = RegState::pointer(kind, TypeFlags::MEM_ALLOC);
    node.off = root.node as i32;
    node
}

/// True for the structures of nodes, pointers to which are nodes of the root among the arguments
/// (`is_list_node_type`, `is_rbtree_node_type`).
#[doc(alias = "is_list_node_type")]
#[doc(alias = "is_rbtree_node_type")]
pub(super) fn is_node(btf: &Btf<'_>, target: TypeId) -> bool {
    let ty = btf.at(target);
    let kind = FieldKind::of_structure(ty.name());
    matches!(ty.shape(), Shape::Struct(_)) && kind.is_some_and(FieldKind::is_node)
}
