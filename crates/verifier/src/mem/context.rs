//! Fields of the context: which may be read and written, and what a read yields, by the
//! registry's layouts.

use spec::behaviour::Behaviour;
use spec::programs::ProgramType;
use spec::registry::{CtxQuery, CtxRefused, KernelType, RegBase, RegType};

use super::context_btf::{self, Argument};
use super::region::{check_ptr_off, check_region};
use super::registers::set_unknown;
use super::{Access, MemAccess};
use crate::env::Env;
use crate::input::Input;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};
use crate::type_rules::TargetKind;
use crate::{Result, Stop, log};

/// True if the context may be accessed at any offset, by helpers, too (`is_var_ctx_off_allowed`).
#[doc(alias = "is_var_ctx_off_allowed")]
pub(crate) fn may_vary(input: &Input<'_>) -> bool {
    let is_of_caller = input.context.kind == ProgramType::Syscall;
    is_of_caller && input.rules.has(Behaviour::ContextVaries)
}

/// Bytes of a context that programs lay out themselves, at most.
pub(super) const MOST_BYTES: u32 = u16::MAX as u32;

/// Checks an access to the context at `off`, the pointer's offset included (`check_ctx_access`)
/// (`__check_ctx_access`).
#[doc(alias = "__check_ctx_access")]
pub(super) fn check_ctx_access(env: &mut Env<'_>, access: MemAccess, off: i32) -> Result<()> {
    let reg = *env.reg(access.ptr);
    let size = access.size;
    let (is_plain, rules) = (env.input.context.kind.has_plain_context(), env.input.rules);
    let off = match may_vary(env.input) {
        true => {
            let bytes = size as i32;
            check_region(
                &mut env.sink,
                &reg,
                access.ptr,
                off,
                bytes,
                MOST_BYTES,
                false,
            )?;
            off.wrapping_add(reg.num.umax as i32)
        }
        false => {
            let is_fixed_ok = is_plain && rules.has(Behaviour::ContextVaries);
            check_ptr_off(&mut env.sink, &reg, access.ptr, is_fixed_ok)?;
            off
        }
    };
    let query = CtxQuery {
        offset: off,
        size,
        write: access.access == Access::Write,
        signed: access.signed,
    };
    let registry = env.input.registry;
    let found = match registry.ctx_access(&env.input.context, query) {
        Ok(found) => found,
        Err(CtxRefused::Invalid) => {
            let refusal = refuse!(env => Mem::Context { off, size });
            log::verbose_linfo(env.input, &mut env.sink, "; ");
            return Err(refusal);
        }
        Err(CtxRefused::Btf) => return check_by_btf(env, access, off),
        Err(CtxRefused::OfTarget) => {
            return Err(Stop::unsupported("context of the program that is replaced"));
        }
        Err(CtxRefused::Unknown) => {
            return Err(Stop::unsupported("context layout of this program type"));
        }
    };
    note_bytes(env, off, size);
    env.insn_aux().ctx_field_size = found.field_size;
    let Some(value) = access.value else {
        return Ok(());
    };
    if access.access == Access::Write {
        return Ok(());
    }
    if found.value.base == RegBase::Scalar {
        set_unknown(env, value);
        return Ok(());
    }
    let mut pointer = pointer_of(found.value, found.btf)?;
    if pointer.may_be_null() {
        pointer.id = env.new_id();
    }
    *env.reg_mut(value) = pointer;
    Ok(())
}

/// Notes how far the program accesses its context.
fn note_bytes(env: &mut Env<'_>, off: i32, size: u32) {
    if let Some(collector) = &mut env.observers.collector {
        let end = off as u32 + size;
        collector.context_bytes = collector.context_bytes.max(end);
    }
}

/// Checks an access to the arguments of the function that the program is attached to: at most 12 of
/// eight bytes each, for reading (`__mark_reg_s32_range`). Linux lets programs of hooks write them,
/// too.
#[doc(alias = "__mark_reg_s32_range")]
fn check_by_btf(env: &mut Env<'_>, access: MemAccess, off: i32) -> Result<()> {
    const MAX_ARGS: i32 = 12;
    let size = access.size;
    let is_inside = (0..8 * MAX_ARGS).contains(&off) && off % size as i32 == 0;
    let may_write = env.input.type_rules().target == TargetKind::Hook;
    if !is_inside || (access.access == Access::Write && !may_write) {
        return Err(refuse!(env => Mem::Context { off, size }));
    }
    let found = context_btf::read(env, off, size)?;
    note_bytes(env, off, size);
    let Some(value) = access.value else {
        return Ok(());
    };
    match found {
        Argument::Scalar => set_unknown(env, value),
        // Linux 6.18 narrows what the register held before.
        Argument::ReturnedByHook(..) if !env.input.rules.has(Behaviour::HookResultsLimited) => {
            set_unknown(env, value);
        }
        Argument::ReturnedByHook(min, max) => {
            let rules = env.input.rules;
            let reg = env.reg_mut(value);
            if rules.has(Behaviour::HookResultsReset) {
                *reg = RegState::UNKNOWN;
            }
            reg.num.s32_min = reg.num.s32_min.max(min);
            reg.num.s32_max = reg.num.s32_max.min(max);
            reg.num.smin = reg.num.smin.max(min.into());
            reg.num.smax = reg.num.smax.min(max.into());
            reg.num.sync(rules);
            reg.kind = RegKind::Scalar;
        }
        Argument::Pointer(mut pointer) => {
            if !env.input.rules.has(Behaviour::TrustedPointers) {
                pointer.flags = pointer.flags.without(TypeFlags::PTR_TRUSTED);
            }
            if pointer.may_be_null() {
                pointer.id = env.new_id();
            }
            *env.reg_mut(value) = pointer;
        }
    }
    Ok(())
}

/// The pointer without offset that a field of this type holds.
pub(super) fn pointer_of(value: RegType, btf: Option<&KernelType>) -> Result<RegState> {
    let kind = match value.base {
        RegBase::PtrToCtx => RegKind::Ctx,
        RegBase::PtrToPacket => RegKind::Packet { range: 0 },
        RegBase::PtrToPacketMeta => RegKind::PacketMeta { range: 0 },
        RegBase::PtrToPacketEnd => RegKind::PacketEnd,
        RegBase::PtrToFlowKeys => RegKind::FlowKeys,
        RegBase::PtrToSocket => RegKind::Socket,
        RegBase::PtrToSockCommon => RegKind::SockCommon,
        RegBase::PtrToTcpSock => RegKind::TcpSock,
        RegBase::PtrToTpBuffer => RegKind::TpBuffer,
        RegBase::PtrToXdpSock => RegKind::XdpSock,
        RegBase::PtrToBuf => RegKind::Buf,
        RegBase::PtrToBtfId => RegKind::BtfId {
            ty: TypeRef::vmlinux(btf.map_or(0, |ty| ty.btf_id)),
        },
        RegBase::NotInit
        | RegBase::Scalar
        | RegBase::ConstPtrToMap
        | RegBase::PtrToMapValue
        | RegBase::PtrToMapKey
        | RegBase::PtrToStack
        | RegBase::PtrToMem
        | RegBase::PtrToArena
        | RegBase::PtrToFunc
        | RegBase::PtrToInsn
        | RegBase::ConstPtrToDynptr => {
            let what = format!("context field of type {:?}", value.base);
            return Err(Stop::unsupported(what));
        }
    };
    Ok(RegState::pointer(kind, value.flags))
}
