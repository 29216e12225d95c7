//! Calls of kernel functions: availability, arguments, effects, result, in the kernel's
//! order (`check_kfunc_call`).
//!
//! Kfuncs that take dynptrs, iterators, allocated objects, lists, trees, work queues, IRQ
//! flags or callbacks are unsupported.

mod args;
mod returns;

use btf::{Btf, Shape, TypeId};
use isa::ebpf::Reg;
use spec::bits::BitOp;
use spec::registry::{Kfunc, KfuncFlags, SpecialKfunc, TypeFlags};

use super::{clear_caller_saved, leak, reference};
use crate::domain::Scalar;
use crate::env::{Outcome, VerifierEnv};
use crate::mem::packet;
use crate::{Result, Stop, refuse};

/// A kfunc with its prototype.
struct Callee<'e> {
    /// Registry entry.
    kfunc: &'e Kfunc,
    /// Types of the kernel.
    btf: &'e Btf<'static>,
    /// Types and names of its parameters.
    params: Vec<(TypeId, Vec<u8>)>,
    /// Type that it returns.
    returns: TypeId,
}

impl Callee<'_> {
    fn has(&self, flag: KfuncFlags) -> bool {
        self.kfunc.flags.has(flag)
    }

    fn is(&self, special: SpecialKfunc) -> bool {
        self.kfunc.special == Some(special)
    }

    fn unsupported(&self) -> Stop {
        Stop::unsupported(format!("kfunc {}", self.kfunc.name))
    }
}

/// Facts from the arguments of a call (kernel: `struct bpf_kfunc_call_arg_meta`)
/// (`bpf_kfunc_call_arg_meta`).
#[doc(alias = "bpf_kfunc_call_arg_meta")]
#[derive(Debug, Default)]
struct Meta {
    /// The constant among the arguments.
    constant: Option<u64>,
    /// Bytes of the memory that is returned.
    result_size: Option<u32>,
    /// The memory that is returned may only be read.
    is_result_rdonly: bool,
    /// The reference among the arguments.
    ref_obj_id: u32,
    /// The register whose reference is released.
    release: Option<Reg>,
}

/// Checks a call of a kernel function.
pub(super) fn check_kfunc_call(env: &mut VerifierEnv<'_>, id: i32, module: i16) -> Result<Outcome> {
    if id == 0 {
        return Ok(Outcome::Next);
    }
    let (btf, kfunc) = find(env, id, module)?;
    let (kind, attach) = (env.input.context.kind, env.input.context.attach);
    let Some(kfunc) = kfunc.filter(|kfunc| kfunc.is_for(kind, attach)) else {
        let name = name_of(env, btf, id);
        return Err(refuse!(env => Call::KfuncNotAllowed { name }));
    };
    let name = &*kfunc.name;
    if kfunc.special == Some(SpecialKfunc::Trap) {
        return Err(refuse!(env => Call::Trap));
    }
    if kfunc.flags.has(KfuncFlags::SLEEPABLE) && !env.state.in_sleepable {
        return Err(refuse!(env => Call::SleepableKfunc { name }));
    }
    let callee = callee(btf, kfunc, id)?;
    let meta = args::check_kfunc_args(env, &callee)?;
    change_sections(env, &callee)?;
    release(env, &callee, &meta, id)?;
    let throws = kfunc.special == Some(SpecialKfunc::Throw);
    // The default callback returns the cookie.
    if throws && env.analysis.exception_callback.is_none() {
        crate::flow::check_thrown(env)?;
    }
    clear_caller_saved(env)?;
    returns::set_result(env, &callee, &meta)?;
    if kfunc.special.is_some_and(SpecialKfunc::changes_packet) {
        packet::clear_pointers(env);
    }
    if throws {
        leak::check_resource_leak(env, true, true, "bpf_throw")?;
        return Ok(Outcome::Exit);
    }
    if let Some(most) = most(env, id, module) {
        env.reg_mut(Reg::R0).num = Scalar::up_to(most);
    }
    env.mark_scratched(Reg::R0);
    Ok(Outcome::Next)
}

/// Largest result of a bit operation that has one.
fn most(env: &VerifierEnv<'_>, id: i32, module: i16) -> Option<u64> {
    let index = usize::try_from(module).ok()?.checked_sub(1)?;
    BitOp::from_func(env.input.modules.get(index)?, id)?.most()
}

/// The BTF that has a kernel function, that of vmlinux or of a module, and the function as a
/// kfunc (`fetch_kfunc_meta`).
#[doc(alias = "fetch_kfunc_meta")]
fn find<'e>(
    env: &VerifierEnv<'e>,
    id: i32,
    module: i16,
) -> Result<(Option<&'e Btf<'static>>, Option<&'e Kfunc>)> {
    let input = env.input;
    if module == 0 {
        return Ok((input.vmlinux, input.registry.kfunc(id as u32)));
    }
    let index = usize::try_from(module)
        .ok()
        .and_then(|at| at.checked_sub(1));
    match index.and_then(|at| input.modules.get(at)) {
        Some(module) if module.kfuncs.is_some() => {
            Ok((Some(&*module.btf), module.kfunc(id as u32)))
        }
        _ => Err(Stop::unsupported("kfunc of a kernel module")),
    }
}

/// The prototype of a kfunc whose calls are supported, by the BTF that has it.
fn callee<'e>(btf: Option<&'e Btf<'static>>, kfunc: &'e Kfunc, id: i32) -> Result<Callee<'e>> {
    let unsupported = || Stop::unsupported(format!("kfunc {}", kfunc.name));
    let btf = btf.ok_or_else(unsupported)?;
    const ITERATORS: KfuncFlags = KfuncFlags::ITER_NEW
        .with(KfuncFlags::ITER_NEXT)
        .with(KfuncFlags::ITER_DESTROY);
    let is_unsupported = kfunc.special.is_some_and(SpecialKfunc::is_unsupported);
    if kfunc.flags.has_any(ITERATORS) || is_unsupported {
        return Err(unsupported());
    }
    let func = btf.get(TypeId(id as u32)).map(|ty| ty.shape());
    let Some(Shape::Func(func)) = func else {
        return Err(unsupported());
    };
    let Some(Shape::Proto(proto)) = btf.get(func.proto).map(|ty| ty.shape()) else {
        return Err(unsupported());
    };
    let params = proto.params().map(|param| {
        let name = btf.string(param.name).as_bytes().to_vec();
        (param.ty, name)
    });
    Ok(Callee {
        kfunc,
        btf,
        params: params.collect(),
        returns: proto.returns,
    })
}

/// Enters and leaves RCU and non-preemptible sections, and refuses what may sleep inside.
fn change_sections(env: &mut VerifierEnv<'_>, callee: &Callee<'_>) -> Result<()> {
    let name = &callee.kfunc.name;
    let sleepable = callee.has(KfuncFlags::SLEEPABLE);
    let locks = callee.is(SpecialKfunc::RcuReadLock);
    let unlocks = callee.is(SpecialKfunc::RcuReadUnlock);
    if env.state.active_rcu_lock {
        if locks {
            return Err(refuse!(env => Call::NestedRcuLock { name }));
        }
        if unlocks {
            invalidate_rcu_pointers(env);
            env.state.active_rcu_lock = false;
        } else if sleepable {
            return Err(refuse!(env => Call::SleepsUnderRcu { name }));
        }
    } else if locks {
        env.state.active_rcu_lock = true;
    } else if unlocks {
        return Err(refuse!(env => Call::UnmatchedRcuUnlock { name }));
    }
    match callee.kfunc.special {
        Some(SpecialKfunc::PreemptDisable) => env.state.active_preempt_locks += 1,
        Some(SpecialKfunc::PreemptEnable) if env.state.active_preempt_locks == 0 => {
            return Err(refuse!(env => Call::UnmatchedPreemptEnable { name }));
        }
        Some(SpecialKfunc::PreemptEnable) => env.state.active_preempt_locks -= 1,
        _ if sleepable && env.state.active_preempt_locks != 0 => {
            return Err(refuse!(env => Call::SleepsNonPreemptible { name }));
        }
        _ => {}
    }
    if callee.has(KfuncFlags::RCU_PROTECTED) && !env.state.in_rcu_section() {
        return Err(refuse!(env => Call::RequiresRcu { name }));
    }
    Ok(())
}

/// Pointers that RCU protected may dangle from now on.
fn invalidate_rcu_pointers(env: &mut VerifierEnv<'_>) {
    let is_protected = |reg: &crate::state::RegState| reg.flags.has(TypeFlags::MEM_RCU);
    env.state.for_each_reg_mut(is_protected, |reg| {
        let kept = reg
            .flags
            .without(TypeFlags::MEM_RCU | TypeFlags::PTR_MAYBE_NULL);
        reg.flags = kept.with(TypeFlags::PTR_UNTRUSTED);
    });
}

/// Releases the reference that an argument holds.
fn release(env: &mut VerifierEnv<'_>, callee: &Callee<'_>, meta: &Meta, id: i32) -> Result<()> {
    let Some(released) = meta.release else {
        return Ok(());
    };
    let reference = env.reg(released).ref_obj_id;
    if reference::release(env, reference) {
        return Ok(());
    }
    Err(refuse!(env => Call::KfuncNotAcquired { name: &callee.kfunc.name, id }))
}

fn name_of(env: &VerifierEnv<'_>, btf: Option<&Btf<'_>>, id: i32) -> String {
    let of_btf = btf
        .and_then(|types| types.get(TypeId(id as u32)))
        .filter(|ty| matches!(ty.shape(), Shape::Func(_)));
    match (of_btf, env.input.registry.kfunc(id as u32)) {
        (Some(ty), _) => ty.name().to_string_lossy().into_owned(),
        (None, Some(kfunc)) => kfunc.name.to_string(),
        (None, None) => format!("#{id}"),
    }
}

/// True if the kernel function may be called while a lock is held
/// (`kfunc_spin_allowed`).
#[doc(alias = "kfunc_spin_allowed")]
pub(super) fn is_allowed_under_lock(env: &VerifierEnv<'_>, id: i32, module: i16) -> bool {
    let kfunc = env.input.registry.kfunc(id as u32);
    let special = kfunc.and_then(|kfunc| kfunc.special);
    module == 0 && special.is_some_and(SpecialKfunc::is_allowed_under_lock)
}
