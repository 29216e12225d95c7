//! Atomic instructions: read-modify-write, load-acquire, store-release.

use isa::ebpf::{AtomicOp, Insn, Reg};
use spec::behaviour::Behaviour;

use super::{
    Access, MemAccess, check_load, check_mem_access, check_store, is_pointer_value, save_ptr_type,
};
use crate::env::{Check, Env, RegArg};
use crate::state::{RegKind, RegRules, RegState, TypeFlags};
use crate::{Result, Stop};

/// Checks an atomic instruction (`check_atomic`) (`check_atomic_load`, `check_atomic_store`).
#[doc(alias = "check_atomic_load")]
#[doc(alias = "check_atomic_store")]
pub(super) fn check_atomic(env: &mut Env<'_>, insn: Insn) -> Result<()> {
    match insn {
        Insn::Atomic {
            op,
            size,
            base,
            off,
            src,
        } => check_rmw(env, insn, op, size.bytes(), base, off, src),
        Insn::LoadAcquire {
            size,
            dst,
            base,
            off,
        } => {
            if env.input.rules.has(Behaviour::AtomicLoadsPlaced) {
                env.check_reg_arg(base, RegArg::Src)?;
                if !is_pointer_ok(env.reg(base), insn) {
                    return Err(refuse_pointer(env, base, "loads from"));
                }
                return check_load(env, size.bytes(), false, dst, base, off, true, false);
            }
            check_load(env, size.bytes(), false, dst, base, off, true, false)?;
            if !is_pointer_ok(env.reg(base), insn) {
                return Err(refuse_pointer(env, base, "loads from"));
            }
            Ok(())
        }
        Insn::StoreRelease {
            size,
            base,
            off,
            src,
        } => {
            check_store(env, size.bytes(), base, off, Some(src), true)?;
            if !is_pointer_ok(env.reg(base), insn) {
                return Err(refuse_pointer(env, base, "stores into"));
            }
            Ok(())
        }
        _ => Err(Stop::Bug(format!("{insn:?} is no access to memory"))),
    }
}

/// Checks a read-modify-write instruction (`check_atomic_rmw`).
#[doc(alias = "check_atomic_rmw")]
#[allow(clippy::too_many_arguments)]
fn check_rmw(
    env: &mut Env<'_>,
    insn: Insn,
    op: AtomicOp,
    size: u32,
    base: Reg,
    off: i16,
    src: Reg,
) -> Result<()> {
    env.check_reg_arg(src, RegArg::Src)?;
    env.check_reg_arg(base, RegArg::Src)?;
    if op == AtomicOp::CmpXchg {
        env.check_reg_arg(Reg::R0, RegArg::Src)?;
        if is_pointer_value(env, Reg::R0) {
            return Err(refuse_leak(env, Reg::R0));
        }
    }
    if is_pointer_value(env, src) {
        return Err(refuse_leak(env, src));
    }
    if !is_pointer_ok(env.reg(base), insn) {
        return Err(refuse_pointer(env, base, "stores into"));
    }
    let loaded = op.receiver(src);
    if let Some(loaded) = loaded {
        env.check_reg_arg(loaded, RegArg::Dst)?;
    }
    let access = MemAccess {
        strict: true,
        ..MemAccess::new(base, off.into(), size, Access::Read)
    };
    check_mem_access(env, access)?;
    if loaded.is_some() {
        check_mem_access(
            env,
            MemAccess {
                value: loaded,
                ..access
            },
        )?;
    }
    if env.reg(base).kind == RegKind::Arena {
        let ty = env.reg(base).reg_type();
        save_ptr_type(env, ty, false)?;
    }
    check_mem_access(
        env,
        MemAccess {
            access: Access::Write,
            ..access
        },
    )
}

/// True if atomic instructions may use the pointer (`atomic_ptr_type_ok`, `is_arena_reg`).
#[doc(alias = "atomic_ptr_type_ok")]
#[doc(alias = "is_arena_reg")]
fn is_pointer_ok(reg: &RegState, insn: Insn) -> bool {
    if reg.kind == RegKind::Arena && !is_compiled_for_arenas(insn) {
        return false;
    }
    let is_plain = reg.flags == TypeFlags::NONE;
    !is_plain || RegRules::of(reg.kind.base()).takes_atomics
}

/// True for atomic instructions that the JIT compiler of x86-64 has for arenas, where it cannot
/// compile a loop of compare and exchange (`bpf_jit_supports_insn`).
#[doc(alias = "bpf_jit_supports_insn")]
const fn is_compiled_for_arenas(insn: Insn) -> bool {
    match insn {
        Insn::Atomic { op, .. } => !matches!(
            op,
            AtomicOp::And { fetch: true }
                | AtomicOp::Or { fetch: true }
                | AtomicOp::Xor { fetch: true }
        ),
        _ => true,
    }
}

fn refuse_leak(env: &mut Check<'_>, reg: Reg) -> Stop {
    refuse!(env => Mem::LeaksAddressAtomic { reg: reg })
}

fn refuse_pointer(env: &mut Check<'_>, base: Reg, what: &str) -> Stop {
    let kind = env.reg(base).reg_type();
    refuse!(env => Mem::Atomic { what, reg: base, kind })
}
