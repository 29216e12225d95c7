//! Loads, stores, atomics and legacy packet loads.
//!
//! One file per kind of pointer. `check_mem_access` is the one way to memory: it
//! checks alignment first, then dispatches on the kind of pointer, then narrows what a
//! load of less than eight bytes yields. Helpers' buffers take `helper_mem`.
//!
//! | file | contents |
//! |---|---|
//! | `align` | alignment |
//! | `stack` | spills, fills, data on the stack |
//! | `map_value` | values and keys of maps, special fields, constants of read-only maps |
//! | `kptr` | pointers to objects in map values |
//! | `packet` | packet data, metadata, legacy packet loads |
//! | `context` | fields of the context |
//! | `context_btf` | contexts typed by BTF |
//! | `socket` | fields of sockets |
//! | `object` | kernel objects by BTF, and maps as objects |
//! | `alloc` | objects that programs allocate |
//! | `region` | bounds of regions of known size |
//! | `atomic` | atomic instructions |
//! | `helper_mem` | buffers of helpers |
//! | `registers` | writing registers |

pub(crate) mod align;
mod alloc;
mod atomic;
pub(crate) mod context;
mod context_btf;
pub(crate) mod helper_mem;
pub(crate) mod kptr;
pub(crate) mod map_value;
pub(crate) mod object;
pub(crate) mod packet;
pub(crate) mod region;
pub(crate) mod registers;
mod socket;
pub(crate) mod stack;

use isa::ebpf::{Insn, Operand, Reg};
use spec::behaviour::Behaviour;
use spec::limits;

use crate::Result;
use crate::env::{Check, Env, RegArg};
use crate::state::{RegBase, RegKind, RegRules, RegState, RegType, TypeFlags};

pub(crate) use align::check_ptr_alignment;
pub(crate) use packet::{check_ld_abs, check_skb_loads};

use registers::set_unknown;

/// Bytes of stack of a frame (`MAX_BPF_STACK`).
pub(crate) const MAX_STACK: i64 = limits::STACK as i64;
/// Offset of the end of a frame from its frame pointer.
pub(crate) const STACK_END: i32 = -(limits::STACK as i32);
/// Variable offsets must stay below this (`BPF_MAX_VAR_OFF`).
pub(crate) const MAX_VAR_OFF: i64 = limits::VARIABLE_OFFSET as i64;
/// Bytes of `struct bpf_flow_keys`.
const FLOW_KEYS_SIZE: i64 = 56;

/// What happens to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is read.
    Read,
    /// A global function or a kfunc may read it.
    MayRead,
    /// It is written.
    Write,
}

/// One access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemAccess {
    /// The pointer.
    pub(crate) ptr: Reg,
    /// Offset of the instruction.
    pub(crate) off: i32,
    /// Bytes.
    pub(crate) size: u32,
    /// Read or written.
    pub(crate) access: Access,
    /// The register that is stored or loaded into; `None` if nothing is known of the
    /// value.
    pub(crate) value: Option<Reg>,
    /// Demands alignment whatever the processor allows.
    pub(crate) strict: bool,
    /// A sign-extending load.
    pub(crate) signed: bool,
}

impl MemAccess {
    /// An access of which no register is loaded or stored.
    pub(crate) const fn new(ptr: Reg, off: i32, size: u32, access: Access) -> MemAccess {
        MemAccess {
            ptr,
            off,
            size,
            access,
            value: None,
            strict: false,
            signed: false,
        }
    }
}

/// Checks a load, store or atomic instruction.
pub(crate) fn check_mem_insn(env: &mut Env<'_>, insn: Insn) -> Result<()> {
    match insn {
        Insn::Load {
            size,
            signed,
            dst,
            base,
            off,
        } => check_load(env, size.bytes(), signed, dst, base, off, false, true),
        Insn::Store {
            size,
            base,
            off,
            src,
        } => {
            let value = match src {
                Operand::Reg(src) => Some(src),
                Operand::Imm(_) => None,
            };
            let allows = env.input.rules.has(Behaviour::ConstantsToContext);
            if value.is_none() && !allows && matches!(env.reg(base).kind, RegKind::Ctx) {
                let kind = env.reg(base).reg_type();
                return Err(refuse!(env => Mem::ConstantToContext { reg: base, kind }));
            }
            check_store(env, size.bytes(), base, off, value, false)
        }
        _ => atomic::check_atomic(env, insn),
    }
}

/// Checks a load (`check_load_mem`).
#[doc(alias = "check_load_mem")]
#[allow(clippy::too_many_arguments)]
fn check_load(
    env: &mut Env<'_>,
    size: u32,
    signed: bool,
    dst: Reg,
    base: Reg,
    off: i16,
    strict: bool,
    allow_trust_mismatch: bool,
) -> Result<()> {
    env.check_reg_arg(base, RegArg::Src)?;
    env.check_reg_arg(dst, RegArg::DstNoMark)?;
    let ty = env.reg(base).reg_type();
    check_mem_access(
        env,
        MemAccess {
            value: Some(dst),
            strict,
            signed,
            ..MemAccess::new(base, off.into(), size, Access::Read)
        },
    )?;
    save_ptr_type(env, ty, allow_trust_mismatch)
}

/// Checks a store of a register, or of an immediate if there is no `value`
/// (`check_store_reg`).
#[doc(alias = "check_store_reg")]
fn check_store(
    env: &mut Env<'_>,
    size: u32,
    base: Reg,
    off: i16,
    value: Option<Reg>,
    strict: bool,
) -> Result<()> {
    if let Some(value) = value {
        env.check_reg_arg(value, RegArg::Src)?;
    }
    env.check_reg_arg(base, RegArg::Src)?;
    let ty = env.reg(base).reg_type();
    check_mem_access(
        env,
        MemAccess {
            value,
            strict,
            ..MemAccess::new(base, off.into(), size, Access::Write)
        },
    )?;
    save_ptr_type(env, ty, false)
}

/// True if the register holds what unprivileged programs may not disclose (`is_pointer_value`)
/// (`__is_pointer_value`).
#[doc(alias = "__is_pointer_value")]
pub(crate) fn is_pointer_value(env: &Check<'_>, reg: Reg) -> bool {
    !env.input.allow_ptr_leaks && !env.reg(reg).is_scalar()
}

/// Checks an access to memory and writes the register that is loaded (`check_mem_access`)
/// (`check_flow_keys_access`).
#[doc(alias = "check_flow_keys_access")]
pub(crate) fn check_mem_access(env: &mut Env<'_>, access: MemAccess) -> Result<()> {
    let MemAccess {
        ptr,
        size,
        access: direction,
        value,
        ..
    } = access;
    let reg = *env.reg(ptr);
    let bytes = size as i32;
    let is_read = direction == Access::Read;
    check_ptr_alignment(
        env.input,
        &mut env.sink,
        &reg,
        access.off,
        size,
        access.strict,
    )?;
    let off = access.off.wrapping_add(reg.off);
    // A stored pointer must not become readable to others.
    let leaks = !is_read && value.is_some_and(|value| is_pointer_value(env, value));
    let takes_modifiers = matches!(
        reg.kind,
        RegKind::Mem { .. } | RegKind::BtfId { .. } | RegKind::Buf
    );
    let may_be_null = reg.may_be_null()
        && (reg.kind != RegKind::Buf || env.input.rules.has(Behaviour::NullableBuffers));
    if may_be_null || !takes_modifiers && !reg.flags.is_empty() {
        return Err(refuse_type(env, ptr));
    }
    match reg.kind {
        RegKind::MapKey { map, .. } => {
            refuse_if!(!is_read, env => Mem::WriteToKey { reg: ptr });
            let key_size = env.input.maps[map].key_size();
            region::check_region(&mut env.sink, &reg, ptr, off, bytes, key_size, false)?;
            load_unknown(env, value);
        }
        RegKind::MapValue { map, .. } => {
            if leaks {
                return Err(refuse_leak(env, value, "map"));
            }
            map_value::check_map_access(env, access, map, off)?;
        }
        RegKind::Mem { size: mem_size, .. } => {
            let is_rdonly = reg.flags.has(TypeFlags::MEM_RDONLY);
            if !is_read && is_rdonly {
                return Err(refuse_write(env, ptr));
            }
            if leaks {
                return Err(refuse_leak(env, value, "mem"));
            }
            if !(is_rdonly && reg.flags.has(TypeFlags::PTR_UNTRUSTED)) {
                region::check_region(&mut env.sink, &reg, ptr, off, bytes, mem_size, false)?;
            }
            if is_read || is_rdonly {
                load_unknown(env, value);
            }
        }
        RegKind::Ctx => {
            if leaks {
                return Err(refuse_leak(env, value, "ctx"));
            }
            context::check_ctx_access(env, access, off)?;
        }
        RegKind::Stack { .. } => {
            stack::check_bounds(env, ptr, off, bytes, direction, false)?;
            match direction {
                Access::Read | Access::MayRead => stack::check_read(env, ptr, off, size, value)?,
                Access::Write => stack::check_write(env, ptr, off, size, value)?,
            }
        }
        RegKind::Packet { .. } | RegKind::PacketMeta { .. } => {
            if !is_read && !packet::may_access(env, None, Access::Write) {
                return Err(refuse!(env => Mem::PacketReadOnly));
            }
            if leaks {
                return Err(refuse_leak(env, value, "packet"));
            }
            packet::check_packet_access(&mut env.sink, &reg, ptr, off, bytes, false)?;
            if is_read {
                load_unknown(env, value);
            }
        }
        RegKind::FlowKeys => {
            if leaks {
                return Err(refuse_leak(env, value, "flow keys"));
            }
            if off < 0 || i64::from(off) + i64::from(size) > FLOW_KEYS_SIZE {
                return Err(refuse!(env => Mem::FlowKeys { off, size }));
            }
            if is_read {
                load_unknown(env, value);
            }
        }
        RegKind::Socket | RegKind::SockCommon | RegKind::TcpSock | RegKind::XdpSock => {
            if !is_read {
                return Err(refuse_write(env, ptr));
            }
            socket::check_sock_access(env.input, &mut env.sink, &reg, access, off)?;
            load_unknown(env, value);
        }
        RegKind::TpBuffer => {
            region::check_buffer(&mut env.sink, &reg, ptr, off, bytes, "tracepoint")?;
            if is_read {
                load_unknown(env, value);
            }
        }
        RegKind::BtfId { ty } => {
            object::check_ptr_to_btf_access(env, access, ty, off)?;
        }
        RegKind::MapPtr { map, .. } => {
            object::check_ptr_to_map_access(env, access, map, off)?;
        }
        RegKind::Buf => {
            let is_rdonly = reg.flags.has(TypeFlags::MEM_RDONLY);
            if is_rdonly && !is_read {
                return Err(refuse_write(env, ptr));
            }
            let what = if is_rdonly { "rdonly" } else { "rdwr" };
            region::check_buffer(&mut env.sink, &reg, ptr, off, bytes, what)?;
            if is_rdonly || is_read {
                load_unknown(env, value);
            }
        }
        RegKind::Arena => {
            if is_read {
                load_unknown(env, value);
            }
        }
        RegKind::NotInit
        | RegKind::Scalar
        | RegKind::PacketEnd
        | RegKind::Func { .. }
        | RegKind::Insn { .. }
        | RegKind::ConstDynptr { .. } => return Err(refuse_type(env, ptr)),
    }
    if let Some(value) = value
        && is_read
        && size < 8
        && env.reg(value).is_scalar()
    {
        let rules = env.input.rules;
        let num = &mut env.reg_mut(value).num;
        if access.signed {
            num.sign_extend64(size);
        } else {
            num.truncate(size, rules);
        }
    }
    Ok(())
}

fn load_unknown(env: &mut Check<'_>, value: Option<Reg>) {
    if let Some(value) = value {
        set_unknown(env, value);
    }
}

fn refuse_leak(env: &mut Check<'_>, value: Option<Reg>, where_to: &str) -> crate::Stop {
    let number = value.map_or(0, Reg::number);
    refuse!(env => Mem::LeaksAddress { reg: number, where_to })
}

fn refuse_type(env: &mut Check<'_>, ptr: Reg) -> crate::Stop {
    let reg = *env.reg(ptr);
    let kind = reg.reg_type();
    if reg.may_be_null() {
        return refuse!(env => Mem::MaybeNull { reg: ptr, kind });
    }
    refuse!(env => Mem::NotMemory { reg: ptr, kind })
}

fn refuse_write(env: &mut Check<'_>, ptr: Reg) -> crate::Stop {
    let kind = env.reg(ptr).reg_type();
    refuse!(env => Mem::ReadOnly { reg: ptr, kind })
}

/// Notes the type of the pointer that the instruction goes through; refuses a type that needs
/// another rewriting than on an earlier path (`save_aux_ptr_type`, `reg_type_mismatch`,
/// `is_ptr_to_mem_or_btf_id`, `is_ptr_to_mem`).
#[doc(alias = "save_aux_ptr_type")]
#[doc(alias = "reg_type_mismatch")]
#[doc(alias = "is_ptr_to_mem_or_btf_id")]
#[doc(alias = "is_ptr_to_mem")]
pub(crate) fn save_ptr_type(
    env: &mut Check<'_>,
    ty: RegType,
    allow_trust_mismatch: bool,
) -> Result<()> {
    const TRUST: TypeFlags = TypeFlags::PTR_UNTRUSTED.with(TypeFlags::MEM_RDONLY);
    let noted = &mut env.insn_aux().ptr_type;
    let Some(before) = *noted else {
        *noted = Some(ty);
        return Ok(());
    };
    let bases = [ty.base, before.base];
    let is_rewritten = |base| RegRules::of(base).is_rewritten;
    if ty == before || !bases.into_iter().any(is_rewritten) {
        return Ok(());
    }
    let is_mem_or_btf = |base| matches!(base, RegBase::PtrToMem | RegBase::PtrToBtfId);
    if allow_trust_mismatch && bases.into_iter().all(is_mem_or_btf) {
        let base = match bases.contains(&RegBase::PtrToMem) {
            true => RegBase::PtrToMem,
            false => RegBase::PtrToBtfId,
        };
        *noted = Some(base.with((ty.flags | before.flags).and(TRUST)));
        return Ok(());
    }
    Err(refuse!(env => Mem::MixedPointers))
}

/// Invalidates every register and spilled register for which `wanted` is true.
pub(crate) fn invalidate_where(env: &mut Check<'_>, wanted: impl Fn(&RegState) -> bool) {
    let invalid = registers::invalid(env.input);
    env.state.for_each_reg_mut(wanted, |reg| *reg = invalid);
}

#[cfg(test)]
mod tests;
