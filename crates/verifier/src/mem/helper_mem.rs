//! Memory that calls read and write: buffers of known and of bounded size.

use isa::ebpf::Reg;

use super::map_value::{self, Source};
use super::{Access, MemAccess, check_mem_access, context, object, packet, region, stack};
use crate::Result;
use crate::env::Env;
use crate::state::{RegBase, RegKind, TypeFlags};
use spec::behaviour::Behaviour;
use spec::limits;

/// A buffer that may be uninitialised, which the call writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawMem {
    /// The pointer and bytes, once an argument on the stack was found.
    pub(crate) planned: Option<(Reg, i32)>,
    /// The size of the argument at hand is no constant: it is checked as memory that is written,
    /// and the call may write less of it.
    pub(crate) has_variable_size: bool,
}

/// Checks that a call may use `size` bytes at `ptr` (`check_helper_mem_access`).
#[doc(alias = "check_helper_mem_access")]
pub(crate) fn check_helper_mem(
    env: &mut Env<'_>,
    ptr: Reg,
    size: i32,
    access: Access,
    is_zero_ok: bool,
    raw: Option<&mut RawMem>,
) -> Result<()> {
    let reg = *env.reg(ptr);
    let is_write = access == Access::Write;
    let is_rdonly = reg.flags.has(TypeFlags::MEM_RDONLY);
    match reg.kind {
        RegKind::Packet { .. } | RegKind::PacketMeta { .. } => {
            packet::check_packet_access(&mut env.sink, &reg, ptr, reg.off, size, is_zero_ok)
        }
        RegKind::MapKey { map, .. } => {
            if is_write {
                return Err(super::refuse_write(env, ptr));
            }
            let key_size = env.input.maps[map].key_size();
            region::check_region(&mut env.sink, &reg, ptr, reg.off, size, key_size, false)
        }
        RegKind::MapValue { map, .. } => {
            map_value::check_capability(env, map, reg.off, size, access)?;
            map_value::check_bounds(env, ptr, map, reg.off, size, is_zero_ok, Source::Helper)
        }
        RegKind::Mem { size: mem_size, .. } => {
            if is_rdonly && is_write {
                return Err(super::refuse_write(env, ptr));
            }
            region::check_region(
                &mut env.sink,
                &reg,
                ptr,
                reg.off,
                size,
                mem_size,
                is_zero_ok,
            )
        }
        RegKind::Buf => {
            if is_rdonly && is_write {
                return Err(super::refuse_write(env, ptr));
            }
            let what = if is_rdonly { "rdonly" } else { "rdwr" };
            region::check_buffer(&mut env.sink, &reg, ptr, reg.off, size, what)
        }
        RegKind::Stack { .. } => {
            let access = match env.input.rules.has(Behaviour::HelperReadsKeep) {
                true => access,
                false => Access::Write,
            };
            stack::check_range(env, ptr, reg.off, size, is_zero_ok, access, raw)
        }
        RegKind::BtfId { ty } if env.input.rules.has(Behaviour::TrustedPointers) => {
            object::check_ptr_to_btf_access(
                env,
                MemAccess::new(ptr, 0, size as u32, Access::Read),
                ty,
                reg.off,
            )
        }
        RegKind::Ctx if context::may_vary(env.input) => {
            let most = context::MOST_BYTES;
            region::check_region(&mut env.sink, &reg, ptr, reg.off, size, most, is_zero_ok)
        }
        RegKind::Ctx
            if env.input.context.kind.has_plain_context()
                && !env.input.rules.has(Behaviour::ContextVaries) =>
        {
            if size == 0 {
                return match is_zero_ok {
                    true => Ok(()),
                    false => Err(refuse!(env => Mem::ZeroContext)),
                };
            }
            check_mem_access(env, MemAccess::new(ptr, size - 1, 1, access))
        }
        RegKind::NotInit
        | RegKind::BtfId { .. }
        | RegKind::Scalar
        | RegKind::Ctx
        | RegKind::MapPtr { .. }
        | RegKind::PacketEnd
        | RegKind::FlowKeys
        | RegKind::Socket
        | RegKind::SockCommon
        | RegKind::TcpSock
        | RegKind::TpBuffer
        | RegKind::XdpSock
        | RegKind::Arena
        | RegKind::Func { .. }
        | RegKind::Insn { .. }
        | RegKind::ConstDynptr { .. } => {
            if is_zero_ok && size == 0 && reg.is_null() {
                return Ok(());
            }
            let expected = RegBase::PtrToStack.plain();
            Err(refuse!(env => Mem::ArgumentType { reg: ptr, kind: reg.reg_type(), expected }))
        }
    }
}

/// Checks the pair of a buffer and its size, which is in the register behind
/// (`check_mem_size_reg`).
#[doc(alias = "check_mem_size_reg")]
pub(crate) fn check_sized_mem(
    env: &mut Env<'_>,
    ptr: Reg,
    size: Reg,
    access: Access,
    is_zero_ok: bool,
    mut raw: Option<&mut RawMem>,
) -> Result<()> {
    let num = env.reg(size).num;
    refuse_if!(num.smin < 0, env => Mem::NegativeSize { reg: size });
    if !env.input.rules.has(Behaviour::ZeroSizesFirst) {
        if num.umin == 0 {
            check_helper_mem(env, ptr, 0, access, is_zero_ok, None)?;
        }
    } else if num.umin == 0 && !is_zero_ok {
        return Err(refuse!(env => Mem::ZeroSize {
            reg: size, umin: num.umin as i64, umax: num.umax as i64
        }));
    }
    refuse_if!(num.umax >= limits::VARIABLE_SIZE.into(), env => Mem::UnboundedSize { reg: size });
    if let Some(raw) = &mut raw {
        raw.has_variable_size = !num.var_off.is_const();
    }
    check_helper_mem(
        env,
        ptr,
        num.umax as i32,
        access,
        is_zero_ok,
        raw.as_deref_mut(),
    )?;
    if let Some(raw) = raw {
        raw.has_variable_size = false;
    }
    env.mark_precise(size)
}

/// Checks that a global function or a kfunc may read and write `size` bytes at `ptr`.
pub(crate) fn check_mem_reg(env: &mut Env<'_>, ptr: Reg, size: u32) -> Result<()> {
    let saved = *env.reg(ptr);
    if saved.is_null() {
        return Ok(());
    }
    if saved.may_be_null() {
        crate::flow::mark_not_null(env.input, env.state.reg_mut(ptr));
    }
    let size = size as i32;
    let result = check_helper_mem(env, ptr, size, Access::MayRead, true, None)
        .and_then(|()| check_helper_mem(env, ptr, size, Access::Write, true, None));
    if saved.may_be_null() {
        *env.reg_mut(ptr) = saved;
    }
    result
}
