//! Calls of kernel functions: availability, arguments, effects, result, in the kernel's
//! order (`check_kfunc_call`).

mod alloc;
mod arg_kind;
mod args;
mod dynptr;
pub(super) mod graph;
mod irq_flag;
mod iter;
mod map;
mod returns;

use btf::fields::FieldKind;
use btf::{Btf, Kind, Shape, TypeId};
use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::bits::BitOp;
use spec::callback::CallbackKind;
use spec::programs::{HookKind, ProgramType};
use spec::registry::{Kfunc, KfuncFlags, SpecialKfunc, TypeFlags};

use super::meta::CallMeta;
use super::{REGS, callback, clear_caller_saved, leak, lock};
use crate::domain::Scalar;
use crate::env::{Check, Env, Outcome};
use crate::input::Input;
use crate::mem::packet;
use crate::state::{BtfRef, RegState, State, TypeRef};
use crate::{Result, Stop, refuse, refuse_if};
use FieldKind::{
    KptrPercpu, KptrRef, KptrUnref, ListHead, ListNode, RbNode, RbRoot, Refcount, ResSpinLock,
    SpinLock, TaskWork, Timer, Uptr, Workqueue,
};

/// A kfunc with its prototype.
struct Callee<'e> {
    /// Registry entry.
    kfunc: &'e Kfunc,
    /// Types of the kernel or of the module that has it.
    btf: &'e Btf<'static>,
    /// Which these are.
    of: BtfRef,
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

    /// The type that a pointer parameter points to, below modifiers.
    fn pointee(&self, index: usize) -> TypeId {
        let (param, _) = self.params[index];
        match self.btf.at(arg_kind::strip(self.btf, param)).shape() {
            Shape::Ptr(pointee) => arg_kind::strip(self.btf, pointee),
            _ => TypeId::VOID,
        }
    }

    /// True if it releases what a register holds, which holds no reference.
    fn lacks_reference(&self, ptr: Reg, reg: &RegState) -> bool {
        let releases = self.has(KfuncFlags::RELEASE) && ptr == Reg::R1;
        releases
            && reg.ref_obj_id == 0
            && !reg.is_null()
            && !self.is(SpecialKfunc::DynptrFileDiscard)
    }

    /// A type among those of the function.
    const fn type_ref(&self, id: TypeId) -> TypeRef {
        TypeRef {
            btf: self.of,
            id: id.0,
        }
    }

    fn unsupported(&self) -> Stop {
        Stop::unsupported(format!("kfunc {}", self.kfunc.name))
    }
}

/// What a call of a kernel function names.
#[derive(Clone, Copy, Debug)]
pub(super) struct KfuncMeta<'e> {
    /// BTF id of the function.
    id: i32,
    /// The BTF that has it, that of vmlinux or of a module.
    btf: Option<&'e Btf<'static>>,
    /// Which that is.
    of: BtfRef,
    /// The function, if it is a kfunc.
    pub(super) kfunc: Option<&'e Kfunc>,
    /// The bit operation that it is.
    bits: Option<BitOp>,
}

impl KfuncMeta<'_> {
    /// Name for messages.
    fn name(&self) -> String {
        let func = self.btf.and_then(|btf| btf.get(TypeId(self.id as u32)));
        match (func, self.kfunc) {
            (Some(ty), _) if ty.kind() == Kind::Func => ty.name().to_string_lossy().into_owned(),
            (_, Some(kfunc)) => kfunc.name.to_string(),
            (_, None) => format!("#{}", self.id),
        }
    }
}

/// What a call of a kernel function names (`fetch_kfunc_meta`) (`find_kfunc_desc`,
/// `find_kfunc_desc_btf`, `__find_kfunc_desc_btf`).
#[doc(alias = "find_kfunc_desc")]
#[doc(alias = "find_kfunc_desc_btf")]
#[doc(alias = "__find_kfunc_desc_btf")]
pub(super) fn fetch_kfunc_meta<'e>(
    input: &'e Input<'e>,
    id: i32,
    module: i16,
) -> Result<KfuncMeta<'e>> {
    if module == 0 {
        return Ok(KfuncMeta {
            id,
            btf: input.vmlinux,
            of: BtfRef::Vmlinux,
            kfunc: input.registry.kfunc(id as u32),
            bits: None,
        });
    }
    let index = u16::try_from(module).ok().and_then(|at| at.checked_sub(1));
    let found = index.and_then(|at| Some((at, input.modules.get(usize::from(at))?)));
    let Some((index, module)) = found else {
        return Err(Stop::unsupported(
            "kfunc of a module whose BTF is not given",
        ));
    };
    let kfunc = input.registry.kfunc_of_module(module, id as u32);
    if kfunc.is_none() && module.kfuncs.is_none() {
        let func = module.btf.get(TypeId(id as u32));
        let name = func.map_or(String::new(), |ty| ty.name().to_string_lossy().into_owned());
        return Err(Stop::unsupported(format!(
            "kfunc {name} of module {}: its BTF has neither flags nor program types of kfuncs",
            module.name
        )));
    }
    Ok(KfuncMeta {
        id,
        btf: Some(&*module.btf),
        of: BtfRef::Module(index),
        kfunc,
        bits: BitOp::from_func(module, id),
    })
}

/// Checks a call of a kernel function (`check_kfunc_call`).
pub(super) fn check_kfunc_call(env: &mut Env<'_>, found: KfuncMeta<'_>) -> Result<Outcome> {
    let context = &env.input.context;
    let is_allowed = |kfunc: &&Kfunc| {
        let operation = context.operation.unwrap_or_default();
        let operations = context.struct_ops();
        kfunc.is_for(context.kind, context.attach)
            && operations.is_none_or(|row| row.has_kfunc(&kfunc.name, operation))
    };
    let Some(kfunc) = found.kfunc.filter(is_allowed) else {
        return Err(refuse!(env => Call::KfuncNotAllowed { name: found.name() }));
    };
    let name = &*kfunc.name;
    env.insn_aux().is_iter_next = kfunc.flags.has(KfuncFlags::ITER_NEXT);
    refuse_if!(kfunc.special == Some(SpecialKfunc::Trap), env => Call::Trap);
    if kfunc.flags.has(KfuncFlags::SLEEPABLE) && !env.state.in_sleepable {
        return Err(refuse!(env => Call::SleepableKfunc { name }));
    }
    let callee = callee(found, kfunc)?;
    if kfunc.special.is_some_and(SpecialKfunc::may_fail_to_lock) {
        lock::push_failed_lock(env)?;
    }
    let meta = args::check_kfunc_args(env, &callee)?;
    check_drop(env, &callee, &meta)?;
    if let Some(kind) = kfunc.special.and_then(SpecialKfunc::callback) {
        push_callback(env, &found, kind, &meta)?;
    }
    change_sections(env, &callee)?;
    refuse_if!(!meta.release_reference(env), env => Call::KfuncNotAcquired { name, id: found.id });
    let node = env.reg(Reg::R2).ref_obj_id;
    if kfunc.special.is_some_and(SpecialKfunc::gives_away) && !graph::give_away(env, node) {
        return Err(refuse!(env => Call::KfuncConversion { name, id: found.id }));
    }
    let throws = kfunc.special == Some(SpecialKfunc::Throw);
    env.seen_exception |= throws;
    // The default callback returns the cookie.
    if throws && env.analysis.exception_callback.is_none() {
        crate::flow::check_thrown(env)?;
    }
    // No check of an argument marks its register: what is not marked counts as dead in explored states.
    for reg in &REGS[..callee.params.len()] {
        env.mark_reg_read(*reg);
    }
    clear_caller_saved(env)?;
    returns::set_result(env, &callee, &meta)?;
    if kfunc.special.is_some_and(SpecialKfunc::changes_packet) {
        packet::clear_pointers(env);
    }
    if throws {
        match env.input.rules.has(Behaviour::ThrowsHoldNothing) {
            true => leak::check_resource_leak(env, true, true, leak::LeakCheck::Throw)?,
            false => check_exit_by_exception(env)?,
        }
        return Ok(Outcome::Exit);
    }
    if let Some(most) = found.bits.and_then(BitOp::most) {
        env.reg_mut(Reg::R0).num = Scalar::up_to(most, env.input.rules);
    }
    if callee.has(KfuncFlags::ITER_NEXT) {
        iter::advance(env, &meta)?;
    }
    env.mark_scratched(Reg::R0);
    Ok(Outcome::Next)
}

/// Refuses to drop objects whose fields are unsafe in an NMI, in tracing programs that may run there.
fn check_drop(env: &mut Check<'_>, callee: &Callee<'_>, meta: &CallMeta) -> Result<()> {
    let drops = callee.is(SpecialKfunc::ObjDrop) || callee.is(SpecialKfunc::PercpuObjDrop);
    if !drops || !env.input.rules.has(Behaviour::DropsInTracing) {
        return Ok(());
    }
    let context = &env.input.context;
    let is_tracing = env.input.type_rules().is_tracing
        || context.kind == ProgramType::Tracing
            && context.hook() != HookKind::Iterator
            && !context.sleepable;
    let Some(ty) = meta.object.filter(|_| is_tracing) else {
        return Ok(());
    };
    let record = env.input.structure_fields(ty);
    let is_safe = |kind: FieldKind| match kind {
        SpinLock | ResSpinLock | Timer | Workqueue | TaskWork | KptrUnref | Refcount => true,
        KptrRef | KptrPercpu | Uptr | ListHead | ListNode | RbRoot | RbNode => false,
    };
    let mut fields = record.into_iter().flat_map(|record| record.fields());
    match fields.all(|field| is_safe(field.kind)) {
        true => Ok(()),
        false => Err(refuse!(env => Call::DropsUnsafe { kfunc: &callee.kfunc.name })),
    }
}

/// Checks an exception as an exit, which leaves sections and locks of callers unseen.
fn check_exit_by_exception(env: &mut Check<'_>) -> Result<()> {
    let is_outermost = env.state.curframe == 0;
    leak::check_resource_leak(env, true, is_outermost, leak::LeakCheck::Exit)
}

/// Enters the function of the program that a kfunc is given.
fn push_callback(
    env: &mut Env<'_>,
    found: &KfuncMeta<'_>,
    kind: CallbackKind,
    meta: &CallMeta,
) -> Result<()> {
    match callback::push(env, meta.subprog, kind) {
        Err(Stop::Refused(inner)) => {
            let name = found.name();
            let refusal = refuse!(env => Call::KfuncCallback { name, id: found.id });
            Err(refusal.with_errno(inner.errno))
        }
        Err(stop) => Err(stop),
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(Stop::unsupported(
            "callbacks of kfuncs that are followed once",
        )),
    }
}

/// The prototype of a kfunc whose calls are supported, by the BTF that has it
/// (`bpf_fetch_kfunc_arg_meta`).
#[doc(alias = "bpf_fetch_kfunc_arg_meta")]
fn callee<'e>(found: KfuncMeta<'e>, kfunc: &'e Kfunc) -> Result<Callee<'e>> {
    let unsupported = || Stop::unsupported(format!("kfunc {}", kfunc.name));
    let btf = found.btf.ok_or_else(unsupported)?;
    let func = btf.get(TypeId(found.id as u32)).map(|ty| ty.shape());
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
        of: found.of,
        params: params.collect(),
        returns: proto.returns,
    })
}

/// Enters and leaves RCU and non-preemptible sections, and refuses what may sleep inside.
fn change_sections(env: &mut Check<'_>, callee: &Callee<'_>) -> Result<()> {
    let name = &callee.kfunc.name;
    let sleepable = callee.has(KfuncFlags::SLEEPABLE);
    let locks = callee.is(SpecialKfunc::RcuReadLock);
    let unlocks = callee.is(SpecialKfunc::RcuReadUnlock);
    let nests = env.input.rules.has(Behaviour::SectionsNest);
    let in_callback = (locks || unlocks) && lock::in_rbtree_callback(env.input, &env.state);
    if env.state.active_rcu_locks != 0 {
        refuse_if!(in_callback && !nests, env => Call::SectionInCallback);
        refuse_if!(locks && !nests, env => Call::NestedRcuLock { name });
        if locks {
            env.state.active_rcu_locks += 1;
        } else if unlocks {
            env.state.active_rcu_locks -= 1;
            leave_section(env);
        } else if sleepable {
            return Err(refuse!(env => Call::SleepsUnderRcu { name }));
        }
    } else if locks {
        env.state.active_rcu_locks = 1;
    } else if unlocks {
        return Err(refuse!(env => Call::UnmatchedRcuUnlock { name }));
    }
    match callee.kfunc.special {
        Some(SpecialKfunc::PreemptDisable) => env.state.active_preempt_locks += 1,
        Some(SpecialKfunc::PreemptEnable) if env.state.active_preempt_locks == 0 => {
            return Err(refuse!(env => Call::UnmatchedPreemptEnable { name }));
        }
        Some(SpecialKfunc::PreemptEnable) => {
            env.state.active_preempt_locks -= 1;
            if env.input.rules.has(Behaviour::SectionsProtect) {
                leave_section(env);
            }
        }
        _ if sleepable && env.state.active_preempt_locks != 0 => {
            return Err(refuse!(env => Call::SleepsNonPreemptible { name }));
        }
        _ => {}
    }
    refuse_if!(sleepable && env.state.active_irq_id != 0, env => Call::SleepsIrqDisabled { name });
    refuse_if!(in_callback && nests, env => Call::SectionInCallback);
    if callee.has(KfuncFlags::RCU_PROTECTED) && !env.state.in_rcu_section(env.input.rules) {
        return Err(refuse!(env => Call::RequiresRcu { name }));
    }
    Ok(())
}

/// Leaves a section; behind the outermost, pointers that RCU protected may dangle.
fn leave_section(env: &mut Check<'_>) {
    let rules = env.input.rules;
    let protects = rules.has(Behaviour::SectionsProtect) && env.state.in_rcu_section(rules);
    if env.state.active_rcu_locks == 0 && !protects {
        invalidate_rcu_pointers(&mut env.state);
    }
}

/// Pointers that RCU protected may dangle from now on (`invalidate_rcu_protected_refs`).
#[doc(alias = "invalidate_rcu_protected_refs")]
fn invalidate_rcu_pointers(state: &mut State) {
    let is_protected = |reg: &crate::state::RegState| reg.flags.has(TypeFlags::MEM_RCU);
    state.for_each_reg_mut(is_protected, |reg| {
        let kept = reg
            .flags
            .without(TypeFlags::MEM_RCU | TypeFlags::PTR_MAYBE_NULL);
        reg.flags = kept.with(TypeFlags::PTR_UNTRUSTED);
    });
    iter::leave_rcu(state);
}

#[cfg(test)]
mod tests;
